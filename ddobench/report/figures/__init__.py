"""The figures of a report: each returns its data and a description, and `draw` draws it."""

"""The figures of a report, one kind a module, and what they are drawn with."""

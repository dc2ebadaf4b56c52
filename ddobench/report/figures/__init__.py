"""The figures of a report: each has its data and a plot, which `draw` draws."""

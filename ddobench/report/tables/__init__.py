"""The tables of a report: frames of numbers, and how each is shown."""

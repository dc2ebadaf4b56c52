"""The tables of a report: frames of numbers, and one type that describes how each is shown."""

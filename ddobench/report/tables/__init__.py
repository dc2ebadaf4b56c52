"""The tables of a report as frames, and how numbers and names are written in them."""

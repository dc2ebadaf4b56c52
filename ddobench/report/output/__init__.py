"""Puts every file of a report in its place."""

"""Families of problems; one file is one family."""

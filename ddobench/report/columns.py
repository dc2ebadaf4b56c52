"""Columns that say which runs belong together."""

FAMILY = ["task", "task_variant", "n", "budget"]  # what one figure shows
CELL = [*FAMILY, "d"]  # one dimension of it
SERIES = ["method", "method_variant"]  # one curve of it

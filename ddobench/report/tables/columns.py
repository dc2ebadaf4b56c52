"""Columns that say which runs belong together."""

STUDY = ["task", "task_variant", "budget"]  # one question, at any size
FAMILY = ["task", "task_variant", "n", "budget"]  # what one figure against dimension shows
SLICE = ["task", "task_variant", "d", "budget"]  # what one figure against visible rows shows
CELL = [*FAMILY, "d"]  # one size of it
SERIES = ["method", "method_variant"]  # one curve of it
LOST = ["declined", "failed", "missing", "unscored"]  # seeds that a mean is without, by why

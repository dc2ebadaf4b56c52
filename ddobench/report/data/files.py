"""Names of the files of a report."""

import re
from typing import Any

import pandas as pd

_LONGEST_NAME = 80


def file_stem(*words: str) -> str:
    """Spell words as one portable file name without its ending."""
    text = "-".join(word for word in words if word).lower()
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")[:_LONGEST_NAME].rstrip("-.") or "unnamed"


def row_stem(kind: str, row: "pd.Series[Any]", *sizes: str, method: str = "") -> str:
    """Name a file by what it shows of the runs that share a row's task, budget and sizes."""
    budget = "" if row["budget"] == "full" else str(row["budget"])
    sized = "-".join(f"{size}{row[size]}" for size in sizes)
    return file_stem(kind, str(row["task"]), str(row["task_variant"]), method, sized, budget)

"""Commands that a report suggests."""

import re
import shlex
from collections.abc import Iterable
from typing import Any

import pandas as pd


def sweep_command(row: "pd.Series[Any]", methods: Iterable[str], **sizes: str) -> str:
    """Spell a sweep of the task a row is about; `sizes` replace its d or n."""
    words = {"task": row["task"], "d": row["d"], "n": row["n"], **sizes}
    variant = re.split(r"\s+(?=\w+=)", str(row["task_variant"]).strip())
    budget = "" if row["budget"] in ("", "full") else f"budget={row['budget']}"
    spelled = [
        *(f"{name}={value}" for name, value in words.items()),
        *(f"task.{word}".replace("=None", "=null") for word in variant if word),
        *([budget] if budget else []),
        f"method={','.join(methods)}",
        "seed=0-49",
    ]
    return " ".join(["python -m ddobench -m", *(shlex.quote(word) for word in spelled)])

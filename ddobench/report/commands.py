"""Commands that a report repeats or suggests."""

import re
import shlex
from collections.abc import Iterable
from functools import cache
from typing import Any

import pandas as pd


@cache
def portable(command: str) -> str:
    """Return a command without the folder its results went to, which is a matter of one machine."""
    try:
        words = shlex.split(command)
    except ValueError:  # a quote that never ends: left as it was typed
        return command
    if not any(word.startswith("results_dir=") for word in words):
        return command
    return shlex.join(word for word in words if not word.startswith("results_dir="))


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

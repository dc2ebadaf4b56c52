"""Names and bytes of the files of a report."""

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

_LONGEST_NAME = 80


def write_atomically(path: Path, content: bytes | str) -> Path:
    """Write a file so that a reader sees the old content or the new, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode("utf-8") if isinstance(content, str) else content
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return path


def file_stem(*words: str) -> str:
    """Spell words as one portable file name without its ending."""
    text = "-".join(word for word in words if word).lower()
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")[:_LONGEST_NAME] or "unnamed"


def row_stem(kind: str, row: "pd.Series[Any]", *sizes: str, method: str = "") -> str:
    """Name a file by what it shows of the runs that share a row's task, budget and sizes."""
    budget = "" if row["budget"] == "full" else str(row["budget"])
    sized = "-".join(f"{size}{row[size]}" for size in sizes)
    return file_stem(kind, str(row["task"]), str(row["task_variant"]), method, sized, budget)


def _umask() -> int:
    """Return the process's umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

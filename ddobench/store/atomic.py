"""Writing files whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write under a temporary name in the same folder, flush to disk, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # hosts may share process ids
    try:
        write(temporary)
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)

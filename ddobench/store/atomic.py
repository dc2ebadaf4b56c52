"""Writing files whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4


def write_whole(path: Path, content: bytes | str | Callable[[Path], object]) -> Path:
    """Write under a temporary name in the same folder, flush to disk, then rename.

    A reader sees the old content or the new, never a part. What is not at hand as bytes or text is
    written by a function of the temporary name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # hosts may share process ids
    try:
        if callable(content):
            content(temporary)
        else:
            temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        with temporary.open("rb") as handle:
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path

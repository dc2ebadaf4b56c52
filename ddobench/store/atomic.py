"""Writing files whole or not at all, and removing what killed writers left behind.

A file is written under a temporary name, on which its writer holds a lock for as long as it lives.
So a process that gets the lock knows that the writer is gone, even in another container.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from ddobench.errors import StorageError

ROOM = 1 << 20  # bytes that must be free before anything is computed
_ATTEMPTS = 3
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
_largest_refused = 0  # bytes; what failed once must have room before more is computed


def write_whole(path: Path, content: bytes | str) -> Path:
    """Write under a temporary name in the same folder, flush to disk, then rename.

    A reader sees the old content or the new, never a part.
    """
    data = content.encode() if isinstance(content, str) else content
    with _explaining(path, len(data)):
        for attempt in range(_ATTEMPTS):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with _temporary(path) as (handle, temporary):
                    _write(handle, data)
                    os.fsync(handle)
                    temporary.replace(path)
                break
            except FileNotFoundError:  # taken for a leftover before it was locked, or by a host
                if attempt == _ATTEMPTS - 1:  # that does not see our locks
                    raise
    return path


def check_room(folder: Path) -> None:
    """Raise unless a file of some size can be written into a folder, which is made if need be."""
    size = max(ROOM, _largest_refused)
    with _explaining(folder, size):
        folder.mkdir(parents=True, exist_ok=True)
        with _temporary(folder / "room") as (handle, _):
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(handle, 0, size)
            else:
                _write(handle, bytes(size))


def remove_leftovers(folder: Path, names: Iterable[str]) -> None:
    """Remove, of the named files, what killed writers left; living writers hold their locks."""
    for name in names:
        if _LEFTOVER.fullmatch(name):
            with suppress(OSError):  # at work, gone already, or not ours to remove
                _remove_unless_locked(folder / name)


def _remove_unless_locked(path: Path) -> None:
    handle = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(handle)


@contextmanager
def _temporary(path: Path) -> Iterator[tuple[int, Path]]:
    """Yield a locked temporary file beside `path` and its name; it is removed afterwards."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")  # hosts may share process ids
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with suppress(OSError):  # without locks leftovers stay, for no one can get one either
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle, temporary
    finally:
        temporary.unlink(missing_ok=True)
        os.close(handle)


def _write(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


@contextmanager
def _explaining(path: Path, size: int) -> Iterator[None]:
    """Turn an error of the system into one sentence, and remember how much it refused."""
    global _largest_refused
    try:
        yield
    except OSError as error:
        _largest_refused = max(_largest_refused, size)
        raise StorageError(
            f"{path} cannot be written: {error.strerror or error}; "
            "make room or permit it there, or choose another folder"
        ) from error

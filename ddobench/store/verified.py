"""Which files were found whole, so that a sweep need not read all that is stored to go on.

A file is known by its size, its times and its place on disk, which no program changes without
leaving a trace. What it was found to be is forgotten with any of them, or with this list.
"""

import json
import logging
import os
import time
from pathlib import Path

from ddobench.errors import StorageError
from ddobench.store.atomic import write_whole

log = logging.getLogger(__name__)

SETTLED_NS = 2 * 10**9  # a file may change twice within what its file system calls the same time

Stamp = list[int]


class Verified:
    """The files of one folder that were found whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = _read(path)
        self._learnt = False

    def knows(self, name: str, stat: os.stat_result) -> bool:
        """Tell whether a file has not changed since it was found whole."""
        return self._known.get(name) == stamp_of(stat)

    def add(self, name: str, stat: os.stat_result) -> None:
        """Remember a file, looked at before it was found whole."""
        if is_settled(stat):
            self._known[name] = stamp_of(stat)
            self._learnt = True

    def save(self) -> None:
        """Let the next sweep know; a folder that cannot be written does without."""
        if self._learnt:
            try:
                write_whole(self.path, json.dumps(self._known))
            except StorageError as error:
                log.debug("what was verified is not remembered: %s", error)


def is_settled(stat: os.stat_result) -> bool:
    """Tell whether a file would show by its times if it changed from now on."""
    return time.time_ns() - max(stat.st_mtime_ns, stat.st_ctime_ns) > SETTLED_NS


def stamp_of(stat: os.stat_result) -> Stamp:
    """Return what changes with every change of a file."""
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def _read(path: Path) -> dict[str, Stamp]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return known if isinstance(known, dict) else {}

"""The goals of running sweeps, so that their progress can be read from the store.

A sweep writes down its missing runs when it begins and removes that file when it ends. It holds a
lock on the file as long as it lives; a file without a lock was left by a sweep that was killed.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from ddobench.seeds import Seeds, parse_seeds
from ddobench.store.atomic import write_whole
from ddobench.store.checks import printable, read_json
from ddobench.store.runs import Place, Store, attempt, has_failed

_FOLDER = Path(".cache", "sweeps")
_ENDING = ".sweep.json"


@dataclass(frozen=True)
class Goal:
    """The runs of one specification that a sweep will make."""

    folder: str  # their place in the results folder
    seeds: str

    def count_done(self, root: Path, since: float) -> int:
        """Return how many are stored or have failed by now."""
        place = Place(root / self.folder, self.folder.rpartition("-")[2])
        wanted = parse_seeds(self.seeds)
        found = {seed for seed in place.seeds() if seed in wanted}
        return len(found | {seed for seed in has_failed(place, since) if seed in wanted})


@dataclass(frozen=True)
class Sweep:
    """A sweep under way."""

    command: str
    began: float  # seconds since 1970
    runs: int  # that were missing when it began
    goals: list[Goal]

    def count_done(self, root: Path) -> int:
        """Return how many of its runs are stored, declined or failed by now."""
        return sum(goal.count_done(root, self.began) for goal in self.goals)


@contextmanager
def announce(store: Store, command: str, missing: Sequence[tuple[Place, Seeds]]) -> Iterator[Sweep]:
    """Announce the goals of a sweep inside the block."""
    goals = [Goal(place.folder.name, str(seeds)) for place, seeds in missing if seeds]
    sweep = Sweep(command, time.time(), sum(len(seeds) for _, seeds in missing), goals)
    _remove_dead(store.folder)
    path = store.folder / _FOLDER / f"{uuid4().hex}{_ENDING}"
    write_whole(path, json.dumps(asdict(sweep)))
    handle = os.open(path, os.O_RDWR)
    try:
        with suppress(OSError):  # without locks it looks like a killed one
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield sweep
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def read_sweeps(folder: Path) -> list[tuple[Sweep, bool]]:
    """Return the sweeps that have not ended, and whether each is still running."""
    found = []
    for path in sorted((folder / _FOLDER).glob(f"*{_ENDING}")):
        sweep = attempt(path, partial(_read, path))
        if sweep is not None:
            found.append((sweep, _is_locked(path)))
    return sorted(found, key=lambda pair: pair[0].began)


def _read(path: Path) -> Sweep:
    found: Any = read_json(path)
    goals = [Goal(str(goal["folder"]), str(goal["seeds"])) for goal in found["goals"]]
    for goal in goals:
        if Path(goal.folder).name != goal.folder:
            raise ValueError("a sweep must name folders of its own results folder")
        parse_seeds(goal.seeds)
    command = printable(str(found["command"]))
    return Sweep(command, float(found["began"]), int(found["runs"]), goals)


def _is_locked(path: Path) -> bool:
    """Return whether the process that wrote a file is still running."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _remove_dead(folder: Path) -> None:
    """Remove the files of sweeps that were killed."""
    for path in (folder / _FOLDER).glob(f"*{_ENDING}"):
        if not _is_locked(path):
            path.unlink(missing_ok=True)

"""Folds finished runs into few files, or publishes them: a folded copy without the largest parts.

A folded file is written whole, read back and compared with what it was made of before any file is
removed. So a reader finds every run at any moment, in one form or in both, and a compaction that
was killed is simply run again.
"""

import fcntl
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from ddobench.errors import StorageError, UsageError
from ddobench.progress import track
from ddobench.store.atomic import remove_leftovers, write_whole
from ddobench.store.parquet import StoredRun, join, open_runs, to_bytes
from ddobench.store.records import ARRAYS, LEFT_OUT, PLANE, SAMPLES
from ddobench.store.runs import Place, Store, attempt, copy_papers, read_runs

PARTS = (*ARRAYS, "samples")  # what can be left out: nothing that a report reads of every run
_FOLDER = re.compile(r" results_dir=.*?(?= [-+~]| [\w.@/]+=|$)")
Stamp = tuple[int, int, int, int]


@dataclass
class Folded:
    """What a compaction did."""

    runs: int = 0  # in folded files now
    files: int = 0  # folded files
    bytes_folded: int = 0
    single: int = 0  # files of single runs that were read
    bytes_single: int = 0
    left: list[Path] = field(default_factory=list)  # files that stay as they are


def compact(folder: Path) -> Folded:
    """Fold the finished runs of a results folder, in place and without loss."""
    return _fold(folder, folder, ())


def publish(folder: Path, target: Path, without: Collection[str] = PARTS) -> Folded:
    """Copy the finished runs of a results folder into folded files of another, without some parts.

    Samples stay with the first seed of every specification that has any.
    """
    unknown = [part for part in without if part not in PARTS]
    if unknown:
        raise UsageError(f"what can be left out is {', '.join(PARTS)}, got {unknown[0]!r}")
    if target.resolve() == folder.resolve():
        raise UsageError(
            f"runs are published in another folder than {folder}, which keeps all their parts; "
            "name one"
        )
    folded = _fold(folder, target, without)
    copy_papers(folder, target)
    return folded


def _fold(folder: Path, target: Path, without: Collection[str]) -> Folded:
    folded = Folded()
    with _alone(target):
        for place in track(Store(folder).places(), "folding runs"):
            goal = replace(place, folder=target / place.folder.relative_to(folder))
            _fold_place(place, goal, without, folded)
    return folded


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other compaction write into a folder: each would remove what the other reads."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UsageError(f"another compaction is at work in {folder}; wait for it") from None
    finally:
        os.close(handle)


def _fold_place(source: Place, goal: Place, without: Collection[str], folded: Folded) -> None:
    """Fold the runs of one specification, one folded file after the other."""
    if source == goal:
        remove_leftovers(source.folder, [path.name for path in source.folder.iterdir()])
    names = dict.fromkeys(source.folded(seed).name for seed in source.seeds())
    sampled = False  # whether a run has kept its samples
    for name in names:
        seeds = [seed for seed in source.seeds() if source.folded(seed).name == name]
        stamps: dict[Path, Stamp] = {}
        runs = _read_singles([source.file(seed) for seed in seeds], stamps, folded)
        if source != goal:
            runs |= _read_folded(source.folder / name, runs, folded)
            for seed in sorted(runs):
                runs[seed], sampled = _leave_out(runs[seed], without, sampled)
        if _fold_into(goal.folder / name, runs, folded) and source == goal:
            _remove(stamps)


def _read_singles(
    paths: Collection[Path], stamps: dict[Path, Stamp], folded: Folded
) -> dict[int, StoredRun]:
    """Read the runs that have a file of their own; a damaged one is named and stays."""
    runs = {}
    for path in paths:
        if not path.exists():
            continue
        stamp = _stamp(path)
        found = attempt(path, partial(read_runs, path, lambda run, _: run))
        if not found:
            folded.left.append(path)
            continue
        (run,) = found.values()
        runs[run.seed], stamps[path] = run, stamp
        folded.single += 1
        folded.bytes_single += stamp[0]
    return runs


def _read_folded(path: Path, but: Collection[int], folded: Folded) -> dict[int, StoredRun]:
    """Read the other runs of a folded file; damaged ones are named and left out."""
    if not path.exists():
        return {}
    damaged: dict[Path, str] = {}
    found = attempt(path, partial(read_runs, path, lambda run, _: run, left_out=damaged)) or {}
    folded.left += damaged
    return {run.seed: run for run in found.values() if run.seed not in but}


def _fold_into(path: Path, runs: Mapping[int, StoredRun], folded: Folded) -> bool:
    """Write runs into a folded file beside those it has; if one of these is damaged, it stays."""
    there = attempt(path, partial(_read_others, path, runs)) if path.exists() else {}
    if there is None:
        folded.left.append(path)
        return False
    together = {**there, **runs}
    if runs:
        _write(path, together)
    if together:
        folded.runs += len(together)
        folded.files += 1
        folded.bytes_folded += path.stat().st_size
    return True


def _read_others(path: Path, but: Collection[int]) -> dict[int, StoredRun]:
    with open_runs(path) as file:
        return {seed: file.read(seed) for seed in file.places if seed not in but}


def _write(path: Path, runs: Mapping[int, StoredRun]) -> None:
    """Write a folded file and raise unless it then holds exactly what it should."""
    content = to_bytes(list(runs.values()))
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
        _flush(path.parent)
    found = _read_others(path, ())
    if found.keys() != runs.keys() or not all(run.same(found[seed]) for seed, run in runs.items()):
        raise StorageError(
            f"{path} does not hold what was written into it; nothing was removed, "
            "choose a folder on a sound disk"
        )


def _flush(folder: Path) -> None:
    """Let the name of a new file be on disk before the files it replaces are removed."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(stamps: Mapping[Path, Stamp]) -> None:
    """Remove files that have not changed since they were read."""
    for path, stamp in stamps.items():
        with suppress(FileNotFoundError):
            if _stamp(path) == stamp:
                path.unlink()


def _stamp(path: Path) -> Stamp:
    """Return what changes with every change of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino


def _leave_out(run: StoredRun, without: Collection[str], sampled: bool) -> tuple[StoredRun, bool]:
    """Return a run without some parts, and whether it or one before has kept its samples.

    Its command is left without the folder of its results, which is that of one machine.
    """
    diagnostics, arrays = run.diagnostics(), run.arrays()
    samples = [name for name in (*SAMPLES, PLANE) if name in diagnostics]
    parts = [name for name in arrays if name in without]
    cells = dict(run.cells)
    row = dict(zip(run.shared["names"], json.loads(cells["row"]), strict=True))
    if row.get("command"):
        row["command"] = _FOLDER.sub("", row["command"])
        cells["row"] = json.dumps([*row.values()])
    if parts:
        kept = [array for name, array in arrays.items() if name not in parts]
        cells["arrays"] = join(kept, np.float32)
    if samples and sampled and "samples" in without:
        parts.append("samples")
        rest = {name: value for name, value in diagnostics.items() if name not in samples}
        cells["diagnostics"] = json.dumps({**rest, LEFT_OUT: samples})
    left_out = sorted({*run.shared["left_out"], *parts})
    thin = replace(run, shared=run.shared | {"left_out": left_out}, cells=cells)
    return thin, sampled or bool(samples)

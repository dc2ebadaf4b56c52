"""Folds finished runs into packs, or publishes them: a copy in packs without the largest parts.

A pack is written whole, read back and compared with the files it was made of before any of these is
removed. So whoever looks finds every run at any moment, in one form or in both, and a compaction
that was killed is simply run again.
"""

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ddobench.errors import StorageError, UsageError
from ddobench.progress import track
from ddobench.store.atomic import remove_leftovers, write_whole
from ddobench.store.pack_file import open_pack, pack_runs
from ddobench.store.record_file import ARRAYS, Stored
from ddobench.store.records import LEFT_OUT, SAMPLES
from ddobench.store.runs import Place, Store, copy_papers
from ddobench.store.soundness import parse_json
from ddobench.store.stored_run import file_name, guarded, open_run
from ddobench.store.verified import Stamp, stamp_of

PARTS = (*ARRAYS, "samples")  # what can be left out: nothing that a report reads of every run


@dataclass
class Folded:
    """What a compaction did."""

    runs: int = 0  # in packs now
    packs: int = 0  # files that hold them
    bytes_packed: int = 0  # of these
    files: int = 0  # of single runs that were read
    bytes_read: int = 0  # of these
    left: list[Path] = field(default_factory=list)  # files that stay as they are


def compact(folder: Path) -> Folded:
    """Fold the finished runs of a results folder into packs, in place and without loss."""
    return _fold(folder, folder, ())


def publish(folder: Path, target: Path, without: Collection[str] = PARTS) -> Folded:
    """Copy the finished runs of a results folder into packs of another, without some parts.

    Samples stay with the first seed of every specification that has any, of which they are drawn.
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
    store, folded = Store(folder), Folded()
    with _alone(target):
        for place in track(store.places(), "folding runs"):
            goal = replace(place, folder=target / place.folder.relative_to(folder))
            _fold_place(place, goal, without, folded)
            if place == goal:
                store.forget_verified(place)
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
    """Fold the runs of one specification, pack by pack."""
    if source == goal:
        remove_leftovers(source.folder, [path.name for path in source.folder.iterdir()])
    blocks: dict[Path, list[int]] = {}
    for seed in sorted(source.seeds()):
        blocks.setdefault(source.pack(seed), []).append(seed)
    sampled = False  # whether a run has kept its samples
    for path, seeds in blocks.items():
        stamps: dict[Path, Stamp] = {}
        runs = _read_files(source, seeds, stamps, folded)
        if source == goal:
            if (not runs and _is_pristine(path)) or _fold_into(path, runs, folded):
                _count(path, folded)
                _remove(stamps)
        else:
            runs |= _read_packed(path, [seed for seed in seeds if seed not in runs], folded)
            for seed in sorted(runs):
                runs[seed], sampled = _leave_out(runs[seed], without, sampled)
            path = goal.pack(seeds[0])
            if runs and _fold_into(path, runs, folded):
                _count(path, folded)


def _read_files(
    place: Place, seeds: Collection[int], stamps: dict[Path, Stamp], folded: Folded
) -> dict[int, Stored]:
    """Read the runs that have a file of their own; what cannot be folded is named and stays."""
    found = {}
    for seed in seeds:
        path = place.file(seed)
        if not path.exists():
            continue
        stamp = stamp_of(path.stat())
        stored = guarded(path, _read_file)
        if stored is None:
            folded.left.append(path)
        else:
            found[seed], stamps[path] = stored, stamp
            folded.files += 1
            folded.bytes_read += stamp[0]
    return found


def _read_file(path: Path) -> Stored:
    with open_run(path) as file:
        return file.read_stored()


def _read_packed(path: Path, seeds: Collection[int], folded: Folded) -> dict[int, Stored]:
    """Read runs of a pack; what cannot be read is named."""
    found = {seed: guarded(path, partial(_read_seeds, seeds=[seed])) for seed in seeds}
    folded.left += [path.with_name(file_name(seed)) for seed in seeds if not found[seed]]
    return {seed: one[seed] for seed, one in found.items() if one}


def _read_seeds(path: Path, seeds: Collection[int]) -> dict[int, Stored]:
    with open_pack(path) as pack:
        found = {}
        for seed in seeds:
            try:
                found[seed] = pack.read_stored(seed)
            except Exception as error:
                raise ValueError(f"seed {seed}: {error}") from error
        return found


def _is_pristine(path: Path) -> bool:
    with open_pack(path) as pack:
        return pack.contents.pristine


def _fold_into(path: Path, runs: Mapping[int, Stored], folded: Folded) -> bool:
    """Write runs into a pack beside those it has; if one of these cannot be read, it stays."""
    there = guarded(path, partial(_read_others, runs))
    if there is None and path.exists():
        folded.left.append(path)
        return False
    _write(path, {**(there or {}), **runs})
    return True


def _read_others(runs: Collection[int], path: Path) -> dict[int, Stored]:
    with open_pack(path) as pack:
        seeds = [seed for seed in pack.seeds if seed not in runs]
    return _read_seeds(path, seeds)


def _write(path: Path, runs: Mapping[int, Stored]) -> None:
    """Write a pack and raise unless it then holds exactly what it should."""
    content = pack_runs([*runs.values()])
    if not path.exists() or path.read_bytes() != content:
        write_whole(path, content)
        _flush(path.parent)
    with open_pack(path) as pack:
        if pack.seeds != sorted(runs) or not all(
            run.same(pack.read_stored(seed)) for seed, run in runs.items()
        ):
            raise StorageError(
                f"{path} does not hold what was written into it; nothing was removed, "
                "choose a folder on a sound disk"
            )


def _flush(folder: Path) -> None:
    """Let the name of a new file be on disk before the files it replaces are gone from there."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(stamps: Mapping[Path, Stamp]) -> None:
    """Remove files that have not changed since they were read."""
    for path, stamp in stamps.items():
        with suppress(FileNotFoundError):
            if stamp_of(path.stat()) == stamp:
                path.unlink()


def _count(path: Path, folded: Folded) -> None:
    with open_pack(path) as pack:
        folded.runs += len(pack.seeds)
    folded.packs += 1
    folded.bytes_packed += path.stat().st_size


def _leave_out(run: Stored, without: Collection[str], sampled: bool) -> tuple[Stored, bool]:
    """Return a run without some parts, and whether it or one before has kept its samples."""
    told = parse_json(run.told) if run.told else {}
    samples = [name for name in SAMPLES if name in told]
    parts = [name for name in run.arrays if name in without]
    text = run.told
    if samples and sampled and "samples" in without:
        parts.append("samples")
        rest = {name: value for name, value in told.items() if name not in samples}
        text = json.dumps({**rest, LEFT_OUT: samples})
    left_out = sorted({*run.meta.get(LEFT_OUT, ()), *parts})
    thin = Stored(
        meta=run.meta | ({LEFT_OUT: left_out} if left_out else {}),
        curves=run.curves,
        arrays={name: array for name, array in run.arrays.items() if name not in parts},
        told=text,
    )
    return thin, sampled or bool(samples)

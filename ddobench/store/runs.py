"""The results folder: one Parquet file per run, see `record_file`; no other module writes them.

Finished runs may be folded into packs, see `compaction`: a run is then read from the pack in its
folder, and is still named by the file that it was. A file beside a pack counts before it. Whoever
lists files lists packs last: what vanished from the list of files meanwhile is in one of these.

A failed run leaves `seed-N.error.json` instead, and counts as missing; so does a damaged file. A
`.portrait.json` shows what a task looks like.
"""

import contextlib
import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.errors import UsageError
from ddobench.scores import curve_names, stored_names
from ddobench.store.atomic import check_room, remove_leftovers, write_whole
from ddobench.store.cache import ArrayCache
from ddobench.store.listing import (
    lay_out_curves,
    lay_out_runs,
    list_files,
    name_below,
    read_all,
    read_runs,
)
from ddobench.store.pack_file import open_pack
from ddobench.store.record_file import (
    DETAILS,
    ITERATION,
    open_record,
    to_bytes,
)
from ddobench.store.records import Portrait, Record
from ddobench.store.soundness import ROW, printable
from ddobench.store.stored_run import (
    ERROR,
    PACK,
    PORTRAIT,
    RESULT,
    are_whole,
    attempt,
    examine,
    examine_packed,
    file_name,
    guarded,
    is_newer,
    list_packed,
    pack_name,
    read_failure,
    read_file_diagnostics,
    read_metadata,
    read_packed_diagnostics,
    read_portrait,
    sample_packed,
    seed_of,
)
from ddobench.store.verified import Verified

log = logging.getLogger(__name__)

_CACHE = ".cache"


@dataclass(frozen=True)
class Survey:
    """A results folder read in one pass."""

    runs: pd.DataFrame  # see `load`
    curves: pd.DataFrame  # see `load_curves`
    configs: dict[str, dict[str, Any]]  # resolved, by digest
    provenance: dict[str, dict[str, Any]]  # by the path of a run
    left_out: dict[str, str]  # why a file could not be used, by its path


@dataclass(frozen=True)
class Place:
    """Where the runs of one specification are kept."""

    folder: Path
    digest: str

    def file(self, seed: int) -> Path:
        """Return the file of one run."""
        return self.folder / file_name(seed)

    def pack(self, seed: int) -> Path:
        """Return the pack that holds a run once it is folded."""
        return self.folder / pack_name(seed)

    def error(self, seed: int) -> Path:
        """Return the file that a failed run leaves."""
        return self.folder / f"seed-{seed:05d}{ERROR}"

    def seeds(self) -> list[int]:
        """Return the seeds that have a file or are in a pack, sound or not."""
        try:
            alone = [seed_of(entry.name) for entry in os.scandir(self.folder)]
            packs = [Path(entry) for entry in os.scandir(self.folder) if entry.name.endswith(PACK)]
        except OSError:  # there is none, or `Store.missing` says what is wrong with it
            return []
        found = {seed for seed in alone if seed is not None}
        return sorted(found.union(*(guarded(path, list_packed) or [] for path in packs)))


class Store:
    """A results folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def place(self, task: str, method: str, d: int, n: int, digest: str) -> Place:
        """Return the place of a specification."""
        return Place(self.folder / f"{task}-{method}-d{d}-n{n}-{digest}", digest)

    def places(self) -> list[Place]:
        """Return all places that hold finished runs, wherever they are in the folder."""
        files = (*list_files(self.folder, RESULT), *list_files(self.folder, PACK))
        folders = dict.fromkeys(path.parent for path in files)
        return [Place(folder, folder.name.rpartition("-")[2]) for folder in folders]

    def missing(self, place: Place, seeds: Sequence[int]) -> list[int]:
        """Return the seeds without a sound file; an unsound one is named in a warning.

        A file is read whole and compared with its checksums unless it was before and has not
        changed since. What killed writers left is removed on the way.
        """
        try:
            present = {entry.name: entry for entry in os.scandir(place.folder)}
        except FileNotFoundError:
            return list(seeds)
        except OSError as error:
            raise UsageError(
                f"results_dir must be a folder that can be read, got {self.folder} "
                f"({error.strerror})"
            ) from None
        remove_leftovers(place.folder, present)
        verified = Verified(self._verified(place))
        missing = [
            seed
            for seed in seeds
            if (entry := present.get(file_name(seed))) is None or not self._stored(entry, verified)
        ]
        packed: set[int] = set()
        for name in sorted({pack_name(seed) for seed in missing}):
            path = place.folder / name
            packed |= guarded(path, partial(self._find_packed, missing, verified)) or set()
        verified.save()
        return [seed for seed in missing if seed not in packed]

    def forget_verified(self, place: Place) -> None:
        """Forget which files of a place were found whole, as they are gone."""
        self._verified(place).unlink(missing_ok=True)

    def _verified(self, place: Place) -> Path:
        return self.folder / _CACHE / "verified" / f"{place.folder.name}.json"

    def check_room(self, place: Place) -> None:
        """Raise unless runs can be stored now; what killed writers left makes room first."""
        for folder in (self.folder, *(self.folder / _CACHE).glob("*/")):
            with contextlib.suppress(OSError):
                remove_leftovers(folder, [path.name for path in folder.iterdir()])
        check_room(place.folder)

    def write(self, place: Place, record: Record) -> Path:
        """Store a finished run, whole or not at all; a file of a newer version stays as it is."""
        path = place.file(record.row["seed"])
        content = to_bytes(record)
        if path.exists() and is_newer(path):  # since this sweep began
            log.warning("%s was written by a newer ddobench meanwhile and is left as it is", path)
        else:
            write_whole(path, content)
        place.error(record.row["seed"]).unlink(missing_ok=True)
        return path

    def write_failure(self, place: Place, row: dict[str, Any], trace: str) -> Path:
        """Leave the error of a run that has no result."""
        path = place.error(row["seed"])
        text = json.dumps({"row": row, "trace": trace}, indent=2, default=str)
        return write_whole(path, text)

    def cache(self, task: str) -> ArrayCache:
        """Return what methods of a task (named by its digest) share between runs."""
        return ArrayCache(self.folder / _CACHE, task)

    def portrait(self, task: str, digest: str) -> Path:
        """Return the file that shows what a task looks like, one for each configuration of it."""
        return self.folder / f"{task}-{digest}{PORTRAIT}"

    def write_portrait(self, path: Path, portrait: Portrait) -> None:
        """Store what a task looks like."""
        text = json.dumps(asdict(portrait))
        write_whole(path, text)

    def _stored(self, entry: os.DirEntry[str], verified: Verified) -> bool:
        """Tell whether a file needs no run: it is whole, or not ours to replace."""
        try:
            found = entry.stat()
        except OSError:  # gone since, or a link to nowhere
            return False
        if verified.knows(entry.name, found):
            return True
        path = Path(entry.path)
        condition = guarded(path, examine)
        if condition == "whole":
            verified.add(entry.name, found)
        return condition is not None

    def _find_packed(self, seeds: Sequence[int], verified: Verified, path: Path) -> set[int]:
        """Return which of the seeds a pack holds whole; the others that it has are named."""
        with open_pack(path) as pack:
            found = os.fstat(pack.handle)
            wanted = {seed for seed in seeds if seed in pack.contents.rows}
            if verified.knows(path.name, found):
                return wanted
            whole = {seed for seed in wanted if attempt(
                path.with_name(file_name(seed)), partial(examine_packed, pack, path, seed)
            )}  # fmt: skip
            if not pack.contents.pristine:
                log.warning("%s is damaged where its runs are not; they are read, and "
                            "python -m ddobench.compact writes it anew", path)  # fmt: skip
            elif whole == wanted and are_whole(pack, {*pack.seeds} - wanted):
                verified.add(path.name, found)
            return whole


def sample_metadata(place: Place, most: int) -> list[tuple[dict[str, Any], float]]:
    """Return what some finished runs of a place say, with the bytes that each takes on disk."""
    found: list[tuple[dict[str, Any], float]] = []
    for seed in place.seeds()[:most]:
        path = place.file(seed)
        meta = guarded(path, read_metadata)
        if meta is not None:
            found.append((meta, path.stat().st_size))
        elif packed := attempt(path, partial(sample_packed, path, seed)):
            found.append(packed)
    return found


def has_failed(place: Place, since: float) -> list[int]:
    """Return the seeds of a place that failed since a time, in seconds since 1970."""
    failed = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place.folder):
            seed = seed_of(entry.name.replace(ERROR, RESULT))
            if entry.name.endswith(ERROR) and seed is not None and entry.stat().st_mtime >= since:
                failed.append(seed)
    return failed


def reserved_columns() -> frozenset[str]:
    """Name the columns of runs and of their curves that have a meaning already."""
    return frozenset((*ROW, "reason", ITERATION, *DETAILS, *curve_names(), *stored_names()))


def read_record(path: str | Path) -> Record:
    """Return one stored run with all its parts, from the pack beside it if it is in one."""
    path = Path(path)
    seed = seed_of(path.name)
    if seed is not None and not path.exists() and path.with_name(pack_name(seed)).exists():
        with open_pack(path.with_name(pack_name(seed))) as pack:
            if seed in pack.contents.rows:
                return pack.read_record(seed)
    with open_record(path) as file:
        return file.read_record()


def read_diagnostics(path: str | Path) -> dict[str, Any]:
    """Return only what a method and the harness had to tell of one stored run, {} if it is gone."""
    path = Path(path)
    return (
        guarded(path, read_file_diagnostics)
        or attempt(path, partial(read_packed_diagnostics, path))
        or {}
    )


def survey(folder: str | Path) -> Survey:
    """Read everything but the designs and their values; unreadable files are named in a warning."""
    root = Path(folder)
    left_out: dict[Path, str] = {}
    batches = list(read_runs(root, True, left_out))
    found = {
        name_below(path, root): meta for batch in batches for path, meta in batch.metas.items()
    }
    metas = dict(sorted(found.items()))
    return Survey(
        runs=lay_out_runs(root, {path: meta["row"] for path, meta in metas.items()}, left_out),
        curves=lay_out_curves(batches),
        configs={meta["row"]["digest"]: meta["config"] for meta in metas.values()},
        provenance={path: meta["provenance"] for path, meta in metas.items()},
        left_out={printable(name_below(path, root)): left_out[path] for path in left_out},
    )


def load(folder: str | Path) -> pd.DataFrame:
    """Return one row per run, failed ones included; unreadable files are named in a warning."""
    root = Path(folder)
    found = (item for batch in read_runs(root, False) for item in batch.metas.items())
    return lay_out_runs(root, {name_below(path, root): meta["row"] for path, meta in found})


def load_curves(folder: str | Path) -> pd.DataFrame:
    """Return one row per run and recorded iteration."""
    return lay_out_curves(list(read_runs(Path(folder), True)))


def load_portraits(folder: str | Path) -> list[Portrait]:
    """Return the portraits of all tasks that have runs in a folder."""
    return [found for _, found in read_all(list_files(Path(folder), PORTRAIT), read_portrait)]


def copy_papers(source: Path, target: Path) -> None:
    """Copy what is beside finished runs: portraits, and which runs failed, without tracebacks."""
    for path, portrait in read_all(list_files(source, PORTRAIT), read_portrait):
        Store(target).write_portrait(target / path.relative_to(source), portrait)
    for path, row in read_all(list_files(source, ERROR), read_failure):
        folder = target / path.parent.relative_to(source)
        Store(target).write_failure(Place(folder, row["digest"]), row, "")

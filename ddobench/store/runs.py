"""The results folder: one Parquet file per run, see `record_file`; no other module writes them.

A failed run leaves `seed-N.error.json` instead, and counts as missing; so does a damaged file. A
`.portrait.json` shows what a task looks like.
"""

import contextlib
import glob
import json
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from ddobench.errors import UsageError
from ddobench.progress import track
from ddobench.scores import curve_names, stored_names
from ddobench.store.atomic import check_room, remove_leftovers, write_whole
from ddobench.store.cache import ArrayCache
from ddobench.store.record_file import (
    DECLARED_NAMES,
    DETAILS,
    ITERATION,
    RecordFile,
    open_record,
    to_bytes,
)
from ddobench.store.records import Portrait, Record
from ddobench.store.soundness import (
    IDENTITY,
    ROW,
    NewerSchemaError,
    check_portrait,
    check_regular,
    check_row,
    printable,
    read_json,
)
from ddobench.store.verified import Verified

log = logging.getLogger(__name__)

_CACHE = ".cache"
_RESULT = ".parquet"
_ERROR = ".error.json"
_PORTRAIT = ".portrait.json"
Result = TypeVar("Result")
Parts = TypeVar("Parts", bound=tuple[Any, ...])


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
        return self.folder / f"seed-{seed:05d}{_RESULT}"

    def error(self, seed: int) -> Path:
        """Return the file that a failed run leaves."""
        return self.folder / f"seed-{seed:05d}{_ERROR}"

    def seeds(self) -> list[int]:
        """Return the seeds that have a file, sound or not."""
        try:
            names = [entry.name for entry in os.scandir(self.folder)]
        except OSError:  # there is none, or `Store.missing` says what is wrong with it
            return []
        found = (re.fullmatch(rf"seed-(\d+){re.escape(_RESULT)}", name) for name in names)
        return [int(match[1]) for match in found if match]


class Store:
    """A results folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._said = False  # that some files have no checksums

    def place(self, task: str, method: str, d: int, n: int, digest: str) -> Place:
        """Return the place of a specification."""
        return Place(self.folder / f"{task}-{method}-d{d}-n{n}-{digest}", digest)

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
        verified = Verified(self.folder / _CACHE / "verified" / f"{place.folder.name}.json")
        missing = [
            seed
            for seed in seeds
            if (entry := present.get(place.file(seed).name)) is None
            or not self._stored(entry, verified)
        ]
        verified.save()
        return missing

    def check_room(self, place: Place) -> None:
        """Raise unless runs can be stored now; what killed writers left makes room first."""
        for folder in (self.folder, *(self.folder / _CACHE).glob("*/")):
            with contextlib.suppress(OSError):
                remove_leftovers(folder, [path.name for path in folder.iterdir()])
        check_room(place.folder)

    def retired(self, place: Place) -> int:
        """Count the runs of the same task, method and size that an earlier schema has named.

        Reports and comparisons read them; a sweep cannot tell whether they are what it wants.
        """
        prefix = place.folder.name.removesuffix(place.digest)
        count = 0
        for folder in self.folder.glob(f"{glob.escape(prefix)}*"):
            files = sorted(folder.glob(f"seed-*{_RESULT}")) if folder != place.folder else []
            if (
                files
                and (meta := _guarded(files[0], _read_metadata))
                and (meta["schema"] < DECLARED_NAMES)
            ):
                count += len(files)
        return count

    def write(self, place: Place, record: Record) -> Path:
        """Store a finished run, whole or not at all; a file of a newer version stays as it is."""
        path = place.file(record.row["seed"])
        content = to_bytes(record)
        if path.exists() and _is_newer(path):  # since this sweep began
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
        return self.folder / f"{task}-{digest}{_PORTRAIT}"

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
        condition = _guarded(path, _examine)
        if condition == "whole":
            verified.add(entry.name, found)
        elif condition == "unchecked" and not self._said:
            self._said = True
            log.warning(
                "%s and perhaps others have no checksums, which earlier versions did not write; "
                "they count as stored, but damage in them may go unnoticed", path,
            )  # fmt: skip
        return condition is not None


def reserved_columns() -> frozenset[str]:
    """Name the columns of runs and of their curves that have a meaning already."""
    return frozenset((*ROW, "reason", ITERATION, *DETAILS, *curve_names(), *stored_names()))


def read_record(path: str | Path) -> Record:
    """Return one stored run with all its parts."""
    with open_record(Path(path)) as file:
        return file.read_record()


def read_diagnostics(path: str | Path) -> dict[str, Any]:
    """Return only what a method and the harness had to tell of one stored run, {} if it is gone."""
    return _guarded(Path(path), _read_diagnostics) or {}


def survey(folder: str | Path) -> Survey:
    """Read everything but the designs and their values; unreadable files are named in a warning."""
    root = Path(folder)
    left_out: dict[Path, str] = {}
    files = track(_files(root, _RESULT), "reading runs")
    found = [
        (str(path.relative_to(root)), *parts)
        for path, parts in _read_runs(files, _read_parts, left_out)
    ]
    return Survey(
        runs=_runs_frame(root, {path: meta["row"] for path, meta, _ in found}, left_out),
        curves=_curves_frame([(meta["row"], table) for _, meta, table in found if len(table)]),
        configs={meta["row"]["digest"]: meta["config"] for _, meta, _ in found},
        provenance={path: meta["provenance"] for path, meta, _ in found},
        left_out={printable(str(path.relative_to(root))): left_out[path] for path in left_out},
    )


def load(folder: str | Path) -> pd.DataFrame:
    """Return one row per run, failed ones included; unreadable files are named in a warning."""
    root = Path(folder)
    found = _read_runs(_files(root, _RESULT), lambda path: (_read_metadata(path),))
    return _runs_frame(root, {str(path.relative_to(root)): meta["row"] for path, (meta,) in found})


def load_curves(folder: str | Path) -> pd.DataFrame:
    """Return one row per run and recorded iteration."""
    found = _read_runs(_files(Path(folder), _RESULT), _read_parts)
    return _curves_frame([(meta["row"], table) for _, (meta, table) in found if len(table)])


def _runs_frame(
    root: Path, finished: dict[str, dict[str, Any]], left_out: dict[Path, str] | None = None
) -> pd.DataFrame:
    """Lay out the rows of finished runs, by path, and those of failed runs never finished since."""
    rows = [{**row, "path": path} for path, row in finished.items()]
    stored = {(row["digest"], row["seed"]) for row in rows}
    for path, row in _read_all(_files(root, _ERROR), _read_failure, left_out):
        if (row["digest"], row["seed"]) not in stored:
            stored.add((row["digest"], row["seed"]))
            rows.append({**row, "path": str(path.relative_to(root))})
    frame = pd.DataFrame(rows)
    if frame.empty:
        frame = pd.DataFrame(columns=[*ROW, "path"])
    return _with_columns(frame, stored_names()).sort_values(list(IDENTITY), ignore_index=True)


def _curves_frame(found: Sequence[tuple[dict[str, Any], pa.Table]]) -> pd.DataFrame:
    """Stack the curves of runs, each named by its row."""
    if not found:
        empty = pd.DataFrame(columns=[*IDENTITY, "digest", ITERATION])
        return _with_columns(empty, curve_names())
    rows, tables = zip(*found, strict=True)
    frame = pa.concat_tables(tables, promote_options="permissive").to_pandas()
    frame = _with_columns(frame, curve_names())
    lengths = [len(table) for table in tables]
    for name in (*IDENTITY, "digest"):
        frame[name] = np.repeat([row[name] for row in rows], lengths)
    return frame.sort_values([*IDENTITY, "digest", ITERATION], ignore_index=True)


def _with_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Add the promised columns that no run here has, empty."""
    return frame.assign(**{name: np.nan for name in names if name not in frame})


def load_portraits(folder: str | Path) -> list[Portrait]:
    """Return the portraits of all tasks that have runs in a folder."""
    return [found for _, found in _read_all(_files(Path(folder), _PORTRAIT), _read_portrait)]


def _files(root: Path, ending: str) -> list[Path]:
    """List what is named like a stored file, those nearest to the root first."""
    found = (
        Path(folder, name)
        for folder, folders, names in os.walk(root)
        for name in (*folders, *names)
        if name.endswith(ending) and not name.startswith(".")
    )
    return sorted(found, key=lambda path: (len(path.parts), path))


def _read_runs(
    paths: Iterable[Path],
    read: Callable[[Path], Parts],
    left_out: dict[Path, str] | None = None,
) -> Iterator[tuple[Path, Parts]]:
    """Read finished runs, each once, the metadata first: of copies the first counts."""
    seen: dict[tuple[str, int], Path] = {}
    for path, parts in _read_all(paths, read, left_out):
        row = parts[0]["row"]
        first = seen.setdefault((row["digest"], row["seed"]), path)
        if first == path:
            yield path, parts
        else:
            _leave_out(path, f"it holds the same run as {first}", left_out)


def _read_all(
    paths: Iterable[Path],
    read: Callable[[Path], Result],
    left_out: dict[Path, str] | None = None,
) -> Iterator[tuple[Path, Result]]:
    """Read files in order, without those that cannot be read. Threads only slow small files."""
    for path in paths:
        found = _guarded(path, read, left_out)
        if found is not None:
            yield path, found


def _guarded(
    path: Path, read: Callable[[Path], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read a file, or name it in a warning and return None; nothing is wrong if it went away."""
    try:
        check_regular(path)
        return read(path)
    except FileNotFoundError:  # a sweep that goes on removes the traces of a failed run
        return None
    except Exception as error:  # a file from a stranger may break a reader in any way
        reason = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
        _leave_out(path, reason, left_out)
        return None


def _leave_out(path: Path, reason: str, left_out: dict[Path, str] | None) -> None:
    log.warning("%s is not a readable run and is left out: %s", printable(str(path)), reason)
    if left_out is not None:
        left_out[path] = reason


def _examine(path: Path) -> Literal["whole", "unchecked", "newer"]:
    """Read all of a file and say what it is, or raise if it is no sound run."""
    try:
        with _open(path) as file:
            file.check()
            return "unchecked" if file.sums is None else "whole"
    except NewerSchemaError as error:
        log.warning(
            "%s was %s; it is left as it is and counts as stored: update ddobench, or choose "
            "another results_dir", path, error,
        )  # fmt: skip
        return "newer"


def _is_newer(path: Path) -> bool:
    try:
        with open_record(path):
            return False
    except NewerSchemaError:
        return True
    except Exception:  # of no version at all
        return False


def _check_row(path: Path, row: dict[str, Any], ending: str) -> None:
    """Raise unless a row can be used and is stored under its own name."""
    check_row(row, ["failed"] if ending == _ERROR else ["ok", "declined"])
    named = path.name == f"seed-{row['seed']:05d}{ending}"
    if not named or not path.parent.name.endswith(f"-{row['digest']}"):
        raise ValueError("it holds another run than its name says")


@contextlib.contextmanager
def _open(path: Path) -> Iterator[RecordFile]:
    """Open a run that is complete and stored under its own name."""
    with open_record(path) as file:
        _check_row(path, file.meta["row"], _RESULT)
        yield file


def _read_metadata(path: Path) -> dict[str, Any]:
    with _open(path) as file:
        return file.meta


def _read_parts(path: Path) -> tuple[dict[str, Any], pa.Table]:
    """Return the metadata of a run and its curves."""
    with _open(path) as file:
        return file.meta, file.read_curves()


def _read_diagnostics(path: Path) -> dict[str, Any]:
    with _open(path) as file:
        return file.read_diagnostics()


def _read_failure(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = read_json(path)["row"]
    _check_row(path, row, _ERROR)
    return row


def _read_portrait(path: Path) -> Portrait:
    found = read_json(path)
    check_portrait(found)
    return Portrait(**found)

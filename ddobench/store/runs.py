"""The results folder: one Parquet file per run, see `parquet`; no other module writes runs.

Finished runs may be folded into few files, see `folding`. A run is then read from the folded file
of its folder and is still named by the file that it was. A file of its own counts before the folded
one. Readers list folded files last: a run whose own file vanished meanwhile is in one of them.

A failed run leaves `seed-N.error.json` and counts as missing; so does a damaged file. A
`.sample.json` shows what a task looks like.
"""

import contextlib
import json
import logging
import os
import re
import stat
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ddobench.coverage import TERMS
from ddobench.errors import UsageError
from ddobench.progress import track
from ddobench.scores import curve_names, stored_names
from ddobench.seeds import parse_seeds
from ddobench.store.atomic import check_room, remove_leftovers, write_whole
from ddobench.store.cache import ArrayCache
from ddobench.store.checks import (
    IDENTITY,
    ITERATION,
    ROW,
    check_row,
    printable,
    read_json,
    read_sample,
    seal_sample,
)
from ddobench.store.parquet import (
    COLUMNS,
    NewerSchemaError,
    StoredRun,
    open_runs,
    read_seal,
    to_bytes,
    to_stored,
)
from ddobench.store.records import ARRAYS, Record, TaskSample

if TYPE_CHECKING:
    import pandas as pd  # takes a third of a second, and sweeps and plans need no frames

log = logging.getLogger(__name__)

RUN = ".parquet"
ERROR = ".error.json"
SAMPLE = ".sample.json"
LONGEST_REASON, LONGEST_TRACE = 10_000, 1_000_000  # characters of a failure that are stored
FINISHED = ("ok", "declined")  # the statuses of a run with a file
FOLDED = 500  # seeds that a folded file holds at most
_SINGLE_NAME = re.compile(r"seed-(\d+)\.parquet")
_FOLDED_NAME = re.compile(r"seeds-(\d+)\.parquet")
_CACHE = ".cache"
_NAMED = (*IDENTITY, "digest")  # what a row of curves says of its run
_SUMMARY = ("row", "curves")  # the columns that a report reads of every run
Result = TypeVar("Result")


@dataclass(frozen=True)
class Place:
    """Where the runs of one specification are kept."""

    folder: Path
    digest: str

    def file(self, seed: int) -> Path:
        """Return the file of one run."""
        return self.folder / _single_name(seed)

    def folded(self, seed: int) -> Path:
        """Return the file that holds a run once it is folded."""
        return self.folder / _folded_name(seed)

    def error(self, seed: int) -> Path:
        """Return the file that a failed run leaves."""
        return self.folder / f"seed-{seed:05d}{ERROR}"

    def seeds(self) -> list[int]:
        """Return the seeds that have a file or are in a folded one, sound or not."""
        try:
            single = {seed_of(entry.name) for entry in os.scandir(self.folder)}
            folded = [Path(e) for e in os.scandir(self.folder) if _FOLDED_NAME.fullmatch(e.name)]
        except OSError:  # the folder does not exist, or `Store.missing` says what is wrong with it
            return []
        found = single.union(*(attempt(path, partial(_list_folded, path)) or () for path in folded))
        return sorted(seed for seed in found if seed is not None)


def seed_of(name: str) -> int | None:
    """Return the seed in the name of a run's own file, None for other names."""
    match = _SINGLE_NAME.fullmatch(name)
    return int(match[1]) if match else None


def _single_name(seed: int) -> str:
    return f"seed-{seed:05d}{RUN}"


def _folded_name(seed: int) -> str:
    return f"seeds-{seed // FOLDED * FOLDED:05d}{RUN}"


def _read_sealed(path: str, digest: str, own: int | None) -> set[int] | None:
    """Return the seeds of a file that is as it was written, None if it must be decoded.

    `own` is the seed in its name. There are many files, so this takes few steps.
    """
    try:
        found = os.stat(path)  # noqa: PTH116
        if not stat.S_ISREG(found.st_mode):
            return None
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        sealed = read_seal(os.read(handle, found.st_size))
    finally:
        os.close(handle)
    if sealed is None or sealed[0] != digest:
        return None
    if own is None:
        return {*parse_seeds(sealed[1])}
    return {own} if sealed[1] == str(own) else None


def _list_folded(path: Path) -> list[int]:
    with open_runs(path) as file:
        return list(file.places)


class Store:
    """A results folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def place(self, task: str, method: str, d: int, n: int, digest: str) -> Place:
        """Return the place of a specification."""
        return Place(self.folder / f"{task}-{method}-d{d}-n{n}-{digest}", digest)

    def places(self) -> list[Place]:
        """Return all places that hold finished runs, wherever they are in the folder."""
        folders = dict.fromkeys(path.parent for path in list_files(self.folder, RUN))
        return [Place(folder, folder.name.rpartition("-")[2]) for folder in folders]

    def missing(self, place: Place, seeds: Sequence[int]) -> list[int]:
        """Return the seeds without a sound run, see `sound`."""
        stored = self.sound(place, set(seeds))
        return [seed for seed in seeds if seed not in stored]

    def sound(self, place: Place, wanted: Container[int]) -> set[int]:
        """Return the wanted seeds with a sound run, and others of the files that were read.

        Every file is read whole and its checksums are compared; a damaged one is named in a
        warning. What killed writers left is removed on the way.
        """
        try:
            present = os.listdir(place.folder)  # noqa: PTH208 - names alone
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise UsageError(
                f"results_dir must be a folder that can be read, got {self.folder} "
                f"({error.strerror})"
            ) from None
        remove_leftovers(place.folder, present)
        stored: set[int] = set()
        found = (seed_of(name) for name in present)
        single = sorted(seed for seed in found if seed is not None and seed in wanted)
        folder = str(place.folder)
        for seed in single:
            stored |= self._find(f"{folder}/{_single_name(seed)}", place.digest, seed)
        folded = {int(match[1]) for name in present if (match := _FOLDED_NAME.fullmatch(name))}
        vanished = [seed for seed in single if seed not in stored]  # folded since they were listed
        folded |= {seed // FOLDED * FOLDED for seed in vanished}
        for first in sorted(folded):
            if any(n in wanted and n not in stored for n in range(first, first + FOLDED)):
                stored |= self._find(f"{folder}/{_folded_name(first)}", place.digest)
        return stored

    def _find(self, name: str, digest: str, own: int | None = None) -> set[int]:
        """Return the seeds of a file's sound runs; a run of a newer version counts as sound."""
        sealed = _read_sealed(name, digest, own)
        if sealed is not None:
            return sealed
        path = Path(name)

        def read() -> set[int]:
            try:
                return {*read_runs(path, lambda run, _: run.seed).values()}
            except NewerSchemaError as error:
                log.warning(
                    "%s was %s; it is left as it is and counts as stored: update ddobench, or "
                    "choose another results_dir", path, error,
                )  # fmt: skip
                return set() if own is None else {own}

        return attempt(path, read) or set()

    def check_room(self, place: Place) -> None:
        """Raise unless runs can be stored now; what killed writers left is removed first."""
        for folder in (self.folder, *(self.folder / _CACHE).glob("*/")):
            with contextlib.suppress(OSError):
                remove_leftovers(folder, os.listdir(folder))  # noqa: PTH208 - names alone
        check_room(place.folder)

    def write(self, place: Place, record: Record) -> Path:
        """Store a finished run, whole or not at all; a file of a newer version stays as it is.

        What no reader would accept is refused here, with a ValueError.
        """
        path = place.file(record.row["seed"])
        run = to_stored(record)

        def check_row_and_place() -> None:
            _check_place(path, run.metadata()["row"], RUN, FINISHED)

        for part, read in (("row", check_row_and_place), ("diagnostics", run.diagnostics)):
            try:
                read()
            except ValueError as error:
                raise ValueError(f"the {part} of this run cannot be stored: {error}") from None
        content = to_bytes([run])
        if path.exists() and _is_newer(path):  # since this sweep began
            log.warning("%s was written by a newer ddobench meanwhile and is left as it is", path)
        else:
            write_whole(path, content)
        place.error(record.row["seed"]).unlink(missing_ok=True)
        return path

    def write_failure(self, place: Place, row: dict[str, Any], trace: str) -> Path:
        """Store the error of a run that has no result."""
        short = row | {"reason": str(row.get("reason", ""))[:LONGEST_REASON]}
        text = json.dumps({"row": short, "trace": trace[-LONGEST_TRACE:]}, indent=2, default=str)
        return write_whole(place.error(row["seed"]), text)

    def cache(self, task: str) -> ArrayCache:
        """Return what methods of a task (named by its digest) share between runs.

        Its folder is absolute, as a method that uses it may change the current folder.
        """
        return ArrayCache((self.folder / _CACHE).absolute(), task)

    def sample(self, task: str, digest: str) -> Path:
        """Return the file that shows what a task looks like, one for each configuration of it."""
        return self.folder / f"{task}-{digest}{SAMPLE}"

    def write_sample(self, path: Path, sample: TaskSample) -> None:
        """Store what a task looks like."""
        write_whole(path, seal_sample(asdict(sample)))


def list_files(root: Path, ending: str) -> list[Path]:
    """List what is named like a stored file, those nearest to the root first.

    A folder that cannot be read is an error: it must not count as empty.
    """

    def refuse(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # a folder that does not exist has no files
            raise UsageError(
                f"a results folder must be a folder that can be read, got "
                f"{printable(str(error.filename))} ({error.strerror}); permit it, or name another"
            )

    found = (
        Path(folder, name)
        for folder, folders, names in os.walk(root, onerror=refuse)
        for name in (*folders, *names)
        if name.endswith(ending) and not name.startswith(".")
    )
    return sorted(found, key=lambda path: (len(path.parts), path))


def attempt(
    path: Path, read: Callable[[], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read a file, or name it in a warning and return None; a file that is gone is no matter."""
    try:
        return read()
    except FileNotFoundError:  # removed since it was listed
        return None
    except Exception as error:  # a file from a stranger may break a reader in any way
        reason = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
        _leave_out(path, reason, left_out)
        return None


def _leave_out(path: Path, reason: str, left_out: dict[Path, str] | None) -> None:
    log.warning("%s is not a readable run and is left out: %s", printable(str(path)), reason)
    if left_out is not None:
        left_out[path] = reason


def read_runs(
    path: Path,
    take: Callable[[StoredRun, dict[str, Any]], Result],
    columns: Sequence[str] = COLUMNS.names,
    left_out: dict[Path, str] | None = None,
) -> dict[Path, Result]:
    """Return what is taken of each run and its metadata, by the run's own path.

    Damaged runs are named in a warning; the others of their file are read.
    """

    def take_checked(run: StoredRun) -> Result:
        meta = run.metadata()
        _check_place(own_path(run.seed), meta["row"], RUN, FINISHED)
        return take(run, meta)

    def own_path(seed: int) -> Path:
        folded = _FOLDED_NAME.fullmatch(path.name)
        return path.with_name(f"seed-{seed:05d}{RUN}") if folded else path

    with open_runs(path) as file:
        try:
            return {own_path(run.seed): take_checked(run) for run in file.read_all(columns)}
        except Exception:  # read one by one, to find out which
            pass

        def take_one(seed: int) -> Result:
            try:
                return take_checked(file.read(seed, columns))
            except Exception as error:
                if own_path(seed) == path:
                    raise
                raise ValueError(f"{error}, in {path.name}") from error

        found = {}
        for seed in file.places:
            one = attempt(own_path(seed), partial(take_one, seed), left_out)
            if one is not None:
                found[own_path(seed)] = one
        return found


def _check_place(path: Path, row: dict[str, Any], ending: str, statuses: Sequence[str]) -> None:
    """Raise unless a row can be used and is stored under its own name."""
    check_row(row, statuses)
    named = path.name == f"seed-{row['seed']:05d}{ending}"
    if not named or not path.parent.name.endswith(f"-{row['digest']}"):
        raise ValueError("it holds another run than its name says")


def _is_newer(path: Path) -> bool:
    try:
        with open_runs(path):
            return False
    except NewerSchemaError:
        return True
    except Exception:  # damaged, or no file of runs
        return False


def sample_metadata(place: Place, most: int) -> list[tuple[dict[str, Any], float]]:
    """Return the metadata of some finished runs of a place, with the bytes that each takes."""
    found: dict[Path, tuple[dict[str, Any], float]] = {}
    for single, folded in ((place.file(seed), place.folded(seed)) for seed in place.seeds()[:most]):
        for path in (single, folded):
            if single not in found and path.exists():
                metas = attempt(path, partial(read_runs, path, lambda _, meta: meta, ["row"])) or {}
                size = path.stat().st_size / max(1, len(metas))
                found |= {own: (meta, size) for own, meta in metas.items() if own not in found}
    return list(found.values())[:most]


def has_failed(place: Place, since: float) -> list[int]:
    """Return the seeds of a place that failed since a time, in seconds since 1970."""
    failed = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place.folder):
            seed = seed_of(entry.name.replace(ERROR, RUN))
            if entry.name.endswith(ERROR) and seed is not None and entry.stat().st_mtime >= since:
                failed.append(seed)
    return failed


def reserved_columns() -> frozenset[str]:
    """Name the columns of runs and of their curves that have a meaning already."""
    return frozenset((
        *ROW, "reason", ITERATION, *COLUMNS.names, *ARRAYS, *curve_names(), *stored_names(), *TERMS,
    ))  # fmt: skip


def read_record(path: str | Path) -> Record:
    """Return one stored run with all its parts, from its own file or from the folded one."""
    own = Path(path)
    seed = seed_of(own.name)
    folded = seed is not None and not own.exists()
    return _read_run(own.with_name(_folded_name(seed or 0)) if folded else own, seed).record()


def read_diagnostics(path: str | Path) -> dict[str, Any]:
    """Return the diagnostics of one stored run, {} if it cannot be read."""
    own = Path(path)
    seed = seed_of(own.name)
    files = [own] if seed is None else [own, own.with_name(_folded_name(seed))]
    for file in files:
        run = attempt(own, partial(_read_run, file, seed, ["diagnostics"]))
        if run is not None:
            return attempt(own, run.diagnostics) or {}
    return {}


def _read_run(path: Path, seed: int | None, columns: Sequence[str] = COLUMNS.names) -> StoredRun:
    """Read some columns of a run of a file, by default of its first."""
    with open_runs(path) as file:
        if seed is None:
            seed = next(iter(file.places))
        if seed not in file.places:
            raise FileNotFoundError(f"{path} has no run with seed {seed}")
        return file.read(seed, columns)


@dataclass(frozen=True)
class Survey:
    """A results folder read in one pass."""

    runs: "pd.DataFrame"  # see `load`
    curves: "pd.DataFrame"  # see `load_curves`
    configs: dict[str, dict[str, Any]]  # resolved, by digest
    provenance: dict[str, dict[str, Any]]  # by the path of a run
    left_out: dict[str, str]  # why a file could not be used, by its path


@dataclass(frozen=True)
class _Summary:
    meta: dict[str, Any]
    curves: dict[str, NDArray[Any]]  # each (T,)


def survey(folder: str | Path) -> Survey:
    """Read everything but the designs and their values; unreadable files are named in a warning."""
    root = Path(folder)
    left_out: dict[Path, str] = {}
    found = _summarise(root, True, left_out)
    return Survey(
        runs=_lay_out_runs(root, found, left_out),
        curves=_lay_out_curves(found),
        configs={one.meta["row"]["digest"]: one.meta["config"] for one in found.values()},
        provenance={path: one.meta["provenance"] for path, one in found.items()},
        left_out={printable(_below(path, root)): reason for path, reason in left_out.items()},
    )


def load(folder: str | Path) -> "pd.DataFrame":
    """Return one row per run, failed ones included; unreadable files are named in a warning."""
    root = Path(folder)
    return _lay_out_runs(root, _summarise(root, False))


def load_curves(folder: str | Path) -> "pd.DataFrame":
    """Return one row per run and recorded iteration."""
    return _lay_out_curves(_summarise(Path(folder), True))


def load_samples(folder: str | Path) -> list[TaskSample]:
    """Return the samples of all tasks that have runs in a folder."""
    return [found for _, found in _read_all(list_files(Path(folder), SAMPLE), read_sample)]


def copy_papers(source: Path, target: Path) -> None:
    """Copy what is beside finished runs: task samples, and failures without tracebacks."""
    for path, sample in _read_all(list_files(source, SAMPLE), read_sample):
        Store(target).write_sample(target / path.relative_to(source), sample)
    for path, row in _read_all(list_files(source, ERROR), _read_failure):
        folder = target / path.parent.relative_to(source)
        Store(target).write_failure(Place(folder, row["digest"]), row, "")


def _summarise(
    root: Path, with_curves: bool, left_out: dict[Path, str] | None = None
) -> dict[str, _Summary]:
    """Read finished runs by their path below the root, each once: of copies the first counts."""
    columns = _SUMMARY if with_curves else _SUMMARY[:1]
    first: dict[tuple[str, int], Path] = {}
    found: dict[str, _Summary] = {}

    def take(run: StoredRun, meta: dict[str, Any]) -> _Summary:
        return _Summary(meta, run.curves() if with_curves else {})

    for folded in (False, True):  # listed when all single files have been read
        paths = [p for p in list_files(root, RUN) if bool(_FOLDED_NAME.fullmatch(p.name)) == folded]
        for path in track(paths, "reading folded runs" if folded else "reading runs"):
            read = partial(read_runs, path, take, columns, left_out)
            for own, one in (attempt(path, read, left_out) or {}).items():
                row = one.meta["row"]
                earlier = first.setdefault((row["digest"], row["seed"]), own)
                if earlier is own:
                    found[_below(own, root)] = one
                elif earlier != own:
                    _leave_out(own, f"it holds the same run as {earlier}", left_out)
    return dict(sorted(found.items()))


def _read_all(
    paths: Sequence[Path],
    read: Callable[[Path], Result],
    left_out: dict[Path, str] | None = None,
) -> Iterator[tuple[Path, Result]]:
    """Read small files in order, without those that cannot be read."""
    for path in paths:
        found = attempt(path, partial(read, path), left_out)
        if found is not None:
            yield path, found


def _read_failure(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = read_json(path)["row"]
    _check_place(path, row, ERROR, ["failed"])
    return row


def _lay_out_runs(
    root: Path, finished: dict[str, _Summary], left_out: dict[Path, str] | None = None
) -> "pd.DataFrame":
    """Lay out the rows of finished runs, by path, and those of failed runs never finished since."""
    import pandas as pd

    rows = [{**one.meta["row"], "path": path} for path, one in finished.items()]
    stored = {(row["digest"], row["seed"]) for row in rows}
    for path, row in _read_all(list_files(root, ERROR), _read_failure, left_out):
        if (row["digest"], row["seed"]) not in stored:
            stored.add((row["digest"], row["seed"]))
            rows.append({**row, "path": _below(path, root)})
    frame = pd.DataFrame(rows)
    if frame.empty:
        frame = pd.DataFrame(columns=[*ROW, "path"])
    return _with_columns(frame, stored_names()).sort_values(list(IDENTITY), ignore_index=True)


def _lay_out_curves(found: dict[str, _Summary]) -> "pd.DataFrame":
    """Stack the curves of runs, each named by its row, in the order of these names."""
    import pandas as pd

    drawn = [one for one in found.values() if len(one.curves.get(ITERATION, ()))]
    if not drawn:
        return _with_columns(pd.DataFrame(columns=[*_NAMED, ITERATION]), curve_names())
    drawn.sort(key=lambda one: [one.meta["row"][name] for name in _NAMED])
    lengths = [len(one.curves[ITERATION]) for one in drawn]
    columns = {
        name: np.concatenate([
            one.curves[name] if name in one.curves else np.full(length, np.nan)
            for one, length in zip(drawn, lengths, strict=True)
        ])
        for name in dict.fromkeys(name for one in drawn for name in one.curves)
    }  # fmt: skip
    frame = _with_columns(pd.DataFrame(columns), curve_names())
    run = np.repeat(np.arange(len(drawn)), lengths)
    for name in _NAMED:
        frame[name] = pd.Series([one.meta["row"][name] for one in drawn]).array.take(run)
    return frame


def _with_columns(frame: "pd.DataFrame", names: Sequence[str]) -> "pd.DataFrame":
    """Add the promised columns that no run here has, empty."""
    return frame.assign(**{name: np.nan for name in names if name not in frame})


def _below(path: Path, root: Path) -> str:
    return str(path.relative_to(root))

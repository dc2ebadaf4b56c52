"""The results folder: one Parquet file per run, see `record_file`; no other module writes them.

Finished runs may be folded into packs, see `compaction`: a run is then read from the pack in its
folder, and is still named by the file that it was. A file beside a pack counts before it. Whoever
lists files lists packs last: what vanished from the list of files meanwhile is in one of these.

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
from functools import partial
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
from ddobench.store.pack_file import SEEDS, Pack, Words, open_pack, stack_curves
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
_PACK = ".runs"
_ERROR = ".error.json"
_PORTRAIT = ".portrait.json"
_NAMED = (*IDENTITY, "digest")  # what a row of curves says of its run
Result = TypeVar("Result")


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
        return self.folder / _pack_name(seed)

    def error(self, seed: int) -> Path:
        """Return the file that a failed run leaves."""
        return self.folder / f"seed-{seed:05d}{_ERROR}"

    def seeds(self) -> list[int]:
        """Return the seeds that have a file or are in a pack, sound or not."""
        try:
            alone = [seed_of(entry.name) for entry in os.scandir(self.folder)]
            packs = [Path(entry) for entry in os.scandir(self.folder) if entry.name.endswith(_PACK)]
        except OSError:  # there is none, or `Store.missing` says what is wrong with it
            return []
        found = {seed for seed in alone if seed is not None}
        return sorted(found.union(*(guarded(path, _list_packed) or [] for path in packs)))


class Store:
    """A results folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._said = False  # that some files have no checksums

    def place(self, task: str, method: str, d: int, n: int, digest: str) -> Place:
        """Return the place of a specification."""
        return Place(self.folder / f"{task}-{method}-d{d}-n{n}-{digest}", digest)

    def places(self) -> list[Place]:
        """Return all places that hold finished runs, wherever they are in the folder."""
        files = (*_files(self.folder, _RESULT), *_files(self.folder, _PACK))
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
        for name in sorted({_pack_name(seed) for seed in missing}):
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
                and (meta := guarded(files[0], _read_metadata))
                and (meta["schema"] < DECLARED_NAMES)
            ):
                count += len(files)
            packs = folder.glob(f"*{_PACK}") if folder != place.folder else ()
            count += sum(guarded(path, _count_retired) or 0 for path in packs)
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
        condition = guarded(path, _examine)
        if condition == "whole":
            verified.add(entry.name, found)
        elif condition == "unchecked" and not self._said:
            self._said = True
            log.warning(
                "%s and perhaps others have no checksums, which earlier versions did not write; "
                "they count as stored, but damage in them may go unnoticed", path,
            )  # fmt: skip
        return condition is not None

    def _find_packed(self, seeds: Sequence[int], verified: Verified, path: Path) -> set[int]:
        """Return which of the seeds a pack holds whole; the others that it has are named."""
        with open_pack(path) as pack:
            found = os.fstat(pack.handle)
            wanted = {seed for seed in seeds if seed in pack.contents.rows}
            if verified.knows(path.name, found):
                return wanted
            whole = {seed for seed in wanted if _attempt(
                path.with_name(file_name(seed)), partial(_examine_packed, pack, path, seed)
            )}  # fmt: skip
            if not pack.contents.pristine:
                log.warning("%s is damaged where its runs are not; they are read, and "
                            "python -m ddobench.compact writes it anew", path)  # fmt: skip
            elif whole == wanted and _are_whole(pack, {*pack.seeds} - wanted):
                verified.add(path.name, found)
            return whole


def file_name(seed: int) -> str:
    """Return the name of the file of a run in its folder."""
    return f"seed-{seed:05d}{_RESULT}"


def seed_of(name: str) -> int | None:
    """Return the seed of the run that a file is named after, if it is."""
    match = re.fullmatch(rf"seed-(\d+){re.escape(_RESULT)}", name)
    return int(match[1]) if match else None


def _pack_name(seed: int) -> str:
    return f"seeds-{seed // SEEDS * SEEDS:05d}{_PACK}"


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root))


def sample_metadata(place: Place, most: int) -> list[tuple[dict[str, Any], float]]:
    """Return what some finished runs of a place say, with the bytes that each takes on disk."""
    found: list[tuple[dict[str, Any], float]] = []
    for seed in place.seeds()[:most]:
        path = place.file(seed)
        meta = guarded(path, _read_metadata)
        if meta is not None:
            found.append((meta, path.stat().st_size))
        elif packed := _attempt(path, partial(_sample_packed, path, seed)):
            found.append(packed)
    return found


def _sample_packed(path: Path, seed: int) -> tuple[dict[str, Any], float] | None:
    with open_pack(path.with_name(_pack_name(seed))) as pack:
        if seed not in pack.contents.rows:
            return None
        meta, _ = _read_packed(pack, path, seed, False)
        return meta, os.fstat(pack.handle).st_size / len(pack.seeds)


def has_failed(place: Place, since: float) -> list[int]:
    """Return the seeds of a place that failed since a time, in seconds since 1970."""
    failed = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place.folder):
            seed = seed_of(entry.name.replace(_ERROR, _RESULT))
            if entry.name.endswith(_ERROR) and seed is not None and entry.stat().st_mtime >= since:
                failed.append(seed)
    return failed


def reserved_columns() -> frozenset[str]:
    """Name the columns of runs and of their curves that have a meaning already."""
    return frozenset((*ROW, "reason", ITERATION, *DETAILS, *curve_names(), *stored_names()))


def read_record(path: str | Path) -> Record:
    """Return one stored run with all its parts, from the pack beside it if it is in one."""
    path = Path(path)
    seed = seed_of(path.name)
    if seed is not None and not path.exists() and path.with_name(_pack_name(seed)).exists():
        with open_pack(path.with_name(_pack_name(seed))) as pack:
            if seed in pack.contents.rows:
                return pack.read_record(seed)
    with open_record(path) as file:
        return file.read_record()


def read_diagnostics(path: str | Path) -> dict[str, Any]:
    """Return only what a method and the harness had to tell of one stored run, {} if it is gone."""
    path = Path(path)
    return guarded(path, _read_diagnostics) or _attempt(path, partial(_read_told, path)) or {}


def survey(folder: str | Path) -> Survey:
    """Read everything but the designs and their values; unreadable files are named in a warning."""
    root = Path(folder)
    left_out: dict[Path, str] = {}
    batches = list(_read_runs(root, True, left_out))
    found = {_relative(path, root): meta for batch in batches for path, meta in batch.metas.items()}
    metas = dict(sorted(found.items()))
    return Survey(
        runs=_runs_frame(root, {path: meta["row"] for path, meta in metas.items()}, left_out),
        curves=_curves_frame(batches),
        configs={meta["row"]["digest"]: meta["config"] for meta in metas.values()},
        provenance={path: meta["provenance"] for path, meta in metas.items()},
        left_out={printable(_relative(path, root)): left_out[path] for path in left_out},
    )


def load(folder: str | Path) -> pd.DataFrame:
    """Return one row per run, failed ones included; unreadable files are named in a warning."""
    root = Path(folder)
    found = (item for batch in _read_runs(root, False) for item in batch.metas.items())
    return _runs_frame(root, {_relative(path, root): meta["row"] for path, meta in found})


def load_curves(folder: str | Path) -> pd.DataFrame:
    """Return one row per run and recorded iteration."""
    return _curves_frame(list(_read_runs(Path(folder), True)))


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


def _curves_frame(batches: Sequence["_Batch"]) -> pd.DataFrame:
    """Stack the curves of runs, each named by its row, in the order of these names."""
    drawn = [(batch.metas, batch.curves) for batch in batches if batch.curves]
    if not drawn:
        empty = pd.DataFrame(columns=[*IDENTITY, "digest", ITERATION])
        return _with_columns(empty, curve_names())
    table = pa.concat_tables([curves for _, curves in drawn], promote_options="permissive")
    rows = [meta["row"] for metas, _ in drawn for meta in metas.values()]
    each = [len(curves) // len(metas) for metas, curves in drawn]
    lengths = np.repeat(each, [len(metas) for metas, _ in drawn])
    begins = np.cumsum(lengths) - lengths
    order = sorted(range(len(rows)), key=lambda i: [rows[i][name] for name in _NAMED])
    picked = np.concatenate([np.arange(begins[i], begins[i] + lengths[i]) for i in order])
    frame = _with_columns(table.to_pandas().take(picked).reset_index(drop=True), curve_names())
    repeated = np.repeat(np.arange(len(rows)), lengths[order])
    for name in _NAMED:
        frame[name] = pd.Series([rows[i][name] for i in order]).array.take(repeated)
    return frame


def _with_columns(frame: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Add the promised columns that no run here has, empty."""
    return frame.assign(**{name: np.nan for name in names if name not in frame})


def load_portraits(folder: str | Path) -> list[Portrait]:
    """Return the portraits of all tasks that have runs in a folder."""
    return [found for _, found in _read_all(_files(Path(folder), _PORTRAIT), _read_portrait)]


def copy_papers(source: Path, target: Path) -> None:
    """Copy what is beside finished runs: portraits, and which runs failed, without tracebacks."""
    for path, portrait in _read_all(_files(source, _PORTRAIT), _read_portrait):
        Store(target).write_portrait(target / path.relative_to(source), portrait)
    for path, row in _read_all(_files(source, _ERROR), _read_failure):
        folder = target / path.parent.relative_to(source)
        Store(target).write_failure(Place(folder, row["digest"]), row, "")


def _files(root: Path, ending: str) -> list[Path]:
    """List what is named like a stored file, those nearest to the root first."""
    found = (
        Path(folder, name)
        for folder, folders, names in os.walk(root)
        for name in (*folders, *names)
        if name.endswith(ending) and not name.startswith(".")
    )
    return sorted(found, key=lambda path: (len(path.parts), path))


@dataclass(frozen=True)
class _Batch:
    """Runs that were read together."""

    metas: dict[Path, dict[str, Any]]  # by path
    curves: pa.Table | None = None  # of one run after the other, each as long


def _read_runs(
    root: Path, with_curves: bool, left_out: dict[Path, str] | None = None
) -> Iterator[_Batch]:
    """Read finished runs, each once: of copies the first counts."""
    seen: dict[tuple[str, int], Path] = {}
    read = _read_parts if with_curves else lambda path: (_read_metadata(path), None)
    for path in track(_files(root, _RESULT), "reading runs"):
        found = guarded(path, read, left_out)
        if found is not None and _is_first(path, found[0]["row"], seen, left_out):
            yield _Batch({path: found[0]}, found[1])
    for path in track(_files(root, _PACK), "reading packs of runs"):
        yield from guarded(
            path, lambda path: _read_pack(path, with_curves, seen, left_out), left_out
        ) or ()  # fmt: skip


def _read_pack(
    path: Path,
    with_curves: bool,
    seen: dict[tuple[str, int], Path],
    left_out: dict[Path, str] | None,
) -> list[_Batch]:
    """Read the runs of a pack, without those that cannot be read."""
    with open_pack(path) as pack:
        pack.read_ahead("row", *(["curves"] if with_curves else []))
        metas: dict[int, dict[str, Any]] = {}
        words: dict[int, Words] = {}
        for seed in pack.seeds:
            file = path.with_name(file_name(seed))
            parts = _attempt(file, partial(_read_packed, pack, file, seed, with_curves), left_out)
            if parts is not None and _is_first(file, parts[0]["row"], seen, left_out):
                metas[seed], words[seed] = parts
        stacks = [*stack_curves(pack, words)]
    drawn = {seed for seeds, _ in stacks for seed in seeds}
    groups = [*stacks, ([seed for seed in metas if seed not in drawn], None)]
    return [
        _Batch({path.with_name(file_name(seed)): metas[seed] for seed in seeds}, table)
        for seeds, table in groups
    ]


def _read_packed(
    pack: Pack, file: Path, seed: int, with_curves: bool
) -> tuple[dict[str, Any], Words]:
    meta = pack.read_metadata(seed)
    _check_row(file, meta["row"], _RESULT)
    return meta, pack.read_words(seed) if with_curves else np.zeros((0, 0), np.uint64)


def _is_first(
    path: Path,
    row: dict[str, Any],
    seen: dict[tuple[str, int], Path],
    left_out: dict[Path, str] | None,
) -> bool:
    """Tell whether a run was not read before; a copy is named unless it is its own in a pack."""
    first = seen.setdefault((row["digest"], row["seed"]), path)
    if first is path:
        return True
    if first != path:
        _leave_out(path, f"it holds the same run as {first}", left_out)
    return False


def _read_all(
    paths: Iterable[Path],
    read: Callable[[Path], Result],
    left_out: dict[Path, str] | None = None,
) -> Iterator[tuple[Path, Result]]:
    """Read files in order, without those that cannot be read. Threads only slow small files."""
    for path in paths:
        found = guarded(path, read, left_out)
        if found is not None:
            yield path, found


def guarded(
    path: Path, read: Callable[[Path], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read a file, or name it in a warning and return None; nothing is wrong if it went away."""

    def read_regular() -> Result:
        check_regular(path)
        return read(path)

    return _attempt(path, read_regular, left_out)


def _attempt(
    path: Path, read: Callable[[], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read what a path names, or name it in a warning and return None."""
    try:
        return read()
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
        with open_run(path) as file:
            file.check()
            return "unchecked" if file.sums is None else "whole"
    except NewerSchemaError as error:
        return _say_newer(path, error)


def _examine_packed(pack: Pack, path: Path, seed: int) -> Literal["whole", "newer"]:
    """Read all of a run in a pack and say what it is, or raise if it is no sound run."""
    file = path.with_name(file_name(seed))
    try:
        _check_row(file, pack.read_metadata(seed)["row"], _RESULT)
        pack.check(seed)
        return "whole"
    except NewerSchemaError as error:
        return _say_newer(file, error)


def _say_newer(path: Path, error: NewerSchemaError) -> Literal["newer"]:
    log.warning(
        "%s was %s; it is left as it is and counts as stored: update ddobench, or choose "
        "another results_dir", path, error,
    )  # fmt: skip
    return "newer"


def _are_whole(pack: Pack, seeds: Iterable[int]) -> bool:
    try:
        for seed in seeds:
            pack.check(seed)
    except Exception:  # whoever wants these runs is told the reason
        return False
    return True


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
def open_run(path: Path) -> Iterator[RecordFile]:
    """Open a run that is complete and stored under its own name."""
    with open_record(path) as file:
        _check_row(path, file.meta["row"], _RESULT)
        yield file


def _read_metadata(path: Path) -> dict[str, Any]:
    with open_run(path) as file:
        return file.meta


def _read_parts(path: Path) -> tuple[dict[str, Any], pa.Table]:
    """Return the metadata of a run and its curves."""
    with open_run(path) as file:
        return file.meta, file.read_curves()


def _read_diagnostics(path: Path) -> dict[str, Any]:
    with open_run(path) as file:
        return file.read_diagnostics()


def _read_told(path: Path) -> dict[str, Any]:
    """Return what a run in a pack has to tell, nothing if it is in none."""
    seed = seed_of(path.name)
    if seed is None:
        return {}
    with open_pack(path.with_name(_pack_name(seed))) as pack:
        return pack.read_diagnostics(seed) if seed in pack.contents.rows else {}


def _list_packed(path: Path) -> list[int]:
    with open_pack(path) as pack:
        return pack.seeds


def _count_retired(path: Path) -> int:
    with open_pack(path) as pack:
        schemas = [pack.contents.entry(seed).layout["schema"] for seed in pack.seeds]
    return sum(schema < DECLARED_NAMES for schema in schemas)


def _read_failure(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = read_json(path)["row"]
    _check_row(path, row, _ERROR)
    return row


def _read_portrait(path: Path) -> Portrait:
    found = read_json(path)
    check_portrait(found)
    return Portrait(**found)

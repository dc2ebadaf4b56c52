"""All runs of a results folder, read in one pass and laid out as tables."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from ddobench.progress import track
from ddobench.scores import curve_names, stored_names
from ddobench.store.pack_file import Words, open_pack, stack_curves
from ddobench.store.record_file import ITERATION
from ddobench.store.soundness import IDENTITY, ROW
from ddobench.store.stored_run import (
    ERROR,
    PACK,
    RESULT,
    attempt,
    file_name,
    guarded,
    leave_out,
    read_failure,
    read_metadata,
    read_packed,
    read_parts,
)

_NAMED = (*IDENTITY, "digest")  # what a row of curves says of its run
Result = TypeVar("Result")


def list_files(root: Path, ending: str) -> list[Path]:
    """List what is named like a stored file, those nearest to the root first."""
    found = (
        Path(folder, name)
        for folder, folders, names in os.walk(root)
        for name in (*folders, *names)
        if name.endswith(ending) and not name.startswith(".")
    )
    return sorted(found, key=lambda path: (len(path.parts), path))


@dataclass(frozen=True)
class Batch:
    """Runs that were read together."""

    metas: dict[Path, dict[str, Any]]  # by path
    curves: pa.Table | None = None  # of one run after the other, each as long


def read_runs(
    root: Path, with_curves: bool, left_out: dict[Path, str] | None = None
) -> Iterator[Batch]:
    """Read finished runs, each once: of copies the first counts."""
    seen: dict[tuple[str, int], Path] = {}
    read = read_parts if with_curves else lambda path: (read_metadata(path), None)
    for path in track(list_files(root, RESULT), "reading runs"):
        found = guarded(path, read, left_out)
        if found is not None and _is_first(path, found[0]["row"], seen, left_out):
            yield Batch({path: found[0]}, found[1])
    for path in track(list_files(root, PACK), "reading packs of runs"):
        yield from guarded(
            path, lambda path: _read_pack(path, with_curves, seen, left_out), left_out
        ) or ()  # fmt: skip


def _read_pack(
    path: Path,
    with_curves: bool,
    seen: dict[tuple[str, int], Path],
    left_out: dict[Path, str] | None,
) -> list[Batch]:
    """Read the runs of a pack, without those that cannot be read."""
    with open_pack(path) as pack:
        pack.read_ahead("row", *(["curves"] if with_curves else []))
        metas: dict[int, dict[str, Any]] = {}
        words: dict[int, Words] = {}
        for seed in pack.seeds:
            file = path.with_name(file_name(seed))
            parts = attempt(file, partial(read_packed, pack, file, seed, with_curves), left_out)
            if parts is not None and _is_first(file, parts[0]["row"], seen, left_out):
                metas[seed], words[seed] = parts
        stacks = [*stack_curves(pack, words)]
    drawn = {seed for seeds, _ in stacks for seed in seeds}
    groups = [*stacks, ([seed for seed in metas if seed not in drawn], None)]
    return [
        Batch({path.with_name(file_name(seed)): metas[seed] for seed in seeds}, table)
        for seeds, table in groups
    ]


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
        leave_out(path, f"it holds the same run as {first}", left_out)
    return False


def read_all(
    paths: Iterable[Path],
    read: Callable[[Path], Result],
    left_out: dict[Path, str] | None = None,
) -> Iterator[tuple[Path, Result]]:
    """Read files in order, without those that cannot be read. Threads only slow small files."""
    for path in paths:
        found = guarded(path, read, left_out)
        if found is not None:
            yield path, found


def lay_out_runs(
    root: Path, finished: dict[str, dict[str, Any]], left_out: dict[Path, str] | None = None
) -> pd.DataFrame:
    """Lay out the rows of finished runs, by path, and those of failed runs never finished since."""
    rows = [{**row, "path": path} for path, row in finished.items()]
    stored = {(row["digest"], row["seed"]) for row in rows}
    for path, row in read_all(list_files(root, ERROR), read_failure, left_out):
        if (row["digest"], row["seed"]) not in stored:
            stored.add((row["digest"], row["seed"]))
            rows.append({**row, "path": str(path.relative_to(root))})
    frame = pd.DataFrame(rows)
    if frame.empty:
        frame = pd.DataFrame(columns=[*ROW, "path"])
    return _with_columns(frame, stored_names()).sort_values(list(IDENTITY), ignore_index=True)


def lay_out_curves(batches: Sequence[Batch]) -> pd.DataFrame:
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


def name_below(path: Path, root: Path) -> str:
    return str(path.relative_to(root))

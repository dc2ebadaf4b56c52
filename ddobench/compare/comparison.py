"""Which runs of two sides belong together, and what changed from A to B."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddobench.compare.sides import Side
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.scores import repeatable_names
from ddobench.stats.samples import paired_difference

KEY = [*BY_SIZE, *SERIES, "seed"]  # without the digest, which changes with a method's version
_COUNTS = ["pairs", "identical", "changed", "only_a", "only_b", "status_changes"]
_NUMBERS = ["scored", "mean_a", "mean_b", "difference", "low", "high", "interval", "largest_change"]
COLUMNS = [*BY_SIZE, *SERIES, "score", *_COUNTS, *_NUMBERS, "digests_a", "digests_b"]
_MOST_VALUES = 3  # of a setting that are listed
_LONGEST = 40  # characters of a value

Change = tuple[str, str, str]  # the dotted name of a setting, its value in A, its value in B


@dataclass(frozen=True)
class Comparison:
    """Two sides, their runs matched, and what differs."""

    a: Side
    b: Side
    score: str
    runs: pd.DataFrame  # one row per run of either side, see `match_runs`
    table: pd.DataFrame  # one row per task, size and method, see `change_table`
    settings: Mapping[Change, list[Mapping[Any, Any]]]  # rows of the table by changed setting
    origins: list[Change]  # versions and machines

    @property
    def compared(self) -> int:
        """How many runs both sides have."""
        return int(self.table["pairs"].sum())

    @property
    def changed(self) -> int:
        """How many of these are not identical."""
        return int(self.table["changed"].sum())


def compare(a: Side, b: Side, score: str) -> Comparison:
    """Compare two sides by one score."""
    runs = match_runs(a, b)
    table = change_table(runs, score)
    settings: dict[Change, list[Mapping[Any, Any]]] = {}
    by_row = []
    for row in table.to_dict("records"):
        changes = _config_changes(row, a, b)
        for change in changes:
            settings.setdefault(change, []).append(row)
        by_row.append("; ".join(map(format_setting, changes)))
    table = table.assign(settings=by_row)
    return Comparison(a, b, score, runs, table, settings, _origin_changes(runs, a, b))


def match_runs(a: Side, b: Side) -> pd.DataFrame:
    """Return one row per run of either side; `in` is "A", "B" or "both".

    Two runs are `identical` if their status, scores and curves are equal to the bit, as far as both
    sides have them.
    """
    left, right = _with_hashes(a), _with_hashes(b)
    both = left.merge(right, on=KEY, how="outer", suffixes=("_a", "_b"), indicator="in")
    both["in"] = both["in"].astype(str).map({"left_only": "A", "right_only": "B", "both": "both"})
    same = both["in"] == "both"
    for name in ("status", *repeatable_names()):
        if all(name in side and side[name].notna().any() for side in (left, right)):
            first, second = both[f"{name}_a"], both[f"{name}_b"]
            same &= (first == second) | (first.isna() & second.isna())
    for name in (f"hash {name}" for name in _curve_names(a) if name in _curve_names(b)):
        known = both[f"{name}_a"].notna() & both[f"{name}_b"].notna()
        same &= (both[f"{name}_a"] == both[f"{name}_b"]) | ~known
    return both.assign(identical=same).sort_values(KEY, ignore_index=True)


def _with_hashes(side: Side) -> pd.DataFrame:
    """Add a hash of each curve to the runs, NaN where a run does not have the curve."""
    names = _curve_names(side)
    points = side.curves[[*names]].astype(np.float64)
    step = pd.util.hash_array(points["iteration"].to_numpy()) if len(points) else np.uint64(0)
    hashes = side.curves[["digest", "seed"]].copy()
    for name in names:
        hashes[f"hash {name}"] = pd.util.hash_array(points[name].to_numpy()) * (step | np.uint64(1))
    # as strings, since an outer join would turn integers into floats
    summed = hashes.groupby(["digest", "seed"]).sum().astype(str)
    known = points.notna().groupby([hashes["digest"], hashes["seed"]]).any()
    known.columns = summed.columns
    return side.runs.merge(summed.where(known).reset_index(), on=["digest", "seed"], how="left")


def _curve_names(side: Side) -> list[str]:
    numbers = side.curves.select_dtypes("number")
    return [str(name) for name in numbers if name not in KEY]


def change_table(runs: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return one row per task, size and method: counts, and how a score changed from A to B."""
    rows: list[dict[Any, Any]] = []
    for key, group in runs.groupby([*BY_SIZE, *SERIES], sort=True):
        names: dict[Any, Any] = dict(zip([*BY_SIZE, *SERIES], key, strict=True))
        rows.append(names | {"score": score} | _count(group) | _difference(group, score))
    return pd.DataFrame(rows, columns=COLUMNS)


def _count(runs: pd.DataFrame) -> dict[str, Any]:
    shared = runs[runs["in"] == "both"]
    moved = shared[shared["status_a"] != shared["status_b"]]
    changes = (moved["status_a"] + " \u2192 " + moved["status_b"]).value_counts().sort_index()
    return {
        "pairs": len(shared),
        "identical": int(shared["identical"].sum()),
        "changed": int((~shared["identical"]).sum()),
        "only_a": int((runs["in"] == "A").sum()),
        "only_b": int((runs["in"] == "B").sum()),
        "status_changes": ", ".join(f"{count} {change}" for change, count in changes.items()),
        "digests_a": " ".join(sorted(set(runs["digest_a"].dropna()))),
        "digests_b": " ".join(sorted(set(runs["digest_b"].dropna()))),
    }


def _difference(runs: pd.DataFrame, score: str) -> dict[str, Any]:
    """Compare the seeds that have the score on both sides."""
    finished = (runs["status_a"] == "ok") & (runs["status_b"] == "ok")
    pairs = runs.loc[finished, [f"{score}_a", f"{score}_b"]].dropna()
    if pairs.empty:
        return {"scored": 0}
    first, second = pairs[f"{score}_a"], pairs[f"{score}_b"]
    found = paired_difference(second, first)
    return {
        "scored": found.pairs,
        "mean_a": first.mean(),
        "mean_b": second.mean(),
        "difference": found.mean,
        "low": found.interval.low,
        "high": found.interval.high,
        "interval": found.interval.kind,
        "largest_change": float((second - first).abs().max()),
    }


def _config_changes(row: Mapping[Any, Any], a: Side, b: Side) -> list[Change]:
    """Return how the configurations of one row of the table differ."""
    before, after = row["digests_a"].split(), row["digests_b"].split()
    if not before or not after or before == after:
        return []
    known = [a.configs.get(name) for name in before], [b.configs.get(name) for name in after]
    if not all(any(configs) for configs in known):
        return []
    found = changed_settings(*(filter(None, configs) for configs in known))
    return found or [("the version of a class", before[0][:8], after[0][:8])]


def _origin_changes(runs: pd.DataFrame, a: Side, b: Side) -> list[Change]:
    """Return how versions and machines differ between the runs that both sides have."""
    shared = runs[runs["in"] == "both"]
    before, after = (
        [side.provenance[path] for path in shared[f"path_{name}"] if path in side.provenance]
        for side, name in ((a, "a"), (b, "b"))
    )
    return changed_settings(before, after) if before and after else []


def changed_settings(before: Iterable[Any], after: Iterable[Any]) -> list[Change]:
    """Return what differs between two collections of nested settings, by dotted name."""
    first, second = _values_by_name(before), _values_by_name(after)
    return [
        (name, _join(first.get(name, {"missing"})), _join(second.get(name, {"missing"})))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]


def format_setting(change: Change) -> str:
    """Format a changed setting, its old and its new value."""
    name, before, after = change
    return f"{name}: {before} \u2192 {after}"


def _values_by_name(collection: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for nested in collection:
        for name, value in _flatten(nested):
            values.setdefault(name, set()).add(value)
    return values


def _flatten(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every setting with its dotted name."""
    for name, value in nested.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def _join(values: set[str]) -> str:
    shown = [
        value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…" for value in sorted(values)
    ]
    more = len(shown) - _MOST_VALUES
    return " or ".join(shown[:_MOST_VALUES]) + (f" or {more} others" if more > 0 else "")

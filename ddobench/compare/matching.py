"""Which runs of two sides belong together, and what became of them."""

from typing import Any

import numpy as np
import pandas as pd

from ddobench.compare.sides import Side
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.scores import repeatable_names
from ddobench.stats.samples import paired_difference

KEY = [*BY_SIZE, *SERIES, "seed"]  # not the digest: a new version of a method has another
_COUNTS = ["pairs", "identical", "changed", "only_a", "only_b", "status_changes"]
_NUMBERS = [
    *("scored", "mean_a", "mean_b", "difference", "low", "high", "interval"),
    *("largest_change",),
]
COLUMNS = [*BY_SIZE, *SERIES, "score", *_COUNTS, *_NUMBERS, "digests_a", "digests_b"]


def match_runs(a: Side, b: Side) -> pd.DataFrame:
    """Return one row per run of either side; `in` says of which, `identical` compares the bits.

    A run is identical if its status, its scores and its curves are, as far as both sides have them.
    """
    left, right = _with_prints(a), _with_prints(b)
    both = left.merge(right, on=KEY, how="outer", suffixes=("_a", "_b"), indicator="in")
    both["in"] = both["in"].astype(str).map({"left_only": "A", "right_only": "B", "both": "both"})
    same = both["in"] == "both"
    for name in ("status", *repeatable_names()):
        same &= _same_bits(left, right, both, name)
    for name in (f"print {name}" for name in _curve_names(a) if name in _curve_names(b)):
        known = both[f"{name}_a"].notna() & both[f"{name}_b"].notna()
        same &= (both[f"{name}_a"] == both[f"{name}_b"]) | ~known
    return both.assign(identical=same).sort_values(KEY, ignore_index=True)


def _same_bits(
    left: pd.DataFrame, right: pd.DataFrame, both: pd.DataFrame, name: str
) -> "pd.Series[bool]":
    """Compare one column; what a whole side does not have cannot have changed."""
    if not all(name in side and side[name].notna().any() for side in (left, right)):
        return pd.Series(True, index=both.index)
    first, second = both[f"{name}_a"], both[f"{name}_b"]
    return (first == second) | (first.isna() & second.isna())


def _with_prints(side: Side) -> pd.DataFrame:
    """Add a fingerprint of each curve of a run, none where the run does not have it."""
    names = _curve_names(side)
    points = side.curves[[*names]].astype(np.float64)
    step = pd.util.hash_array(points["iteration"].to_numpy()) if len(points) else np.uint64(0)
    prints = side.curves[["digest", "seed"]].copy()
    for name in names:
        bits = pd.util.hash_array(points[name].to_numpy()) * (step | np.uint64(1))
        # As text, since an outer join would turn whole numbers into floats.
        prints[f"print {name}"] = bits
    summed = prints.groupby(["digest", "seed"]).sum().astype(str)
    there = points.notna().groupby([prints["digest"], prints["seed"]]).any()
    there.columns = summed.columns
    return side.runs.merge(summed.where(there).reset_index(), on=["digest", "seed"], how="left")


def _curve_names(side: Side) -> list[str]:
    numbers = side.curves.select_dtypes("number")
    return [str(name) for name in numbers if name not in KEY]


def change_table(matched: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return one row per cell and method: who was compared, and how a score changed from A to B."""
    rows: list[dict[Any, Any]] = []
    for key, runs in matched.groupby([*BY_SIZE, *SERIES], sort=True):
        named: dict[Any, Any] = dict(zip([*BY_SIZE, *SERIES], key, strict=True))
        rows.append(named | {"score": score} | _count(runs) | _difference(runs, score))
    return pd.DataFrame(rows, columns=COLUMNS)


def _count(runs: pd.DataFrame) -> dict[str, Any]:
    shared = runs[runs["in"] == "both"]
    moved = shared[shared["status_a"] != shared["status_b"]]
    ways = (moved["status_a"] + " \u2192 " + moved["status_b"]).value_counts().sort_index()
    return {
        "pairs": len(shared),
        "identical": int(shared["identical"].sum()),
        "changed": int((~shared["identical"]).sum()),
        "only_a": int((runs["in"] == "A").sum()),
        "only_b": int((runs["in"] == "B").sum()),
        "status_changes": ", ".join(f"{count} {way}" for way, count in ways.items()),
        "digests_a": " ".join(sorted(set(runs["digest_a"].dropna()))),
        "digests_b": " ".join(sorted(set(runs["digest_b"].dropna()))),
    }


def _difference(runs: pd.DataFrame, score: str) -> dict[str, Any]:
    """Compare the seeds that finished with a score on both sides."""
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

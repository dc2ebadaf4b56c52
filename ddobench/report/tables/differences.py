"""The difference of two series of runs on the same seeds: computed, then spelled for people."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ddobench.report.tables.formats import DASH, MINUS
from ddobench.scores import find_score
from ddobench.stats.samples import FEW, Difference, Sample, holm, paired_differences, smallest_p

CHANGE = [
    *("pairs", "difference", "difference_low", "difference_high", "difference_interval"),
    *("p", "p_holm", "improvement"),
]


def paired_changes(asked: Sequence[tuple[ArrayLike, ArrayLike, str]]) -> list[dict[str, Any]]:
    """Compare values of a score whose i-th entries are of the same seed, NaN where a run has none.

    `improvement` is the share of pairs where the first is the better one, ties counted half.
    """
    whole = [_drop_missing(first, second) for first, second, _ in asked]
    found = iter(paired_differences([pair for pair in whole if len(pair[0])]))
    return [
        _describe(next(found), score) if len(pair[0]) else {"pairs": 0}
        for pair, (_, _, score) in zip(whole, asked, strict=True)
    ]


def _drop_missing(first: ArrayLike, second: ArrayLike) -> tuple[Sample, Sample]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    both = np.isfinite(a) & np.isfinite(b)
    return a[both], b[both]


def _describe(found: Difference, score: str) -> dict[str, Any]:
    less_is_better = find_score(score).better == "lower"
    return {
        "pairs": found.pairs,
        "difference": found.mean,
        "difference_low": found.interval.low,
        "difference_high": found.interval.high,
        "difference_interval": found.interval.kind,
        "p": found.p,
        "improvement": 1 - found.improvement if less_is_better else found.improvement,
    }


def adjust_families(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Fill in the p values after Holm, all comparisons with the same keys being one family."""
    p = table["p"].to_numpy(dtype=float)
    adjusted = np.full(len(table), np.nan)
    for members in table.groupby(keys).indices.values():
        tested = members[np.isfinite(p[members])]
        if len(tested):
            adjusted[tested] = holm(p[tested])
    return table.assign(p_holm=adjusted)


def explain_few_pairs(most: int, compared: int) -> str:
    """Say what so few pairs cannot show, nothing where they are many."""
    if not compared or most >= FEW:
        return ""
    least = smallest_p(most)
    text = f" With {most} pairs no p falls below {format_p(least)}"
    adjusted = f", and none below {format_p(min(1.0, least * compared))} once adjusted"
    return text + (adjusted if compared > 1 else "")


def format_change(row: Mapping[Hashable, Any]) -> str:
    """Spell a difference with its interval; that of shares in percentage points."""
    unit = find_score(row["score"]).unit
    mean, low, high = (
        format_digits(unit.scale * row[name], unit.digits)
        for name in ("difference", "difference_low", "difference_high")
    )
    return mean if DASH in (mean, low) else f"{mean} [{low}, {high}]"


def format_digits(value: float, digits: int) -> str:
    """Spell a number with so many decimals; what rounds to nothing keeps its sign."""
    if not np.isfinite(value):
        return DASH
    return f"{value + 0.0:.{digits}f}".replace("-", MINUS)


def format_p(p: float) -> str:
    """Spell a p value with two digits, never as zero."""
    if not np.isfinite(p):
        return DASH
    if p < 0.001:
        return "< .001"
    return f"{p:.2f}".lstrip("0") if p >= 0.01 else f"{p:.3f}".lstrip("0")

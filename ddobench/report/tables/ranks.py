"""Mean ranks of methods over blocks, and which of them differ: Friedman's test, then Nemenyi's.

After Demšar, Statistical comparisons of classifiers over multiple data sets, 2006. What a block is
and why, `lineups` says. With fewer blocks than FEWEST nothing is tested: only mean ranks are told.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

FEWEST = 5  # blocks before a test is worth its name
LEVEL = 0.05
_DIGITS = 9  # means that agree to so many decimals are equal


@dataclass(frozen=True)
class Ranking:
    """Mean ranks, best first, and what the tests say of them."""

    means: "pd.Series[float]"  # by method; 1 is best
    blocks: int
    p: float  # Friedman's; NaN where nothing was tested
    critical: float  # the difference of mean ranks that Nemenyi asks for; NaN likewise
    groups: tuple[tuple[str, ...], ...]  # methods not shown to differ; empty likewise


def rank_methods(scores: pd.DataFrame) -> Ranking:
    """Rank the columns of a table with a row per block, larger being better, ties sharing ranks."""
    ranks = scores.round(_DIGITS).rank(axis=1, ascending=False, method="average")
    means = ranks.mean().sort_values(kind="stable")
    blocks, methods = ranks.shape
    if blocks < FEWEST or methods < 3:
        return Ranking(means, blocks, np.nan, np.nan, ())
    p = friedman_p(ranks)
    critical = critical_difference(methods, blocks)
    return Ranking(means, blocks, p, critical, join_groups(means, critical, p))


def friedman_p(ranks: pd.DataFrame) -> float:
    """Return the p of Friedman's test; 1 where every block is one tie."""
    tied = bool(np.ptp(ranks.to_numpy(), axis=1).max() == 0)
    return 1.0 if tied else float(stats.friedmanchisquare(*ranks.to_numpy().T).pvalue)


def critical_difference(methods: int, blocks: int) -> float:
    """Return Nemenyi's critical difference of two mean ranks at the level of five per cent."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def join_groups(
    means: "pd.Series[float]", critical: float, p: float
) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups within the critical difference; all where Friedman finds none."""
    names, values = [str(name) for name in means.index], means.to_numpy()
    if p >= LEVEL:
        return (tuple(names),)
    groups: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(names)):
        end = int(np.searchsorted(values, values[start] + critical, side="left"))
        if end > max(reached, start + 1):
            groups.append(tuple(names[start:end]))
        reached = max(reached, end)
    return tuple(groups)

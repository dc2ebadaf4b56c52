"""Methods across cells: ranks, interquartile means, and their intervals over cells and seeds.

Arrays have the axes M methods, C cells, S seeds. NaN is a hole: such a method is not ranked there.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Values = NDArray[np.float64]

RESAMPLES = 999
_DIGITS = 9  # means that agree to so many decimals are equal
_AT_ONCE = 100  # resamples that are ranked together


@dataclass(frozen=True)
class Estimate:
    """A number of every method (M,), and the ends of its interval."""

    value: Values
    low: Values
    high: Values


def mean_known(values: Values, axis: int = -1) -> Values:
    """Return means over an axis without its holes, NaN where there is nothing else."""
    known = ~np.isnan(values)
    counts = known.sum(axis=axis)
    sums = np.where(known, values, 0.0).sum(axis=axis)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def rank_in_cells(means: Values) -> Values:
    """Rank the methods of every cell (..., M, C), 1 for the largest; equal ones share a rank."""
    means = means.round(_DIGITS)
    own, others = means[..., :, None, :], means[..., None, :, :]
    ranks = 0.5 + (others > own).sum(axis=-2) + 0.5 * (others == own).sum(axis=-2)
    return np.where(np.isnan(means), np.nan, ranks)


def middle_mean(values: Values) -> Values:
    """Return interquartile means over the last axis without its holes; up to 3 are all kept."""
    ordered = np.sort(values, axis=-1)  # holes last
    count = (~np.isnan(values)).sum(axis=-1)
    cut = count // 4
    sums = np.cumsum(np.where(np.isnan(ordered), 0.0, ordered), axis=-1)
    sums = np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)
    high = np.take_along_axis(sums, (count - cut)[..., None], axis=-1)[..., 0]
    low = np.take_along_axis(sums, cut[..., None], axis=-1)[..., 0]
    return np.where(count > 0, (high - low) / np.maximum(count - 2 * cut, 1), np.nan)


def compare_across(shares: Values, seed: int = 0) -> tuple[Estimate, Estimate]:
    """Return the mean rank and the interquartile mean of every method, from shares (M, C, S).

    A resample draws cells and, within each of them, seeds, the same for all methods: with few
    cells, which of them were chosen matters more than the seeds do.
    """
    methods, cells, seeds = shares.shape
    rng = np.random.default_rng(seed)
    ranks, middles = [], []
    for start in range(0, RESAMPLES, _AT_ONCE):
        some = min(_AT_ONCE, RESAMPLES - start)
        cell = rng.integers(0, cells, (some, cells, 1))
        drawn = shares[:, cell, rng.integers(0, seeds, (some, cells, seeds))]  # (M, R, C, S)
        ranks.append(mean_known(rank_in_cells(mean_known(drawn).swapaxes(0, 1))))
        middles.append(middle_mean(drawn.reshape(methods, some, -1)).T)
    rank = mean_known(rank_in_cells(mean_known(shares)))
    middle = middle_mean(shares.reshape(methods, -1))
    return _estimate(rank, np.concatenate(ranks)), _estimate(middle, np.concatenate(middles))


def _estimate(value: Values, resampled: Values) -> Estimate:
    """Return the percentile interval of each method, NaN for a method without a value."""
    known = ~np.isnan(value)
    ends = np.full((2, value.size), np.nan)
    if known.any():
        ends[:, known] = np.nanquantile(resampled[:, known], [0.025, 0.975], axis=0)
    return Estimate(value, ends[0], ends[1])


def agreement(first: Values, second: Values) -> float:
    """Return Kendall's tau of two rankings over the methods in both, NaN for fewer than two."""
    both = ~(np.isnan(first) | np.isnan(second))
    if both.sum() < 2:
        return float("nan")
    return float(
        stats.kendalltau(first[both].round(_DIGITS), second[both].round(_DIGITS)).statistic
    )

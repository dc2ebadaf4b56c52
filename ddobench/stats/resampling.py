"""Bootstraps that resample within strata, for what is averaged over several tasks at once.

A stratum holds the values of one task and size, one per seed. Its seeds are drawn again among
themselves, so that every resample has as many runs of every task as the sample had.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ddobench.stats.samples import Interval, Sample, check_sample, interquartile_mean

RESAMPLES = 1999  # a third digit of a quantile is not read from a figure


def iqm_interval(
    strata: Sequence[Sample], *, confidence: float = 0.95, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the percentile interval of the interquartile mean of all strata together."""
    samples = [check_sample(stratum) for stratum in strata]
    if max(sample.size for sample in samples) == 1:
        return Interval(np.nan, np.nan, "none")
    if all(np.ptp(sample) == 0 for sample in samples):
        middle = interquartile_mean(np.concatenate(samples))
        return Interval(middle, middle, "equal")
    drawn = np.sort(_draw(samples, resamples, seed), axis=1)
    cut = drawn.shape[1] // 4
    means = drawn[:, cut : drawn.shape[1] - cut].mean(axis=1)
    low, high = np.quantile(means, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return Interval(float(low), float(high), "percentile" if low < high else "equal")


def share_at_least(strata: Sequence[Sample], thresholds: Sample) -> Sample:
    """Return the share of all values that reach each threshold (T,)."""
    together = np.sort(np.concatenate([check_sample(stratum) for stratum in strata]))
    return 1 - np.searchsorted(together, thresholds, side="left") / together.size


def share_band(
    strata: Sequence[Sample],
    thresholds: Sample,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Sample, Sample]:
    """Return the pointwise percentile band (T,) of the share that reaches each threshold."""
    samples = [check_sample(stratum) for stratum in strata]
    reached = np.zeros((resamples, thresholds.size))
    sizes = tuple(sample.size for sample in samples)
    for sample, counts in zip(samples, _draw_counts(sizes, resamples, seed), strict=True):
        reached += counts @ (sample[:, None] >= thresholds)
    shares = reached / sum(sizes)
    low, high = np.quantile(shares, [0.5 - confidence / 2, 0.5 + confidence / 2], axis=0)
    return low, high


def _draw(samples: Sequence[Sample], resamples: int, seed: int) -> Sample:
    """Return every resample of all strata together (R, S)."""
    places = _draw_places(tuple(sample.size for sample in samples), resamples, seed)
    return np.concatenate([s[rows] for s, rows in zip(samples, places, strict=True)], axis=1)


@lru_cache(maxsize=2)
def _draw_counts(sizes: tuple[int, ...], resamples: int, seed: int) -> list[Sample]:
    """Return how often every resample takes each value of a stratum (R, S)."""
    counts = []
    for size, rows in zip(sizes, _draw_places(sizes, resamples, seed), strict=True):
        places = rows + size * np.arange(resamples)[:, None]
        drawn = np.bincount(places.ravel(), minlength=resamples * size)
        counts.append(drawn.reshape(resamples, size).astype(np.float64))
    return counts


@lru_cache(maxsize=8)
def _draw_places(sizes: tuple[int, ...], resamples: int, seed: int) -> list[NDArray[np.int64]]:
    """Return which values of each stratum every resample takes (R, S)."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, (resamples, size)) for size in sizes]

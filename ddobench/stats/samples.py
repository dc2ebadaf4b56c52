"""Statistics of one sample of runs, or of two paired by seed, as pure functions on arrays.

Every function wants a non-empty, finite, one-dimensional sample: what is missing must be counted by
the caller, never averaged over here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special, stats

from ddobench.stats.bca import ROUNDING, bca_bounds

Sample = NDArray[np.float64]

# How an interval came about. `bca` and `percentile` are bootstraps; `equal` is the zero width of a
# sample without spread; `none` is a single value, about whose spread nothing can be said.
Kind = Literal["bca", "percentile", "t", "equal", "none"]

RESAMPLES = 9999
FEW = 10  # fewer values than this have Student's interval, more the bootstrap's
_AT_ONCE = 64  # samples bootstrapped together


@dataclass(frozen=True)
class Interval:
    """A confidence interval and how it came about; NaN bounds where there is none."""

    low: float
    high: float
    kind: Kind


@dataclass(frozen=True)
class Difference:
    """How a first sample differs from a second on the same seeds."""

    pairs: int
    mean: float  # of first minus second
    interval: Interval
    p: float  # two-sided, not adjusted for other comparisons
    improvement: float  # the share of pairs where the first is larger, equal ones counted half


def check_sample(values: ArrayLike) -> Sample:
    """Return the values as one float array, or raise if they are not a finite sample."""
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"a sample must be one non-empty row of numbers, got shape {sample.shape}")
    if not np.isfinite(sample).all():
        bad = int((~np.isfinite(sample)).sum())
        raise ValueError(f"a sample must be finite, got {bad} of {sample.size} that are not")
    return sample


def mean_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return the interval of the mean that is shown and judged by, everywhere."""
    (interval,) = mean_intervals([values], confidence=confidence)
    return interval


def mean_intervals(samples: Sequence[ArrayLike], *, confidence: float = 0.95) -> list[Interval]:
    """Return the interval of each sample's mean: Student's below FEW values, else the bootstrap's.

    The bootstrap of few values is too narrow, Student's of many ignores that they are skewed. This
    is the one place that decides, so that a quantity has the same interval wherever it is shown.
    """
    checked = [check_sample(sample) for sample in samples]
    many = [sample for sample in checked if sample.size >= FEW]
    bootstrapped = iter(bootstrap_intervals(many, confidence=confidence))
    return [
        next(bootstrapped) if sample.size >= FEW else t_interval(sample, confidence=confidence)
        for sample in checked
    ]


def bootstrap_intervals(
    samples: Sequence[ArrayLike],
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Interval]:
    """Return the bias-corrected and accelerated bootstrap interval of each sample's mean.

    Where the correction is undefined the percentile interval of the same resamples stands in, and
    the kind says so. The same sample and seed always give the same interval; samples of one size
    are computed together.
    """
    checked = [check_sample(sample) for sample in samples]
    found = [_trivial_interval(sample) for sample in checked]
    waiting: dict[int, list[int]] = {}
    for place, interval in enumerate(found):
        if interval is None:
            waiting.setdefault(checked[place].size, []).append(place)
    tails = np.array([0.5 - confidence / 2, 0.5 + confidence / 2])
    for places in waiting.values():
        for start in range(0, len(places), _AT_ONCE):
            some = places[start : start + _AT_ONCE]
            together = np.stack([checked[place] for place in some])
            bounds, defined = bca_bounds(together, tails, resamples, seed)
            for place, (low, high), known in zip(some, bounds, defined, strict=True):
                kind: Kind = "bca" if known else "percentile"
                found[place] = Interval(float(low), float(high), kind)
    return [interval for interval in found if interval is not None]


def t_interval(values: ArrayLike, *, confidence: float = 0.95) -> Interval:
    """Return Student's interval of the mean, what most papers print as "95 % interval"."""
    sample = check_sample(values)
    if (trivial := _trivial_interval(sample)) is not None:
        return trivial
    error = sample.std(ddof=1) / np.sqrt(sample.size)
    half = special.stdtrit(sample.size - 1, 0.5 + confidence / 2) * error
    return Interval(float(sample.mean() - half), float(sample.mean() + half), "t")


def mean_band(samples: ArrayLike, *, confidence: float = 0.95) -> tuple[Sample, Sample]:
    """Return the bounds of the mean's interval for each column of samples (S, T), NaN for one row.

    A column with a missing value has NaN bounds: the caller decides where a band ends.
    """
    table = np.asarray(samples, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] == 0:
        raise ValueError(f"samples must be a table with a row per seed, got shape {table.shape}")
    low, high = np.full(table.shape[1], np.nan), np.full(table.shape[1], np.nan)
    whole = np.flatnonzero(np.isfinite(table).all(axis=0))
    intervals = mean_intervals([*table[:, whole].T], confidence=confidence)
    low[whole] = [interval.low for interval in intervals]
    high[whole] = [interval.high for interval in intervals]
    return low, high


def interquartile_mean(values: ArrayLike) -> float:
    """Return the mean of the middle half; fewer than four values have nothing to cut off."""
    ordered = np.sort(check_sample(values))
    cut = ordered.size // 4
    return float(ordered[cut : ordered.size - cut].mean())


def paired_difference(a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95) -> Difference:
    """Compare samples whose i-th values belong to the same seed.

    A seed draws the function as well as the data, so a pair shares much of its luck: the interval
    is that of the mean difference, and the test is Wilcoxon's signed-rank test on the differences.
    """
    (difference,) = paired_differences([(a, b)], confidence=confidence)
    return difference


def paired_differences(
    pairs: Sequence[tuple[ArrayLike, ArrayLike]], *, confidence: float = 0.95
) -> list[Difference]:
    """Compare many pairs of samples, each by itself, at less cost than one by one."""
    changes = [_change(check_sample(a), check_sample(b)) for a, b in pairs]
    return [
        Difference(
            pairs=change.size,
            mean=float(change.mean()),
            interval=interval,
            p=signed_rank_p(change),
            improvement=float(np.mean((change > 0) + 0.5 * (change == 0))),
        )
        for change, interval in zip(
            changes, mean_intervals(changes, confidence=confidence), strict=True
        )
    ]


def _change(first: Sample, second: Sample) -> Sample:
    if first.size != second.size:
        raise ValueError(f"pairs need samples of one size, got {first.size} and {second.size}")
    return first - second


def signed_rank_p(change: ArrayLike) -> float:
    """Return Wilcoxon's two-sided p, exact for small samples; 1 where nothing changes."""
    sample = check_sample(change)
    _, order = np.unique(np.abs(sample), return_inverse=True)
    signed = np.where(sample == 0, 0, np.sign(sample) * (order + 1))
    return _signed_rank_p(tuple(np.sort(signed).tolist())) if sample.any() else 1.0


def smallest_p(pairs: int) -> float:
    """Return the p of the signed-rank test when all of so many pairs point the same way."""
    return float(min(1.0, 2.0 ** (1 - pairs)))


def holm(p: ArrayLike) -> Sample:
    """Return p values adjusted by Holm's step-down method for being a family of comparisons."""
    sample = check_sample(p)
    order = np.argsort(sample, kind="stable")
    steps = sample[order] * np.arange(sample.size, 0, -1)
    adjusted = np.empty_like(sample)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


@lru_cache(maxsize=4096)
def _signed_rank_p(signed: tuple[float, ...]) -> float:
    """Return Wilcoxon's p of signed places; few seeds have few patterns, met again and again."""
    return float(stats.wilcoxon(signed).pvalue)


def _trivial_interval(sample: Sample) -> Interval | None:
    """Return the interval of a sample that no resampling can say more about."""
    if sample.size == 1:
        return Interval(np.nan, np.nan, "none")
    if np.ptp(sample) <= ROUNDING * np.abs(sample).max():
        return Interval(float(sample.mean()), float(sample.mean()), "equal")
    return None

"""The bias-corrected and accelerated bootstrap of means, for many samples of one size at once.

Efron and Tibshirani, An Introduction to the Bootstrap, section 14.3. `scipy.stats.bootstrap` gives
the same to the last digits for 50 values or more, and the tests compare. For few values, as most
reports have, it does not: resamples that are the sample in another order tie with its mean, but
rounding puts them to one side; for 3 to 5 values a bound then moves by up to 0.3 of the width.

Nor is it cheap. A report of 10,000 runs has some 530 intervals of 250 values: here 0.4 ms of CPU
time each, with scipy 7 ms vectorised (16 times as much) and 12 ms one by one (28 times), which
is 4 to 6 s of the 60 s that such a report may take. For 5 values it is 2 and 5 times as much.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Values = NDArray[np.float64]

ROUNDING = 1e-12  # a relative spread below this is the arithmetic's, not the sample's


def bca_bounds(
    samples: Values, tails: Values, resamples: int, seed: int
) -> tuple[Values, NDArray[np.bool_]]:
    """Return the bounds (K, 2) for the means of samples (K, S), and where BCa is defined (K,).

    `tails` are the two quantiles of an interval, which stand uncorrected where it is not.
    """
    means = np.sort(samples @ _weights(samples.shape[1], resamples, seed).T, axis=1)
    centre = samples.mean(axis=1)
    rounding = ROUNDING * np.abs(samples).max(axis=1)
    below = [  # the resamples with a smaller mean, equal ones counted half
        (np.searchsorted(row, middle - near) + np.searchsorted(row, middle + near, "right")) / 2
        for row, middle, near in zip(means, centre, rounding, strict=True)
    ]
    bias = special.ndtri(np.asarray(below) / resamples)[:, None]
    defined = np.isfinite(bias[:, 0])
    influence = samples - centre[:, None]
    skew = (influence**3).sum(axis=1) / (6 * (influence**2).sum(axis=1) ** 1.5)
    shifted = np.where(np.isfinite(bias), bias, 0.0) + special.ndtri(tails)
    corrected = special.ndtr(bias + shifted / (1 - skew[:, None] * shifted))
    return _quantiles(means, np.where(defined[:, None], corrected, tails)), defined


def _quantiles(ordered: Values, shares: Values) -> Values:
    """Return quantiles (K, Q) of each ascending row (K, R), between neighbours as numpy does."""
    places = shares * (ordered.shape[1] - 1)
    lower = np.minimum(places.astype(int), ordered.shape[1] - 2)
    floor, ceiling = (np.take_along_axis(ordered, lower + step, axis=1) for step in (0, 1))
    return np.asarray(floor + (places - lower) * (ceiling - floor))


@lru_cache(maxsize=8)
def _weights(size: int, resamples: int, seed: int) -> Values:
    """Return how much each of `size` values weighs in the mean of every resample (R, S)."""
    drawn = np.random.default_rng(seed).integers(0, size, (resamples, size))
    places = drawn + size * np.arange(resamples)[:, None]
    return np.bincount(places.ravel(), minlength=resamples * size).reshape(-1, size) / size

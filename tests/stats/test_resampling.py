"""Promises of the bootstraps within strata."""

import numpy as np
import pytest

from ddobench.stats.resampling import iqm_interval, share_at_least, share_band
from ddobench.stats.samples import interquartile_mean

RNG = np.random.default_rng(5)
STRATA = [RNG.normal(size=20), 10 + RNG.normal(size=20)]
EDGES = np.array([-20.0, 0.0, 5.0, 50.0])


def test_the_interval_of_the_interquartile_mean_holds_it_and_is_the_same_every_time() -> None:
    found = iqm_interval(STRATA)
    assert found == iqm_interval(STRATA)
    assert found.low < interquartile_mean(np.concatenate(STRATA)) < found.high
    assert found.kind == "percentile"


def test_resampling_within_strata_leaves_out_the_difference_between_them() -> None:
    within, across = iqm_interval(STRATA), iqm_interval([np.concatenate(STRATA)])
    assert within.high - within.low < 0.5 * (across.high - across.low)


def test_values_without_spread_and_single_values_say_so() -> None:
    equal = iqm_interval([np.ones(4), np.full(4, 3.0)])
    assert (equal.low, equal.high, equal.kind) == (2.0, 2.0, "equal")
    alone = iqm_interval([np.array([1.0]), np.array([2.0])])
    assert alone.kind == "none"
    assert np.isnan(alone.low)


def test_more_confidence_means_a_wider_interval() -> None:
    narrow, wide = (iqm_interval(STRATA, confidence=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_share_that_reaches_a_threshold_counts_equality_as_reached() -> None:
    shares = share_at_least([np.array([0.0, 1.0]), np.array([2.0, 3.0])], np.array([0.0, 1.0, 4.0]))
    assert shares.tolist() == [1.0, 0.75, 0.0]


def test_the_band_holds_the_share_and_has_no_width_where_all_or_no_run_reaches() -> None:
    low, high = share_band(STRATA, EDGES)
    shares = share_at_least(STRATA, EDGES)
    assert (low <= shares).all()
    assert (shares <= high).all()
    assert low[[0, 2, 3]].tolist() == high[[0, 2, 3]].tolist() == [1.0, 0.5, 0.0]
    assert low[1] < high[1]


def test_missing_values_are_refused() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        iqm_interval([np.array([1.0, np.nan])])

"""Promises of the statistics, checked by hand and against scipy."""

import numpy as np
import pytest
from scipy import stats

from ddobench.statistics import Interval, interquartile_mean, mean_interval, t_interval

SKEWED = np.random.default_rng(3).exponential(size=50)


def test_the_bootstrap_interval_is_scipys_bca_interval() -> None:
    expected = stats.bootstrap(
        (SKEWED,), np.mean, n_resamples=999, method="BCa", rng=np.random.default_rng(7)
    ).confidence_interval
    found = mean_interval(SKEWED, resamples=999, seed=7)
    assert (found.low, found.high, found.kind) == (expected.low, expected.high, "bca")


def test_the_bootstrap_interval_is_the_same_every_time() -> None:
    assert mean_interval(SKEWED) == mean_interval(SKEWED)
    assert mean_interval(SKEWED) != mean_interval(SKEWED, seed=1)


def test_the_bootstrap_leaves_the_global_generator_alone() -> None:
    before = str(np.random.get_state())  # noqa: NPY002 - the one to be left alone
    mean_interval(SKEWED)
    assert str(np.random.get_state()) == before  # noqa: NPY002


def test_the_intervals_cover_the_true_mean_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(400, 30))
    for interval in (t_interval, lambda sample: mean_interval(sample, resamples=499)):
        hits = sum((found := interval(s)).low <= 0 <= found.high for s in samples)
        assert 0.90 <= hits / len(samples) <= 0.98


def test_more_confidence_means_a_wider_interval() -> None:
    narrow, wide = mean_interval(SKEWED, confidence=0.5), mean_interval(SKEWED, confidence=0.99)
    assert wide.low < narrow.low < SKEWED.mean() < narrow.high < wide.high


@pytest.mark.parametrize("interval", [mean_interval, t_interval])
def test_a_sample_without_spread_has_an_interval_of_zero_width(interval: type) -> None:
    assert interval([0.0] * 50) == Interval(0.0, 0.0, "equal")
    rounded = interval([1.0, 1.0 + 2e-16, 1.0])
    assert rounded.kind == "equal"
    assert rounded.low == rounded.high == pytest.approx(1.0)


@pytest.mark.parametrize("interval", [mean_interval, t_interval])
def test_a_single_value_has_no_interval(interval: type) -> None:
    found = interval([2.5])
    assert found.kind == "none"
    assert np.isnan([found.low, found.high]).all()


def test_one_seed_that_differs_still_gives_a_finite_interval() -> None:
    found = mean_interval([0.0] * 49 + [2.0])
    assert 0.0 <= found.low < found.high < 2.0


def test_an_undefined_bca_correction_falls_back_to_percentiles_and_says_so() -> None:
    # Three resamples that all lie above the mean leave the correction undefined.
    found = mean_interval([0.0] * 199 + [1.0], resamples=3, seed=4)
    assert found.kind == "percentile"
    assert np.isfinite([found.low, found.high]).all()


def test_students_interval_of_three_values_by_hand() -> None:
    # Mean 2, standard error 1/sqrt(3), quantile 4.302653 at two degrees of freedom.
    found = t_interval([1.0, 2.0, 3.0])
    half = 4.302653 / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), rel=1e-6)
    assert found.kind == "t"


def test_the_interquartile_mean_cuts_a_quarter_off_each_end() -> None:
    assert interquartile_mean([100.0, 2.0, 1.0, 3.0, 4.0, -50.0, 5.0, 6.0]) == 3.5
    assert interquartile_mean([1.0, 2.0, 6.0]) == 3.0


@pytest.mark.parametrize("function", [mean_interval, t_interval, interquartile_mean])
def test_missing_values_are_refused_instead_of_averaged_over(function: type) -> None:
    with pytest.raises(ValueError, match="must be finite, got 1 of 3"):
        function([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="non-empty row"):
        function([])
    with pytest.raises(ValueError, match=r"got shape \(2, 2\)"):
        function([[1.0, 2.0], [3.0, 4.0]])

"""Statistics of samples, checked by hand and against scipy."""

import numpy as np
import pytest
from scipy import stats

from ddobench.stats.samples import (
    FEW,
    Interval,
    bootstrap_intervals,
    holm,
    interquartile_mean,
    iqm_interval,
    mean_band,
    mean_interval,
    mean_intervals,
    paired_difference,
    share_at_least,
    share_band,
    signed_rank_p,
    smallest_p,
    t_interval,
)

SKEWED = np.random.default_rng(3).exponential(size=50)
STRATA = [
    center + np.random.default_rng(seed).normal(size=20) for seed, center in ((5, 0.0), (6, 10.0))
]
THRESHOLDS = np.array([-20.0, 0.0, 5.0, 50.0])


def test_the_bootstrap_interval_is_scipys_bca_interval() -> None:
    expected = stats.bootstrap(
        (SKEWED,), np.mean, n_resamples=999, method="BCa", rng=np.random.default_rng(7)
    ).confidence_interval
    (found,) = bootstrap_intervals([SKEWED], resamples=999, seed=7)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.kind == "bca"


def test_samples_computed_together_have_the_intervals_of_each_alone() -> None:
    samples = [SKEWED, SKEWED[:7], -SKEWED, SKEWED[:1], SKEWED[7:14], np.full(2, 2.0)]
    together = mean_intervals(samples)
    for sample, found in zip(samples, together, strict=True):
        alone = mean_interval(sample)
        assert found.kind == alone.kind
        assert (found.low, found.high) == pytest.approx((alone.low, alone.high), nan_ok=True)


def test_the_bootstrap_interval_is_reproducible() -> None:
    assert mean_interval(SKEWED) == mean_interval(SKEWED)
    assert bootstrap_intervals([SKEWED]) != bootstrap_intervals([SKEWED], seed=1)


def test_the_bootstrap_does_not_use_the_global_generator() -> None:
    before = str(np.random.get_state())  # noqa: NPY002
    mean_interval(SKEWED)
    assert str(np.random.get_state()) == before  # noqa: NPY002


def test_the_intervals_cover_the_true_mean_at_about_their_confidence() -> None:
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(400, 30))
    for interval in (t_interval, lambda sample: bootstrap_intervals([sample], resamples=499)[0]):
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


def test_an_undefined_bca_correction_falls_back_to_percentiles() -> None:
    # Three resamples that all lie above the mean leave the correction undefined.
    (found,) = bootstrap_intervals([[0.0] * 199 + [1.0]], resamples=3, seed=4)
    assert found.kind == "percentile"
    assert np.isfinite([found.low, found.high]).all()


def test_students_interval_of_three_values_by_hand() -> None:
    # Mean 2, standard error 1/sqrt(3), quantile 4.30265273 at two degrees of freedom.
    found = t_interval([1.0, 2.0, 3.0])
    half = 4.30265273 / np.sqrt(3)
    assert (found.low, found.high) == pytest.approx((2 - half, 2 + half), rel=1e-6)
    assert found.kind == "t"


def test_the_interquartile_mean_cuts_a_quarter_off_each_end() -> None:
    assert interquartile_mean([100.0, 2.0, 1.0, 3.0, 4.0, -50.0, 5.0, 6.0]) == 3.5
    assert interquartile_mean([1.0, 2.0, 6.0]) == 3.0


@pytest.mark.parametrize("function", [mean_interval, t_interval, interquartile_mean])
def test_samples_with_missing_values_are_refused(function: type) -> None:
    with pytest.raises(ValueError, match="must be finite, got 1 of 3"):
        function([1.0, np.nan, 2.0])
    with pytest.raises(ValueError, match="non-empty row"):
        function([])
    with pytest.raises(ValueError, match=r"got shape \(2, 2\)"):
        function([[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.parametrize("rows", [5, FEW])
def test_a_band_has_the_interval_of_every_column(rows: int) -> None:
    table = SKEWED.reshape(rows, -1)
    low, high = mean_band(table)
    for column, bounds in zip(table.T, zip(low, high, strict=True), strict=True):
        found = mean_interval(column)
        assert bounds == pytest.approx((found.low, found.high))


def test_a_band_is_nan_where_a_seed_is_missing_or_alone() -> None:
    low, high = mean_band([[1.0, 2.0], [3.0, np.nan]])
    assert np.isfinite([low[0], high[0]]).all()
    assert np.isnan([low[1], high[1]]).all()
    assert np.isnan(mean_band([[1.0, 2.0]])).all()
    with pytest.raises(ValueError, match="a row per seed"):
        mean_band([1.0, 2.0])


def test_few_values_get_students_interval_and_more_the_bootstraps() -> None:
    few, many = SKEWED[: FEW - 1], SKEWED[:FEW]
    assert mean_interval(few) == t_interval(few)
    assert [mean_interval(many)] == bootstrap_intervals([many])
    assert mean_intervals([many, few]) == [mean_interval(many), mean_interval(few)]
    assert paired_difference(few, 0 * few).interval == t_interval(few)


@pytest.mark.parametrize("values", [[0.0, 1.0, -2.0, 3.0], [1.0, 1.0, -2.0, 5.0], SKEWED - 1.0])
def test_the_signed_rank_test_is_scipys_with_ties_zeros_and_many_values(
    values: list[float],
) -> None:
    assert signed_rank_p(values) == pytest.approx(stats.wilcoxon(values).pvalue, rel=1e-12)


def test_a_paired_difference_by_hand() -> None:
    # Differences 1, 2, 3, 4, -5: negative rank sum 5 of 15. Of the 32 signings, 10 have a rank sum
    # of at most 5 (1, 1, 1, 2, 2, 3 subsets for sums 0 to 5), so p = 20/32.
    found = paired_difference([2.0, 4.0, 6.0, 8.0, 0.0], [1.0, 2.0, 3.0, 4.0, 5.0])
    assert found.pairs == 5
    assert found.mean == pytest.approx(1.0)
    assert found.improvement == pytest.approx(0.8)
    assert found.p == pytest.approx(20 / 32)
    assert found.interval == mean_interval([1.0, 2.0, 3.0, 4.0, -5.0])


def test_pairing_removes_the_variation_between_seeds() -> None:
    common = 10 * SKEWED
    found = paired_difference(common + 1, common)
    assert (found.mean, found.improvement) == pytest.approx((1.0, 1.0))
    assert found.interval.high - found.interval.low < 1e-9


def test_equal_pairs_count_half() -> None:
    same = paired_difference([1.0, 2.0], [1.0, 2.0])
    assert (same.mean, same.p, same.improvement) == (0.0, 1.0, 0.5)
    assert paired_difference([1.0, 3.0], [1.0, 2.0]).improvement == 0.75


def test_a_single_pair_has_neither_interval_nor_significance() -> None:
    found = paired_difference([3.0], [1.0])
    assert (found.mean, found.p, found.interval.kind) == (2.0, 1.0, "none")


def test_five_pairs_cannot_be_significant_however_clear() -> None:
    assert signed_rank_p([1.0, 2.0, 3.0, 4.0, 5.0]) == smallest_p(5) == 0.0625
    assert smallest_p(6) < 0.05
    assert smallest_p(1) == 1.0


def test_holm_by_hand() -> None:
    # Sorted .01, .02, .03, .04 times 4, 3, 2, 1, never falling.
    assert holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    assert holm([0.03]) == pytest.approx([0.03])


def test_unpaired_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="of one size, got 2 and 3"):
        paired_difference([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="must be finite"):
        paired_difference([1.0, np.nan], [1.0, 2.0])


def test_the_interval_of_the_interquartile_mean_contains_it_and_is_reproducible() -> None:
    found = iqm_interval(STRATA)
    assert found == iqm_interval(STRATA)
    assert found.low < interquartile_mean(np.concatenate(STRATA)) < found.high
    assert found.kind == "percentile"


def test_resampling_within_strata_excludes_the_difference_between_them() -> None:
    within, across = iqm_interval(STRATA), iqm_interval([np.concatenate(STRATA)])
    assert within.high - within.low < 0.5 * (across.high - across.low)


def test_strata_without_spread_or_of_single_values_have_their_own_kind() -> None:
    equal = iqm_interval([np.ones(4), np.full(4, 3.0)])
    assert (equal.low, equal.high, equal.kind) == (2.0, 2.0, "equal")
    alone = iqm_interval([np.array([1.0]), np.array([2.0])])
    assert alone.kind == "none"
    assert np.isnan(alone.low)


def test_more_confidence_means_a_wider_interval_of_the_interquartile_mean() -> None:
    narrow, wide = (iqm_interval(STRATA, confidence=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


def test_the_share_that_reaches_a_threshold_counts_equality_as_reached() -> None:
    shares = share_at_least([np.array([0.0, 1.0]), np.array([2.0, 3.0])], np.array([0.0, 1.0, 4.0]))
    assert shares.tolist() == [1.0, 0.75, 0.0]


def test_the_band_contains_the_share_and_has_no_width_at_0_and_1() -> None:
    low, high = share_band(STRATA, THRESHOLDS)
    shares = share_at_least(STRATA, THRESHOLDS)
    assert (low <= shares).all()
    assert (shares <= high).all()
    assert low[[0, 2, 3]].tolist() == high[[0, 2, 3]].tolist() == [1.0, 0.5, 0.0]
    assert low[1] < high[1]


def test_strata_with_missing_values_are_refused() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        iqm_interval([np.array([1.0, np.nan])])

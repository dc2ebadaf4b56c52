"""Promises of ranks across cells."""

import numpy as np

from ddobench.stats.ranks import agreement, compare_across, mean_known, middle_mean, rank_in_cells
from ddobench.stats.samples import interquartile_mean

NAN = float("nan")


def test_the_largest_is_first_equal_ones_share_a_rank_and_holes_have_none() -> None:
    means = np.array([[3.0, 1.0], [2.0, 1.0], [NAN, 5.0]])  # (M, C)
    expected = np.array([[1.0, 2.5], [2.0, 2.5], [NAN, 1.0]])
    np.testing.assert_array_equal(rank_in_cells(means), expected)
    np.testing.assert_array_equal(rank_in_cells(np.stack([means, means])), [expected, expected])


def test_means_leave_out_holes() -> None:
    np.testing.assert_array_equal(mean_known(np.array([[1.0, NAN, 3.0], [NAN] * 3])), [2.0, NAN])


def test_the_middle_mean_is_the_interquartile_mean_of_what_is_known() -> None:
    values = np.random.default_rng(0).normal(size=13)
    holes = np.concatenate([values, [NAN] * 4])
    assert np.isclose(middle_mean(holes), interquartile_mean(values))
    assert np.isnan(middle_mean(np.array([NAN, NAN])))


def test_intervals_contain_the_estimate_and_resample_cells() -> None:
    rng = np.random.default_rng(1)
    shares = rng.normal(size=(4, 6, 1)) + np.zeros((4, 6, 5))  # seeds agree, cells do not
    shares[3] = NAN
    rank, middle = compare_across(shares)
    for one in (rank, middle):
        assert np.all(one.low[:3] <= one.value[:3])
        assert np.all(one.value[:3] <= one.high[:3])
        assert np.any(one.low[:3] < one.high[:3])
        assert np.isnan([one.value[3], one.low[3], one.high[3]]).all()


def test_a_method_that_is_always_first_has_the_rank_one_without_doubt() -> None:
    shares = np.stack([np.ones((3, 4)), np.zeros((3, 4))])
    rank, _ = compare_across(shares)
    assert (rank.value[0], rank.low[0], rank.high[0]) == (1.0, 1.0, 1.0)


def test_agreement_is_kendalls_tau_of_the_methods_in_both() -> None:
    assert agreement(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 3.0, NAN])) == 1.0
    assert agreement(np.array([1.0, 2.0]), np.array([2.0, 1.0])) == -1.0
    assert np.isnan(agreement(np.array([1.0, NAN]), np.array([1.0, 2.0])))

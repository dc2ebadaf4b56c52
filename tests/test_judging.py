"""Promises of judging rows that were hidden from a method."""

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from ddobench.judging import HeldOut, Judged, LastDesigns, Reference, Spread, Values, overlap_area

REFERENCE = Reference.of(np.array([0.0, 2.0, 4.0]), float("nan"))  # mean 2
VALUES = np.linspace(5.0, 9.0, 20)


def test_a_perfect_prediction_has_no_error_and_the_best_rows_first() -> None:
    found = HeldOut.of(VALUES, VALUES, REFERENCE)
    assert found.error == 0.0
    assert found.rank == pytest.approx(1.0)
    assert found.top == pytest.approx(REFERENCE.standardise(VALUES[-2:]).mean())


def test_errors_are_in_standard_deviations_of_the_visible_values() -> None:
    found = HeldOut.of(VALUES, VALUES - 3 * REFERENCE.sd, REFERENCE)
    assert found.error == pytest.approx(3.0)
    assert found.rank == pytest.approx(1.0)


def test_the_wrong_order_puts_the_worst_rows_first() -> None:
    found = HeldOut.of(VALUES, -VALUES, REFERENCE)
    assert found.rank == pytest.approx(-1.0)
    assert found.top == pytest.approx(REFERENCE.standardise(VALUES[:2]).mean())


@pytest.mark.parametrize("predicted", [np.full(20, np.nan), np.where(VALUES > 8, np.inf, 0.0)])
def test_what_is_no_number_is_not_judged(predicted: Values) -> None:
    found = HeldOut.of(VALUES, predicted, REFERENCE)
    assert np.isnan([found.error, found.rank, found.top]).all()


def test_the_same_prediction_everywhere_has_an_error_but_no_order() -> None:
    found = HeldOut.of(VALUES, np.full(20, 7.0), REFERENCE)
    assert np.isfinite(found.error)
    assert np.isnan(found.rank)


def test_the_same_order_has_all_the_area_and_chance_has_half_of_it() -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=2000)
    assert overlap_area(3 * truth + 1, truth) == 1.0
    assert overlap_area(rng.normal(size=2000), truth) == pytest.approx(0.5, abs=0.03)
    assert overlap_area(-truth, truth) == pytest.approx(1 - np.log(2), abs=0.01)


def test_the_area_is_the_mean_overlap_of_the_first_few() -> None:
    truth, predicted = np.array([4.0, 3.0, 2.0, 1.0]), np.array([3.0, 4.0, 1.0, 2.0])
    assert overlap_area(predicted, truth) == pytest.approx((0 + 2 / 2 + 2 / 3 + 4 / 4) / 4)


def test_equal_predictions_earn_nothing_and_equal_truths_cost_nothing() -> None:
    truth = np.array([4.0, 3.0, 2.0, 1.0])
    assert overlap_area(np.array([1.0, 1.0, 1.0, 0.0]), truth) < overlap_area(truth, truth)
    assert overlap_area(np.array([9.0, 8.0, 1.0]), np.array([5.0, 5.0, 0.0])) == 1.0


@pytest.mark.parametrize("predicted", [np.zeros(4), np.full(4, np.nan)])
def test_what_orders_nothing_has_no_area(predicted: Values) -> None:
    assert np.isnan(overlap_area(predicted, np.arange(4.0)))


def test_distances_of_numbers_are_in_deviations_and_the_same_in_any_dimension() -> None:
    visible = np.tile(np.array([[0.0], [2.0]]), (1, 5))  # standard deviation 1
    designs = np.full((2, 5), 2.0)
    designs[1] = 5.0
    found = Spread.of(designs, visible, categorical=False)
    assert found.diversity == pytest.approx(3.0)
    assert found.novelty == pytest.approx(1.5)


def test_distances_of_categories_count_the_variables_that_differ() -> None:
    visible = np.array([[0.0, 0.0, 0.0, 0.0]])
    designs = np.array([[0.0, 0.0, 0.0, 3.0], [1.0, 2.0, 0.0, 3.0]])
    found = Spread.of(designs, visible, categorical=True)
    assert (found.diversity, found.novelty) == (0.5, 0.5)


def test_one_design_has_no_diversity_and_one_that_is_lost_no_distance() -> None:
    visible = np.zeros((3, 2))
    assert Spread.of(np.ones((1, 2)), visible, categorical=False).diversity == 0.0
    for lost in (np.nan, np.inf, 1e200):
        found = Spread.of(np.full((2, 2), lost), visible, categorical=False)
        assert np.isnan(found.novelty)


def test_a_batch_is_the_first_designs_that_differ() -> None:
    visible = np.array([[0.0], [2.0]])  # standard deviation 1
    designs = np.array([[0.0], [0.0], [1.0], [3.0], *[[float(i)] for i in range(10, 40)]])
    found = Spread.of(designs[:4], visible, categorical=False)
    assert (found.batch_least, found.batch_mean) == (1.0, 2.0)
    assert found.diversity < found.batch_mean  # which counts designs that are repeated
    longer = Spread.of(designs, visible, categorical=False)
    assert longer.batch_mean == pdist([[0.0], [1.0], [3.0], *designs[4:17]]).mean()
    same = Spread.of(np.ones((9, 1)), visible, categorical=False)
    assert (same.batch_least, same.batch_mean) == (0.0, 0.0)


def test_designs_off_the_surface_of_the_visible_ones_are_told_and_categories_have_none() -> None:
    angle = np.linspace(0.0, 3.0, 500)
    visible = np.column_stack([np.cos(angle), np.sin(angle), np.cos(angle) + np.sin(angle)])
    on, off = visible[:9], visible[:9] * [1.0, 1.0, 1.5]
    assert Spread.of(on, visible, categorical=False).off_surface < 1.0
    assert Spread.of(off, visible, categorical=False).off_surface > 10.0
    lost = np.vstack([on[:1], np.full((3, 3), 1e200)])
    assert np.isnan(Spread.of(lost, visible, categorical=False).off_surface)
    whole = np.tile([[0.0], [1.0]], (9, 3))
    assert np.isnan(Spread.of(whole, whole, categorical=True).off_surface)


def test_the_last_designs_are_those_ranked_first_on_the_scale_of_all_data() -> None:
    reference = Reference.of(np.array([0.0, 2.0]), 9.0, (-4.0, 6.0))  # mean 1, deviation 1
    values = np.array([[9.0, 9.0, 9.0], [5.0, np.nan, 3.0]])
    judged = Judged.of(values, np.array([[1.0, 2.0, 3.0]] * 2), top=2, reference=reference)
    designs = np.arange(4.0).reshape(2, 2)
    last = LastDesigns.of(judged, reference, 0.7, designs, Spread())
    assert last.values.tolist() == [2.0, -1.0]  # the best predicted first, an invalid one the worst
    assert last.batch.tolist() == [2.0, -1.0]
    once = LastDesigns.of(judged, reference, 0.7, np.ones((2, 2)), Spread())
    assert once.batch.tolist() == [2.0]  # designs that are equal are one experiment
    assert (last.low, last.high, last.order_visible) == (-5.0, 5.0, 0.7)
    assert last.mask_unmeasured().values.size == last.mask_unmeasured().batch.size == 0

"""Promises of the scores, on cases computed by hand."""

import math

import numpy as np
import pytest

from ddobench.judging import Judged, Reference, Values
from ddobench.scores import compute_curves

NAN = math.nan
UNIT = Reference(mean=0.0, sd=1.0, worst=-5.0, best=3.0, optimum=10.0)  # scores are raw values


def curves_of(
    values: Values, predicted: Values | None, top: int, reference: Reference
) -> dict[str, Values]:
    """Score values and predictions (T, K)."""
    return compute_curves(Judged.of(values, predicted, top, reference))


def scored(
    values: list[list[float]], predicted: list[list[float]] | None, top: int
) -> dict[str, Values]:
    """Score in raw units."""
    numbers = None if predicted is None else np.array(predicted)
    return curves_of(np.array(values), numbers, top, UNIT)


def test_a_reference_describes_the_visible_values() -> None:
    reference = Reference.of(np.array([1.0, 3.0, 5.0, 7.0]), optimum=9.0, full_range=(0.0, 8.0))
    assert reference == Reference(
        mean=4.0, sd=math.sqrt(5), worst=1.0, best=7.0, optimum=9.0, low=0.0, high=8.0
    )
    assert reference.standardise(np.array([4.0, 9.0])).tolist() == [0.0, 5 / math.sqrt(5)]


def test_visible_values_that_are_all_equal_have_unit_deviation() -> None:
    reference = Reference.of(np.full(4, 2.0), optimum=5.0)
    assert reference.standardise(np.array([5.0])).tolist() == [3.0]


def test_the_model_picks_by_its_belief_and_the_oracle_by_the_truth() -> None:
    scores = scored([[1.0, 2.0, 3.0, 4.0]], [[40.0, 30.0, 20.0, 10.0]], top=2)
    assert scores["value_model"].tolist() == [1.5]
    assert scores["value_oracle"].tolist() == [3.5]
    assert scores["survivors"].tolist() == [3.5]
    assert scores["predicted"].tolist() == [35.0]
    assert scores["best"].tolist() == [4.0]
    assert scores["median"].tolist() == [2.5]


def test_an_invalid_design_counts_as_the_worst_visible_value() -> None:
    scores = scored([[1.0, NAN, 3.0]], [[0.0, 2.0, 1.0]], top=2)
    assert scores["value_model"].tolist() == [(-5.0 + 3.0) / 2]
    assert scores["value_oracle"].tolist() == [(1.0 + 3.0) / 2]
    assert scores["median"].tolist() == [1.0]
    assert scores["invalid"] == pytest.approx([1 / 3])


def test_designs_that_are_all_invalid_score_the_worst_visible_value() -> None:
    scores = scored([[NAN, NAN]], [[1.0, 2.0]], top=1)
    for name in ("value_model", "value_oracle", "median", "best"):
        assert scores[name].tolist() == [-5.0]
    assert scores["invalid"].tolist() == [1.0]
    assert np.isnan(scores["survivors"]).all()


def test_a_design_without_a_prediction_is_ranked_last() -> None:
    scores = scored([[9.0, 1.0, 2.0]], [[NAN, -1e30, -2e30]], top=2)
    assert scores["value_model"].tolist() == [1.5]
    assert scores["predicted"] == pytest.approx([-1.5e30])


def test_designs_without_any_prediction_count_in_the_order_proposed() -> None:
    scores = scored([[1.0, 2.0, 9.0]], None, top=2)
    assert scores["value_model"].tolist() == [1.5]
    assert scores["value_oracle"].tolist() == [5.5]
    assert np.isnan(scores["predicted"]).all()


def test_equal_predictions_count_in_the_order_proposed() -> None:
    beliefs = np.random.default_rng(0).integers(0, 3, 300).astype(float)
    scores = curves_of(np.arange(300.0)[None], beliefs[None], 5, UNIT)
    assert scores["value_model"].tolist() == [np.flatnonzero(beliefs == 2)[:5].mean()]


def test_the_survivors_stop_for_good_once_too_few_are_valid() -> None:
    values = [[1.0, 2.0, NAN], [NAN, 2.0, NAN], [1.0, 2.0, 3.0]]
    survivors = scored(values, None, top=2)["survivors"]
    assert survivors[0] == 1.5
    assert np.isnan(survivors[1:]).all()


def test_fewer_designs_than_asked_for_all_count() -> None:
    scores = scored([[1.0, 5.0]], [[2.0, 1.0]], top=128)
    for name in ("value_model", "value_oracle", "survivors"):
        assert scores[name].tolist() == [3.0]


def test_iterations_are_scored_apart() -> None:
    scores = scored([[1.0, 2.0], [4.0, 3.0]], [[0.0, 1.0], [0.0, 1.0]], top=1)
    assert scores["value_model"].tolist() == [2.0, 3.0]
    assert scores["value_oracle"].tolist() == [2.0, 4.0]


def test_scores_are_in_standard_deviations_of_the_visible_values() -> None:
    reference = Reference(mean=10.0, sd=2.0, worst=4.0, best=12.0, optimum=20.0)
    scores = curves_of(np.array([[12.0, NAN]]), np.array([[16.0, 8.0]]), 2, reference)
    assert scores["value_model"].tolist() == [(1.0 - 3.0) / 2]
    assert scores["predicted"].tolist() == [(3.0 - 1.0) / 2]


def test_scoring_leaves_its_arrays_alone_and_says_nothing_about_invalid_ones() -> None:
    values, predicted = np.array([[1.0, NAN]]), np.array([[NAN, 1.0]])
    curves_of(values, predicted, 2, UNIT)
    assert np.array_equal(values, [[1.0, NAN]], equal_nan=True)
    assert np.array_equal(predicted, [[NAN, 1.0]], equal_nan=True)

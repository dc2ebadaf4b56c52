"""Promises of judging rows that were hidden from a method."""

import numpy as np
import pytest

from ddobench.judging import HeldOut, Reference, Values

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

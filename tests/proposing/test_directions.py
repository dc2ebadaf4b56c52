"""Promises of the directions: those along which a model changes, whatever the rows do."""

import numpy as np
import pytest

from ddobench.proposing.directions import find_directions


def test_the_directions_are_those_along_which_the_model_changes() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 5)) * [1, 100, 1, 1, 1]
    found = find_directions(rows, lambda x: 3 * x[:, 0] + x[:, 3] ** 2 / 4)
    assert found.by_model
    assert np.abs(found.axes[:, 0]) == pytest.approx([1, 0, 0, 0, 0], abs=0.05)
    assert np.abs(found.axes[:, 1]) == pytest.approx([0, 0, 0, 1, 0], abs=0.05)
    assert found.shares.sum() == pytest.approx(1)
    assert found.describe(0, list("abcde")).startswith("+1.00 a")


@pytest.mark.parametrize("model", [lambda _: None, lambda x: np.zeros(len(x))])
def test_without_a_model_they_are_those_along_which_the_rows_vary(model: object) -> None:
    line = np.random.default_rng(0).normal(size=(50, 1)) * [1.0, 1.0, 0.0]
    found = find_directions(line, model)  # type: ignore[arg-type]
    assert not found.by_model
    assert np.abs(found.axes[:, 0]) == pytest.approx([0.5**0.5, 0.5**0.5, 0], abs=1e-6)
    assert found.project(line).shape == (50, 2)

"""Promises of least squares, against NumPy and the normal equations."""

import numpy as np
import pytest

from ddobench.models.least_squares import Values, least_squares


@pytest.fixture
def rng() -> np.random.Generator:
    """Return random numbers of this test alone."""
    return np.random.default_rng(0)


@pytest.mark.parametrize(("n", "p"), [(30, 5), (5, 30), (8, 8)])
def test_without_ridge_it_is_the_solution_of_smallest_norm(
    rng: np.random.Generator, n: int, p: int
) -> None:
    features, y = rng.normal(size=(n, p)), rng.normal(size=n)
    expected = np.linalg.lstsq(features, y)[0]
    assert least_squares(features, y) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("n", [4, 40])
def test_dependent_features_share_the_weight(rng: np.random.Generator, n: int) -> None:
    basis = rng.normal(size=(n, 3))
    features = np.concatenate([basis, basis, basis @ rng.normal(size=(3, 4))], axis=1)
    y = rng.normal(size=n)
    weights = least_squares(features, y)
    assert weights == pytest.approx(np.linalg.pinv(features) @ y, abs=1e-8)
    assert weights[:3] == pytest.approx(weights[3:6], abs=1e-9)


@pytest.mark.parametrize(("n", "p"), [(30, 5), (5, 30)])
def test_with_ridge_it_solves_the_normal_equations(
    rng: np.random.Generator, n: int, p: int
) -> None:
    features, y = rng.normal(size=(n, p)), rng.normal(size=n)
    expected = np.linalg.solve(features.T @ features + 0.7 * np.eye(p), features.T @ y)
    assert least_squares(features, y, ridge=0.7) == pytest.approx(expected, abs=1e-9)


def test_ridge_on_dependent_features_solves_the_normal_equations(
    rng: np.random.Generator,
) -> None:
    features = np.repeat(rng.normal(size=(20, 3)), 2, axis=1)
    y = rng.normal(size=20)
    expected = np.linalg.solve(features.T @ features + 0.1 * np.eye(6), features.T @ y)
    assert least_squares(features, y, ridge=0.1) == pytest.approx(expected, abs=1e-9)


def test_features_that_are_all_zero_get_no_weight() -> None:
    assert least_squares(np.zeros((4, 3)), np.ones(4)).tolist() == [0.0, 0.0, 0.0]


def test_more_ridge_never_lengthens_the_weights(rng: np.random.Generator) -> None:
    features, y = rng.normal(size=(20, 6)), rng.normal(size=20)
    lengths: Values = np.array(
        [np.linalg.norm(least_squares(features, y, ridge)) for ridge in (0.0, 0.1, 1.0, 10.0)]
    )
    assert (np.diff(lengths) < 0).all()

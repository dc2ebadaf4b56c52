"""Analysis of variance, checked by hand and against least squares."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from ddobench.stats.variance import components, decompose


def squares_of(values: NDArray[np.float64]) -> dict[tuple[int, ...], float]:
    return {effect.axes: effect.squares for effect in decompose(values)}


def test_the_effects_of_a_factorial_made_by_hand() -> None:
    # rows add 0 or 2, columns 0, 3 or 6, and the last cell has 6 more than their sum
    cells = np.array([[0.0, 3.0, 6.0], [2.0, 5.0, 14.0]])
    # means: rows 3, 7; columns 1, 4, 10; all 5. What is left: (1, 1, -2) and its negative
    assert squares_of(cells) == pytest.approx({(0,): 24.0, (1,): 84.0, (0, 1): 12.0})


def test_squares_and_degrees_of_freedom_add_up() -> None:
    cells = np.random.default_rng(0).normal(size=(2, 4, 3, 5))
    effects = decompose(cells)
    assert len(effects) == 2**4 - 1
    assert sum(effect.squares for effect in effects) == pytest.approx(cells.var() * cells.size)
    assert sum(effect.freedom for effect in effects) == cells.size - 1


def test_squares_are_the_gain_of_least_squares_from_adding_an_effect() -> None:
    cells = np.random.default_rng(1).normal(size=(2, 3, 4))
    places = np.indices(cells.shape).reshape(cells.ndim, -1)
    found = squares_of(cells)
    for size in range(1, cells.ndim + 1):
        for chosen in combinations(range(cells.ndim), size):
            subsets = [s for k in range(size) for s in combinations(chosen, k)]
            without = _residual(cells, places, subsets)
            gain = without - _residual(cells, places, [*subsets, chosen])
            assert found[chosen] == pytest.approx(gain, rel=1e-9, abs=1e-9)


def _residual(
    cells: NDArray[np.float64], places: NDArray[np.int64], effects: list[tuple[int, ...]]
) -> float:
    """Return the sum of squares that indicators of these combinations of levels leave."""
    columns = []
    for effect in effects:
        labels = [tuple(place) for place in places[list(effect)].T] if effect else [()] * cells.size
        columns += [[float(own == label) for own in labels] for label in sorted(set(labels))]
    design = np.array(columns).T
    fitted = design @ np.linalg.lstsq(design, cells.ravel(), rcond=None)[0]
    return float(np.square(cells.ravel() - fitted).sum())


def test_a_missing_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="every cell must have a finite value"):
        decompose(np.array([[1.0, np.nan]]))


def test_equal_values_have_no_effects() -> None:
    assert squares_of(np.full((2, 3), 7.0)) == {(0,): 0.0, (1,): 0.0, (0, 1): 0.0}


def test_components_of_a_factorial_made_by_hand() -> None:
    cells = np.array([[[0.0, 2.0], [3.0, 3.0]], [[4.0, 4.0], [9.0, 7.0]]])
    blocks, rows, columns, both = components(cells)
    assert [part.axes for part in (blocks, rows, columns, both)] == [(0,), (1,), (2,), (1, 2)]
    assert [part.freedom for part in (blocks, rows, columns, both)] == [1, 2, 2, 2]
    squares = _mean_squares(cells)
    assert both.variance == pytest.approx(squares["both"])
    assert rows.variance == pytest.approx((squares["rows"] - squares["both"]) / 2)
    assert columns.variance == pytest.approx((squares["columns"] - squares["both"]) / 2)
    left = squares["blocks"] - squares["rows"] - squares["columns"] + squares["both"]
    assert blocks.variance == pytest.approx(left / 4)


def _mean_squares(cells: NDArray[np.float64]) -> dict[str, float]:
    """Return the textbook's mean squares of two blocks of two by two."""
    whole = cells.mean(axis=(1, 2), keepdims=True)
    rows = cells.mean(axis=2, keepdims=True) - whole
    columns = cells.mean(axis=1, keepdims=True) - whole
    return {
        "blocks": float(4 * np.square(whole - cells.mean()).sum()) / 1,
        "rows": float(2 * np.square(rows).sum()) / 2,
        "columns": float(2 * np.square(columns).sum()) / 2,
        "both": float(np.square(cells - whole - rows - columns).sum()) / 2,
    }


def test_components_of_many_draws_are_near_the_true_ones() -> None:
    rng = np.random.default_rng(2)
    shape = (400, 4, 3)
    cells = (
        2.0 * rng.normal(size=(400, 1, 1))
        + 1.5 * rng.normal(size=(400, 4, 1))
        + 1.0 * rng.normal(size=(400, 1, 3))
        + 0.5 * rng.normal(size=shape)
    )
    found = [part.variance for part in components(cells)]
    assert found == pytest.approx([4.0, 2.25, 1.0, 0.25], rel=0.25)


def test_an_axis_with_one_level_is_refused() -> None:
    with pytest.raises(ValueError, match="two levels or more, got the shape"):
        components(np.zeros((3, 1, 2)))

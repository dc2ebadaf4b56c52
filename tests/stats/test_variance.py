"""The analysis of variance: every share against a hand-made cross and against least squares."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from ddobench.stats.variance import components, decompose


def squares_of(values: NDArray[np.float64]) -> dict[tuple[int, ...], float]:
    return {effect.axes: effect.squares for effect in decompose(values)}


def test_a_cross_that_was_made_by_hand_falls_apart_into_what_it_was_made_of() -> None:
    # rows add 0 or 2, columns 0, 3 or 6, and the last cell 6 more than both say
    cross = np.array([[0.0, 3.0, 6.0], [2.0, 5.0, 14.0]])
    # means: rows 3, 7; columns 1, 4, 10; all 5. What is left: (1, 1, -2) and its negative
    assert squares_of(cross) == pytest.approx({(0,): 24.0, (1,): 84.0, (0, 1): 12.0})


def test_squares_and_degrees_of_freedom_add_up() -> None:
    cross = np.random.default_rng(0).normal(size=(2, 4, 3, 5))
    effects = decompose(cross)
    assert len(effects) == 2**4 - 1
    assert sum(effect.squares for effect in effects) == pytest.approx(cross.var() * cross.size)
    assert sum(effect.freedom for effect in effects) == cross.size - 1


def test_squares_are_what_least_squares_gain_when_indicators_of_an_effect_are_added() -> None:
    cross = np.random.default_rng(1).normal(size=(2, 3, 4))
    places = np.indices(cross.shape).reshape(cross.ndim, -1)
    found = squares_of(cross)
    for size in range(1, cross.ndim + 1):
        for chosen in combinations(range(cross.ndim), size):
            subsets = [s for k in range(size) for s in combinations(chosen, k)]
            without = _residual(cross, places, subsets)
            gain = without - _residual(cross, places, [*subsets, chosen])
            assert found[chosen] == pytest.approx(gain, rel=1e-9, abs=1e-9)


def _residual(
    cross: NDArray[np.float64], places: NDArray[np.int64], effects: list[tuple[int, ...]]
) -> float:
    """Return the sum of squares that indicators of these combinations of levels leave."""
    columns = []
    for effect in effects:
        labels = [tuple(place) for place in places[list(effect)].T] if effect else [()] * cross.size
        columns += [[float(own == label) for own in labels] for label in sorted(set(labels))]
    design = np.array(columns).T
    fitted = design @ np.linalg.lstsq(design, cross.ravel(), rcond=None)[0]
    return float(np.square(cross.ravel() - fitted).sum())


def test_a_gap_in_the_cross_is_refused() -> None:
    with pytest.raises(ValueError, match="a finite value in every cell"):
        decompose(np.array([[1.0, np.nan]]))


def test_equal_values_have_nothing_to_explain() -> None:
    assert squares_of(np.full((2, 3), 7.0)) == {(0,): 0.0, (1,): 0.0, (0, 1): 0.0}


def test_components_of_a_cross_made_by_hand() -> None:
    cross = np.array([[[0.0, 2.0], [3.0, 3.0]], [[4.0, 4.0], [9.0, 7.0]]])
    blocks, rows, columns, both = components(cross)
    assert [part.axes for part in (blocks, rows, columns, both)] == [(0,), (1,), (2,), (1, 2)]
    assert [part.freedom for part in (blocks, rows, columns, both)] == [1, 2, 2, 2]
    squares = _mean_squares(cross)
    assert both.variance == pytest.approx(squares["both"])
    assert rows.variance == pytest.approx((squares["rows"] - squares["both"]) / 2)
    assert columns.variance == pytest.approx((squares["columns"] - squares["both"]) / 2)
    left = squares["blocks"] - squares["rows"] - squares["columns"] + squares["both"]
    assert blocks.variance == pytest.approx(left / 4)


def _mean_squares(cross: NDArray[np.float64]) -> dict[str, float]:
    """Return the textbook's mean squares of two blocks of two by two."""
    whole = cross.mean(axis=(1, 2), keepdims=True)
    rows = cross.mean(axis=2, keepdims=True) - whole
    columns = cross.mean(axis=1, keepdims=True) - whole
    return {
        "blocks": float(4 * np.square(whole - cross.mean()).sum()) / 1,
        "rows": float(2 * np.square(rows).sum()) / 2,
        "columns": float(2 * np.square(columns).sum()) / 2,
        "both": float(np.square(cross - whole - rows - columns).sum()) / 2,
    }


def test_components_of_many_draws_are_near_those_they_were_drawn_with() -> None:
    rng = np.random.default_rng(2)
    shape = (400, 4, 3)
    cross = (
        2.0 * rng.normal(size=(400, 1, 1))
        + 1.5 * rng.normal(size=(400, 4, 1))
        + 1.0 * rng.normal(size=(400, 1, 3))
        + 0.5 * rng.normal(size=shape)
    )
    found = [part.variance for part in components(cross)]
    assert found == pytest.approx([4.0, 2.25, 1.0, 0.25], rel=0.25)


def test_an_axis_with_one_level_has_no_variance_to_tell() -> None:
    with pytest.raises(ValueError, match="two levels or more, got the shape"):
        components(np.zeros((3, 1, 2)))

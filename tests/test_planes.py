"""Promises of local planes: what is off the surface of the rows, and what cannot break them."""

import numpy as np
import pytest

from ddobench.planes import LocalPlanes, Values


def curved(count: int, seed: int = 0, d: int = 30, noise: float = 0.02) -> Values:
    """Draw rows near a surface of five hidden variables in d columns."""
    fixed = np.random.default_rng(7)
    into, out = fixed.normal(size=(5, 40)) / 2, fixed.normal(size=(40, d)) / 2
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(count, 5))
    surface: Values = np.tanh(hidden @ into) @ out + noise * rng.normal(size=(count, d))
    return surface


def test_designs_off_a_curved_surface_are_told_from_designs_on_it() -> None:
    rows = curved(3000)
    planes = LocalPlanes.of(rows)
    fresh = curved(200, seed=1)
    direction = np.random.default_rng(2).normal(size=(200, 30)) * rows.std(axis=0)
    assert np.median(planes.off_surface(fresh)) < 1.0
    assert np.quantile(planes.off_surface(fresh), 0.95) < 1.5
    assert np.median(planes.nearest(fresh)) < 1.0
    assert planes.off_surface(fresh + 3.0 * direction).min() > 10.0
    shuffled = np.random.default_rng(3).permuted(fresh, axis=0)  # within the range of each column
    assert planes.off_surface(shuffled).min() > 5.0


def test_on_rows_that_fill_their_space_designs_like_them_have_a_ratio_of_about_one() -> None:
    rng = np.random.default_rng(0)
    planes = LocalPlanes.of(rng.normal(size=(2000, 20)))
    off, near = planes.ratios(rng.normal(size=(500, 20)))
    assert 0.3 < np.median(off) < 1.0
    assert 0.9 < np.quantile(off, 0.95) < 1.2
    assert 0.9 < np.quantile(near, 0.95) < 1.1
    few = LocalPlanes.of(rng.uniform(size=(2000, 3)))  # every direction is kept
    assert few.off_surface(rng.uniform(size=(50, 3))).max() < 1e-6


def test_units_of_the_columns_do_not_matter() -> None:
    rows, designs = curved(500), curved(20, seed=1) + 0.3
    units, shift = np.geomspace(1e-6, 1e6, 30), np.arange(30.0)
    plain, scaled = LocalPlanes.of(rows), LocalPlanes.of(shift + units * rows)
    for one, other in zip(
        plain.ratios(designs), scaled.ratios(shift + units * designs), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_projected_design_is_on_the_plane_of_its_neighbours() -> None:
    rows = curved(3000)
    planes = LocalPlanes.of(rows)
    designs = curved(50, seed=1) + 0.5 * np.random.default_rng(2).normal(size=(50, 30))
    projected, directions, nearest = planes.land(designs)
    assert np.median(planes.off_surface(designs)) > 1.5
    assert np.median(planes.off_surface(projected)) < 0.5
    moved = (projected - designs) / planes.sd
    np.testing.assert_allclose(np.einsum("kdq,kd->kq", directions, moved), 0.0, atol=1e-12)
    np.testing.assert_allclose(directions, planes.directions(designs))
    assert (nearest >= planes.nearest(projected) - 1e-9).all()  # by rows near the first place


@pytest.mark.parametrize("d", [3, 60])
def test_directions_are_orthonormal_or_zero(d: int) -> None:
    rows = curved(300, d=d)
    planes = LocalPlanes.of(rows, neighbours=20).directions(rows[:30])
    products = planes.transpose(0, 2, 1) @ planes
    lengths = np.diagonal(products, axis1=1, axis2=2)
    assert ((np.abs(lengths - 1.0) < 1e-9) | (lengths == 0.0)).all()
    np.testing.assert_allclose(products * (1 - np.eye(planes.shape[2])), 0.0, atol=1e-9)


def test_a_plane_is_left_at_once_where_rows_are_exactly_on_it() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    planes = LocalPlanes.of(np.column_stack([a, b, a + b]))
    off = planes.off_surface(np.array([[1.0, 1.0, 2.0], [1.0, 1.0, 2.5]]))
    assert off[0] < 1e-6
    assert off[1] > 1000.0


def test_designs_that_are_not_finite_or_absurd_have_no_ratio_and_others_keep_theirs() -> None:
    planes = LocalPlanes.of(curved(200))
    designs = curved(4, seed=1)
    alone = planes.off_surface(designs[:1])
    designs[1, 3], designs[2, 3], designs[3, 3] = np.nan, -np.inf, 1e300
    off, near = planes.ratios(designs)
    assert np.isnan(off).tolist() == np.isnan(near).tolist() == [False, True, True, True]
    assert off[0] == pytest.approx(alone[0])
    assert (planes.directions(designs)[1:] == 0.0).all()
    assert planes.off_surface(np.empty((0, 30))).shape == (0,)


def test_repeated_rows_and_constant_columns_change_nothing() -> None:
    rows, designs = curved(100), curved(10, seed=1)
    once = LocalPlanes.of(rows, neighbours=10)
    often = LocalPlanes.of(np.repeat(rows, 30, axis=0), neighbours=10)
    np.testing.assert_allclose(often.off_surface(designs), once.off_surface(designs))
    np.testing.assert_allclose(often.nearest(designs), once.nearest(designs))
    with_constant = LocalPlanes.of(np.insert(rows, 3, 5.0, axis=1), neighbours=10)
    longer = np.insert(designs, 3, 5.0, axis=1)
    np.testing.assert_allclose(with_constant.off_surface(longer), once.off_surface(designs))


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_few_rows_are_enough_or_give_no_ratio(count: int) -> None:
    rows = np.repeat(curved(5)[:count], 3, axis=0)
    planes = LocalPlanes.of(rows)
    designs = curved(3, seed=1)
    assert np.isfinite(planes.off_surface(designs)).all() == (count > 1)
    assert np.isfinite(planes.nearest(designs)).all() == (count > 1)
    assert planes.land(designs)[0].shape == designs.shape


def test_only_some_rows_of_a_long_table_determine_the_scale() -> None:
    rows = curved(5000, d=8)
    one, other = LocalPlanes.of(rows), LocalPlanes.of(rows)
    assert (one.residual, one.distance) == (other.residual, other.distance)
    halved = LocalPlanes.of(rows[:2500])
    assert halved.residual == pytest.approx(one.residual, rel=0.5)


def test_rows_on_a_surface_do_not_fill_their_space() -> None:
    rng = np.random.default_rng(0)
    assert LocalPlanes.of(curved(3000)).filled() < 0.4
    assert LocalPlanes.of(rng.normal(size=(500, 5))).filled() > 0.9
    assert LocalPlanes.of(np.ones((1, 3))).filled() == 1.0

"""The softplus map and its inverse: precise everywhere, NaN without a pre-image."""

import math
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ddobench.exact.maps import (
    MAPS,
    ORDERS,
    Observation,
    draw_observation,
    inverse_softplus,
    softplus,
)
from ddobench.rng import Stream


def scalar(value: float) -> Tensor:
    return torch.tensor(value, dtype=torch.float64)


def draw(
    kind: str = "orthogonal",
    d: int = 6,
    observed: int = 6,
    order: str = "affine_softplus",
    condition: float | None = None,
) -> Observation:
    return draw_observation(kind, d, observed, order, condition, Stream(0, "map"))


@given(st.floats(-30.0, 30.0))
def test_softplus_is_the_logarithm_of_one_plus_exp(x: float) -> None:
    assert float(softplus(scalar(x))) == pytest.approx(math.log1p(math.exp(x)), rel=1e-14)


@given(st.floats(-700.0, 1e300))
def test_hidden_to_observed_and_back_is_exact_to_nine_digits(x: float) -> None:
    back = float(inverse_softplus(softplus(scalar(x))))
    assert abs(back - x) <= 1e-9 * max(1.0, abs(x))


@given(st.floats(1e-300, sys.float_info.max))
def test_observed_to_hidden_and_back_is_exact_to_nine_digits(y: float) -> None:
    assert float(softplus(inverse_softplus(scalar(y)))) == pytest.approx(y, rel=1e-9)


@pytest.mark.parametrize("y", [5e-324, 1e-300, 1e-16, 1.0, 40.0, 1e16, sys.float_info.max])
def test_every_positive_number_has_a_finite_pre_image(y: float) -> None:
    assert math.isfinite(float(inverse_softplus(scalar(y))))


@pytest.mark.parametrize("y", [0.0, -0.0, -5e-324, -1.0, -math.inf, math.nan])
def test_what_is_not_positive_has_no_pre_image(y: float) -> None:
    assert math.isnan(float(inverse_softplus(scalar(y))))


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("observed", [6, 16])
@pytest.mark.parametrize("condition", [None, 1.0, 1e4])
def test_every_map_recovers_its_hidden_coordinates(
    kind: str, order: str, observed: int, condition: float | None
) -> None:
    observation = draw(kind, 6, observed, order, condition)
    hidden = 3.0 * Stream(0, "designs").normal(500, 6, dtype=torch.float64)
    recovered, residual = observation.recover(observation.observe(hidden))
    # An ill-conditioned map costs its digits, and a softplus of nearly nothing as many again: up to
    # 1e-7 of hidden coordinates around 10, and 3e-10 of residual. Ten times as much may be lost, as
    # every processor rounds in its own way.
    lost = condition or 1.0
    torch.testing.assert_close(recovered, hidden, rtol=1e-9, atol=max(2e-9, 1e-10 * lost))
    assert residual.max() < max(1e-12, 1e-12 * lost)


@given(st.lists(st.floats(1e-12, 1e12), min_size=6, max_size=6))
def test_every_positive_design_of_a_square_map_is_the_image_of_its_pre_image(
    x: list[float],
) -> None:
    observation = draw()
    design = torch.tensor([x], dtype=torch.float64)
    centred = inverse_softplus(design) - observation.shift
    image = observation.recover(design)[0] @ observation.matrix
    assert (image - centred).norm() <= 1e-9 * (1.0 + centred.norm())


def test_a_step_off_the_surface_is_measured_and_does_not_move_the_pre_image() -> None:
    observation = draw("gaussian", 6, 16)
    hidden = Stream(0, "designs").normal(1, 6, dtype=torch.float64)
    flat = hidden @ observation.matrix + observation.shift
    _, _, directions = torch.linalg.svd(observation.matrix)
    off = 0.7 * directions[-1]  # (16,) orthogonal to the image of the map
    recovered, residual = observation.recover(softplus(flat + off))
    torch.testing.assert_close(recovered, hidden, rtol=1e-9, atol=1e-9)
    assert float(residual) == pytest.approx(0.7, rel=1e-9)


def test_one_bad_coordinate_leaves_no_pre_image_and_does_not_affect_others() -> None:
    observation = draw()
    x = torch.ones(3, 6, dtype=torch.float64)
    x[1, 4] = -1e-9
    recovered, residual = observation.recover(x)
    assert recovered.isnan().all(dim=1).tolist() == [False, True, False]
    assert residual.isnan().tolist() == [False, True, False]


def test_with_the_softplus_first_validity_is_decided_behind_the_affine_map() -> None:
    observation = draw(order="softplus_affine")
    inside = torch.full((1, 6), 0.5, dtype=torch.float64) @ observation.matrix + observation.shift
    outside = inside - observation.matrix[2]  # the third softplus would have to be -0.5
    recovered, _ = observation.recover(torch.cat([inside, outside]))
    assert recovered.isnan().any(dim=1).tolist() == [False, True]


def test_a_pre_image_that_overflows_is_infinitely_far_away() -> None:
    observation = draw(condition=1e6)
    recovered, residual = observation.recover(torch.full((1, 6), 1.7e308, dtype=torch.float64))
    assert recovered.isinf().any()
    assert not recovered.isnan().any()
    assert not residual.isnan().any()


@pytest.mark.parametrize("observed", [6, 9])
def test_an_orthogonal_map_keeps_distances(observed: int) -> None:
    matrix = draw("orthogonal", 6, observed).matrix
    torch.testing.assert_close(matrix @ matrix.T, torch.eye(6, dtype=torch.float64))


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("condition", [1.0, 10.0, 1e6])
def test_the_condition_number_is_the_one_asked_for(kind: str, condition: float) -> None:
    matrix = draw(kind, 6, 8, condition=condition).matrix
    assert float(torch.linalg.cond(matrix)) == pytest.approx(condition, rel=1e-6)


def test_a_gaussian_map_has_entries_of_variance_one_over_d() -> None:
    matrix = draw("gaussian", 60, 70).matrix
    assert float(matrix.var()) == pytest.approx(1.0 / 60.0, rel=0.1)


def test_conditioning_keeps_the_geometric_mean_of_the_singular_values() -> None:
    plain, conditioned = draw("gaussian").matrix, draw("gaussian", condition=50.0).matrix
    torch.testing.assert_close(torch.linalg.det(plain).abs(), torch.linalg.det(conditioned).abs())

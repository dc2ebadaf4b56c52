"""CMA-ES: converges as published, on all starts at once, and keeps the best design found."""

from itertools import pairwise

import pytest
import torch
from torch import Tensor

from ddobench.baselines.cma import CMA, Rates, Strategies
from ddobench.contracts import Space
from ddobench.errors import UsageError
from ddobench.parts.search import AscentStep
from ddobench.rng import Streams
from tests.support.fakes import FunctionModel

E = 6


def sphere(z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
    return -(z - 1).square().sum(dim=-1)


def run(search: CMA, start: Tensor, seeds: list[int]) -> list[AscentStep]:
    return list(search.run(start, FunctionModel(sphere), Streams(seeds, "method/propose"), {}))


def make_start(seeds: list[int]) -> Tensor:  # (S, 3, e)
    return Streams(seeds, "test/start").normal(3, E, dtype=torch.float64)


def test_rates_are_those_of_the_package_where_it_follows_the_tutorial() -> None:
    rates = Rates.of(10, 10)  # beside cma 4.5.0 with CMA_active off
    weights = [0.456273, 0.270753, 0.162231, 0.085234, 0.02551]
    assert rates.weights.tolist() == pytest.approx(weights, abs=1e-6)
    assert rates.one == pytest.approx(0.0152838245)
    assert rates.slow_path == pytest.approx(0.2949903830)
    assert rates.chi == pytest.approx(3.0847265652)


def test_the_sphere_is_solved_from_every_start() -> None:
    *_, last = run(CMA(steps=120), make_start([1, 2]), [1, 2])
    assert (last.value > -1e-4).all()
    torch.testing.assert_close(last.x, torch.ones_like(last.x), rtol=0, atol=0.01)


def test_the_covariance_learns_the_axes_of_an_ellipsoid() -> None:
    weights = 10 ** torch.linspace(0, 3, E, dtype=torch.float64)
    strategies, streams = Strategies(torch.ones(4, E).double(), 0.5), Streams(range(4), "test/ask")
    for _ in range(250):
        asked = strategies.sample(streams.normal(strategies.drawn, E, dtype=torch.float64))
        strategies.update(-(weights * asked.square()).sum(dim=2))
    variances = strategies.covariance.diagonal(dim1=1, dim2=2)  # (P, e)
    assert (variances[:, 0] / variances[:, -1] > 100).all()


def test_what_was_found_never_gets_worse() -> None:
    steps = run(CMA(steps=9, record_every=1), make_start([1, 2]), [1, 2])
    assert [step.iteration for step in steps] == list(range(10))
    for step, later in pairwise(steps):
        assert (later.value >= step.value).all()
        torch.testing.assert_close(later.value, sphere(later.x))


def test_nan_is_never_best() -> None:
    model = FunctionModel(lambda z: sphere(z).where(z[..., 0] < 0.5, torch.nan))
    start = torch.zeros(1, 2, E, dtype=torch.float64)
    *_, last = CMA(steps=20).run(start, model, Streams([1], "method/propose"), {})
    assert torch.isfinite(last.value).all()
    assert (last.x[..., 0] < 0.5).all()


@pytest.mark.bits
def test_a_seed_draws_and_moves_the_same_beside_other_seeds() -> None:
    few = run(CMA(steps=12), make_start([3]), [3])[-1]
    many = run(CMA(steps=12), make_start([5, 3, 8]), [5, 3, 8])[-1]
    assert torch.equal(few.x[0], many.x[1])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sigma": 0.0}, r"search\.sigma must be positive, got 0\.0"),
        ({"population": 3}, r"search\.population must be a whole number of at least 4"),
        ({"steps": 0}, r"search\.steps must be a whole number of at least 1"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, float], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        CMA(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("codes", "declined"), [(500, False), (501, True)])
def test_covariances_of_many_codes_are_declined(codes: int, declined: bool) -> None:
    reason = CMA().declines(Space(codes))
    assert (reason is not None and "at most 500 codes" in reason) == declined

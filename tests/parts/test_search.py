"""The ascent loop, against steps computed by hand."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.parts.search import Ascent, AscentStep, weigh_error
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


def bowl(x: Tensor) -> tuple[Tensor, Tensor]:
    """The value -|x - 1|^2 / 2, largest at all ones."""
    return -(x - 1).square().sum(dim=-1) / 2, 1 - x


def climb(ascent: Ascent, start: Tensor) -> list[AscentStep]:
    failures: dict[int, str] = {}
    steps = list(ascent.climb(start, bowl, failures))
    assert not failures
    return steps


def make_start(seeds: int = 2) -> Tensor:  # (S, 5, 4)
    return Streams(range(seeds), "test/start").normal(5, 4, dtype=torch.float64)


@pytest.mark.parametrize("optimiser", ["gradient", "adam"])
def test_ascent_ascends(optimiser: str) -> None:
    steps = climb(Ascent(steps=200, optimiser=optimiser), make_start())
    assert (steps[-1].value > steps[0].value).all()
    torch.testing.assert_close(steps[-1].x, torch.ones_like(steps[-1].x), rtol=0, atol=0.1)


def test_a_plain_step_is_the_rate_times_root_d_times_the_gradient() -> None:
    start = make_start()
    scaled = climb(Ascent(steps=1, rate=0.05), start)[-1]
    bare = climb(Ascent(steps=1, rate=0.05, root_d=False), start)[-1]
    torch.testing.assert_close(scaled.x, start + 0.05 * sqrt(4) * (1 - start))
    torch.testing.assert_close(bare.x, start + 0.05 * (1 - start))


def test_the_first_step_of_adam_has_the_length_of_the_rate() -> None:
    start = make_start()
    step = climb(Ascent(steps=1, rate=0.05, optimiser="adam"), start)[-1]
    expected = start + 0.1 * (1 - start).sign()
    torch.testing.assert_close(step.x, expected, rtol=0, atol=1e-6)  # Adam divides by 1e-8 more


def test_the_prior_pulls_towards_the_origin() -> None:
    start = make_start()
    step = climb(Ascent(steps=1, rate=0.1, root_d=False, prior=0.3), start)[-1]
    torch.testing.assert_close(step.x, start + 0.1 * ((1 - start) - 0.3 * start))
    end = climb(Ascent(steps=400, prior=1.0), start)[-1]
    torch.testing.assert_close(end.x, torch.full_like(start, 0.5))


def test_a_prior_that_falls_moves_along_a_line() -> None:
    ascent = Ascent(steps=5, prior=1.0, prior_end=0.2)
    weights = [ascent.prior_weight(iteration) for iteration in range(5)]
    assert weights == pytest.approx([1.0, 0.8, 0.6, 0.4, 0.2])


def test_the_start_and_every_nth_step_and_the_last_are_recorded() -> None:
    start = make_start()
    assert [step.iteration for step in climb(Ascent(steps=3), start)] == [0, 1, 2, 3]
    steps = climb(Ascent(steps=7, record_every=3), start)
    assert [step.iteration for step in steps] == [0, 3, 6, 7]
    assert torch.equal(steps[0].x, start)


def test_recorded_designs_are_copies_with_their_own_values() -> None:
    start = make_start()
    before = start.clone()
    steps = climb(Ascent(steps=4), start)
    assert torch.equal(start, before)
    for step in steps:
        torch.testing.assert_close(step.value, bowl(step.x)[0])
    assert not torch.equal(steps[0].x, steps[1].x)


def test_a_gradient_that_is_not_finite_is_noted_and_harms_no_other_design() -> None:
    def broken(x: Tensor) -> tuple[Tensor, Tensor]:
        value, gradient = bowl(x)
        gradient[1, 3, 0] = torch.nan
        return value, gradient

    start = make_start(3)
    failures = {2: "known before"}
    steps = list(Ascent(steps=4).climb(start, broken, failures))
    healthy = climb(Ascent(steps=4), start)
    assert failures == {
        1: "ascent: the gradient of 1 of 5 designs was not finite at iteration 0",
        2: "known before",
    }
    others = torch.ones(3, 5, dtype=torch.bool)
    others[1, 3] = False
    assert torch.equal(steps[-1].x[others], healthy[-1].x[others])
    assert torch.equal(steps[-1].x[1, 3], start[1, 3])


@pytest.mark.bits
@pytest.mark.parametrize("optimiser", ["gradient", "adam"])
def test_a_seed_climbs_the_same_beside_any_companions(optimiser: str) -> None:
    start = make_start(6)
    few = climb(Ascent(steps=9, optimiser=optimiser), start[1:3])
    many = climb(Ascent(steps=9, optimiser=optimiser), start)
    assert torch.equal(few[-1].x[0], many[-1].x[1])


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"steps": 0}, "search.steps must be a whole number of at least 1"),
        ({"record_every": 0}, "search.record_every must be a whole number"),
        ({"rate": 0.0}, "search.rate must be positive"),
        ({"optimiser": "lion"}, "search.optimiser must be one of gradient, adam"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    settings: dict[str, float | str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        Ascent(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(("error", "weight"), [(0.25, 0.1), (4.0, 0.4), (1e10, 0.4), (-1.0, 0.0)])
def test_caution_grows_with_the_error_but_not_without_limit(error: float, weight: float) -> None:
    class Erring(Model):
        def value(self, z: Tensor) -> Tensor:
            return z[..., 0]

        def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
            return z[..., 0], z

        def error(self) -> Tensor:
            return torch.tensor([error])

    assert weigh_error(Erring(), 0.2).flatten().tolist() == [pytest.approx(weight)]

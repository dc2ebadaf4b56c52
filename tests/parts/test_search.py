"""Searches: plain ascent, from the best rows, with a chosen prior weight, with hops."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.parts.search import (
    Ascent,
    AscentStep,
    Cautious,
    Hop,
    TopAscent,
    pick_beginning,
    weigh_error,
)
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams
from tests.support.lineups import assemble, quick_mlp

SEEDS = [1, 2]
LOW, HIGH = -2.0, 2.0


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


def test_a_prior_weight_changes_linearly() -> None:
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


def test_a_gradient_that_is_not_finite_is_reported_and_affects_no_other_design() -> None:
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
def test_a_seed_climbs_the_same_beside_other_seeds(optimiser: str) -> None:
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
def test_invalid_settings_are_refused(settings: dict[str, float | str], complaint: str) -> None:
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


def make_data(n: int = 40) -> Dataset:
    x = Streams(SEEDS, "test/x").normal(n, 3, dtype=torch.float64)
    return Dataset(x=x, y=x.sum(dim=2), space=Space(3))


def test_the_best_rows_of_each_seed_come_first() -> None:
    data = make_data()
    rows = pick_beginning("top", 5, data.x[:, :30], data)
    assert rows.shape == (2, 5, 3)
    torch.testing.assert_close(rows.sum(dim=2), data.y.topk(5, dim=1).values)


def test_there_are_never_more_designs_than_starts_or_rows() -> None:
    data = make_data(n=6)
    assert pick_beginning("top", 128, data.x[:, :4], data).shape == (2, 4, 3)
    many = data.x.repeat(1, 3, 1)  # starts repeat rows where there are few
    assert pick_beginning("top", 128, many, data).shape == (2, 6, 3)
    assert pick_beginning("starts", 128, many, data).shape == (2, 18, 3)


def test_the_starts_of_all_methods_are_an_option() -> None:
    data = make_data()
    starts = data.x[:, 7:20]
    assert torch.equal(pick_beginning("starts", 5, starts, data), starts[:, :5])


def test_rows_that_tie_keep_their_order() -> None:
    data = make_data()
    level = Dataset(x=data.x, y=torch.zeros_like(data.y), space=data.space)
    assert torch.equal(pick_beginning("top", 9, data.x, level), data.x[:, :9])


def test_any_surrogate_can_be_climbed_from_the_best_rows() -> None:
    data = make_data()
    method = assemble(quick_mlp(), TopAscent(steps=3, optimiser="adam", designs=5))
    method.fit(data, Streams(SEEDS, "method"))
    first, *_, last = method.propose(data.x[:, :20], Streams(SEEDS, "method/propose"))
    torch.testing.assert_close(first.designs, pick_beginning("top", 5, data.x[:, :20], data))
    assert last.predicted is not None
    assert first.predicted is not None
    assert (last.predicted > first.predicted).all()


def test_an_unknown_start_is_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.begin_at must be one of top, starts"):
        TopAscent(begin_at="middle")
    with pytest.raises(UsageError, match=r"search\.designs must be a whole number of at least 1"):
        TopAscent(designs=0)


class Slope(Model):
    """Increases without bound along every coordinate, with a given held-out error."""

    def __init__(self, errors: list[float] | None) -> None:
        self.errors = errors

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        return 0.1 * z.sum(dim=-1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.value(z), torch.full_like(z, 0.1)

    def error(self) -> Tensor | None:
        return None if self.errors is None else torch.tensor(self.errors, dtype=torch.float64)


def climb_cautiously(errors: list[float] | None, **settings: int) -> tuple[Cautious, Tensor]:
    search = Cautious(steps=400, **settings)  # type: ignore[arg-type]
    start = torch.zeros(len(errors or [0]), 6, 4, dtype=torch.float64)
    *_, last = search.run(start, Slope(errors), Streams(range(len(start)), "test"), {})
    return search, last.x.square().mean(dim=(1, 2))


def test_designs_stay_within_the_allowed_radius() -> None:
    errors = [0.05, 0.5, 0.9]
    search, radius = climb_cautiously(errors)
    assert (radius <= 1 - torch.tensor(errors, dtype=torch.float64)).all()
    assert search.chosen == sorted(search.chosen)
    assert len(set(search.chosen)) > 1


def test_the_prior_weight_of_a_seed_depends_on_its_own_error_only() -> None:
    assert climb_cautiously([0.5])[0].chosen == climb_cautiously([0.05, 0.5])[0].chosen[1:]


def test_a_few_starts_choose_the_weight_for_all() -> None:
    assert climb_cautiously([0.5], scouts=1)[0].chosen == climb_cautiously([0.5])[0].chosen


def test_a_useless_model_gets_the_largest_prior_weight() -> None:
    assert climb_cautiously([1.5])[0].chosen == [0.5]


def test_a_model_without_held_out_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a surrogate that holds rows out"):
        climb_cautiously(None)


def test_weights_must_not_be_negative() -> None:
    with pytest.raises(UsageError, match=r"search\.weights must be numbers >= 0"):
        Cautious(weights=[-1.0])


class TwoPeaks(Model):
    """A low peak and a high one on a line; a leap goes to the high one, or nowhere good."""

    def __init__(self, error: float, *, misled: bool = False) -> None:
        self.held_out = error
        self.misled = misled

    def value(self, z: Tensor) -> Tensor:  # (S, K, 1) -> (S, K)
        x = z[..., 0]
        return torch.exp(-(x - LOW).square()) + 3 * torch.exp(-(x - HIGH).square())

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        x = z[..., :1]
        low, high = torch.exp(-(x - LOW).square()), 3 * torch.exp(-(x - HIGH).square())
        return self.value(z), -2 * (x - LOW) * low - 2 * (x - HIGH) * high

    def error(self) -> Tensor:
        return torch.tensor([self.held_out], dtype=torch.float64)

    def leap(self, z: Tensor, further: int, softness: float, rng: Streams) -> Tensor:  # noqa: ARG002
        return torch.full_like(z, 50.0 if self.misled else HIGH + 0.5)


def run(search: Hop, model: Model) -> list[Tensor]:
    start = torch.full((1, 4, 1), LOW + 0.3, dtype=torch.float64)
    failures: dict[int, str] = {}
    steps = list(search.run(start, model, Streams([0], "test"), failures))
    assert not failures
    assert [step.iteration for step in steps] == sorted({step.iteration for step in steps})
    for step in steps:
        torch.testing.assert_close(step.value, model.value(step.x))
    return [step.x for step in steps]


def test_a_leap_finds_the_higher_peak() -> None:
    ends = run(Hop(stages=[], caution=0.0), TwoPeaks(0.0))
    torch.testing.assert_close(ends[-1], torch.full_like(ends[-1], HIGH), rtol=0, atol=0.01)


def test_without_a_hop_designs_stay_at_their_peak() -> None:
    ends = run(Hop(stages=[], caution=0.0, hops=0), TwoPeaks(0.0))
    assert (ends[-1] < 0).all()


def test_a_leap_to_a_lower_value_is_undone() -> None:
    ends = run(Hop(stages=[], caution=0.0), TwoPeaks(0.0, misled=True))
    torch.testing.assert_close(ends[-1], torch.full_like(ends[-1], LOW), rtol=0, atol=0.01)


def test_a_model_with_a_larger_error_is_followed_less_far() -> None:
    sure, unsure = (run(Hop(), TwoPeaks(error))[-1] for error in (0.0, 0.5))
    assert (unsure.abs() < sure.abs()).all()


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.hops must be a whole number of at least 0"):
        Hop(hops=-1)
    with pytest.raises(UsageError, match=r"search\.softness must be positive"):
        Hop(softness=0.0)
    with pytest.raises(UsageError, match=r"search\.caution must be 0 or more"):
        Hop(caution=-0.1)

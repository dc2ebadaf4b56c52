"""Hops: designs leave a lower peak for a higher one, and never get worse by what they climb."""

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.parts.hop import Hop
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams

LOW, HIGH = -2.0, 2.0


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


def test_a_leap_into_nowhere_is_taken_back() -> None:
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

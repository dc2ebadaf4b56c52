"""REINFORCE against the expectation that it ascends."""

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from ddobench.baselines.reinforce import Reinforce
from ddobench.errors import UsageError
from ddobench.parts.search import AscentStep
from ddobench.rng import Streams
from tests.support.fakes import FunctionModel

SEEDS = [1, 2]


def slope(z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
    return z[..., 0] - 0.1 * z.square().sum(dim=-1)


def make_start() -> Tensor:  # (S, 20, 3)
    return 0.5 * Streams(SEEDS, "test/start").normal(20, 3, dtype=torch.float64) + 1


def run(search: Reinforce, failures: dict[int, str] | None = None) -> list[AscentStep]:
    streams = Streams(SEEDS, "method/propose")
    return list(search.run(make_start(), FunctionModel(slope), streams, failures or {}))


def test_the_first_draws_have_the_mean_and_deviation_of_the_rows() -> None:
    start, shown = make_start(), Streams(SEEDS, "method/propose").child("shown")
    draw = shown.normal(20, 3, dtype=torch.float64)
    mean, sd = start.mean(dim=1, keepdim=True), start.std(dim=1, correction=0, keepdim=True)
    torch.testing.assert_close(run(Reinforce(steps=1))[0].x, mean + sd * draw)


@pytest.mark.parametrize("baseline", [False, True, "standardised"])
def test_an_update_follows_the_gradient_of_the_weighted_log_likelihood(
    baseline: bool | str,
) -> None:
    first, second = run(Reinforce(steps=1, record_every=1, baseline=baseline))
    start = make_start()
    mean = start.mean(dim=1, keepdim=True).requires_grad_()
    log_sd = start.std(dim=1, correction=0, keepdim=True).log().requires_grad_()
    optimiser = torch.optim.Adam([mean, log_sd], lr=0.01)
    noise = Streams(SEEDS, "method/propose").child("noise").normal(500, 3, dtype=torch.float64)
    sample = (mean + log_sd.exp() * noise).detach()
    reward = slope(sample)
    if baseline:
        reward = reward - reward.mean(dim=1, keepdim=True)
    if baseline == "standardised":
        reward = reward / reward.std(dim=1, correction=0, keepdim=True)
    likelihood = Normal(mean, log_sd.exp()).log_prob(sample).sum(dim=-1)  # type: ignore[no-untyped-call]
    (-(reward * likelihood).mean(dim=1).sum()).backward()
    optimiser.step()
    shown = (first.x - start.mean(dim=1, keepdim=True)) / start.std(1, correction=0, keepdim=True)
    torch.testing.assert_close(second.x, (mean + log_sd.exp() * shown).detach())


def test_the_distribution_moves_to_higher_values() -> None:
    first, *_, last = run(Reinforce(steps=300, rate=0.02, baseline=True))
    assert (last.value.mean(dim=1) > first.value.mean(dim=1) + 0.5).all()


def test_nan_is_reported() -> None:
    failures: dict[int, str] = {}
    model = FunctionModel(lambda z: slope(z) * torch.tensor([[1.0], [torch.nan]]))
    list(Reinforce(steps=2).run(make_start(), model, Streams(SEEDS, "method/propose"), failures))
    assert failures == {1: "reinforce: a gradient was not finite at iteration 0"}


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.rate must be positive"):
        Reinforce(rate=0.0)
    with pytest.raises(UsageError, match=r"search\.draws must be a whole number of at least 2"):
        Reinforce(draws=1)
    with pytest.raises(UsageError, match=r"search\.baseline must be standardised, true .* 'mean'"):
        Reinforce(baseline="mean")

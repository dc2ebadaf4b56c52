"""REINFORCE against the expectation that it ascends."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Normal

from ddobench.baselines.reinforce import CategoricalPolicy, CategoricalReinforce, Reinforce
from ddobench.errors import UsageError
from ddobench.parts.search import AscentStep
from ddobench.rng import Streams
from tests.support.catalogue import build, problem
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


def categorical_policy(rows: Tensor) -> CategoricalPolicy:
    return CategoricalPolicy(rows, torch.tensor([3, 2]), lambda x: x)


def make_categories() -> Tensor:  # (S, 40, 2)
    streams = Streams(SEEDS, "test/categories")
    return torch.stack([streams.integers(3, 40), streams.integers(2, 40)], dim=2)


def test_the_first_categories_have_their_shares_among_the_rows() -> None:
    rows = make_categories()
    policy = categorical_policy(rows)
    drawn = policy.sample(policy.draw(20_000, Streams(SEEDS, "test/draw")))
    for variable, size in enumerate((3, 2)):
        for level in range(size):
            share, wanted = ((x[..., variable] == level).double().mean(1) for x in (drawn, rows))
            torch.testing.assert_close(share, wanted, atol=0.02, rtol=0)
    assert drawn.amax(dim=(0, 1)).tolist() == [2, 1]


def test_a_category_that_no_row_has_is_never_drawn() -> None:
    rows = make_categories() % 2  # of the first variable's three categories, two
    policy = categorical_policy(rows)
    optimiser = torch.optim.Adam(policy.parameters, lr=0.1, maximize=True)
    draw = policy.draw(500, Streams(SEEDS, "test/draw"))
    policy.write_gradients(draw, policy.sample(draw)[..., :1].double())
    optimiser.step()
    assert policy.sample(draw).amax(dim=(0, 1)).tolist() == [1, 1]


def test_the_gradient_of_categories_is_that_of_the_weighted_log_likelihood() -> None:
    policy = categorical_policy(make_categories())
    draw = policy.draw(50, Streams(SEEDS, "test/draw"))
    reward = Streams(SEEDS, "test/reward").normal(50, 1, dtype=torch.float64)
    logits = policy.logits.clone().requires_grad_()
    drawn = policy.sample(draw)
    chosen = logits.log_softmax(dim=2)[:, None].expand(-1, 50, -1, -1).gather(3, drawn[..., None])
    likelihood = chosen.sum(dim=(2, 3))  # (S, 50)
    (expected,) = torch.autograd.grad((reward[..., 0] * likelihood).mean(dim=1).sum(), logits)
    written = policy.write_gradients(draw, reward)
    known = policy.logits.isfinite()
    torch.testing.assert_close(written[known], expected[known])


def test_on_categories_it_moves_to_higher_values_and_real_designs_are_declined() -> None:
    problem_seen = problem("nk", (0, 1)).data
    method: Any = build("nk", "reinforce")[1]
    assert isinstance(method.search, CategoricalReinforce)
    method.fit(problem_seen, Streams(SEEDS, "method/fit"))
    method.search.steps = 100
    first, *_, last = method.propose(problem_seen.x[:, :20], Streams(SEEDS, "method/propose"))
    assert (last.predicted.mean(dim=1) > first.predicted.mean(dim=1)).all()
    assert problem_seen.space.contains(last.designs).all()
    assert "is for categories" in str(method.declines(problem("chain", (0, 1)).data))


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

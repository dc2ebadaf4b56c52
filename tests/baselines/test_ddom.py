"""DDOM: its loss, its condition, and samples where everything is Gaussian."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.ddom import DDOM, DenoisingStep, tell_noise
from ddobench.baselines.value_weights import ValueWeights
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.diffusion import Schedule
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import Training
from ddobench.rng import Streams

CPU = torch.device("cpu")
SEEDS = (0, 1)
FLAT = ValueWeights(temperature=1e9, bins=1)  # every row counts alike


def make(**settings: Any) -> DDOM:
    training = Training(steps=settings.pop("training_steps", 3), batch=256, rate=1e-3)
    return DDOM(training=training, device="cpu", **{"weights": FLAT, **settings})


def gaussian_table(rows: int) -> Dataset:
    """Return designs that are jointly normal with their value."""
    z = Streams(SEEDS, "test/table").normal(rows, 3, dtype=torch.float64)
    y = z[..., 0]  # (S, N)
    x = torch.stack([0.8 * y + 0.6 * z[..., 1], -0.6 * y + 0.8 * z[..., 2]], dim=2)
    return Dataset(x, y, Space(2))


def draw(method: DDOM, rows: int) -> Tensor:  # (S, rows, d)
    (proposal,) = method.propose(torch.zeros(2, rows, 2), Streams(SEEDS, "test/propose"))
    assert proposal.predicted is None
    return proposal.designs


def step_of(network: StackedMLP, hide: float) -> DenoisingStep:
    return DenoisingStep(
        Passes(network), Schedule(0.1, 20.0, 1e-3), hide, Streams(SEEDS, "test/noise")
    )


def test_the_step_is_the_gradient_of_the_weighted_loss_computed_directly() -> None:
    network = StackedMLP([5, 16, 2], Streams(SEEDS, "test/weights"), CPU)
    data = gaussian_table(9)
    x, y = data.x.float(), data.y.float()
    weights = Streams(SEEDS, "test/row_weights").uniform(9)
    loss = step_of(network, 0.4)(x, y, weights)
    written = [parameter.grad.clone() for parameter in network.parameters()]  # type: ignore[union-attr]

    rng, schedule = Streams(SEEDS, "test/noise"), Schedule(0.1, 20.0, 1e-3)
    t = 1e-3 + (1 - 1e-3) * rng.uniform(9, 1)
    known = (rng.uniform(9, 1) >= 0.4).float()
    noise = rng.normal(9, 2)
    mixed = schedule.signal(t) * x + schedule.noise(t) * noise
    told = network(torch.cat([mixed, t, y[..., None] * known, known], dim=2))
    score = -told / schedule.noise(t)
    missed = (schedule.noise(t) * score + noise).square().sum(dim=2) / 2  # as the paper has it
    expected = (weights * missed).mean(dim=1)
    torch.testing.assert_close(loss, expected.detach())
    gradients = torch.autograd.grad(expected.sum(), list(network.parameters()))
    for ours, theirs in zip(written, gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_hidden_value_is_not_the_mean_value() -> None:
    network = StackedMLP([5, 16, 2], Streams(SEEDS, "test/weights"), CPU)
    x, one = torch.zeros(2, 1, 2), torch.ones(2, 1, 1)
    passes = Passes(network)
    mean = tell_noise(passes, x, one, 0 * one, one).clone()
    hidden = tell_noise(passes, x, one, 0 * one, 0 * one).clone()
    assert not torch.allclose(mean, hidden)
    torch.testing.assert_close(tell_noise(passes, x, one, 7 * one, 0 * one), hidden)


@pytest.mark.slow
def test_samples_of_a_gaussian_table_have_the_conditional_mean_and_covariance() -> None:
    method = make(width=64, depth=2, training_steps=1500, guidance=0.0, steps=60)
    data = gaussian_table(4000)
    method.fit(data, Streams(SEEDS, "test/fit"))
    method._goal[:] = 1.0  # a value with many rows around it
    for rows, y in zip(draw(method, 2000), data.y, strict=True):
        value = float(y.mean() + y.std())
        expected = torch.tensor([0.8 * value, -0.6 * value], dtype=torch.float64)
        # what is learned is less exact than what is sampled; all variances are 1 without a value
        torch.testing.assert_close(rows.mean(dim=0), expected, rtol=0, atol=0.2)
        conditional = torch.tensor([[0.36, 0.0], [0.0, 0.64]], dtype=torch.float64)
        torch.testing.assert_close(rows.T.cov(), conditional, rtol=0, atol=0.2)


def test_the_largest_visible_value_is_asked_for() -> None:
    method, data = make(steps=2, width=8), gaussian_table(50)
    method.fit(data, Streams(SEEDS, "test/fit"))
    sd = data.y.std(dim=1, correction=0)
    expected = (data.y.max(dim=1).values - data.y.mean(dim=1)) / sd
    torch.testing.assert_close(method._goal.double(), expected, rtol=1e-5, atol=1e-5)
    assert draw(method, 7).shape == (2, 7, 2)
    assert method.predict(data.x) is None


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"beta_first": 0.0}, "beta_first must be positive and at most method.beta_last, got 0.0"),
        ({"beta_last": 0.01}, "beta_first must be positive and at most .* got 0.1 and 0.01"),
        ({"least_time": 0.0}, "least_time must be between 0 and 1, got 0.0"),
        ({"hide": 1.0}, r"hide must be a share in \[0, 1\), got 1.0"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)

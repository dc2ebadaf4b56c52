"""DDOM: its training step, guidance, and the reverse process against known Gaussians."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.ddom import (
    DDOM,
    DenoisingStep,
    Noise,
    Schedule,
    draw_designs,
    predict_noise,
)
from ddobench.baselines.mins import ValueWeights
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import Training
from ddobench.rng import Streams

CPU = torch.device("cpu")
SEEDS = (0, 1)
FLAT = ValueWeights(temperature=1e9, bins=1)  # every row counts alike
SCHEDULE = Schedule(0.1, 20.0, 1e-3)
MEAN = torch.tensor([1.0, -0.5])
COVARIANCE = torch.tensor([[0.6, 0.3], [0.3, 0.4]])
DRAWS = 4000


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
    predicted = network(torch.cat([mixed, t, y[..., None] * known, known], dim=2))
    score = -predicted / schedule.noise(t)
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
    mean = predict_noise(passes, x, one, 0 * one, one).clone()
    hidden = predict_noise(passes, x, one, 0 * one, 0 * one).clone()
    assert not torch.allclose(mean, hidden)
    torch.testing.assert_close(predict_noise(passes, x, one, 7 * one, 0 * one), hidden)


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


def test_the_condition_is_the_largest_visible_value() -> None:
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
def test_invalid_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)


def noise_of(mean: Tensor, covariance: Tensor) -> Noise:
    """Return the noise expected in dissolved designs that were normal."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        signal, added = SCHEDULE.signal(t), SCHEDULE.noise(t)
        spread = signal**2 * covariance + added**2 * torch.eye(len(mean))
        away: Tensor = torch.linalg.solve(spread, (x - signal * mean).mT)
        return added * away.mT

    return noise


def denoise(noise: Noise, d: int, steps: int = 200) -> Tensor:  # (2, DRAWS, d)
    return draw_designs(noise, SCHEDULE, steps, (DRAWS, d), Streams([0, 1], "test"))


def test_noise_replaces_a_design_completely() -> None:
    t = torch.tensor([0.0, 0.3, 1.0], dtype=torch.float64)
    signal, noise = SCHEDULE.signal(t), SCHEDULE.noise(t)
    torch.testing.assert_close(signal.square() + noise.square(), torch.ones_like(t))
    assert signal[0] == 1
    assert signal[2] < 0.01


def test_the_noise_added_between_two_times_completes_the_first() -> None:
    early, late = torch.tensor([0.2, 0.7], dtype=torch.float64)
    kept = SCHEDULE.signal(late) / SCHEDULE.signal(early)
    spread = SCHEDULE.spread(early, late)
    torch.testing.assert_close(kept, (-spread.square() / 2).exp())
    times = SCHEDULE.times(10)
    assert times[0] == 1
    assert times[-1] == pytest.approx(SCHEDULE.least)
    assert (times.diff() < 0).all()


def test_samples_have_the_mean_and_covariance_of_a_normal_whose_score_is_known() -> None:
    x = denoise(noise_of(MEAN, COVARIANCE), 2)
    error = (COVARIANCE.diagonal() / DRAWS).sqrt()  # standard error of a mean
    for rows in x:
        assert ((rows.mean(dim=0) - MEAN).abs() < 4 * error).all()
        # standard errors of covariances are at most sqrt(2 / DRAWS) times the larger variance
        assert ((rows.T.cov() - COVARIANCE).abs() < 4 * (2 / DRAWS) ** 0.5 * 0.6).all()


def test_guided_samples_have_the_moments_of_the_guided_process() -> None:
    given, anything = (
        noise_of(MEAN[:1], COVARIANCE[:1, :1] / 4),
        noise_of(torch.zeros(1), torch.eye(1)),
    )
    x = denoise(lambda x, t: 3 * given(x, t) - 2 * anything(x, t), 1)
    mean, variance = guided_moments(float(MEAN[0]), float(COVARIANCE[0, 0]) / 4, 2.0)
    assert mean > 1.0  # guidance goes beyond what was asked for
    for rows in x:
        assert abs(float(rows.mean()) - mean) < 4 * (variance / DRAWS) ** 0.5
        assert abs(float(rows.var()) - variance) < 4 * (2 / DRAWS) ** 0.5 * variance


def guided_moments(mean: float, variance: float, guidance: float) -> tuple[float, float]:
    """Integrate mean and variance of the reverse process, whose drift is linear, in fine steps."""
    times = SCHEDULE.times(20_000)
    signal, beta = SCHEDULE.signal(times), SCHEDULE.rate(times)
    spread = signal**2 * variance + SCHEDULE.noise(times) ** 2
    at, around = 0.0, 1.0
    slopes = (beta * (0.5 - (1 + guidance) / spread + guidance)).tolist()
    shifts = (beta * (1 + guidance) * signal * mean / spread).tolist()
    for step, slope, shift, rate in zip(
        (-times.diff()).tolist(), slopes, shifts, beta.tolist(), strict=False
    ):
        at += step * (slope * at + shift)
        around += step * (2 * slope * around + rate)
    return at, around


def test_a_step_takes_the_mean_of_the_drifts_at_its_two_ends() -> None:
    def noise(x: Tensor, t: Tensor) -> Tensor:
        return torch.full_like(x, 0.0 if t == 1 else 2.0)

    x = draw_designs(noise, SCHEDULE, 1, (5, 2), Streams([0, 1], "test"))
    rng = Streams([0, 1], "test")
    early, late = torch.tensor(SCHEDULE.least), torch.tensor(1.0)
    start, pushed = rng.normal(5, 2), SCHEDULE.spread(early, late) * rng.normal(5, 2)
    first = (late - early) * SCHEDULE.rate(late) * start / 2
    arrived = start + first + pushed
    score = -2.0 / SCHEDULE.noise(early)
    second = (late - early) * SCHEDULE.rate(early) * (arrived / 2 + score)
    torch.testing.assert_close(x, start + (first + second) / 2 + pushed)

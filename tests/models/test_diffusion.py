"""Diffusion run back: where everything is Gaussian, scores and samples are known."""

import pytest
import torch
from torch import Tensor

from ddobench.models.diffusion import Noise, Schedule, draw_designs
from ddobench.rng import Streams

SCHEDULE = Schedule(0.1, 20.0, 1e-3)
MEAN = torch.tensor([1.0, -0.5])
COVARIANCE = torch.tensor([[0.6, 0.3], [0.3, 0.4]])
DRAWS = 4000


def noise_of(mean: Tensor, covariance: Tensor) -> Noise:
    """Return the noise expected in dissolved designs that were normal."""

    def noise(x: Tensor, t: Tensor) -> Tensor:
        signal, added = SCHEDULE.signal(t), SCHEDULE.noise(t)
        spread = signal**2 * covariance + added**2 * torch.eye(len(mean))
        away: Tensor = torch.linalg.solve(spread, (x - signal * mean).mT)
        return added * away.mT

    return noise


def draw(noise: Noise, d: int, steps: int = 200) -> Tensor:  # (2, DRAWS, d)
    return draw_designs(noise, SCHEDULE, steps, (DRAWS, d), Streams([0, 1], "test"))


def test_designs_dissolve_from_themselves_into_a_standard_normal() -> None:
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
    x = draw(noise_of(MEAN, COVARIANCE), 2)
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
    x = draw(lambda x, t: 3 * given(x, t) - 2 * anything(x, t), 1)
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

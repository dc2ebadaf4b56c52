"""CbAS: its weights, and a VAE that moves towards better designs."""

from typing import Any

import pytest
import torch
from torch.distributions import Normal

from ddobench.baselines.cbas import CbAS
from ddobench.baselines.gaussian_heads import GaussianHeads
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import Passes
from ddobench.models.training import Training
from ddobench.parts.vae import VAE
from ddobench.rng import Streams

SEEDS = (0, 1)


def make(steps: int = 3, **settings: Any) -> CbAS:
    return CbAS(
        vae=VAE(dim=2, width=32, training=Training(steps=steps, rate=3e-3), device="cpu"),
        heads=GaussianHeads(training=Training(steps=steps, rate=3e-3), members=2, width=32),
        refit=Training(steps=20, rate=1e-3, holdout=0.0),
        **{"iterations": 2, "samples": 100, **settings},
    )


def table() -> Dataset:
    x = 5 + 2 * Streams(SEEDS, "test/x").normal(400, 2, dtype=torch.float64)
    return Dataset(x, 3 * x.sum(dim=2), Space(2))


def fitted(steps: int, **settings: Any) -> CbAS:
    method = make(steps, **settings)
    method.fit(table(), Streams(SEEDS, "test/fit"))
    return method


def test_designs_move_to_larger_values() -> None:
    method = fitted(400, iterations=6, samples=300)
    starts = table().x[:, :64]
    values = [
        3 * p.designs.sum(dim=2).mean(dim=1) for p in method.propose(starts, Streams(SEEDS, "test"))
    ]
    assert len(values) == 7
    assert (values[-1] > values[0] + table().y.std(dim=1) / 2).all()
    for told in method.diagnostics():
        assert len(told["level"]) == len(told["effective_samples"]) == 6
        assert told["level"][-1] > told["level"][0]
        assert max(told["effective_samples"]) <= 300


def test_weights_are_the_ratio_of_densities_times_the_chance_of_success() -> None:
    method = fitted(3, temper=0.7)
    prior, other = Passes(method.vae.copy_networks()[1]), method.vae.copy_networks()[1]
    with torch.no_grad():
        other.biases[-1].add_(0.05)
    x, weights = method._sample(prior, Passes(other), Streams(SEEDS, "test/draws"))

    codes = Streams(SEEDS, "test/draws").normal(100, 2)
    sd = method.vae.variance**0.5
    with torch.no_grad():
        middle = other(codes)
        ratio = Normal(middle - 0.05, sd).log_prob(x) - Normal(middle, sd).log_prob(x)  # type: ignore[no-untyped-call]
    level = method._ensemble.mean(x).quantile(0.8, dim=1)
    expected = (ratio.sum(dim=2).exp() * method._ensemble.exceed(x, level)) ** 0.7
    torch.testing.assert_close(
        weights, expected / expected.mean(dim=1, keepdim=True), rtol=1e-3, atol=1e-4
    )


def test_predictions_are_in_the_units_of_the_table() -> None:
    method, data = fitted(400), table()
    error = (method.predict_codes(data.x) - data.y).square().mean()
    assert error < 0.1 * data.y.var()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"iterations": 0}, "iterations must be a whole number of at least 1, got 0"),
        ({"percentile": 100.0}, r"percentile must be in \[0, 100\), got 100.0"),
        ({"temper": 0.0}, "temper must be positive, got 0.0"),
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)  # type: ignore[arg-type]

"""CbAS: its networks with normal outputs, its weights, and what it trains on."""

from typing import Any

import pytest
import torch
from torch.distributions import Normal

from ddobench.baselines.cbas import CbAS, GaussianHeads, LikelihoodStep
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import Training
from ddobench.parts.vae import VAE
from ddobench.rng import Streams

SEEDS = (0, 1)
CPU = torch.device("cpu")
X = Streams([0, 1], "test/x").normal(300, 3)
Y = X[..., 0] - X[..., 1]


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
    for report in method.diagnostics():
        assert len(report["level"]) == len(report["effective_samples"]) == 6
        assert report["level"][-1] > report["level"][0]
        assert max(report["effective_samples"]) <= 300


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
def test_invalid_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)  # type: ignore[arg-type]


def heads(steps: int = 400) -> GaussianHeads:
    return GaussianHeads(training=Training(steps=steps, rate=3e-3), members=2, width=32)


def test_the_step_is_the_gradient_of_the_likelihood_computed_directly() -> None:
    network = StackedMLP([3, 8, 2], Streams([0, 1], "test"), CPU)
    loss = LikelihoodStep(network, 0.1, 0.9)(X, Y)
    written = [parameter.grad.clone() for parameter in network.parameters()]  # type: ignore[union-attr]
    mean, raw = network(X).unbind(dim=2)
    normal = Normal(mean, 0.1 + 0.8 * raw.sigmoid())
    expected = -normal.log_prob(Y).mean(dim=1)  # type: ignore[no-untyped-call]
    constant = Normal(0.0, 1.0).log_prob(torch.tensor(0.0))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(loss, (expected + constant).detach())
    gradients = torch.autograd.grad(expected.sum(), list(network.parameters()))
    for ours, theirs in zip(written, gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_an_ensemble_predicts_its_training_rows() -> None:
    mixture = heads().fit(X, Y, Streams([0, 1], "test/fit"))
    assert (mixture.mean(X) - Y).square().mean() < 0.1
    level = Y.quantile(0.5, dim=1)
    share = mixture.exceed(X, level)
    assert share[level[:, None] + 1 < Y].min() > 0.5
    assert share[level[:, None] - 1 > Y].max() < 0.5
    assert mixture.failures() == {}


def test_each_member_has_its_own_bootstrap() -> None:
    mixture = heads(2).fit(X, Y, Streams([0, 1], "test/fit"))
    first, second = (history.losses for history in mixture.histories)
    assert not torch.equal(first, second)


def test_deviations_out_of_order_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"least_sd must be positive and at most .* got 0.3 and 0.2"
    ):
        GaussianHeads(training=Training(), least_sd=0.3)

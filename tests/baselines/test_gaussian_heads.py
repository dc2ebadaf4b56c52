"""Networks that put out a normal distribution of the value."""

import pytest
import torch
from torch.distributions import Normal

from ddobench.baselines.gaussian_heads import GaussianHeads, LikelihoodStep
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Training
from ddobench.rng import Streams

CPU = torch.device("cpu")
X = Streams([0, 1], "test/x").normal(300, 3)
Y = X[..., 0] - X[..., 1]


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


def test_an_ensemble_knows_what_it_was_taught() -> None:
    mixture = heads().fit(X, Y, Streams([0, 1], "test/fit"))
    assert (mixture.mean(X) - Y).square().mean() < 0.1
    level = Y.quantile(0.5, dim=1)
    share = mixture.exceed(X, level)
    assert share[level[:, None] + 1 < Y].min() > 0.5
    assert share[level[:, None] - 1 > Y].max() < 0.5
    assert mixture.failures() == {}


def test_members_see_bootstraps_of_their_own() -> None:
    mixture = heads(2).fit(X, Y, Streams([0, 1], "test/fit"))
    first, second = (history.losses for history in mixture.histories)
    assert not torch.equal(first, second)


def test_deviations_out_of_order_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"least_sd must be positive and at most .* got 0.3 and 0.2"
    ):
        GaussianHeads(training=Training(), least_sd=0.3)

"""MATCH-OPT: its loss against autograd, and gradients that integrate to differences."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.match_opt import GradientMatching, MatchStep
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Training
from ddobench.parts.search import TopAscent
from ddobench.rng import Streams
from tests.support.lineups import assemble

SEEDS, ROWS, D = [4, 9], 7, 3


def make_batch() -> tuple[StackedMLP, Tensor, Tensor]:
    network = StackedMLP((D, 8, 8, 1), Streams(SEEDS, "test/weights"), torch.device("cpu"))
    streams = Streams(SEEDS, "test/batch")
    return network, streams.normal(ROWS, D), streams.normal(ROWS)


def literal_loss(network: StackedMLP, z: Tensor, y: Tensor, nodes: int, weight: float) -> Tensor:
    """Compute the loss pair by pair, with the gradient of the network by autograd."""
    total = torch.zeros(len(z))
    fitted = network(z)[..., 0]
    for seed in range(len(z)):
        order = y[seed].argsort()
        gaps = []
        for first, last in pairwise(order):
            along = z[seed, last] - z[seed, first]
            integral = torch.zeros(())
            for node in range(nodes):
                point = (z[:, first] + 0.0).clone()
                point[seed] = z[seed, first] + node / nodes * along
                point = point[:, None].requires_grad_()
                (slope,) = torch.autograd.grad(network(point)[seed].sum(), point, create_graph=True)
                integral = integral + slope[seed, 0] @ along / nodes
            gaps.append(integral - (y[seed, last] - y[seed, first]))
        matched = torch.stack(gaps).square().mean()
        total[seed] = (fitted[seed] - y[seed]).square().mean() + weight * matched
    return total


def test_a_step_writes_the_gradient_of_values_and_of_integrals() -> None:
    network, z, y = make_batch()
    loss = MatchStep(network, nodes=3, weight=0.7)(z, y)
    written = network.flat.grad
    assert written is not None
    written = written.clone()
    expected = literal_loss(network, z, y, nodes=3, weight=0.7)
    torch.testing.assert_close(loss, expected.detach())
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(expected.sum(), parameters, allow_unused=True)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        assert parameter.grad is not None
        assert gradient is not None
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_slopes_at_rows_agree_better_with_differences_than_those_of_least_squares() -> None:
    x = Streams(SEEDS, "test/x").normal(100, D, dtype=torch.float64)
    data = Dataset(x=x, y=x.square().sum(dim=2), space=Space(D))
    gaps = []
    for weight in (0.0, 1.0):
        training = Training(steps=150, batch=64, rate=3e-3, holdout=0.0)
        surrogate = GradientMatching(training=training, width=16, nodes=1, weight=weight)
        method = assemble(surrogate, TopAscent(steps=1))
        method.fit(data, Streams(SEEDS, "method"))
        model: Any = method._model
        z, y = model.data.means(), model.data.values()
        network = model.members[0].network
        gaps.append(MatchStep(network, 1, 1.0)(z, y) - MatchStep(network, 1, 0.0)(z, y))
    assert (gaps[1] < gaps[0]).all()


@pytest.mark.parametrize(
    ("settings", "complaint"), [({"nodes": 0}, "nodes"), ({"weight": -1.0}, "weight")]
)
def test_invalid_settings_are_refused(settings: dict[str, float], complaint: str) -> None:
    with pytest.raises(UsageError, match=rf"surrogate\.{complaint} must be"):
        GradientMatching(training=Training(), **settings)  # type: ignore[arg-type]

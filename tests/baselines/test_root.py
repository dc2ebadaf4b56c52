"""ROOT: pairs that lie on both sides, the bridge with known ends, and the loss against autograd."""

from typing import Any

import pytest
import torch

from ddobench.baselines.root import BridgeStep, Functions, cross_bridge
from ddobench.errors import UsageError
from ddobench.models.networks import Passes, StackedMLP
from ddobench.rng import Streams
from tests.support.catalogue import build, problem

SEEDS, D = [4, 9], 3


def test_high_ends_are_above_low_ends_of_the_same_function() -> None:
    x = Streams(SEEDS, "test/x").normal(50, D, dtype=torch.float64)[0]
    functions = Functions(count=2, pairs=7, pool=20, steps=30, rows=40)
    ends, values = functions.draw_pairs(x, x.sin().sum(dim=1), Streams([1], "test/f").rows[0])
    assert ends.shape == (14, 2, D)
    assert (values[:, 1] > values[:, 0]).all()
    assert values[:, 1].mean() > x.sin().sum(dim=1).sort().values[-20:].mean()


def test_a_known_bridge_leads_to_its_high_end() -> None:
    low, high = Streams(SEEDS, "test/ends").normal(2, 5, D).unbind(dim=1)
    for eta in (0.0, 1.0):
        reached = cross_bridge(lambda x, _: x - high, low, 50, eta, Streams(SEEDS, "noise"))
        torch.testing.assert_close(reached, high)


def test_points_on_the_way_have_the_moments_of_a_bridge() -> None:
    low, high = torch.full((1, 4000, 1), 2.0), torch.full((1, 4000, 1), -1.0)
    seen: dict[float, Any] = {}

    def way(x: Any, m: Any) -> Any:
        seen[round(float(m), 3)] = x
        return x - high

    cross_bridge(way, low, 400, 1.0, Streams([3], "noise"))
    half = seen[0.5]
    assert abs(float(half.mean()) - 0.5) < 0.05
    assert abs(float(half.var()) - 2 * 0.5 * 0.5) < 0.05


def test_a_step_writes_the_gradient_of_the_absolute_error() -> None:
    network = StackedMLP((D + 4, 8, D), Streams(SEEDS, "test/weights"), torch.device("cpu"))
    drawn = Streams(SEEDS, "test/pairs")
    ends, values = drawn.normal(6, 2, D), drawn.normal(6, 2)
    gained = torch.ones(2, 6)
    gained[:, 0] = 0
    first = BridgeStep(Passes(network), 0.5, Streams(SEEDS, "noise"))
    loss = first(ends, values, gained)
    written = [one.grad.clone() for one in network.parameters() if one.grad is not None]

    class Recorded(Passes):
        def forward(self, x: Any) -> Any:
            return network(x)

    again = BridgeStep(Recorded(network), 0.5, Streams(SEEDS, "noise")).loss(ends, values, gained)
    torch.testing.assert_close(loss, again.detach())
    expected = torch.autograd.grad(again.sum(), [*network.parameters()])
    for one, other in zip(written, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)


def test_designs_are_as_many_as_rows_or_starts_allow() -> None:
    method: Any = build("chain", "root")[1]
    data = problem("chain", (0, 1)).data
    method.fit(data, Streams((0, 1), "method"))
    steps = list(method.propose(data.x[:, :8], Streams((0, 1), "search")))
    assert [step.designs.shape[1] for step in steps] == [8, 8]
    best = data.best()
    torch.testing.assert_close(steps[0].designs[:, 0], best, rtol=1e-4, atol=1e-4)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(
        UsageError, match=r"method\.functions\.length must be larger than its spread"
    ):
        Functions(length=0.01)
    with pytest.raises(UsageError, match=r"method\.functions\.rows must be a whole number"):
        Functions(rows=1)

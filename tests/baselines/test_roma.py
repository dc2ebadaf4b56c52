"""RoMA: the worst weights nearby, and adaptation that flattens the network around designs."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.roma import Adapted, Flat, LocalModel, WorstCaseStep
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import SmoothMLP
from ddobench.parts.surrogates import FitStep
from ddobench.rng import Streams
from tests.support.lineups import QUICK, assemble, quick_mlp

SEEDS, D = [4, 9], 3


def make_batch() -> tuple[SmoothMLP, Tensor, Tensor]:
    network = SmoothMLP((D, 8, 8, 1), Streams(SEEDS, "test/weights"), torch.device("cpu"))
    streams = Streams(SEEDS, "test/batch")
    return network, streams.normal(7, D), streams.normal(7)


def make_data() -> Dataset:
    x = Streams(SEEDS, "test/x").normal(60, D, dtype=torch.float64)
    return Dataset(x=x, y=x.sin().sum(dim=2), space=Space(D))


def test_passes_by_hand_of_a_smooth_network_equal_autograd() -> None:
    network, z, y = make_batch()
    FitStep(network)(z, y)
    written = [one.grad.clone() for one in network.parameters() if one.grad is not None]
    loss = (network(z)[..., 0] - y).square().mean(dim=1).sum()
    for one, expected in zip(
        written, torch.autograd.grad(loss, [*network.parameters()]), strict=True
    ):
        torch.testing.assert_close(one, expected, rtol=1e-4, atol=1e-6)


def test_the_gradient_is_taken_at_worse_weights_which_are_not_kept() -> None:
    network, z, y = make_batch()
    before = network.flat.clone()
    plain = FitStep(network)(z, y)
    worst = WorstCaseStep(network, reach=0.1, inner_steps=5)(z, y)
    assert (worst > plain).all()
    assert torch.equal(network.flat, before)
    assert torch.equal(WorstCaseStep(network, reach=0.0, inner_steps=5)(z, y), plain)


def test_adaptation_flattens_the_network_around_designs() -> None:
    network, z, _ = make_batch()
    steepness = []
    for reach in (0.0, 0.3):
        search = Adapted(reach=reach, alpha=0.0, region=1e9)
        local = LocalModel(search, network, torch.zeros(2, 7))
        steepness.append(local(z)[1].norm(dim=2).mean(dim=1))
    assert (steepness[1] < steepness[0]).all()


def test_without_adaptation_and_limit_it_is_the_model_itself() -> None:
    method = assemble(Flat(training=QUICK, width=16), Adapted(inner_steps=0, region=1e12))
    method.fit(make_data(), Streams(SEEDS, "method"))
    model: Any = method._model
    z = method._coordinates.z[:, :5].float()
    value, slope = LocalModel(method.search, model.members[0].network, model.value(z))(z)  # type: ignore[arg-type]
    expected = model.value_and_gradient(z)
    torch.testing.assert_close(value, expected[0])
    torch.testing.assert_close(slope, expected[1], rtol=1e-4, atol=1e-5)


def test_it_needs_a_smooth_network() -> None:
    refusal = assemble(quick_mlp(), Adapted()).declines(make_data())
    assert refusal == "search=adapted needs one smooth network; use surrogate=flat"


@pytest.mark.parametrize("name", ["noise", "reach"])
def test_invalid_settings_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"surrogate\.{name} must be 0 or more, got -1"):
        Flat(training=QUICK, **{name: -1})  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"search\.region must be positive, got 0"):
        Adapted(region=0)

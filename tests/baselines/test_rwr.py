"""RWR against the log-likelihood it ascends."""

import pytest
import torch
from torch.distributions import Normal

from ddobench.baselines.rwr import RWR
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.tensors import Standardiser
from ddobench.models.training import Training
from ddobench.parts.pipeline import Pipeline
from ddobench.rng import Streams
from tests.support.lineups import rwr

SEEDS, D = [1, 2], 3


def make_rwr(**settings: float | bool) -> Pipeline:
    return rwr(training=Training(steps=20, batch=16, rate=3e-3), width=8, **settings)


def make_data() -> Dataset:
    x = Streams(SEEDS, "test/x").normal(60, D, dtype=torch.float64)
    return Dataset(x=x, y=x.sum(dim=2), space=Space(D))


def test_weights_are_exponential_within_their_limits() -> None:
    value = torch.tensor([[-9.0, 0.0, 0.05, 9.0]])
    expected = torch.tensor([[1e-6, 1.0, torch.e, 1e3]])
    torch.testing.assert_close(RWR().weights(value), expected)


def test_normalised_weights_give_the_best_sample_of_each_seed_weight_1() -> None:
    value = torch.tensor([[-9.0, 3.0, 2.95], [100.0, 7.0, 100.05]])
    weights = RWR(normalise=True).weights(value)
    expected = torch.tensor([[1e-6, 1.0, 1 / torch.e], [1 / torch.e, 1e-6, 1.0]])
    torch.testing.assert_close(weights, expected, rtol=1e-3, atol=0)


def test_an_iteration_ascends_the_weighted_log_likelihood() -> None:
    method, data = make_rwr(steps=2, temperature=1.0), make_data()
    method.fit(data, Streams(SEEDS, "method"))
    starts = data.x[:, :5]
    ours = [p.designs for p in method.propose(starts, Streams(SEEDS, "method/propose"))]

    scale = Standardiser.of(data.x)
    mean = scale.apply(starts).requires_grad_()
    log_sd = torch.zeros_like(mean, requires_grad=True)
    optimiser = torch.optim.Adam([mean, log_sd], lr=0.05 * D**0.5)
    noise = Streams(SEEDS, "method/propose").child("noise")
    for expected in ours[1:]:
        sample = (mean + log_sd.exp() * noise.normal(5, D)).detach()
        weight = method._model.value(sample).exp().clamp(1e-6, 1e3)
        likelihood = Normal(mean, log_sd.exp()).log_prob(sample).sum(dim=-1)  # type: ignore[no-untyped-call]
        optimiser.zero_grad()
        (-(weight * likelihood).mean(dim=1).sum()).backward()
        optimiser.step()
        torch.testing.assert_close(scale.undo(mean.detach()), expected)


def test_means_are_proposed_every_nth_iteration_and_at_the_end() -> None:
    method, data = make_rwr(steps=7, record_every=3), make_data()
    method.fit(data, Streams(SEEDS, "method"))
    proposals = method.propose(data.x[:, :5], Streams(SEEDS, "method/propose"))
    assert [proposal.iteration for proposal in proposals] == [0, 3, 6, 7]


def test_a_temperature_of_zero_is_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.temperature must be positive"):
        make_rwr(temperature=0.0)

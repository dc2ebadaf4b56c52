"""Surrogates: what an ensemble believes, in which units, and how its fit is judged."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.models.networks import StackedMLP
from ddobench.parts.surrogates import (
    Aggregate,
    FitStep,
    Member,
    NetworkModel,
    explained,
    lower_bound,
    mean_value,
    min_value,
    rank_correlation,
    thin,
)
from ddobench.rng import Streams
from tests.support.lineups import ga

CPU = torch.device("cpu")
AGGREGATES = [mean_value, min_value, lower_bound(0.7)]


def make_data(seeds: list[int]) -> Dataset:
    x = Streams(seeds, "test/x").normal(50, 3, dtype=torch.float64) * 5 + 2
    return Dataset(x=x, y=100 + 10 * x.sum(dim=2), space=Space(3))


def make_model(members: int, aggregate: Aggregate = mean_value) -> NetworkModel:
    """Return an ensemble that was never trained."""
    stacks = [StackedMLP((3, 8, 1), Streams([1, 2], f"test/{e}"), CPU) for e in range(members)]
    untrained: Any = None
    told = [Member(stack, FitStep(stack), untrained) for stack in stacks]
    return NetworkModel(told, aggregate, untrained, untrained)


def make_values() -> Tensor:  # (E, S, K)
    return Streams([0, 1, 2], "test/values").normal(2, 6, dtype=torch.float64)


def test_the_mean_of_an_ensemble_is_its_mean() -> None:
    values = make_values()
    torch.testing.assert_close(mean_value(values)[0], (values[0] + values[1] + values[2]) / 3)


def test_the_minimum_of_an_ensemble_is_its_minimum() -> None:
    values = make_values()
    expected = torch.minimum(torch.minimum(values[0], values[1]), values[2])
    torch.testing.assert_close(min_value(values)[0], expected)


def test_the_lower_bound_is_the_mean_minus_kappa_deviations() -> None:
    values = make_values().numpy()
    expected = values.mean(axis=0) - 0.7 * values.std(axis=0)
    np.testing.assert_allclose(lower_bound(0.7)(make_values())[0].numpy(), expected)


def test_members_that_agree_have_a_lower_bound_with_a_slope() -> None:
    value, slopes = lower_bound(2.0)(torch.ones(4, 2, 3))
    torch.testing.assert_close(value, torch.ones(2, 3))
    torch.testing.assert_close(slopes, torch.full((4, 2, 3), 0.25))


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_slopes_of_an_aggregate_equal_autograd(aggregate: Aggregate) -> None:
    values = make_values().requires_grad_()
    value, slopes = aggregate(values)
    (expected,) = torch.autograd.grad(value.sum(), values)
    torch.testing.assert_close(slopes.detach(), expected)


@pytest.mark.bits
@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_what_an_ensemble_of_a_seed_believes_does_not_depend_on_its_companions(
    aggregate: Aggregate, dtype: torch.dtype
) -> None:
    for designs in range(1, 40):
        values = Streams(range(5), "test/apart").normal(2, designs, dtype=dtype)  # (E, S, K)
        both, alone = aggregate(values), aggregate(values[:, 1:].contiguous())
        assert torch.equal(both[0][1:], alone[0])
        assert torch.equal(both[1][:, 1:], alone[1])


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_the_gradient_of_a_surrogate_equals_autograd(aggregate: Aggregate) -> None:
    surrogate = make_model(3, aggregate)
    z = Streams([1, 2], "test/z").normal(7, 3).requires_grad_()
    outputs = [member.network(z)[..., 0] for member in surrogate.members]
    expected, _ = aggregate(torch.stack(outputs))
    (slope,) = torch.autograd.grad(expected.sum(), z)
    value, gradient = surrogate.value_and_gradient(z.detach())
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(gradient, slope)
    torch.testing.assert_close(surrogate.value(z.detach()), expected.detach())


def test_predictions_are_in_the_units_of_the_table_and_of_each_seed() -> None:
    data, method = make_data([1, 2]), ga()
    data.x[1] += 1000.0
    method.fit(data, Streams([1, 2], "method"))
    assert isinstance(method._model, NetworkModel)
    z = (data.x - data.x.mean(dim=1, keepdim=True)) / data.x.std(dim=1, correction=0, keepdim=True)
    mean, sd = data.y.mean(dim=1, keepdim=True), data.y.std(dim=1, correction=0, keepdim=True)
    network = method._model.members[0].network
    expected = mean + sd * network(z.float())[..., 0].detach().double()
    torch.testing.assert_close(method.predict(data.x), expected, rtol=1e-4, atol=1e-3)
    learned = method._model.data
    torch.testing.assert_close(learned.means().mean(dim=1), torch.zeros(2, 3), rtol=0, atol=1e-5)
    torch.testing.assert_close(learned.values().std(dim=1, correction=0), torch.ones(2))
    assert learned.means().dtype == learned.values().dtype == torch.float32


def test_predicting_many_designs_equals_predicting_few() -> None:
    model = make_model(2)
    z = Streams([1, 2], "test/many").normal(1500, 3, dtype=torch.float64)
    torch.testing.assert_close(model.value(z)[:, 1200:], model.value(z[:, 1200:]))


def test_a_perfect_prediction_explains_all_and_the_mean_nothing() -> None:
    truth = np.array([1.0, 2.0, 4.0])
    assert explained(truth, truth) == 1.0
    assert explained(np.full(3, truth.mean()), truth) == pytest.approx(0.0)
    assert np.isnan(explained(truth[:0], truth[:0]))


def test_rank_correlation_is_spearmans() -> None:
    rng = np.random.default_rng(0)
    predicted, truth = rng.normal(size=30), rng.integers(0, 5, 30).astype(float)
    assert rank_correlation(predicted, truth) == pytest.approx(spearmanr(predicted, truth)[0])
    assert np.isnan(rank_correlation(np.ones(3), truth[:3]))


def test_a_thinned_curve_keeps_its_mean() -> None:
    curve = np.arange(1000.0)
    assert len(thin(curve)) == 50
    assert np.mean(thin(curve)) == pytest.approx(curve.mean())
    assert thin(curve[:3]) == [0.0, 1.0, 2.0]

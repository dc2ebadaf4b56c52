"""Surrogates: the value of an ensemble, its bootstraps, and the diagnostics of a fit."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Split, explained, rank_correlation, thin
from ddobench.parts.search import Ascent
from ddobench.parts.surrogates import (
    Aggregate,
    Bootstrap,
    FitStep,
    Member,
    NetworkModel,
    ReseededMLP,
    lower_bound,
    mean_value,
    min_value,
)
from ddobench.rng import Streams
from tests.support.lineups import QUICK, assemble, ga

CPU = torch.device("cpu")
AGGREGATES = [mean_value, min_value, lower_bound(0.7)]
SEEDS = [1, 2]


def make_data(seeds: list[int]) -> Dataset:
    x = Streams(seeds, "test/x").normal(50, 3, dtype=torch.float64) * 5 + 2
    return Dataset(x=x, y=100 + 10 * x.sum(dim=2), space=Space(3))


def make_model(members: int, aggregate: Aggregate = mean_value) -> NetworkModel:
    """Return an ensemble that was never trained."""
    stacks = [StackedMLP((3, 8, 1), Streams([1, 2], f"test/{e}"), CPU) for e in range(members)]
    untrained: Any = None
    stacked = [Member(stack, FitStep(stack), untrained) for stack in stacks]
    return NetworkModel(stacked, aggregate, untrained, untrained)


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
def test_what_an_ensemble_of_a_seed_believes_does_not_depend_on_other_seeds(
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


def make_bootstrap(**settings: str) -> Bootstrap:
    return Bootstrap(training=QUICK, width=8, ensemble=3, **settings)  # type: ignore[arg-type]


def make_split(n: int = 300) -> Split:
    order = Streams(SEEDS, "test/split").permutation(n)
    return Split(trained=order[:, 30:], held_out=order[:, :30])


def test_a_bootstrap_repeats_rows_and_leaves_a_third_out() -> None:
    split = make_split()
    picked = make_bootstrap().pick_rows(split, Streams(SEEDS, "test/rows"))
    assert picked.trained.shape == split.trained.shape
    for rows, known in zip(picked.trained, split.trained, strict=True):
        assert set(rows.tolist()) <= set(known.tolist())
        assert 0.55 < len(set(rows.tolist())) / len(known) < 0.72  # 1 - 1/e = 0.63


def test_rows_that_are_held_out_are_held_out_from_every_member() -> None:
    split = make_split()
    picked = make_bootstrap().pick_rows(split, Streams(SEEDS, "test/rows"))
    assert torch.equal(picked.held_out, split.held_out)
    assert not set(picked.trained[0].tolist()) & set(split.held_out[0].tolist())


def test_common_rows_are_those_of_all_members() -> None:
    split = make_split()
    assert make_bootstrap(rows="common").pick_rows(split, Streams(SEEDS, "test/rows")) is split


def fitted_losses(rows: str) -> list[torch.Tensor]:
    x = Streams(SEEDS, "test/x").normal(64, 3, dtype=torch.float64)
    data = Dataset(x=x, y=x.sum(dim=2), space=Space(3))
    method = assemble(make_bootstrap(rows=rows), Ascent(steps=2))
    method.fit(data, Streams(SEEDS, "method"))
    assert isinstance(method._model, NetworkModel)
    return [member.history.losses for member in method._model.members]


def test_every_member_has_its_own_rows() -> None:
    common, own = fitted_losses("common"), fitted_losses("bootstrap")
    for ours, theirs in zip(own, common, strict=True):
        assert not torch.equal(ours, theirs)
    assert not torch.equal(own[0], own[1])


def test_other_rows_are_refused() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.rows must be one of bootstrap, common"):
        make_bootstrap(rows="half")


def test_reseeding_changes_the_training_and_repeats_it_for_the_same_number() -> None:
    def predicted(reseed: int) -> Tensor:
        method = assemble(ReseededMLP(training=QUICK, width=8, reseed=reseed), Ascent(steps=2))
        method.fit(make_data(SEEDS), Streams(SEEDS, "method"))
        values = method.predict(make_data(SEEDS).x[:, :5])
        assert values is not None
        return values

    assert predicted(0).equal(predicted(0))
    assert not predicted(0).equal(predicted(1))


def test_a_negative_reseed_is_refused() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.reseed must be a whole number"):
        ReseededMLP(training=QUICK, reseed=-1)

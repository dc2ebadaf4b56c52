"""MINs, and its weights of rows by value."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.mins import MINs, ValueWeights
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.training import Training
from ddobench.rng import Streams

SEEDS = (0, 1)
Y = Streams([0, 1], "test/y").normal(500, dtype=torch.float64)


def make(**settings: Any) -> MINs:
    training = Training(steps=settings.pop("training_steps", 3), rate=3e-3)
    flat = ValueWeights(bins=1)
    return MINs(
        training=training, weights=flat, **{"dim": 2, "width": 32, "device": "cpu", **settings}
    )


def table() -> Dataset:
    """Return designs on a strip around a line along which the value grows."""
    z = Streams(SEEDS, "test/x").normal(500, 2, dtype=torch.float64)
    y = 10 + 2 * z[..., 0]
    return Dataset(torch.stack([y + z[..., 1], -y + z[..., 1]], dim=2), y, Space(2))


def draw(method: MINs) -> Tensor:  # (S, 200, 2)
    (proposal,) = method.propose(torch.zeros(2, 200, 2), Streams(SEEDS, "test/propose"))
    assert proposal.predicted is None
    return proposal.designs


def test_samples_have_the_value_of_the_condition() -> None:
    method, data = make(training_steps=600), table()
    method.fit(data, Streams(SEEDS, "test/fit"))
    method._goal[:] = 1.0
    x = draw(method)
    value = (x[..., 0] - x[..., 1]) / 2  # (S, 200)
    torch.testing.assert_close(value.mean(dim=1), torch.full((2,), 12.0).double(), rtol=0, atol=0.3)
    assert (value.std(dim=1) < 0.5).all()
    assert ((x.sum(dim=2) / 2).std(dim=1) > 0.5).all()


def test_the_condition_is_the_largest_visible_value() -> None:
    method, data = make(), table()
    method.fit(data, Streams(SEEDS, "test/fit"))
    expected = (data.y.max(dim=1).values - data.y.mean(dim=1)) / data.y.std(dim=1, correction=0)
    torch.testing.assert_close(method._goal.double(), expected, rtol=1e-5, atol=1e-5)
    assert method.predict(data.x) is None
    assert [len(report["training_loss"]) for report in method.diagnostics()] == [3, 3]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"dim": 0}, "dim must be a whole number of at least 1, got 0"),
        ({"variance": 0.0}, "variance must be positive, got 0.0"),
        ({"warmup": 2.0}, "warmup must be a share of the steps, got 2.0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)


def test_better_rows_have_larger_weights() -> None:
    weights = ValueWeights().of(Y)
    assert weights.shape == Y.shape
    for row, y in zip(weights, Y, strict=True):
        assert row[y > y.quantile(0.9)].mean() > 2 * row[y < y.quantile(0.5)].mean()
        assert row.max() <= 5


def test_uncut_weights_ask_for_a_distribution() -> None:
    weights = ValueWeights(most=1e9).of(Y)
    torch.testing.assert_close(weights.mean(dim=1), torch.ones(2, dtype=torch.float64))


def test_a_rare_bin_has_less_weight() -> None:
    y = torch.cat([torch.linspace(0, 0.9, 999), torch.tensor([4.0])])[None].double()
    weights = ValueWeights(most=1e9, temperature=1e9, bins=4).of(y)[0]
    # all edges are alike; the bin of one row in a thousand is wanted half as much as the full one
    assert float(weights[-1]) == pytest.approx(float(weights[:-1].sum()) / 2, rel=1e-2)


def test_equal_values_have_equal_weights() -> None:
    weights = ValueWeights().of(torch.ones(1, 10, dtype=torch.float64))
    assert set(weights[0].tolist()) == {1.0}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"bins": 0}, r"weights\.bins must be a whole number of at least 1, got 0"),
        ({"temperature": 0.0}, r"weights\.temperature must be positive, got 0\.0; null takes it"),
    ],
)
def test_invalid_weights_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        ValueWeights(**settings)  # type: ignore[arg-type]

"""Rows weighted by value, as MINs and DDOM do."""

import pytest
import torch

from ddobench.baselines.value_weights import ValueWeights
from ddobench.errors import UsageError
from ddobench.rng import Streams

Y = Streams([0, 1], "test/y").normal(500, dtype=torch.float64)


def test_better_rows_count_more() -> None:
    weights = ValueWeights().of(Y)
    assert weights.shape == Y.shape
    for row, y in zip(weights, Y, strict=True):
        assert row[y > y.quantile(0.9)].mean() > 2 * row[y < y.quantile(0.5)].mean()
        assert row.max() <= 5


def test_uncut_weights_ask_for_a_distribution() -> None:
    weights = ValueWeights(most=1e9).of(Y)
    torch.testing.assert_close(weights.mean(dim=1), torch.ones(2, dtype=torch.float64))


def test_a_rare_bin_is_wanted_less_than_its_edge_alone_asks() -> None:
    y = torch.cat([torch.linspace(0, 0.9, 999), torch.tensor([4.0])])[None].double()
    weights = ValueWeights(most=1e9, temperature=1e9, bins=4).of(y)[0]
    # all edges are alike; the bin of one row in a thousand is wanted half as much as the full one
    assert float(weights[-1]) == pytest.approx(float(weights[:-1].sum()) / 2, rel=1e-2)


def test_equal_values_count_alike() -> None:
    weights = ValueWeights().of(torch.ones(1, 10, dtype=torch.float64))
    assert set(weights[0].tolist()) == {1.0}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"bins": 0}, r"weights\.bins must be a whole number of at least 1, got 0"),
        ({"temperature": 0.0}, r"weights\.temperature must be positive, got 0\.0; null takes it"),
    ],
)
def test_senseless_settings_are_refused(settings: dict[str, float], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        ValueWeights(**settings)  # type: ignore[arg-type]

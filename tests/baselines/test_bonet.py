"""BONET: trajectories that rise, predictions that see nothing later, better continuations."""

from math import log
from typing import Any

import pytest
import torch

from ddobench.baselines.bonet import (
    BONET,
    CausalTransformer,
    draw_trajectories,
    regret_of,
    regret_to_go,
)
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.training import Training
from ddobench.rng import Stream, Streams

RNG = Streams([3], "test")


def make(**settings: Any) -> BONET:
    training = Training(steps=settings.pop("training_steps", 2), batch=16, rate=3e-3)
    small = {"width": 16, "heads": 2, "blocks": 1, "length": 12, "context": 6, "prefix": 6}
    return BONET(training=training, device="cpu", **{**small, **settings})


def letters(n: int = 300) -> Dataset:
    """Return sequences of four variables with three categories, and as value their sum."""
    x = RNG.child("x").integers(3, n, 4).double()
    return Dataset(x, x.sum(dim=2), Space(4, (3,) * 4))


def test_trajectories_rise_and_have_more_of_the_best_rows() -> None:
    y = Stream(0, "test/y").normal(500, dtype=torch.float64)
    regret = regret_of(y, 2.0)
    assert float(regret.min()) == 0.5
    assert float(regret.max()) == 1.0
    rows = draw_trajectories(regret, (40, 32), 8, 0.03, Stream(0, "test/rows"))
    assert rows.shape == (40, 32)
    assert (y[rows].diff(dim=1) >= 0).all()
    assert y[rows].median() > y.quantile(0.8)
    assert not torch.equal(rows[0], rows[1])


def test_bins_are_drawn_from_by_their_size_and_regret() -> None:
    regret = torch.tensor([0.5] * 10 + [0.75] * 80 + [1.0] * 10, dtype=torch.float64)
    rows = draw_trajectories(regret, (3, 1000), 2, 0.1, Stream(0, "test/rows"))
    # tau is at least a bin, of width 0.25, and 0.75 is the first value of the second bin
    good, poor = 10 / (10 + 10), 90 / (90 + 10) * torch.tensor(-1.0).exp()
    share = float(good / (good + poor))
    assert ((rows < 10).sum(dim=1) == round(1000 * share)).all()


@pytest.mark.parametrize("y", [torch.zeros(5), torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])])
def test_values_may_be_equal(y: torch.Tensor) -> None:
    rows = draw_trajectories(regret_of(y.double(), 2.0), (2, 9), 4, 0.03, Stream(0, "test/rows"))
    assert rows.shape == (2, 9)
    assert (y[rows].diff(dim=1) >= 0).all()


def test_the_regret_to_go_includes_the_point_itself() -> None:
    regret = torch.tensor([[0.9, 0.7, 0.5]])
    torch.testing.assert_close(regret_to_go(regret), torch.tensor([[2.1, 1.2, 0.5]]))


def test_a_prediction_sees_its_regret_and_nothing_later() -> None:
    network = CausalTransformer(5, (12, 6), (16, 2, 2), Stream(0, "test/weights"))
    drawn = Stream(0, "test/window")
    x, to_go, begins = drawn.normal(3, 6, 5), drawn.uniform(3, 6), torch.tensor([0, 2, 6])
    before = network(x, to_go, begins)
    later = x.clone()
    later[:, 3:] = 7.0
    torch.testing.assert_close(network(later, to_go, begins)[:, :4], before[:, :4])
    assert not torch.allclose(network(later, to_go, begins)[:, 4:], before[:, 4:])
    asked = to_go.clone()
    asked[:, 3] += 1
    torch.testing.assert_close(network(x, asked, begins)[:, :3], before[:, :3])
    assert not torch.allclose(network(x, asked, begins)[:, 3], before[:, 3])


@pytest.mark.parametrize("relaxation", ["logits", "onehot"])
def test_the_loss_on_categories_is_their_negative_log_likelihood(relaxation: str) -> None:
    method = make(relaxation=relaxation)
    method.fit(letters(), RNG)
    rows = method._draw(3, Stream(0, "test/rows"))
    begins = torch.tensor([0, 3, 6])
    head = method._network.head
    with torch.no_grad():
        head.weight.zero_()
        head.bias.zero_()
        assert float(method.loss(rows, begins)) == pytest.approx(4 * log(3))
        assert torch.isfinite(method._losses).all()


def test_continuations_are_better_than_what_they_continue() -> None:
    method = make(training_steps=100)
    data = letters()
    method.fit(data, RNG)
    rows = method._draw(2, RNG.child("search").rows[0])[:, :6]  # as `propose` draws them
    (proposal,) = method.propose(data.x[:, :12], RNG.child("search"))
    assert proposal.designs.sum(dim=2).mean() > data.y[0, rows].mean() > data.y.mean()


def test_trajectories_are_continued_for_as_many_designs_as_asked_for() -> None:
    x = RNG.child("real").normal(200, 5, dtype=torch.float64)
    method = make()
    method.fit(Dataset(x, x.sum(dim=2), Space(5)), RNG)
    for count in (4, 6, 15):
        (proposal,) = method.propose(x[:, :count], RNG)
        assert proposal.designs.shape == (1, count, 5)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"width": 15}, r"method\.width must be a multiple of method\.heads, got 15 and 2"),
        ({"prefix": 12}, r"method\.length must be a whole number of at least 13, got 12"),
        ({"optimum": 0.5}, r"method\.optimum must be 1, the largest visible value, or more"),
        ({"smoothing": 0.0}, r"method\.smoothing must be positive, got 0"),
        ({"regrets": []}, r"method\.regrets must have a value, got none"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)


def test_patience_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patience must be null here, got 3"):
        BONET(training=Training(patience=3))

"""Searches that begin at the best visible rows."""

import pytest
import torch

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.parts.top import TopAscent, pick_beginning
from ddobench.rng import Streams
from tests.support.lineups import assemble, quick_mlp

SEEDS = [1, 2]


def make_data(n: int = 40) -> Dataset:
    x = Streams(SEEDS, "test/x").normal(n, 3, dtype=torch.float64)
    return Dataset(x=x, y=x.sum(dim=2), space=Space(3))


def test_the_best_rows_of_each_seed_come_first() -> None:
    data = make_data()
    rows = pick_beginning("top", 5, data.x[:, :30], data)
    assert rows.shape == (2, 5, 3)
    torch.testing.assert_close(rows.sum(dim=2), data.y.topk(5, dim=1).values)


def test_there_are_never_more_designs_than_starts_or_rows() -> None:
    data = make_data(n=6)
    assert pick_beginning("top", 128, data.x[:, :4], data).shape == (2, 4, 3)
    many = data.x.repeat(1, 3, 1)  # starts repeat rows where there are few
    assert pick_beginning("top", 128, many, data).shape == (2, 6, 3)
    assert pick_beginning("starts", 128, many, data).shape == (2, 18, 3)


def test_the_starts_of_all_methods_can_be_asked_for() -> None:
    data = make_data()
    starts = data.x[:, 7:20]
    assert torch.equal(pick_beginning("starts", 5, starts, data), starts[:, :5])


def test_rows_that_tie_keep_their_order() -> None:
    data = make_data()
    level = Dataset(x=data.x, y=torch.zeros_like(data.y), space=data.space)
    assert torch.equal(pick_beginning("top", 9, data.x, level), data.x[:, :9])


def test_any_surrogate_can_be_climbed_from_the_best_rows() -> None:
    data = make_data()
    method = assemble(quick_mlp(), TopAscent(steps=3, optimiser="adam", designs=5))
    method.fit(data, Streams(SEEDS, "method"))
    first, *_, last = method.propose(data.x[:, :20], Streams(SEEDS, "method/propose"))
    torch.testing.assert_close(first.designs, pick_beginning("top", 5, data.x[:, :20], data))
    assert last.predicted is not None
    assert first.predicted is not None
    assert (last.predicted > first.predicted).all()


def test_a_beginning_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.begin_at must be one of top, starts"):
        TopAscent(begin_at="middle")
    with pytest.raises(UsageError, match=r"search\.designs must be a whole number of at least 1"):
        TopAscent(designs=0)

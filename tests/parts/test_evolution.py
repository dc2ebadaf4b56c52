"""Evolution: children are better and near the rows, on real and categorical designs."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.parts.evolution import Evolution, nearest_distance, typical_distance
from ddobench.parts.search import AscentStep
from ddobench.rng import Streams
from tests.support.fakes import FunctionModel

E = 4
SEEDS = [1, 2]


def rows_of(seeds: list[int]) -> Tensor:  # (S, 200, e)
    return Streams(seeds, "test/rows").normal(200, E, dtype=torch.float64)


def climb(z: Tensor) -> Tensor:  # (S, K, e) -> (S, K), without a maximum
    return z.sum(dim=-1)


def keep(z: Tensor) -> Tensor:
    return z


def run(search: Evolution, seeds: list[int] = SEEDS, snap: Any = keep) -> list[AscentStep]:
    rows = rows_of(seeds)
    search.prepare(rows, keep, snap)
    return list(search.run(rows[:, :8], FunctionModel(climb), Streams(seeds, "method/propose"), {}))


def test_values_never_fall_and_rise_at_last() -> None:
    steps = run(Evolution(steps=40))
    for before, after in pairwise(steps):
        assert (after.value >= before.value).all()
    assert (steps[-1].value > steps[0].value).all()
    torch.testing.assert_close(steps[-1].value, climb(steps[-1].x))


@pytest.mark.parametrize("reach", [0.5, 1.0, 2.0])
def test_designs_stay_within_reach_of_a_row(reach: float) -> None:
    *_, last = run(Evolution(steps=60, reach=reach))
    limit = reach * typical_distance(rows_of(SEEDS))
    assert (nearest_distance(last.x, rows_of(SEEDS)) <= limit[:, None]).all()


def test_a_seed_does_not_depend_on_its_companions() -> None:
    (*_, together), (*_, alone) = run(Evolution(steps=20)), run(Evolution(steps=20), [2])
    assert torch.equal(together.x[1], alone.x[0])


def test_children_are_snapped_before_they_are_valued() -> None:
    *_, last = run(Evolution(steps=40, reach=5.0), snap=torch.round)
    moved = (last.x != rows_of(SEEDS)[:, :8]).any(dim=2)
    assert moved.any()
    assert torch.equal(last.x[moved], last.x[moved].round())


def test_the_typical_distance_leaves_equal_rows_out() -> None:
    rows = torch.tensor([[[0.0], [0.0], [3.0]], [[1.0], [1.0], [1.0]]])
    assert typical_distance(rows).tolist() == [3.0, torch.inf]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"steps": 0}, "search.steps must be a whole number of at least 1, got 0"),
        ({"changed": 1.5}, "search.changed must be from 0 to 1, got 1.5"),
        ({"reach": 0.0}, "search.reach must be positive, got 0.0"),
        ({"begin_at": "middle"}, "search.begin_at must be one of top, starts, got 'middle'"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}"):
        Evolution(**settings)

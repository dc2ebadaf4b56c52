"""Sums of tables: their values, climbs by single changes, and the best designs."""

import itertools

import numpy as np
import pytest

from ddobench.baselines import table_sums
from ddobench.baselines.table_sums import TableSum
from ddobench.exact.max_sum import Table

SIZES = (3, 2, 4, 3)
EVERYTHING = np.array(list(itertools.product(*map(range, SIZES))), dtype=float)


def draw(seed: int) -> TableSum:
    rng = np.random.default_rng(seed)
    scopes = [(0, 1), (1, 2, 3), (2,), (0, 3)]
    tables = [Table(s, rng.normal(size=(1, *(SIZES[v] for v in s)))) for s in scopes]
    return TableSum([*tables, Table((), np.array([0.5]))], SIZES)


def test_a_design_is_worth_the_sum_of_its_entries() -> None:
    model = draw(0)
    x = np.array([[2.0, 1.0, 3.0, 0.0]])
    expected = sum(float(t.values[(0, *(int(x[0, v]) for v in t.scope))]) for t in model.tables)
    assert model(x) == pytest.approx([expected])


@pytest.mark.parametrize("seed", range(4))
def test_a_climb_ends_where_no_single_change_helps_and_never_lower(seed: int) -> None:
    model = draw(seed)
    ends = model.climb(EVERYTHING)
    assert (model(ends) >= model(EVERYTHING) - 1e-9).all()
    for variable, size in enumerate(SIZES):
        for level in range(size):
            changed = ends.copy()
            changed[:, variable] = level
            assert (model(changed) <= model(ends) + 1e-9).all()


def test_the_best_are_exact_where_the_graph_is_sparse() -> None:
    model = draw(1)
    values, designs, exact = model.find_best(5, EVERYTHING[:2])
    assert exact
    assert values == pytest.approx(np.sort(model(EVERYTHING))[::-1][:5])
    assert model(designs.astype(float)) == pytest.approx(values)


def test_where_it_is_not_they_are_where_starts_climb_to_each_once_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_sums, "MOST_CELLS", 1)
    model = draw(1)
    values, designs, exact = model.find_best(40, EVERYTHING)
    assert not exact
    assert values[0] == pytest.approx(model(EVERYTHING).max())
    ends = len(np.unique(model.climb(EVERYTHING), axis=0))
    assert len(np.unique(designs[:ends], axis=0)) == ends
    assert len(designs) == 40

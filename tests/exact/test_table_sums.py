"""Sums of tables: fits, climbs, and the best several designs against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddobench.exact import table_sums
from ddobench.exact.max_sum import Table, maximise
from ddobench.exact.table_sums import TableSum, find_best, largest_table
from tests.exact.test_max_sum import Model, enumerate_values, models

SIZES = (3, 2, 4, 3)
EVERYTHING = np.array(list(itertools.product(*map(range, SIZES))), dtype=float)


def draw(seed: int) -> TableSum:
    rng = np.random.default_rng(seed)
    scopes = [(0, 1), (1, 2, 3), (2,), (0, 3)]
    tables = [Table(s, rng.normal(size=(1, *(SIZES[v] for v in s)))) for s in scopes]
    return TableSum([*tables, Table((), np.array([0.5]))], SIZES)


def test_the_value_of_a_design_is_the_sum_of_its_entries() -> None:
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


@given(models(), st.integers(1, 20), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_they_are_the_best_of_all_designs_each_once_also_among_equals(
    model: Model, count: int, digits: int
) -> None:
    tables = [Table(one.scope, one.values[:1].round(digits)) for one in model[0]]
    values, designs = find_best(tables, model[1], count)
    everything = enumerate_values(tables, model[1], 0)
    expected = sorted(everything.values(), reverse=True)[:count]
    assert values == pytest.approx(expected)
    assert len({tuple(design) for design in designs.tolist()}) == len(expected)
    assert [everything[tuple(design)] for design in designs.tolist()] == pytest.approx(expected)


@given(models())
@settings(max_examples=60, deadline=None)
def test_the_size_of_the_largest_table_is_computed_without_making_it(model: Model) -> None:
    tables, sizes = model
    made: list[int] = []

    def watch(shape: tuple[int, ...]) -> np.ndarray:
        made.append(int(np.prod(shape[1:])))
        return zeros(shape)

    zeros = np.zeros
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ddobench.exact.max_sum.np.zeros", lambda shape, *a, **k: (
            watch(shape) if isinstance(shape, tuple) and not a and not k else zeros(shape, *a, **k)
        ))  # fmt: skip
        maximise(tables, sizes)
    assert largest_table([table.scope for table in tables], sizes) == max([1, *made])


def test_a_chain_needs_small_tables_and_a_complete_graph_one_of_all() -> None:
    assert largest_table([(i, i + 1) for i in range(9)], [3] * 10) == 9
    assert largest_table([(i, j) for i in range(5) for j in range(i)], [2] * 5) == 32


def test_the_hundred_best_designs_of_a_long_chain_are_found() -> None:
    rng = np.random.default_rng(0)
    tables = [Table((i, i + 1), rng.normal(size=(1, 3, 3))) for i in range(29)]
    values, designs = find_best(tables, [3] * 30, 100)
    assert designs.shape == (100, 30)
    assert (np.diff(values) <= 1e-9).all()
    assert values[0] == pytest.approx(maximise(tables, [3] * 30)[0][0])


def test_constant_tables_give_the_requested_number_of_designs() -> None:
    tables = [Table((i, i + 1), np.zeros((1, 2, 2))) for i in range(19)]
    values, designs = find_best(tables, [2] * 20, 32)
    assert values.tolist() == [0.0] * 32
    assert len(np.unique(designs, axis=0)) == 32

"""Promises of exact maximisation, against enumeration."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddobench.exact.max_sum import Table, elimination_order, max_marginals, maximise

SEEDS = 2
Model = tuple[list[Table], list[int]]


@st.composite
def models(draw: st.DrawFn) -> Model:
    """Draw tables over a few variables: overlapping, repeated, unsorted or constant."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=6))
    scope = st.lists(st.integers(0, len(sizes) - 1), max_size=3, unique=True).map(tuple)
    scopes = draw(st.lists(scope, min_size=1, max_size=7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [Table(s, rng.normal(size=(SEEDS, *(sizes[v] for v in s)))) for s in scopes], sizes


def total(tables: Sequence[Table], point: Sequence[int], seed: int) -> float:
    """Return the sum of the tables at one point."""
    return sum(float(t.values[(seed, *(point[v] for v in t.scope))]) for t in tables)


def enumerate_values(
    tables: Sequence[Table], sizes: Sequence[int], seed: int
) -> dict[tuple[int, ...], float]:
    """Return the sum at every point."""
    points = itertools.product(*map(range, sizes))
    return {point: total(tables, point, seed) for point in points}


@given(models())
@settings(max_examples=60)
def test_the_maximum_and_its_design_are_those_of_enumeration(model: Model) -> None:
    tables, sizes = model
    values, designs = maximise(tables, sizes)
    for seed in range(SEEDS):
        best = max(enumerate_values(tables, sizes, seed).values())
        assert values[seed] == pytest.approx(best, abs=1e-9)
        assert total(tables, designs[seed], seed) == pytest.approx(best, abs=1e-9)


@given(models())
@settings(max_examples=60)
def test_max_marginals_are_those_of_enumeration(model: Model) -> None:
    tables, sizes = model
    marginals = max_marginals(tables, sizes)
    assert [m.shape for m in marginals] == [(SEEDS, size) for size in sizes]
    for seed in range(SEEDS):
        everywhere = enumerate_values(tables, sizes, seed)
        for variable, size in enumerate(sizes):
            expected = [
                max(value for point, value in everywhere.items() if point[variable] == choice)
                for choice in range(size)
            ]
            assert marginals[variable][seed] == pytest.approx(expected, abs=1e-9)


@given(models())
@settings(max_examples=30)
def test_the_tables_are_not_changed(model: Model) -> None:
    tables, sizes = model
    before = [table.values.copy() for table in tables]
    maximise(tables, sizes)
    max_marginals(tables, sizes)
    assert all(np.array_equal(t.values, b) for t, b in zip(tables, before, strict=True))


def test_disconnected_parts_add_up_and_a_free_variable_costs_nothing() -> None:
    tables = [
        Table((0, 1), np.array([[[0.0, 1.0], [2.0, 0.0]]])),
        Table((3,), np.array([[5.0, 7.0, 6.0]])),
        Table((), np.array([10.0])),
    ]
    values, designs = maximise(tables, [2, 2, 4, 3])
    assert values.tolist() == [19.0]
    assert designs[0, [0, 1, 3]].tolist() == [1, 0, 1]
    assert max_marginals(tables, [2, 2, 4, 3])[2].tolist() == [[19.0] * 4]


def test_a_long_cycle_is_maximised_exactly() -> None:
    d = 1000
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=d)
    tables = [Table((i, (i + 1) % d), np.zeros((1, 2, 2))) for i in range(d)]
    for table, sign in zip(tables, signs, strict=True):
        table.values[0, 1, 1] = sign
    values, designs = maximise(tables, [2] * d)
    assert total(tables, designs[0], 0) == values[0]
    alone_and_forced = _cycle_maximum(signs)
    assert values[0] == alone_and_forced


def _cycle_maximum(signs: np.ndarray) -> float:
    """Maximise around a cycle of bits by dynamic programming from either value of the first."""
    best = -np.inf
    for first in (0, 1):
        reach = np.array([0.0 if bit == first else -np.inf for bit in (0, 1)])
        for sign in signs[:-1]:
            reach = np.array([reach.max(), max(reach[0], reach[1] + sign)])
        best = max(best, reach[0], reach[1] + signs[-1] * first)
    return best


def test_every_variable_is_eliminated_once_and_leaves_of_a_star_before_its_centre() -> None:
    scopes = [(0, leaf) for leaf in range(1, 8)]
    order = elimination_order(scopes, [2] * 8)
    assert sorted(order) == list(range(8))
    assert order.index(0) >= 6


def test_fewer_neighbours_go_before_smaller_tables() -> None:
    triangle = [(2, 3), (3, 4), (2, 4)]
    assert elimination_order([(0, 1), *triangle], [10, 10, 2, 2, 2])[:2] == [0, 1]


def test_among_equals_the_smallest_table_is_summed_first() -> None:
    assert elimination_order([(0, 1), (2, 3)], [5, 5, 2, 2])[:2] == [2, 3]


def test_a_graph_too_dense_is_refused_with_its_size() -> None:
    sizes = [10] * 9
    tables = [Table((a, b), np.zeros((2, 10, 10))) for a, b in itertools.combinations(range(9), 2)]
    with pytest.raises(
        ValueError, match="over 9 variables with 1,000,000,000 entries for each of 2 seeds"
    ):
        maximise(tables, sizes)

"""Promises of functional graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddobench.graphs import Graph, Recovery

TRUTH = Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)])


def test_a_cycle_has_its_edges_as_cliques() -> None:
    cycle = Graph.from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    assert cycle.cliques == ((0, 1), (0, 3), (1, 2), (2, 3))
    assert cycle.edges == cycle.cliques


def test_an_isolated_variable_is_a_clique_of_its_own() -> None:
    graph = Graph.from_edges(4, [(2, 1)])
    assert graph.cliques == ((0,), (1, 2), (3,))
    assert graph.edges == ((1, 2),)


def test_cliques_are_maximal_and_sorted() -> None:
    graph = Graph.from_cliques(5, [(4, 2, 3), (2, 0, 1), (1, 0), (4, 3)])
    assert graph.cliques == ((0, 1, 2), (2, 3, 4))


def test_a_triangle_of_edges_is_one_clique() -> None:
    assert Graph.from_edges(3, [(0, 1), (1, 2), (2, 0)]).cliques == ((0, 1, 2),)


def test_the_same_graph_is_equal_however_it_is_given() -> None:
    edges = Graph.from_edges(3, [(1, 0), (2, 1), (1, 2)])
    assert edges == Graph.from_cliques(3, [(2, 1), (0, 1)])


@pytest.mark.parametrize("edge", [(0, 3), (-1, 0), (1, 1)])
def test_an_edge_beyond_the_variables_is_refused(edge: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"two different variables of 0 to 2, got \("):
        Graph.from_edges(3, [(0, 1), edge])


@given(
    st.integers(1, 7).flatmap(
        lambda d: st.tuples(
            st.just(d),
            st.sets(
                st.tuples(st.integers(0, d - 1), st.integers(0, d - 1)).filter(
                    lambda edge: edge[0] != edge[1]
                )
            ),
        )
    )
)
def test_cliques_cover_every_variable_and_exactly_the_edges(
    drawn: tuple[int, set[tuple[int, int]]],
) -> None:
    d, edges = drawn
    graph = Graph.from_edges(d, edges)
    assert {v for clique in graph.cliques for v in clique} == set(range(d))
    assert set(graph.edges) == {(min(edge), max(edge)) for edge in edges}
    matrix = graph.adjacency()
    assert matrix.shape == (d, d)
    assert not matrix.diagonal().any()
    assert np.array_equal(matrix, matrix.T)
    assert {(int(i), int(j)) for i, j in np.argwhere(np.triu(matrix))} == set(graph.edges)


def test_every_score_by_hand() -> None:
    found = Graph.from_edges(5, [(0, 1), (1, 2), (0, 4)])  # two right, one wrong, two missed
    recovery = Recovery.of(found, TRUTH)
    assert recovery.describe() == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 4,
            "f1": 4 / 7,
            "false_positive_rate": 1 / 6,
            "structural_distance": 3,
        }
    )


def test_the_truth_is_recovered_perfectly() -> None:
    scores = Recovery.of(TRUTH, TRUTH).describe()
    assert scores == {
        "precision": 1.0, "recall": 1.0, "f1": 1.0,
        "false_positive_rate": 0.0, "structural_distance": 0,
    }  # fmt: skip


def test_a_share_of_zero_edges_is_zero() -> None:
    empty = Graph.from_edges(3, [])
    full = Graph.from_cliques(3, [range(3)])
    assert Recovery.of(empty, full).precision == 0.0
    assert Recovery.of(full, empty).recall == 0.0
    assert Recovery.of(empty, empty).f1 == 0.0
    assert Recovery.of(full, full).false_positive_rate == 0.0


def test_graphs_of_different_sizes_are_not_compared() -> None:
    with pytest.raises(ValueError, match="graphs on 3 and 5 variables cannot be compared"):
        Recovery.of(Graph.from_edges(3, []), TRUTH)

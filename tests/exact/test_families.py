"""The families of graphs: the promised shape, every variable covered, treewidth at most two."""

import networkx as nx
import pytest

from ddobench.errors import UsageError
from ddobench.exact.families import FAMILIES, choose_family
from ddobench.exact.max_sum import elimination_order
from ddobench.graphs import Graph
from ddobench.rng import Stream

SIZES = {"grid": 12, "disconnected": 12}


def cliques_of(name: str, d: int, seed: int = 0) -> tuple[tuple[int, ...], ...]:
    return choose_family(name, None, None).draw(d, Stream(seed, "graph"))


def network(name: str, d: int, seed: int = 0) -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(d))
    graph.add_edges_from(Graph.from_cliques(d, cliques_of(name, d, seed)).edges)
    return graph


@pytest.mark.parametrize("name", FAMILIES)
def test_every_variable_belongs_to_a_clique(name: str) -> None:
    d = SIZES.get(name, 13)
    covered = {variable for clique in cliques_of(name, d) for variable in clique}
    assert covered == set(range(d))


@pytest.mark.parametrize("name", FAMILIES)
def test_the_cliques_are_the_maximal_cliques_of_the_graph(name: str) -> None:
    d = SIZES.get(name, 13)
    cliques = {tuple(sorted(clique)) for clique in cliques_of(name, d)}
    assert cliques == set(Graph.from_cliques(d, cliques_of(name, d)).cliques)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(5))
def test_the_treewidth_is_at_most_two(name: str, seed: int) -> None:
    d = SIZES.get(name, 13)
    graph = network(name, d, seed)
    for variable in elimination_order(cliques_of(name, d, seed), [2] * d):
        near = list(graph.neighbors(variable))
        assert len(near) <= 2
        graph.add_edges_from((a, b) for a in near for b in near if a != b)
        graph.remove_node(variable)


def test_the_chain_is_of_overlapping_triangles() -> None:
    assert cliques_of("chain", 7) == ((0, 1, 2), (2, 3, 4), (4, 5, 6))


def test_clique_size_and_overlap_shape_the_chain() -> None:
    family = choose_family("chain", 4, 2)
    assert family.draw(8, Stream(0, "graph")) == ((0, 1, 2, 3), (2, 3, 4, 5), (4, 5, 6, 7))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("path", nx.path_graph(12)),
        ("ring", nx.cycle_graph(12)),
        ("star", nx.star_graph(11)),
        ("tree", nx.full_rary_tree(2, 12)),
        ("grid", nx.ladder_graph(6)),
        ("disconnected", nx.disjoint_union_all([nx.complete_graph(3)] * 4)),
    ],
)
def test_a_family_has_the_shape_of_its_name(name: str, expected: "nx.Graph[int]") -> None:
    assert nx.is_isomorphic(network(name, 12), expected)


def test_random_graphs_differ_between_seeds_and_repeat_for_one() -> None:
    drawn = [cliques_of("random", 30, seed) for seed in (0, 1, 0)]
    assert drawn[0] != drawn[1]
    assert drawn[0] == drawn[2]


@pytest.mark.parametrize(
    ("name", "size", "overlap", "d", "message"),
    [
        ("chain", None, None, 40, "d must be odd for a chain of triangles, got 40; use 39 or 41"),
        ("chain", None, None, 1, "d must be at least 3 for a chain of triangles, got 1; use 3"),
        ("chain", 5, 1, 12, r"d must be one of 5, 9, 13, … .* got 12; use 9 or 13"),
        ("grid", None, None, 7, "d must be even for a grid of two rows, got 7; use 6 or 8"),
        ("ring", None, None, 3, "d must be at least 4 for a ring, got 3; use 4"),
        ("disconnected", None, None, 40, "d must be one of 3, 6, 9, … .* use 39 or 42"),
    ],
)
def test_an_impossible_dimension_is_refused_with_a_remedy(
    name: str, size: int | None, overlap: int | None, d: int, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        choose_family(name, size, overlap).check(d)


@pytest.mark.parametrize(
    ("name", "size", "overlap", "message"),
    [
        ("lattice", None, None, "task.family must be one of chain, .* got 'lattice'"),
        ("chain", 0, None, "task.clique_size must be a whole number of at least 1, got 0"),
        ("chain", 3, 3, "task.overlap must be less than task.clique_size=3, got 3; use 0 to 2"),
        ("chain", 4, 3, "task.overlap must be at most half .* got 3; use 2"),
        ("chain", 3, -1, "task.overlap must be a whole number of at least 0, got -1"),
        ("ring", 3, None, "belong to the families chain and disconnected, got family=ring"),
        ("disconnected", 3, 1, "task.overlap must be 0 or null for disconnected cliques, got 1"),
    ],
)
def test_an_impossible_shape_is_refused_with_a_remedy(
    name: str, size: int | None, overlap: int | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        choose_family(name, size, overlap)

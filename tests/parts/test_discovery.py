"""Graph discovery: the level and the power of the test, its corrections, guards and controls."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.contracts import Privileged
from ddobench.errors import UsageError
from ddobench.graphs import Graph, Recovery
from ddobench.models.standardise import Standardiser
from ddobench.parts.discovery import (
    Complete,
    Discovered,
    Discovery,
    Empty,
    GraphInputs,
    Known,
    Online,
    Permuted,
    Stein,
    p_values,
    pseudo_hessian,
    thin_out,
)
from ddobench.rng import Streams
from ddobench.tasks.rbf import RBF


def clues_of(z: Tensor, y: Tensor, graphs: tuple[Graph, ...] | None = None) -> GraphInputs:
    """Standardise a table (S, N, e), (S, N)."""
    return GraphInputs(
        Standardiser.of(z).apply(z),
        Standardiser.of(y).apply(y),
        Privileged(graphs=graphs),
        Streams(range(len(z)), "test/graph"),
    )


def additive_clues(seeds: int, rows: int = 500, e: int = 20) -> GraphInputs:
    """Draw normal codes and values without any interaction."""
    z = Streams(range(seeds), "test/z").normal(rows, e, dtype=torch.float64)
    return clues_of(z, torch.sin(z).sum(dim=2) + (z[..., 0] > 1).double())


def interacting_clues(seeds: int = 2, e: int = 6) -> GraphInputs:
    """Draw codes where 0 and 1, and 2 and 3, interact strongly."""
    z = Streams(range(seeds), "test/z").normal(3000, e, dtype=torch.float64)
    return clues_of(z, z[..., 0] * z[..., 1] + z[..., 2] * z[..., 3] + 0.1 * z[..., 4])


def density(found: list[Discovered]) -> float:
    """Return the share of pairs that are edges."""
    d = found[0].graph.d
    return float(np.mean([len(one.graph.edges) for one in found]) / (d * (d - 1) / 2))


def test_the_pseudo_hessian_is_the_mean_of_products() -> None:
    inputs = additive_clues(2, rows=7, e=3)
    expected = torch.einsum("sni,snj,sn->sij", inputs.z, inputs.z, inputs.y) / 7
    torch.testing.assert_close(pseudo_hessian(inputs.z, inputs.y), expected)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.2])
def test_without_interactions_an_edge_is_found_as_often_as_the_level_says(alpha: float) -> None:
    found = Stein(alpha=alpha).discover(additive_clues(60))
    assert density(found) == pytest.approx(alpha, rel=0.25)


@pytest.mark.slow
def test_power_grows_with_the_rows_as_the_prototype_found() -> None:
    seeds = range(6)
    rates = []
    for n in (2_000, 10_000, 100_000):
        problem = RBF(d=41, n=n).problem(seeds)
        assert problem.graphs is not None
        found = Stein(alpha=0.05).discover(clues_of(problem.data.x, problem.data.y))
        scores = [
            Recovery.of(one.graph, truth) for one, truth in zip(found, problem.graphs, strict=True)
        ]
        rates.append(np.mean([score.recall for score in scores]))
        assert np.mean([score.false_positive_rate for score in scores]) < 0.08
    assert rates == pytest.approx([0.17, 0.42, 0.73], abs=0.1)


def test_an_edge_needs_what_the_paper_asks_for() -> None:
    hessian = np.array([[0.0, 0.0195, 0.0197], [0.0195, 0.0, -0.03], [0.0197, -0.03, 0.0]])
    found = Stein(alpha=0.05).decide(hessian, 10_000)  # the quantile over 100 is 0.01960
    assert found.graph.edges == ((0, 2), (1, 2))


@pytest.mark.parametrize("shift", [3.0, -40.0])
def test_values_are_looked_at_without_their_mean(shift: float) -> None:
    inputs = interacting_clues()
    found = Stein().discover(inputs)
    shifted = clues_of(inputs.z, 7 * inputs.y + shift)
    assert [one.graph for one in Stein().discover(shifted)] == [one.graph for one in found]


def test_interactions_are_found() -> None:
    for correction in ("none", "bonferroni", "fdr"):
        for one in Stein(correction=correction).discover(interacting_clues()):
            assert {(0, 1), (2, 3)} <= set(one.graph.edges)


def test_bonferroni_bounds_the_chance_of_any_false_edge() -> None:
    found = Stein(alpha=0.05, correction="bonferroni").discover(additive_clues(100))
    assert np.mean([len(one.graph.edges) > 0 for one in found]) < 0.13


def test_the_false_discovery_rate_is_the_step_up_of_benjamini_and_hochberg() -> None:
    rng = np.random.default_rng(0)
    hessian = rng.normal(size=(12, 12)) * 0.02
    hessian[0, 1:4] += 0.1
    hessian = np.triu(hessian, 1) + np.triu(hessian, 1).T
    p = p_values(hessian, 2000)
    ranked = np.sort(p)
    passing = np.nonzero(ranked <= 0.1 * np.arange(1, len(p) + 1) / len(p))[0]
    limit = ranked[passing.max()]
    expected = [
        pair for pair, one in zip(combinations(range(12), 2), p, strict=True) if one <= limit
    ]
    found = Stein(alpha=0.1, correction="fdr").decide(hessian, 2000)
    assert list(found.graph.edges) == expected
    assert len(expected) >= 3


def test_a_permuted_graph_has_the_same_shape_on_other_variables() -> None:
    inputs = interacting_clues(seeds=3)
    plain, shuffled = Stein().discover(inputs), Permuted().discover(inputs)
    for one, other in zip(plain, shuffled, strict=True):
        assert nx.is_isomorphic(nx.Graph(one.graph.edges), nx.Graph(other.graph.edges))
        np.testing.assert_array_equal(one.hessian, other.hessian)
    assert any(a.graph != b.graph for a, b in zip(plain, shuffled, strict=True))
    again = Permuted().discover(clues_of(inputs.z[:2], inputs.y[:2]))
    assert [one.graph for one in again] == [one.graph for one in shuffled[:2]]


def test_decreed_graphs_are_what_they_say() -> None:
    inputs = interacting_clues()
    assert [one.graph.edges for one in Empty().discover(inputs)] == [(), ()]
    assert [one.graph.cliques for one in Complete().discover(inputs)] == [((0, 1, 2, 3, 4, 5),)] * 2


def test_the_true_graph_is_what_the_harness_knows() -> None:
    inputs = interacting_clues()
    truth = (Graph.from_edges(6, [(0, 1)]), Graph.from_edges(6, [(4, 5)]))
    found = Known().discover(clues_of(inputs.z, inputs.y, truth))
    assert tuple(one.graph for one in found) == truth
    assert Known.privileges == {"graph"}
    with pytest.raises(UsageError, match="graph=true needs a task with a known graph"):
        Known().discover(inputs)
    with pytest.raises(UsageError, match="has 3 nodes, got codes of 6 numbers; use latent=ora"):
        Known().discover(clues_of(inputs.z, inputs.y, (Graph.from_edges(3, []),) * 2))


def test_the_weakest_edges_go_until_the_cliques_are_few_enough() -> None:
    rng = np.random.default_rng(0)
    e = 20
    hessian = np.triu(rng.normal(size=(e, e)), 1)
    hessian += hessian.T
    generous = Stein(alpha=0.5, most_cliques=10_000).decide(hessian, 1)
    guarded = Stein(alpha=0.5, most_cliques=30).decide(hessian, 1)
    assert generous.dropped == 0
    assert len(generous.graph.cliques) > 30
    assert len(guarded.graph.cliques) <= 30
    assert guarded.dropped == len(generous.graph.edges) - len(guarded.graph.edges) > 0
    lost = set(generous.graph.edges) - set(guarded.graph.edges)
    weakest_kept = min(abs(hessian[edge]) for edge in guarded.graph.edges)
    assert max(abs(hessian[edge]) for edge in lost) < weakest_kept


def test_no_more_edges_go_than_must() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 4)]  # a path: one clique per edge
    assert thin_out(5, edges, 4) == edges
    assert thin_out(5, [(0, 1), (0, 2), (1, 2), (3, 4)], 2) == [(0, 1), (0, 2), (1, 2), (3, 4)]
    assert thin_out(3, [], 3) == []


def test_the_online_average_is_the_supplements() -> None:
    test = Online(momentum=0.9, every=0.5, alpha=0.05)
    inputs = interacting_clues()
    assert [one.graph.edges for one in test.discover(inputs)] == [(), ()]
    watch = test.watcher()
    average = torch.zeros(2, 6, 6, dtype=torch.float64)
    news = None
    for step in range(20):
        z, y = (
            inputs.z[:, step * 100 : step * 100 + 100],
            inputs.y[:, step * 100 : step * 100 + 100],
        )
        news = watch(z, y, (step + 1) / 20)
        average = 0.9 * average + 0.1 * pseudo_hessian(z, y)
        assert (news is not None) == (step + 1 in (10, 20))
    assert news is not None
    for one, hessian in zip(news, average, strict=True):
        expected = test.decide(hessian.numpy(), 100)
        assert one.graph == expected.graph
        assert {(0, 1), (2, 3)} <= set(one.graph.edges)


def test_only_the_online_graph_follows_the_training() -> None:
    others: list[Discovery] = [Stein(), Permuted(), Empty(), Complete(), Known()]
    assert all(discovery.watcher() is None for discovery in others)


def test_a_record_holds_all_there_is_to_know_of_a_graph() -> None:
    (one, _) = Stein(alpha=1e-6).discover(interacting_clues())
    described = one.describe()
    assert described["edges"] == [[0, 1], [2, 3]]
    assert (described["cliques"], described["dropped_edges"]) == (4, 0)
    assert described["clique_sizes"] == {"1": 2, "2": 2}
    assert np.shape(described["pseudo_hessian"]) == (6, 6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Stein(alpha=0.0), r"^graph.alpha must be a level between 0 and 1, got 0.0$"),
        (
            lambda: Stein(correction="holm"),
            r"^graph.correction must be one of none, bonferroni, fdr",
        ),
        (
            lambda: Stein(most_cliques=0),
            r"^graph.most_cliques must be a whole number of at least 1",
        ),
        (lambda: Online(momentum=1.0), r"^graph.momentum must be in \[0, 1\), got 1.0$"),
        (lambda: Online(every=0.0), r"^graph.every must be a share of the steps, got 0.0$"),
    ],
)
def test_impossible_knobs_are_refused(make: type[Discovery], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make()

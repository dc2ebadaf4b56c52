"""Graphs: found where variables interact, and seldom where they do not."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.contracts import Privileged, Space
from ddobench.errors import UsageError
from ddobench.graphs import Graph, Recovery
from ddobench.models.least_squares import Values, configuration, count_cells, one_hot
from ddobench.models.tensors import Standardiser
from ddobench.parts.discovery import (
    Complete,
    Discovered,
    Discovery,
    Empty,
    GraphInputs,
    Known,
    Online,
    Pairs,
    Permuted,
    Stein,
    compare_pairs,
    explain,
    limit_cliques,
    p_values,
    pseudo_hessian,
)
from ddobench.rng import Streams
from ddobench.tasks.rbf import RBF

SIZES = (4, 3, 4, 2, 4, 4)


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


def test_an_edge_needs_the_threshold_of_the_paper() -> None:
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


def test_bonferroni_bounds_the_probability_of_any_false_edge() -> None:
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


def test_empty_and_complete_graphs() -> None:
    inputs = interacting_clues()
    assert [one.graph.edges for one in Empty().discover(inputs)] == [(), ()]
    assert [one.graph.cliques for one in Complete().discover(inputs)] == [((0, 1, 2, 3, 4, 5),)] * 2


def test_the_true_graph_is_that_of_the_harness() -> None:
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


def test_only_as_many_edges_are_removed_as_needed() -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 4)]  # a path: one clique per edge
    assert limit_cliques(5, edges, 4) == edges
    assert limit_cliques(5, [(0, 1), (0, 2), (1, 2), (3, 4)], 2) == [(0, 1), (0, 2), (1, 2), (3, 4)]
    assert limit_cliques(3, [], 3) == []


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


def test_a_record_describes_the_graph() -> None:
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
def test_invalid_settings_are_refused(make: type[Discovery], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make()


def draw(seed: int, n: int = 1500) -> tuple[np.random.Generator, Values]:
    rng = np.random.default_rng(seed)
    return rng, np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(float)


def add_up(rng: np.random.Generator, x: Values, scopes: list[tuple[int, ...]]) -> Values:
    """Return a sum of random tables over scopes."""
    value = np.zeros(len(x))
    for scope in scopes:
        cells = rng.normal(size=count_cells(scope, SIZES))
        value += cells[configuration(x, scope, SIZES)]
    return value


def test_every_design_has_a_one_in_each_table_at_its_joint_setting() -> None:
    x = np.array([[0, 2, 1], [1, 0, 0]], dtype=float)
    features = one_hot(x, [(2,), (0, 1)], (2, 3, 2)).dense()
    assert features.tolist() == [[0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_the_pairs_that_interact_are_found_and_no_other(seed: int) -> None:
    rng, x = draw(seed)
    scopes: list[tuple[int, ...]] = [(0, 1), (1, 4), (2, 5)]
    y = add_up(rng, x, [*scopes, (3,)]) + 0.5 * rng.normal(size=len(x))
    assert list(Pairs(alpha=0.001).decide(x, y).graph.edges) == scopes


def test_an_interaction_of_three_joins_all_three_of_them() -> None:
    rng, x = draw(0)
    found = Pairs(alpha=0.001).decide(x, add_up(rng, x, [(0, 2, 4)]))
    assert found.graph.cliques == ((0, 2, 4), (1,), (3,), (5,))
    assert (found.rows, found.dropped) == (1500, 0)


def test_a_sum_of_single_variables_has_no_edges_even_without_noise() -> None:
    rng, x = draw(1)
    assert Pairs().decide(x, add_up(rng, x, [(i,) for i in range(6)])).graph.edges == ()


def test_without_any_effect_p_values_are_uniform() -> None:
    rng, x = draw(2, n=400)
    pairs = list(combinations(range(6), 2))
    p = np.concatenate([
        compare_pairs(x, *explain(x, rng.normal(size=400), [(i,) for i in range(6)], SIZES), pairs,
                      SIZES)
        for _ in range(40)
    ])  # fmt: skip
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


def test_a_weak_pair_is_found_once_the_strong_ones_are_explained() -> None:
    rng, x = draw(3, n=400)
    strong: list[tuple[int, ...]] = [(0, 1), (2, 4)]
    y = 10 * add_up(rng, x, strong) + add_up(rng, x, [(3, 5)])
    assert (3, 5) not in Pairs(alpha=0.001, rounds=1).decide(x, y).graph.edges
    assert (3, 5) in Pairs(alpha=0.001).decide(x, y).graph.edges


def test_corrections_are_stricter() -> None:
    rng, x = draw(4, n=300)
    y = rng.normal(size=300)
    counts = [
        len(Pairs(alpha=0.3, correction=correction, rounds=1).decide(x, y).graph.edges)
        for correction in ("none", "fdr", "bonferroni")
    ]
    assert counts[0] > counts[1] >= counts[2]


def test_no_more_pairs_are_kept_than_rows_can_fill() -> None:
    rng, x = draw(7, n=100)
    y = add_up(rng, x, [(0, 2), (4, 5), (0, 4), (2, 5), (1, 3)])
    found = Pairs(alpha=0.9, correction="none").decide(x, y)
    assert found.dropped > 0
    assert sum(SIZES[i] * SIZES[j] for i, j in found.graph.edges) <= 100


def test_too_few_rows_to_test_by_join_nothing() -> None:
    rng, x = draw(5, n=12)
    assert Pairs().decide(x, rng.normal(size=12)).graph.edges == ()


def test_each_seed_has_a_graph_of_its_own() -> None:
    rng, x = draw(6)
    y = torch.from_numpy(np.stack([add_up(rng, x, [(0, 1)]), add_up(rng, x, [(4, 5)])]))
    inputs = GraphInputs(
        torch.from_numpy(x).expand(2, -1, -1), y, Privileged(), Streams((0, 1), "graph")
    )
    assert [one.graph.edges for one in Pairs().discover(inputs)] == [((0, 1),), ((4, 5),)]


def test_codes_are_declined() -> None:
    reason = Pairs().declines(Space(3))
    assert reason is not None
    assert reason.startswith("graph=pairs tests categories")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, r"^graph.alpha must be a level between 0 and 1, got 0.0$"),
        ({"correction": "holm"}, r"^graph.correction must be "),
        ({"rounds": 0}, r"^graph.rounds must be "),
    ],
)
def test_invalid_settings_of_pairs_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pairs(**settings)  # type: ignore[arg-type]

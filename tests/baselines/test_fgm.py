"""Promises of the discrete functional graphical model."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.baselines.fgm import DiscreteFGM, cover
from ddobench.contracts import Dataset, Privileged, Proposal, Space
from ddobench.errors import UsageError
from ddobench.exact.table_sums import fit_tables
from ddobench.graphs import Graph
from ddobench.models.least_squares import configuration
from ddobench.parts.discovery import Pairs
from ddobench.rng import Streams
from ddobench.tasks.quadratic import Quadratic

SEEDS = (0, 1, 2, 3)


def propose(method: DiscreteFGM, data: Dataset, seeds: tuple[int, ...] = SEEDS) -> Proposal:
    """Fit and return the only proposal."""
    method.fit(data, Streams(seeds, "method"))
    (proposal,) = method.propose(data.x[:, :4], Streams(seeds, "method/propose"))
    return proposal


def regret(
    n: int, d: int, ridge: float = 0.0, signs: str = "ones", noise: float = 0.0
) -> list[float]:
    """Return the regret on the toy, one number per seed."""
    problem = Quadratic(d=d, n=n, signs=signs, noise=noise).problem(SEEDS)
    proposal = propose(DiscreteFGM(ridge=ridge), problem.visible_to(frozenset({"graph"})))
    assert problem.optimum is not None
    return (problem.optimum - problem.evaluate(proposal.designs)[:, 0]).tolist()


@pytest.mark.parametrize(("d", "n"), [(4, 100), (20, 100), (40, 100), (100, 300)])
def test_the_toy_is_solved_exactly(d: int, n: int) -> None:
    assert regret(n, d) == [0.0] * len(SEEDS)


def test_random_signs_are_no_harder() -> None:
    assert regret(500, 100, signs="random") == [0.0] * len(SEEDS)


def test_too_few_rows_leave_regret_but_no_error() -> None:
    assert min(regret(50, 100)) > 0


def test_a_ridge_helps_with_noise_if_rows_are_about_as_many_as_weights() -> None:
    plain, ridged = (np.mean(regret(100, 50, ridge=ridge, noise=1.0)) for ridge in (0.0, 1.0))
    assert ridged < plain / 2


def test_a_thousand_bits_are_proposed_with_the_value_the_model_gives_them() -> None:
    problem = Quadratic(d=1000, n=60, signs="random").problem((0, 1))
    method = DiscreteFGM()
    proposal = propose(method, problem.visible_to(frozenset({"graph"})), (0, 1))
    assert proposal.designs.shape == (2, 1, 1000)
    assert proposal.predicted is not None
    assert torch.allclose(method.predict(proposal.designs), proposal.predicted)
    assert not problem.evaluate(proposal.designs).isnan().any()


def test_the_model_reproduces_data_without_noise() -> None:
    problem = Quadratic(d=12, n=80, signs="random").problem(SEEDS)
    method = DiscreteFGM()
    proposal = propose(method, problem.visible_to(frozenset({"graph"})))
    assert torch.allclose(method.predict(problem.data.x), problem.data.y)
    assert proposal.predicted is not None
    assert torch.allclose(proposal.predicted[:, 0], problem.optimum)  # type: ignore[arg-type]


def random_data(seed: int) -> tuple[Dataset, Graph]:
    """Draw a table over variables of several sizes, one of them isolated."""
    rng = np.random.default_rng(seed)
    sizes = (2, 3, 4, 2, 3)
    graph = Graph.from_cliques(5, [(0, 1, 2), (2, 3)])
    x = np.stack([rng.integers(0, size, 40) for size in sizes], axis=-1).astype(float)
    data = Dataset(
        x=torch.from_numpy(x)[None],
        y=torch.from_numpy(rng.normal(size=(1, 40))),
        space=Space(5, sizes),
        privileged=Privileged(graphs=(graph,)),
    )
    return data, graph


@pytest.mark.parametrize("seed", range(4))
def test_the_proposal_maximises_the_fitted_model_over_all_designs(seed: int) -> None:
    data, _ = random_data(seed)
    method = DiscreteFGM()
    proposal = propose(method, data, (0,))
    assert data.space.sizes is not None
    everything = torch.tensor(
        list(itertools.product(*map(range, data.space.sizes))), dtype=torch.float64
    )
    best = method.predict(everything[None]).max()
    assert proposal.predicted is not None
    assert proposal.predicted[0, 0] == pytest.approx(float(best), abs=1e-9)
    assert method.predict(proposal.designs)[0, 0] == pytest.approx(float(best), abs=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_the_tables_are_the_least_squares_fit_of_smallest_norm(ridge: float) -> None:
    data, graph = random_data(0)
    x, y = data.x[0].numpy(), data.y[0].numpy()
    assert data.space.sizes is not None
    tables = fit_tables(x, y, graph.cliques, data.space.sizes, ridge)
    assert [table.values.shape for table in tables] == [(1, 2, 3, 4), (1, 4, 2), (1, 3)]
    one_hot = np.concatenate(
        [
            np.stack(
                [
                    (x[:, table.scope] == point).all(axis=1)
                    for point in np.ndindex(*table.values.shape[1:])
                ],
                axis=1,
            )
            for table in tables
        ],
        axis=1,
    ).astype(float)
    weights = np.concatenate([table.values.ravel() for table in tables])
    assert np.linalg.matrix_rank(one_hot) < one_hot.shape[1]
    stacked = np.concatenate([one_hot, np.sqrt(ridge) * np.eye(len(weights))])
    expected = np.linalg.pinv(stacked) @ np.concatenate([y, np.zeros(len(weights))])
    assert weights == pytest.approx(expected, abs=1e-8)


def test_joint_settings_are_numbered_in_the_order_of_the_table() -> None:
    x = np.array([[0, 2, 1], [1, 0, 0], [1, 2, 1]], dtype=float)
    assert configuration(x, (0, 1), (2, 3, 2)).tolist() == [2, 3, 5]
    assert configuration(x, (2,), (2, 3, 2)).tolist() == [1, 0, 1]


def test_seeds_with_different_graphs_are_fitted_apart() -> None:
    x = torch.tensor(list(itertools.product((0.0, 1.0), repeat=3)), dtype=torch.float64)
    y = x[:, 0] * x[:, 1] - 2 * x[:, 2]
    graphs = tuple(Graph.from_edges(3, edges) for edges in ([(0, 1)], [(1, 2)]))
    data = Dataset(x.expand(2, -1, -1), y.expand(2, -1), Space(3, (2, 2, 2)), Privileged(graphs))
    method = DiscreteFGM()
    propose(method, data, (0, 1))
    fits = (method.predict(data.x) - data.y).abs().max(dim=1).values
    assert fits[0] < 1e-9
    assert fits[1] > 0.1


def test_it_asks_for_the_graph_unless_it_discovers_one() -> None:
    data, _ = random_data(0)
    method = DiscreteFGM()
    assert method.privileges(data.space) == frozenset({"graph"})
    assert DiscreteFGM(graph=Pairs()).privileges(data.space) == frozenset()
    assert method.declines(data) is None
    continuous = Dataset(data.x, data.y, Space(5), data.privileged)
    assert method.declines(continuous) == "these tables are for categorical designs only"


def hidden_pairs(n: int = 1200) -> tuple[Dataset, Graph]:
    """Draw tables of two seeds whose value is a sum over pairs and a triple, with some noise."""
    sizes, graph = (4, 3, 4, 2, 4), Graph.from_cliques(5, [(0, 1), (2, 3, 4)])
    rng = np.random.default_rng(0)
    x = np.stack([rng.integers(0, size, (2, n)) for size in sizes], axis=-1).astype(float)
    y = 0.1 * rng.normal(size=(2, n))
    for clique in graph.cliques:
        cells = rng.normal(size=[2, *(sizes[v] for v in clique)])
        for seed in range(2):
            y[seed] += cells[seed].ravel()[configuration(x[seed], clique, sizes)]
    return Dataset(torch.from_numpy(x), torch.from_numpy(y), Space(5, sizes)), graph


def discovering(data: Dataset, **settings: Any) -> tuple[DiscreteFGM, Proposal]:
    method = DiscreteFGM(graph=Pairs(), **settings)
    method.fit(data, Streams((0, 1), "method"))
    (proposal,) = method.propose(data.x[:, :20], Streams((0, 1), "method/propose"))
    return method, proposal


def test_an_unknown_graph_is_discovered_and_recorded() -> None:
    data, graph = hidden_pairs()
    method, _ = discovering(data)
    for report in method.diagnostics():
        assert [tuple(edge) for edge in report["edges"]] == list(graph.edges)
        assert report["held_out_r2"] > 0.9
        assert (report["largest_clique"], report["found_by"]) == (3, "max-sum")
    seen = method.insight(data.x[:, :7])
    assert [one.graph for one in seen if one is not None] == [graph, graph]
    untold = DiscreteFGM()
    untold.fit(data, Streams((0, 1), "method"))
    assert torch.equal(untold.predict(data.x), method.predict(data.x))


def test_discovered_tables_propose_their_best_designs_each_once() -> None:
    data, _ = hidden_pairs()
    method, proposal = discovering(data)
    assert data.space.sizes is not None
    everything = torch.tensor(
        list(itertools.product(*map(range, data.space.sizes))), dtype=torch.float64
    )
    values = method.predict(everything.expand(2, -1, -1)).sort(dim=1, descending=True).values
    assert proposal.designs.shape == (2, 20, 5)
    assert proposal.predicted is not None
    torch.testing.assert_close(proposal.predicted, values[:, :20])
    torch.testing.assert_close(method.predict(proposal.designs), proposal.predicted)
    assert len(torch.unique(proposal.designs[0], dim=0)) == 20
    assert discovering(data, designs=3)[1].designs.shape == (2, 3, 5)


def test_a_given_ridge_is_used() -> None:
    data, _ = hidden_pairs()
    assert {one["ridge"] for one in discovering(data, ridge=7.0)[0].diagnostics()} == {7.0}


def test_a_dense_graph_is_climbed_and_the_record_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _ = hidden_pairs()
    exact = discovering(data)[1].predicted
    monkeypatch.setattr("ddobench.exact.table_sums.MOST_CELLS", 10)
    method, proposal = discovering(data)
    assert [one["found_by"] for one in method.diagnostics()] == ["single changes"] * 2
    assert proposal.designs.shape == (2, 20, 5)
    assert exact is not None
    assert proposal.predicted is not None
    assert (proposal.predicted[:, 0] <= exact[:, 0] + 1e-9).all()
    assert (proposal.predicted[:, 0] >= method.predict(data.x[:, :20]).amax(dim=1)).all()
    monkeypatch.setattr("ddobench.baselines.fgm.LARGEST_TABLE", 10)
    known, _ = random_data(0)
    method = DiscreteFGM()
    assert propose(method, known, (0,)).designs.shape == (1, 1, 5)
    assert method.diagnostics() == [{"found_by": "single changes"}]


def test_cliques_are_split_to_fit_the_number_of_rows() -> None:
    graph = Graph.from_cliques(5, [(0, 1, 2, 3), (4,)])
    sizes = (2, 2, 2, 2, 2)
    assert cover(graph, sizes, 20) == [(0, 1, 2, 3), (4,)]
    assert cover(graph, sizes, 1) == [*itertools.combinations(range(4), 2), (4,)]
    everything = Graph.from_cliques(5, [range(5)])
    for most, size in ((1100, 5), (700, 3), (600, 2)):
        assert cover(everything, (4,) * 5, most) == [*itertools.combinations(range(5), size)]


def test_a_negative_ridge_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^method.ridge must be 0 or more, got -1.0$"):
        DiscreteFGM(ridge=-1.0)

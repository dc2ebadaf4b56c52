"""Promises of the figures of graphs, designs and codes."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from ddobench.report.data import ReportData
from ddobench.report.figures.design_figures import codes_beside_designs, designs_in_pairs, marginals
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.graph_figures import (
    choose_samples,
    discovered_graphs,
    graphs_of_units,
    true_graphs,
)
from ddobench.report.figures.graph_plots import CirclePlot, lay_out, name_shape
from ddobench.store.records import TaskSample
from tests.support.drawn import only
from tests.support.synthetic_runs import Row, climb, run_row
from tests.support.synthetic_samples import Edges, chain, task_sample
from tests.support.synthetic_stores import Details, stored_with

CONFIG = {"method": {"graph": {"alpha": 0.05, "correction": "none"}}}
CLIQUES = ((4, 5, 6), (0, 1, 2), (2, 3, 4))  # as a model may hold them, in no order


def found(codes: int = 7, strong: tuple[tuple[int, int], ...] = ((0, 1), (2, 5))) -> Details:
    """Return what a method stores that found these edges among its codes in 100 rows."""
    hessian = np.full((codes, codes), 0.01)
    for a, b in strong:
        hessian[a, b] = hessian[b, a] = -0.3
    return {"edges": [list(edge) for edge in strong], "pseudo_hessian": hessian.tolist()}


def discovering(d: int = 7, seed: int = 0, **changes: Any) -> Row:
    """Return a run that discovers its graph."""
    return climb(d=d, seed=seed, **{"graph": "stein", "latent": "vae"} | changes)


def units(count: int = 3, d: int = 7) -> Details:
    """Return what is stored of so many units, each inside of one true clique."""
    energy = np.zeros((count, d))
    for unit, clique in enumerate(CLIQUES[:count]):
        energy[unit, list(clique)] = 1 / 3
    edges = [list(edge) for clique in CLIQUES[:count] for edge in combinations(clique, 2)]
    return {"units": count, "units_graph": {"edges": edges, "energy": energy.tolist()}}


def circle(figure: Figure) -> CirclePlot:
    """Return the description of two graphs."""
    assert isinstance(figure.plot, CirclePlot)
    return figure.plot


def test_a_discovered_graph_has_every_pair_and_whether_it_is_true(tmp_path: Path) -> None:
    row = discovering()
    stored = stored_with(tmp_path, [(row, found())], {row["digest"]: CONFIG}, (task_sample(7),))
    figure = only(discovered_graphs, stored)
    pairs = figure.data[["a", "b"]].to_numpy().tolist()
    assert pairs == [list(pair) for pair in combinations(range(7), 2)]
    edges = figure.data[figure.data["edge"]]
    assert edges[["a", "b"]].to_numpy().tolist() == [[0, 1], [2, 5]]
    assert edges["scaled"].tolist() == pytest.approx([-3.0, -3.0])  # 0.3 times the root of 100
    assert figure.data["true_edge"].sum() == len(chain(7))
    assert circle(figure).threshold == pytest.approx(1.96, abs=0.01)


def test_edges_are_compared_only_where_codes_are_hidden_coordinates(tmp_path: Path) -> None:
    oracle = discovering(method_variant="latent=oracle", latent="oracle")
    recovery = {"graph_recovery": {"precision": 0.5, "recall": 0.11}}
    runs = [(discovering(), found()), (oracle, found() | recovery)]
    figures = list(discovered_graphs(stored_with(tmp_path, runs, samples=(task_sample(7),))))
    assert [circle(figure).judged for figure in figures] == [False, True]
    assert len({figure.name for figure in figures}) == 2


def test_the_largest_legible_graph_of_the_first_seed_is_drawn(tmp_path: Path) -> None:
    rows = [discovering(d, seed) for d in (7, 9, 61) for seed in (1, 0)]
    figure = only(discovered_graphs, stored_with(tmp_path, [(r, found(r["d"])) for r in rows]))
    assert figure.name == "discovered-chain-d9-n100"
    assert figure.title.endswith("seed 0")
    assert circle(figure).truth is None  # without a sample


def test_the_true_graph_of_another_seed_is_not_shown(tmp_path: Path) -> None:
    drawn = task_sample(7, edges=[(0, 3), (3, 6), (1, 5), (2, 6)])
    stored = stored_with(tmp_path, [(discovering(seed=1), found())], samples=(drawn,))
    assert circle(only(discovered_graphs, stored)).truth is None


def test_every_level_of_a_test_has_a_figure_of_its_own_name(tmp_path: Path) -> None:
    long = "latent=vae_supplement graph=online training=supplement surrogate.width=128 graph.alpha="
    variants = ["", "graph.alpha=0.5", f"{long}0.1", f"{long}0.2", f"{long}0.3"]
    rows = [discovering(method_variant=variant) for variant in variants]
    figures = list(discovered_graphs(stored_with(tmp_path, [(row, found()) for row in rows])))
    assert len({figure.name for figure in figures}) == len(rows)


def test_every_discovery_and_every_method_has_a_figure(tmp_path: Path) -> None:
    rows = [discovering(), discovering(graph="fdr", method_variant="graph=fdr"),
            climb("other", 7, graph="online", latent="vae")]  # fmt: skip
    figures = list(discovered_graphs(stored_with(tmp_path, [(row, found()) for row in rows])))
    assert len({figure.name for figure in figures}) == 3


@pytest.mark.parametrize(
    "details",
    [
        {"pseudo_hessian": None},  # given, not discovered
        {"edges": [[0, 3], [4, 6]]},  # permuted
        {"edges": [], "pseudo_hessian": [[1.0]]},  # only one code
        {"edges": "words"},
    ],
)
def test_a_graph_that_was_not_discovered_is_not_drawn(tmp_path: Path, details: Details) -> None:
    stored = stored_with(tmp_path, [(discovering(), found() | details)])
    assert list(discovered_graphs(stored)) == []


def test_a_test_on_fewer_rows_has_its_own_scale(tmp_path: Path) -> None:
    stored = stored_with(tmp_path, [(discovering(), found() | {"tested_rows": 64})])
    assert only(discovered_graphs, stored).data["scaled"].abs().max() == pytest.approx(0.3 * 8)


def test_units_are_compared_with_the_true_graph(tmp_path: Path) -> None:
    stored = stored_with(tmp_path, [(climb("mine", 7), units(2))], samples=(task_sample(7),))
    figure = only(graphs_of_units, stored)
    pairs, energy = (figure.data[figure.data["drawn"] == kind] for kind in ("pair", "energy"))
    assert circle(figure).judged
    assert pairs["true_edge"].sum() == len(chain(7))
    assert pairs["edge"].sum() == 6
    assert energy["energy"].sum() == pytest.approx(2.0)
    first = energy[(energy["unit"] == 0) & (energy["energy"] > 0)]
    assert first["a"].tolist() == [0, 1, 2]  # units are sorted


def test_units_have_one_figure_of_the_first_seed_that_stores_them(tmp_path: Path) -> None:
    sizes = [(7, 100), (9, 100), (9, 200), (61, 200)]
    rows = [climb("mine", d, 1, n=n) | {"digest": f"{d}-{n}"} for d, n in sizes]
    runs = [(row, units(d=row["d"])) for row in rows]
    runs += [(rows[2] | {"seed": 0}, {"alignment": 0.4}), (climb("plain"), {"alignment": 0.4})]
    figure = only(graphs_of_units, stored_with(tmp_path, runs))
    assert figure.name == "units-chain-mine-d9-n200"
    assert figure.title.endswith("seed 1")


@pytest.mark.parametrize("energy", [[], [[0.5, 7.0]], [[1.0]]])
def test_invalid_units_are_not_drawn(tmp_path: Path, energy: Any) -> None:
    odd = {"units_graph": {"edges": [], "energy": energy}}
    assert list(graphs_of_units(stored_with(tmp_path, [(climb("mine", 7), odd)]))) == []


def sample(codes: int = 3) -> Details:
    """Return what a run with a latent stores of some designs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    values = {"codes": rng.normal(size=(40, codes)), "designs": x, "decoded": x + 0.1,
              "values": x.sum(axis=1)}  # fmt: skip
    return {f"{name}_sample": value.tolist() for name, value in values.items()}


def encoding(d: int = 3, **changes: Any) -> Row:
    """Return a run with a latent."""
    return climb(d=d, **{"task": "toy3d", "latent": "vae"} | changes)


@pytest.mark.parametrize("codes", [1, 3])
def test_codes_are_drawn_with_their_designs(tmp_path: Path, codes: int) -> None:
    figure = only(codes_beside_designs, stored_with(tmp_path, [(encoding(), sample(codes))]))
    assert list(figure.data) == [
        *(f"observed_{i}" for i in range(3)), *(f"code_{i}" for i in range(codes)),
        *(f"decoded_{i}" for i in range(3)), "y",
    ]  # fmt: skip
    assert figure.render("svg")


def test_codes_that_are_scaled_designs_are_skipped(tmp_path: Path) -> None:
    rows = [encoding(d, seed=s) for d in (21, 11) for s in (0, 1)]
    plain = encoding(7, method_variant="latent=identity", latent="identity")
    scaled = (2 * np.array(sample()["designs_sample"]) + 1).tolist()
    runs = [(row, sample()) for row in rows] + [(plain, sample() | {"codes_sample": scaled})]
    assert only(codes_beside_designs, stored_with(tmp_path, runs)).name == "codes-toy3d-d11-n100"
    silent = stored_with(tmp_path / "silent", [(encoding(), {})])
    assert list(codes_beside_designs(silent)) == []


def show(*samples: TaskSample) -> ReportData:
    """Return report data with one run of each sample's task."""
    rows = [run_row("naive", p.d, task=p.task, task_variant=p.task_variant) for p in samples]
    return ReportData.of(pd.DataFrame(rows), samples=samples)


def ring(d: int) -> Edges:
    """Return the edges of a ring."""
    return [(i, i + 1) for i in range(d - 1)] + [(0, d - 1)]


def test_each_variant_of_a_task_is_shown_at_the_smallest_size_with_a_pattern() -> None:
    stored = [task_sample(d, n=n) for d in (5, 7, 11) for n in (50, 100)] + [
        task_sample(5, variant="a")
    ]
    shown = choose_samples(reversed(stored))
    assert [(p.task_variant, p.d, p.n) for p in shown] == [("", 7, 100), ("a", 5, 100)]
    rows = [run_row(task="chain", d=d, digest=f"{d}") for d in (7, 11)]
    some = ReportData.of(pd.DataFrame(rows), {"d": 11}, [task_sample(7), task_sample(11)])
    assert [p.d for p in some.task_samples] == [11]


def test_variants_with_the_same_shape_or_designs_share_a_figure() -> None:
    alike = [task_sample(d, variant=v, edges=ring(d)) for v, d in (("", 8), ("signs=random", 100))]
    first, second = true_graphs(show(*alike, task_sample(9, variant="family=chain")))
    assert first.data.to_numpy().tolist() == [list(edge) for edge in ring(8)]
    assert "signs=random" in first.caption
    assert second.name == "graph-chain-family-chain-d9"
    assert len(list(marginals(show(task_sample(7), task_sample(7, variant="noise=1.0"))))) == 1


def test_continuous_designs_are_drawn_observed_and_hidden_and_binary_ones_are_not() -> None:
    seen = task_sample(7)
    plain = TaskSample(**{**vars(seen), "task": "plain", "hidden": seen.observed})
    bits = [[1.0, 0.0, 1.0]] * 100
    binary = TaskSample(**{**vars(seen), "task": "bits", "observed": bits, "hidden": None})
    behind, as_is = marginals(show(seen, plain, binary))
    names = [f"{name}_{i}" for name in ("hidden", "observed") for i in range(3)]
    assert list(behind.data) == [*names, "y"]
    assert list(as_is.data) == [*names[3:], "y"]
    assert (
        only(designs_in_pairs, show(task_sample(3, "toy3d", edges=[(0, 1)]), seen)).task == "toy3d"
    )


@pytest.mark.slow
@pytest.mark.parametrize("d", [8, 41])
@pytest.mark.parametrize(
    ("shape", "edges"),
    [
        ("chain of triangles", chain),
        ("ring", ring),
        ("star", lambda d: [(0, i) for i in range(1, d)]),
        ("strip of triangles", lambda d: [(i, i + j) for i in range(d) for j in (1, 2)
                                          if i + j < d]),
        ("ladder", lambda d: [(i, i + 2) for i in range(d - 2)]
                             + [(i, i + 1) for i in range(0, d, 2)]),
        ("", lambda d: [((i - 1) // 2, i) for i in range(1, d)]),
        ("", lambda d: list(combinations(range(d), 2))),
        ("", lambda d: [(i, i + 1) for i in range(0, d - 1, 2)]),
    ],
)  # fmt: skip
def test_layouts_are_deterministic_and_nodes_do_not_overlap(
    shape: str, edges: Callable[[int], Edges], d: int
) -> None:
    d += d % 2 if shape == "ladder" else 1 - d % 2
    layouts = []
    for drawn in (edges(d), edges(d)[::-1]):
        graph: nx.Graph[int] = nx.Graph(drawn)
        graph.add_nodes_from(range(d))
        assert name_shape(graph) == shape
        layouts.append(lay_out(graph))
    assert layouts[0] == layouts[1]
    places = np.array([layouts[0][node] for node in range(d)])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(d, 1)]
    assert apart.min() > (0.5 if shape else 0.05)

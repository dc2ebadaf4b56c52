"""Promises of the pictures of the tasks, on portraits made by hand."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from ddobench.report import write_report
from ddobench.report.data.portraits import choose_portraits
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.landmarks import best_visible_and_optimum
from ddobench.report.figures.layouts import lay_out, name_shape
from ddobench.report.figures.pictures import designs_in_pairs, marginals, true_graph
from ddobench.report.page.markup import set_formula
from ddobench.stats.samples import mean_interval
from ddobench.store.records import Portrait
from ddobench.store.runs import Store
from tests.support.drawn import overflow
from tests.support.pages import OUR_SCRIPTS, SCRIPT, open_page
from tests.support.synthetic_portraits import Edges, chain, portrait
from tests.support.synthetic_runs import evidence_of, run_row, sweep
from tests.support.synthetic_stores import store_rows

pytestmark = pytest.mark.slow


def ring(d: int) -> Edges:
    """Return the edges of a ring."""
    return [(i, i + 1) for i in range(d - 1)] + [(0, d - 1)]


def strip(d: int) -> Edges:
    """Return the edges of triangles that share a side with the next."""
    return [(i, j) for i in range(d) for j in (i + 1, i + 2) if j < d]


def ladder(d: int) -> Edges:
    """Return the edges of a grid of two rows."""
    return [(i, i + 2) for i in range(d - 2)] + [(i, i + 1) for i in range(0, d, 2)]


def show(*portraits: Portrait) -> ReportData:
    """Return report data with one run of each portrait's task."""
    rows = [
        run_row("naive", p.d, task=p.task, task_variant=p.task_variant, n=p.n) for p in portraits
    ]
    return ReportData.of(pd.DataFrame(rows), portraits=portraits)


def graph_of(edges: Edges, d: int) -> "nx.Graph[int]":
    """Return a graph on d nodes."""
    graph: nx.Graph[int] = nx.Graph(edges)
    graph.add_nodes_from(range(d))
    return graph


def test_one_portrait_of_each_variant_is_shown_the_smallest_telling_one() -> None:
    stored = [portrait(d, n=n) for d in (5, 7, 11) for n in (50, 100)] + [portrait(5, variant="a")]
    shown = choose_portraits(reversed(stored))
    assert [(p.task_variant, p.d, p.n) for p in shown] == [("", 7, 100), ("a", 5, 100)]


def test_portraits_of_runs_that_the_filters_leave_out_are_left_out_too() -> None:
    rows = [run_row(task="chain", d=d, digest=f"{d}") for d in (7, 11)]
    stored = ReportData.of(pd.DataFrame(rows), {"d": 11}, [portrait(7), portrait(11)])
    assert [p.d for p in stored.portraits] == [11]


def test_the_picture_of_a_graph_has_its_nodes_its_edges_and_its_cliques() -> None:
    (figure,) = true_graph(show(portrait(7)))
    assert isinstance(figure, Figure)
    assert figure.data.to_numpy().tolist() == [list(edge) for edge in chain(7)]
    axes = figure.drawing.axes[0]
    assert len(axes.get_lines()) == 9
    assert {text.get_text() for text in axes.texts} >= {str(node) for node in range(7)}
    assert len(axes.patches) == 7 + 3  # circles and triangles
    assert "9 edges, 3 maximal cliques of 3 variables, shaded." in figure.caption
    assert overflow(figure) <= 0


def test_variants_with_the_same_shape_share_a_picture_and_others_do_not() -> None:
    alike = [portrait(d, variant=v, edges=ring(d)) for v, d in (("", 8), ("signs=random", 100))]
    other = portrait(9, variant="family=chain")
    first, second = true_graph(show(*alike, other))
    assert isinstance(first, Figure)
    assert isinstance(second, Figure)
    assert first.name == "graph-chain-d8"
    assert "The same shape for signs=random." in first.caption
    assert second.name == "graph-chain-family-chain-d9"


@pytest.mark.parametrize(
    ("shape", "edges"),
    [
        ("chain of triangles", chain),
        ("ring", ring),
        ("path", lambda d: [(i, i + 1) for i in range(d - 1)]),
        ("star", lambda d: [(0, i) for i in range(1, d)]),
        ("strip of triangles", strip),
        ("ladder", ladder),
        ("", lambda d: [((i - 1) // 2, i) for i in range(1, d)]),
        ("", lambda d: list(combinations(range(d), 2))),
        ("", lambda d: [(i, i + 1) for i in range(0, d - 1, 2)]),
        ("", lambda _: []),
    ],
)  # fmt: skip
@pytest.mark.parametrize("d", [8, 41, 62])
def test_every_graph_is_laid_out_alike_each_time_and_no_two_nodes_meet(
    shape: str, edges: Callable[[int], Edges], d: int
) -> None:
    d += d % 2 if shape == "ladder" else 1 - d % 2
    graph = graph_of(edges(d), d)
    assert name_shape(graph) == shape
    layout = lay_out(graph)
    assert layout == lay_out(graph_of(edges(d)[::-1], d))
    places = np.array([layout[node] for node in range(d)])
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)[np.triu_indices(d, 1)]
    assert apart.min() > (0.5 if shape else 0.05)


def test_marginals_show_hidden_above_observed_with_the_numbers_beside_them() -> None:
    (figure,) = marginals(show(portrait(7)))
    assert isinstance(figure, Figure)
    labels = [axes.get_xlabel() for axes in figure.drawing.axes]
    assert labels == [f"{name} $x_{{{i}}}$" for name in ("hidden", "observed") for i in range(3)]
    assert "%" in figure.drawing.axes[0].get_ylabel()
    assert list(figure.data) == [
        *(f"{name}_{i}" for name in ("hidden", "observed") for i in range(3)), "y",
    ]  # fmt: skip
    bars = [bar.get_bbox() for bar in figure.drawing.axes[0].containers[0]]
    assert sum(bar.height for bar in bars) == pytest.approx(100)
    assert overflow(figure) <= 0


def test_designs_observed_as_they_are_get_one_row_and_bits_none() -> None:
    seen = portrait(7)
    plain = Portrait(**{**vars(seen), "hidden": seen.observed})
    bits = [[1.0, 0.0, 1.0]] * 100
    binary = Portrait(**{**vars(seen), "task": "bits", "observed": bits, "hidden": None})
    (figure,) = marginals(show(plain, binary))
    assert isinstance(figure, Figure)
    assert len(figure.drawing.axes) == 3
    assert "observed as the function takes them" in figure.caption


def test_variants_with_the_same_designs_share_their_marginals() -> None:
    assert len(list(marginals(show(portrait(7), portrait(7, variant="noise=1.0"))))) == 1


def test_three_dimensional_designs_are_scattered_in_pairs_and_coloured_by_value() -> None:
    toy, larger = portrait(3, "toy3d", edges=[(0, 1), (1, 2)]), portrait(7)
    (figure,) = designs_in_pairs(show(toy, larger))
    assert isinstance(figure, Figure)
    *panels, bar = figure.drawing.axes
    assert len(panels) == 6
    assert "value" in bar.get_ylabel()
    values = panels[0].collections[0].get_array()
    assert values is not None
    assert list(values) == sorted(toy.y)  # the largest on top
    assert figure.render("svg").count(b"<image") >= 1  # points are pixels, or the page would burst
    assert overflow(figure) <= 0


def test_landmarks_count_every_instance_once_however_many_methods_ran() -> None:
    rows = [
        row | {"best_visible": float(row["seed"]), "optimum": 10.0 + row["d"]}
        for row in sweep(methods=["fgm", "naive", "mine"], dimensions=[10, 20], seeds=4)
    ]
    del rows[1]  # fgm lacks a seed that others have
    (figure,) = best_visible_and_optimum(evidence_of(rows))
    assert isinstance(figure, Figure)
    assert figure.data["seeds"].tolist() == [4, 4]
    assert figure.data["best_visible_mean"].tolist() == [1.5, 1.5]
    assert figure.data["optimum_mean"].tolist() == [20.0, 30.0]
    interval = mean_interval([0.0, 1.0, 2.0, 3.0])
    assert figure.data["best_visible_low"].iloc[0] == interval.low
    assert "sd" in figure.drawing.axes[0].get_ylabel()
    assert list(best_visible_and_optimum(evidence_of(sweep(dimensions=[10])))) == []


def test_a_formula_is_set_with_indices_and_exponents_and_stays_text() -> None:
    assert set_formula("w_C exp(-x_12) ∈ R^41, a_long_name") == (
        "w<sub>C</sub> exp(\u2212x<sub>12</sub>) ∈ R<sup>41</sup>, a_long_name"
    )
    assert "<script" not in set_formula(SCRIPT)


@pytest.mark.slow
def test_the_page_shows_the_pictures_and_words_of_a_task(tmp_path: Path) -> None:
    shown = Portrait(**{**vars(portrait(7)), "title": SCRIPT, "formula": SCRIPT, "text": SCRIPT})
    variant = portrait(9, variant="noise=1.0")
    rows = [
        run_row("naive", p.d, task="chain", task_variant=p.task_variant, digest=f"{p.d}")
        for p in (shown, variant)
    ]
    store = Store(store_rows(tmp_path / "runs", rows))
    for p in (shown, variant):
        store.write_portrait(store.portrait(p.task, f"{p.d}"), p)
    page = open_page(write_report(store.folder, tmp_path / "report").page)
    assert page.scripts == OUR_SCRIPTS
    assert SCRIPT in page.text
    assert "Variants: noise=1.0" in page.text
    ids = {a.get("id") for _, a in page.tags}
    assert {"graph-chain-d7", "marginals-chain-d7"} <= ids


def test_runs_without_portraits_are_said_to_lack_them() -> None:
    (absence,) = true_graph(evidence_of(sweep(dimensions=[10], seeds=1)))
    assert isinstance(absence, Absence)
    assert "portrait" in absence.reason

"""Promises of the picture of a discovered graph."""

from itertools import combinations
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.figures.discovered import discovered_graph
from ddobench.report.figures.figure import Absence, Figure
from tests.support.drawn import only, overflow
from tests.support.synthetic_portraits import chain, portrait
from tests.support.synthetic_runs import Row, climb, curve_of, data_with
from tests.support.synthetic_stores import Details, stored_with

ROWS = 100
CONFIG = {"method": {"graph": {"alpha": 0.05, "correction": "none"}}}


def find_graph(codes: int = 7, strong: tuple[tuple[int, int], ...] = ((0, 1), (2, 5))) -> Details:
    """Return what a method tells that found these edges and saw nothing elsewhere."""
    hessian = np.full((codes, codes), 0.1 / sqrt(ROWS))
    for a, b in strong:
        hessian[a, b] = hessian[b, a] = -3 / sqrt(ROWS)
    return {"edges": [list(edge) for edge in strong], "cliques": codes - len(strong),
            "pseudo_hessian": hessian.tolist(), "alignment": 0.4,
            "alignment_by_chance": 0.42}  # fmt: skip


def discovering(d: int = 7, seed: int = 0, **changes: Any) -> Row:
    """Return a run that discovers its graph."""
    same: Row = {"n": ROWS, "graph": "stein", "latent": "vae"}
    return climb(d=d, seed=seed, **same | changes)


def test_the_graph_is_drawn_beside_the_true_one_with_every_pair_in_the_numbers(
    tmp_path: Path,
) -> None:
    row = discovering()
    stored = stored_with(tmp_path, [(row, find_graph())], {row["digest"]: CONFIG}, (portrait(7),))
    figure = only(discovered_graph, stored)
    assert list(zip(figure.data["a"], figure.data["b"], strict=True)) == list(
        combinations(range(7), 2)
    )
    edges = figure.data[figure.data["edge"]]
    assert edges[["a", "b"]].to_numpy().tolist() == [[0, 1], [2, 5]]
    assert edges["scaled"].tolist() == pytest.approx([-3.0, -3.0])
    assert figure.data["true_edge"].sum() == len(chain(7))
    truth, found, matrix, bar = figure.drawing.axes
    assert len(truth.collections[0].get_paths()) == len(chain(7))
    assert len(found.collections[0].get_paths()) == 2
    assert len(matrix.get_lines()[0].get_xdata()) == 2  # type: ignore[arg-type]
    marks = [float(np.asarray(line.get_ydata())[0]) for line in bar.get_lines()]
    assert set(np.round(marks, 2)) == {-1.96, 1.96}
    cells = matrix.collections[0].get_array()
    assert cells is not None
    bare = np.ma.getmaskarray(cells).reshape(7, 7)
    assert bare.tolist() == np.eye(7, dtype=bool).tolist()
    assert "2 of 21 pairs are edges, in 5 maximal cliques" in figure.caption
    assert "0.40 on average, 0.42 for random axes" in figure.caption
    assert "need not match" in figure.caption
    assert overflow(figure) <= 0


def test_edges_are_called_right_or_wrong_only_where_codes_are_the_hidden_coordinates(
    tmp_path: Path,
) -> None:
    plain = discovering()
    oracle = discovering(method_variant="latent=oracle", latent="oracle")
    recovery = {"graph_recovery": {"precision": 0.5, "recall": 0.11}}
    stored = stored_with(
        tmp_path,
        [(plain, find_graph()), (oracle, find_graph() | recovery)],
        portraits=(portrait(7),),
    )
    first, second = discovered_graph(stored)
    assert isinstance(first, Figure)
    assert isinstance(second, Figure)
    assert first.drawing.legends == []
    (legend,) = second.drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["8 missed", "1 wrong", "1 right"]
    assert "precision 0.50, recall 0.11" in second.caption
    assert "need not match" not in second.caption
    assert first.name != second.name


def test_the_largest_size_to_be_looked_at_and_the_first_seed_are_chosen(tmp_path: Path) -> None:
    rows = [discovering(d, seed) for d in (7, 9, 61) for seed in (0, 1)]
    rows += [discovering(9, method_variant="graph.alpha=0.5")]
    figure = only(discovered_graph, stored_with(tmp_path, [(r, find_graph(r["d"])) for r in rows]))
    assert figure.name == "discovered-chain-d9-n100"
    assert "seed 0 alone" in figure.caption
    assert len(figure.drawing.axes) == 3  # no portrait, no true graph


def test_a_true_graph_of_another_seed_is_not_shown_as_if_it_were_the_runs(tmp_path: Path) -> None:
    drawn = portrait(7, edges=[(0, 3), (3, 6), (1, 5), (2, 6)])
    stored = stored_with(tmp_path, [(discovering(seed=1), find_graph())], portraits=(drawn,))
    assert len(only(discovered_graph, stored).drawing.axes) == 3


def test_a_graph_without_edges_and_one_of_fewer_codes_than_variables_are_drawn(
    tmp_path: Path,
) -> None:
    row = discovering()
    stored = stored_with(
        tmp_path, [(row, find_graph(4, ()))], {row["digest"]: CONFIG}, (portrait(7),)
    )
    figure = only(discovered_graph, stored)
    assert "0 of 6 pairs are edges" in figure.caption
    assert set(figure.data["true_edge"]) == {""}
    assert overflow(figure) <= 0


def test_runs_that_do_not_say_what_they_found_get_a_remedy_and_others_nothing(
    tmp_path: Path,
) -> None:
    row = discovering()
    (absence,) = discovered_graph(stored_with(tmp_path, [(row, {})], {row["digest"]: CONFIG}))
    assert isinstance(absence, Absence)
    assert absence.remedy.startswith("python -m ddobench -m task=chain d=7 n=100 method=fgm")
    older = data_with([climb()], [curve_of(climb())])
    assert list(discovered_graph(older)) == []
    still = stored_with(tmp_path / "still", [(discovering(), find_graph())], steps=0)
    assert list(discovered_graph(still)) == []
    assert list(discovered_graph(data_with([climb()], [pd.DataFrame()]))) == []


@pytest.mark.parametrize("graph", ["fdr", "bonferroni", "online", "one-of-your-own"])
def test_every_way_to_discover_a_graph_has_its_picture(tmp_path: Path, graph: str) -> None:
    alone = stored_with(tmp_path / "alone", [(discovering(graph=graph), find_graph())])
    assert only(discovered_graph, alone).data["edge"].sum() == 2
    other = discovering(graph=graph, method_variant=f"graph={graph}")
    beside = stored_with(tmp_path / "both", [(discovering(), find_graph()), (other, find_graph())])
    names = [figure.name for figure in discovered_graph(beside) if isinstance(figure, Figure)]
    assert names == ["discovered-chain-d7-n100", f"discovered-chain-graph-{graph}-d7-n100"]


def test_two_methods_with_graphs_of_their_own_have_files_of_their_own(tmp_path: Path) -> None:
    rows = [discovering(), discovering(method="other", graph="online")]
    stored = stored_with(tmp_path, [(row, find_graph()) for row in rows])
    names = {figure.name for figure in discovered_graph(stored) if isinstance(figure, Figure)}
    assert names == {"discovered-chain-d7-n100", "discovered-chain-other-d7-n100"}


@pytest.mark.parametrize(
    "told",
    [
        {"pseudo_hessian": None},  # a graph that was known or decreed
        {"edges": [[0, 3], [4, 6]]},  # one that was shuffled
        {"edges": [], "pseudo_hessian": [[1.0]]},  # one code alone
    ],
)
def test_a_graph_that_no_test_decided_is_not_called_discovered(
    tmp_path: Path, told: Details
) -> None:
    row = discovering(graph="any")
    stored = stored_with(tmp_path, [(row, find_graph() | told)], {row["digest"]: CONFIG})
    assert list(discovered_graph(stored)) == []


def test_a_test_on_fewer_rows_is_drawn_to_its_own_scale(tmp_path: Path) -> None:
    row = discovering(graph="online")
    told = find_graph() | {"tested_rows": 64}
    figure = only(discovered_graph, stored_with(tmp_path, [(row, told)], {row["digest"]: CONFIG}))
    strongest = figure.data["scaled"].abs().max()
    assert strongest == pytest.approx(3 / sqrt(ROWS) * 8)
    assert "M = 64 rows at a time" in figure.caption
    assert "chance alone" not in figure.caption

"""Promises of the picture of what units look at."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.unit_graphs import graph_of_units, sort_units
from tests.support.drawn import only, overflow
from tests.support.synthetic_portraits import chain, portrait
from tests.support.synthetic_runs import Row, climb
from tests.support.synthetic_stores import Details, stored_with

CLIQUES = ((4, 5, 6), (0, 1, 2), (2, 3, 4))  # as a model may hold them, in no order


def with_units(d: int = 7, seed: int = 0, **changes: Any) -> Row:
    """Return a run of a method whose model has units."""
    return climb("mine", d, seed, **{"n": 100, "label": "Mine", **changes})


def tell(found: int = 3, d: int = 7) -> Details:
    """Return what is told of so many units, each inside of one true clique."""
    energy = np.zeros((found, d))
    for unit, clique in enumerate(CLIQUES[:found]):
        energy[unit, list(clique)] = 1 / 3
    edges = [[a, b] for clique in CLIQUES[:found] for a in clique for b in clique if a < b]
    return {
        "units": found,
        "alignment": 0.4,
        "units_graph": {
            "edges": edges, "edge_share": 0.1, "residual": 0.004, "energy": energy.tolist(),
            "clique_share": 0.8, "cliques_found": found, "cliques_true": 3,
            "recovery": {"precision": 1.0, "recall": found / 3},
        },
    }  # fmt: skip


def test_the_graph_of_units_is_judged_beside_the_true_one_and_the_energy(tmp_path: Path) -> None:
    runs = [(with_units(seed=seed), tell(found)) for seed, found in enumerate((2, 3, 1))]
    figure = only(graph_of_units, stored_with(tmp_path, runs, portraits=(portrait(7),)))
    truth, found, matrix, bar = figure.drawing.axes
    assert len(truth.collections[0].get_paths()) == len(chain(7))
    assert sum(len(lines.get_paths()) for lines in found.collections) == len(chain(7))
    (legend,) = figure.drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["3 missed", "0 wrong", "6 right"]
    cells = matrix.collections[0].get_array()
    assert cells is not None
    assert np.asarray(cells).reshape(2, 7)[0].nonzero()[0].tolist() == [0, 1, 2]  # sorted
    assert bar.get_ylim() == pytest.approx((0, 1 / 3))
    assert "2 of 3 true cliques have a unit with more than 80 % of its energy" in figure.caption
    assert "precision of the edges 1.00, recall 0.67" in figure.caption
    assert (
        "Over the 3 seeds whose units are stored: 2.00 cliques found on average" in figure.caption
    )
    assert overflow(figure) <= 0


def test_the_caption_says_who_knew_the_hidden_coordinates_and_how_well_they_fit(
    tmp_path: Path,
) -> None:
    caption = only(graph_of_units, stored_with(tmp_path, [(with_units(), tell())])).caption
    assert "The harness, and no method, wrote the directions" in caption
    assert "the method saw neither these coordinates nor the true graph" in caption
    assert "leave < 1 % of the variance of codes unexplained" in caption
    assert "10 % or more of the energy" in caption


def test_every_number_that_is_drawn_is_in_the_table(tmp_path: Path) -> None:
    runs = [(with_units(), tell(2))]
    data = only(graph_of_units, stored_with(tmp_path, runs, portraits=(portrait(7),))).data
    pairs, energy = (data[data["drawn"] == kind] for kind in ("pair", "energy"))
    assert len(pairs) == 21
    assert pairs["true_edge"].sum() == len(chain(7))
    assert energy["energy"].sum() == pytest.approx(2.0)


def test_a_method_has_one_picture_at_the_largest_size_with_the_most_rows(tmp_path: Path) -> None:
    sizes = [(7, 100), (9, 100), (9, 200), (61, 200)]
    rows = [with_units(d, n=n, digest=f"mine-{d}-{n}") for d, n in sizes]
    rows = [row | {"digest": f"{row['d']}-{row['n']}"} for row in rows]
    runs = [(row, tell(d=row["d"])) for row in rows]
    assert only(graph_of_units, stored_with(tmp_path, runs)).name == "units-chain-mine-d9-n200"


def test_methods_without_units_and_models_that_kept_none_are_passed_over(tmp_path: Path) -> None:
    plain = (climb("plain"), {"alignment": 0.4})
    empty = tell(0)
    assert list(graph_of_units(stored_with(tmp_path, [plain, (with_units(), empty)]))) == []


def test_the_first_seed_with_units_speaks_where_others_chose_something_else(tmp_path: Path) -> None:
    runs = [(with_units(seed=0), {"alignment": 0.4}), (with_units(seed=1), tell())]
    figure = only(graph_of_units, stored_with(tmp_path, runs))
    assert "seed 1 alone: 3 units" in figure.caption
    assert "on average" not in figure.caption


def test_runs_with_units_that_were_stored_before_get_a_remedy(tmp_path: Path) -> None:
    older = {name: value for name, value in tell().items() if name != "units_graph"}
    (absence,) = graph_of_units(stored_with(tmp_path, [(with_units(), older)]))
    assert isinstance(absence, Absence)
    assert absence.remedy.startswith("python -m ddobench -m task=chain d=7 n=100 method=mine")


@pytest.mark.parametrize(
    "odd",
    ["words", {}, {"edges": []}, {"edges": [], "energy": [[0.5], [1, 2]]},
     {"edges": [], "energy": [[0.5, 7.0]]}, {"edges": [], "energy": "none"}],
)  # fmt: skip
def test_what_cannot_be_drawn_is_not_drawn(tmp_path: Path, odd: Any) -> None:
    runs = [(with_units(), {"units": 2, "alignment": 0.4, "units_graph": odd})]
    drawn = list(graph_of_units(stored_with(tmp_path, runs)))
    assert not [one for one in drawn if isinstance(one, Figure)]


def test_units_are_sorted_by_where_their_energy_lies() -> None:
    energy = np.array([[0, 0, 1.0], [1.0, 0, 0], [0.5, 0.5, 0]])
    assert sort_units(energy).tolist() == [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]]

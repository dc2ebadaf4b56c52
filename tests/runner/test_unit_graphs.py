"""What the harness reads off the units of a model, where it alone knows the hidden coordinates."""

import json

import numpy as np
import pytest
import torch

from ddobench.contracts import Insight
from ddobench.graphs import Graph
from ddobench.runner.diagnostics import EDGE_SHARE, Matrix, describe_units, inspect, regress
from ddobench.tasks.quadratic import Quadratic
from ddobench.tasks.rbf import RBF

TRUTH = Graph.from_cliques(5, [(0, 1, 2), (2, 3, 4)])


def hidden_rows(rows: int = 200, d: int = 5) -> Matrix:
    """Return hidden coordinates."""
    return np.random.default_rng(0).normal(size=(rows, d))


def turn(d: int = 5) -> Matrix:
    """Return a rotation, which no method knows."""
    return np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]


def look_at(*coordinates: tuple[int, ...], d: int = 5) -> Matrix:
    """Return units (U, 3, d) that look at these hidden coordinates, equally at each."""
    units = np.zeros((len(coordinates), 3, d))
    for unit, own in enumerate(coordinates):
        for row, coordinate in enumerate(own):
            units[unit, row, coordinate] = 2.0
    return units


def test_units_on_rotated_codes_are_told_in_hidden_coordinates() -> None:
    hidden, rotation = hidden_rows(), turn()
    units = look_at((0, 1, 2), (2, 3, 4)) @ rotation  # codes are hidden @ rotation
    graph = describe_units(units, hidden @ rotation + 3.0, hidden, TRUTH)["units_graph"]
    assert graph["edges"] == [list(edge) for edge in TRUTH.edges]
    assert graph["energy"][0] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0], abs=1e-3)
    assert graph["clique_energy"] == pytest.approx(np.array([[1, 1 / 3], [1 / 3, 1]]), abs=1e-3)
    assert (graph["cliques_found"], graph["cliques_true"]) == (2, 2)
    assert graph["recovery"]["f1"] == 1.0
    assert graph["residual"] < 1e-20


def test_what_codes_have_besides_hidden_coordinates_is_said_as_a_residual() -> None:
    hidden = hidden_rows(4000, 3)
    noise = np.random.default_rng(2).normal(size=hidden.shape)
    slopes, residual = regress(hidden + 0.5 * noise, hidden)
    assert slopes == pytest.approx(np.eye(3), abs=0.05)
    assert residual == pytest.approx(0.2, abs=0.02)


def test_an_edge_needs_a_share_of_one_unit_on_both_ends() -> None:
    hidden = hidden_rows()
    units = np.zeros((2, 1, 5))
    units[0, 0, [0, 1]] = np.sqrt([0.98 - EDGE_SHARE, EDGE_SHARE + 0.02])  # enough
    units[1, 0, [2, 3]] = np.sqrt([1.02 - EDGE_SHARE, EDGE_SHARE - 0.02])  # not enough
    graph = describe_units(units, hidden, hidden, TRUTH)["units_graph"]
    assert graph["edges"] == [[0, 1]]
    assert graph["recovery"]["precision"] == 1.0
    assert graph["cliques_found"] == 2  # a unit inside of a clique finds it, however few its edges


def test_a_model_without_units_and_a_unit_that_looks_nowhere_find_nothing() -> None:
    hidden = hidden_rows()
    for units in (look_at(), look_at(())):
        graph = describe_units(units, hidden, hidden, TRUTH)["units_graph"]
        assert graph["edges"] == []
        assert graph["cliques_found"] == 0
        assert len(graph["energy"]) == len(units)


def test_nothing_is_told_of_so_few_rows_that_any_codes_would_be_linear() -> None:
    hidden = hidden_rows(6)
    assert describe_units(look_at((0, 1)), hidden, hidden, TRUTH) == {}


def test_without_a_true_graph_the_units_are_told_but_not_judged() -> None:
    hidden = hidden_rows()
    graph = describe_units(look_at((0, 1)), hidden, hidden, None)["units_graph"]
    assert set(graph) == {"edges", "edge_share", "residual", "energy"}


def test_units_are_told_of_beside_the_graph_of_codes_and_only_where_there_are_hidden_ones() -> None:
    problem = RBF(d=5, n=100, map="orthogonal").problem([0])
    assert problem.graphs is not None
    assert problem.hidden is not None
    units = torch.from_numpy(look_at((0, 1, 2)))
    seen = Insight(problem.hidden[0], problem.data.x[0], problem.graphs[0], units)
    (report,) = inspect([seen], problem, problem.evaluate)
    assert report["graph_recovery"]["f1"] == 1.0  # of the codes
    assert report["units_graph"]["recovery"]["recall"] == 0.5
    bits = Quadratic(d=5, n=100).problem([0])
    assert bits.graphs is not None
    plain = Insight(bits.data.x[0], bits.data.x[0], bits.graphs[0], units)
    (report,) = inspect([plain], bits, bits.evaluate)
    assert "units_graph" not in report


def test_a_record_of_many_units_in_many_dimensions_stays_small() -> None:
    truth = Graph.from_cliques(41, [(i, i + 1, i + 2) for i in range(0, 39, 2)])
    hidden = hidden_rows(500, 41)
    units = np.random.default_rng(3).normal(size=(40, 3, 41))
    assert len(json.dumps(describe_units(units, hidden, hidden, truth))) < 25_000

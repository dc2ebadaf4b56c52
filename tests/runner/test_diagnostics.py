"""What the harness tells of codes, where it alone knows the truth."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.baselines.naive import Naive
from ddobench.contracts import Insight, Problem
from ddobench.runner.diagnostics import (
    SHOWN,
    correlate,
    describe_alignment,
    describe_planes,
    describe_round_trip,
    diagnose,
    inspect,
)
from ddobench.runner.run import run_seeds
from ddobench.tasks.coverage import Coverage
from ddobench.tasks.quadratic import Quadratic
from ddobench.tasks.rbf import RBF
from tests.support.catalogue import specification

SEEDS = (0, 1)


def make_problem() -> Problem:
    return RBF(d=7, n=500, map="orthogonal").problem(SEEDS)


def insight_of(problem: Problem, codes: Tensor, designs: Tensor) -> list[Insight]:
    assert problem.graphs is not None
    return [
        Insight(codes=own, reconstructed=shown, graph=graph)
        for own, shown, graph in zip(codes, designs, problem.graphs, strict=True)
    ]


def test_the_truth_is_perfect_in_every_respect() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    codes = 3 * problem.hidden - 1  # scale and shift do not matter
    for report in inspect(insight_of(problem, codes, problem.data.x), problem, problem.evaluate):
        assert report["round_trip_correlation"] == pytest.approx(1.0)
        assert report["round_trip_valid"] == 1.0
        assert report["alignment"] == pytest.approx(1.0)
        assert report["alignment_by_chance"] < 0.8
        assert report["graph_recovery"]["f1"] == 1.0
        assert report["graph_density"] == pytest.approx(9 / 21)  # three triangles of 7 variables


def test_rotated_codes_are_aligned_by_chance_and_their_graph_is_not_judged() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    rotation = torch.linalg.qr(torch.randn(7, 7, generator=torch.Generator().manual_seed(0)))[0]
    codes = problem.hidden @ rotation.double()
    for report in inspect(insight_of(problem, codes, problem.data.x), problem, problem.evaluate):
        assert report["alignment"] == pytest.approx(report["alignment_by_chance"], abs=0.12)
        assert "graph_recovery" not in report


def test_shuffled_coordinates_are_aligned_but_their_graph_is_not_judged() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    codes = problem.hidden.roll(1, dims=2)
    for report in inspect(insight_of(problem, codes, problem.data.x), problem, problem.evaluate):
        assert report["alignment"] == pytest.approx(1.0)
        assert "graph_recovery" not in report


def test_designs_that_come_back_invalid_are_counted() -> None:
    problem = make_problem()
    designs = problem.data.x.clone()
    designs[0, :100, 2] = -1.0
    assert problem.hidden is not None
    reports = inspect(insight_of(problem, problem.hidden, designs), problem, problem.evaluate)
    assert [report["round_trip_valid"] for report in reports] == [0.8, 1.0]
    assert reports[0]["round_trip_correlation"] == pytest.approx(1.0)


def test_a_round_trip_without_survivors_has_no_correlation() -> None:
    report = describe_round_trip(np.full(5, np.nan), np.arange(5.0))
    assert report["round_trip_valid"] == 0.0
    assert np.isnan(report["round_trip_correlation"])


def test_values_that_have_nothing_in_common_are_uncorrelated() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    shuffled = problem.data.x.flip(1)
    reports = inspect(insight_of(problem, problem.hidden, shuffled), problem, problem.evaluate)
    assert all(abs(report["round_trip_correlation"]) < 0.2 for report in reports)


def test_codes_of_a_task_without_hidden_coordinates_are_judged_by_value_alone() -> None:
    problem = Quadratic(d=6, n=40).problem(SEEDS)
    x = problem.data.x
    judged = []
    for codes in (2 * x - 1, x):
        (report, _) = inspect(insight_of(problem, codes, x), problem, problem.evaluate)
        judged.append({name for name in report if not name.endswith("_sample")})
    assert judged[0] == {"round_trip_correlation", "round_trip_valid", "graph_density"}
    assert judged[1] - judged[0] == {"graph_recovery"}  # where they are the designs themselves


def test_a_seed_without_codes_has_nothing_to_tell_and_takes_nothing_from_the_others() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    both = insight_of(problem, problem.hidden, problem.data.x)
    whole = inspect(both, problem, problem.evaluate)
    assert inspect([None, both[1]], problem, problem.evaluate) == [{}, whole[1]]


def test_an_unknown_graph_is_not_judged() -> None:
    problem = make_problem()
    assert problem.hidden is not None
    seen = insight_of(problem, problem.hidden, problem.data.x)
    unknown = replace(problem, graphs=None)
    assert all("graph_recovery" not in one for one in inspect(seen, unknown, problem.evaluate))


def test_a_constant_code_is_correlated_with_nothing() -> None:
    hidden = np.random.default_rng(0).normal(size=(50, 2))
    codes = np.column_stack([hidden[:, 1], np.ones(50)])
    correlations = correlate(codes, hidden)
    assert correlations[0, 1] == pytest.approx(1.0)
    assert (correlations[1] == 0).all()
    assert describe_alignment(correlations)["alignment"] == pytest.approx(0.5)


def test_a_few_designs_are_shown_beside_their_codes_and_what_these_decode_to() -> None:
    problem = make_problem()
    codes, decoded = problem.data.x * 1e-5, problem.data.x + 1
    (_, report) = inspect(insight_of(problem, codes, decoded), problem, problem.evaluate)
    for name, table in (("codes", codes), ("designs", problem.data.x), ("decoded", decoded)):
        shown = np.array(report[f"{name}_sample"])
        assert shown.shape == (SHOWN, 3)
        assert shown == pytest.approx(table[1, :SHOWN, :3].numpy(), rel=1e-3)
    assert report["values_sample"] == pytest.approx(problem.data.y[1, :SHOWN].tolist(), rel=1e-3)
    sample = {name: report[name] for name in report if name.endswith("_sample")}
    assert len(json.dumps(sample)) < 20_000


def test_few_rows_and_few_codes_are_all_shown() -> None:
    problem = make_problem()
    few = replace(problem, data=replace(problem.data, x=problem.data.x[:, :5],
                                        y=problem.data.y[:, :5]))  # fmt: skip
    assert problem.hidden is not None
    few = replace(few, hidden=problem.hidden[:, :5])
    report = inspect(insight_of(few, few.data.x[..., :2], few.data.x), few, problem.evaluate)[0]
    assert np.array(report["codes_sample"]).shape == (5, 2)
    assert np.array(report["designs_sample"]).shape == (5, 3)
    assert len(report["values_sample"]) == 5


class Boaster(Naive):
    """A method that sets a score of the harness."""

    def diagnostics(self) -> list[dict[str, Any]]:
        """Return what is not its own to say."""
        return [{"graph_density": "dense", "own": 1}] * len(SEEDS)


def test_the_density_of_a_graph_is_a_score_that_only_the_harness_sets() -> None:
    spec = specification("chain", "fgm", "graph=complete")
    (record,) = run_seeds(spec, *spec.build(), [0], {})
    assert record.row["graph_density"] == 1.0
    problem = make_problem()
    assert diagnose(Boaster(), problem, problem.evaluate) == [{"own": 1}, {"own": 1}]


def test_a_plane_shows_the_function_around_rows_and_optimum() -> None:
    problem = Coverage(d=2, n=50).problem([0, 1])
    proposed = np.array([[1.0, 2.0], [np.inf, 0.0]])
    plane = describe_planes(problem, problem.evaluate, [proposed, proposed])[1]["plane"]
    grid, values = np.array(plane["grid"]), np.array(plane["values"])
    np.testing.assert_allclose(values, -np.square(grid - [1, 2]).sum(axis=1), rtol=0.01, atol=0.01)
    assert grid[:, 1].min() < min(y for _, y in plane["rows"])
    assert grid[:, 1].max() > 2.0
    assert (plane["optimum"], plane["proposed"]) == ([[1.0, 2.0]], [[1.0, 2.0]])
    wide = Coverage(d=4, n=50).problem([0])
    assert describe_planes(wide, wide.evaluate, [np.zeros((1, 4))]) == [{}]

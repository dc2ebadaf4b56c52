"""What the harness tells of codes, where it alone knows the truth."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.contracts import Insight, Problem
from ddobench.inspection import correlate, describe_alignment, describe_round_trip, inspect
from ddobench.tasks.quadratic import Quadratic
from ddobench.tasks.rbf import RBF

SEEDS = (0, 1)


def make_problem() -> Problem:
    return RBF(d=7, n=500, map="orthogonal").problem(SEEDS)


def insight_of(problem: Problem, codes: Tensor, designs: Tensor) -> Insight:
    assert problem.graphs is not None
    return Insight(codes=codes, reconstructed=designs, graphs=problem.graphs)


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
    (report, _) = inspect(insight_of(problem, problem.data.x, problem.data.x), problem,
                          problem.evaluate)  # fmt: skip
    assert report.keys() == {"round_trip_correlation", "round_trip_valid"}


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

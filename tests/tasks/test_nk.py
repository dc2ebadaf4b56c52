"""Promises of the NK landscapes, against enumeration."""

import itertools
import re
from typing import Any

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks.nk import NK, NKProblem

SEEDS = (0, 1, 2)


def all_designs(q: int, d: int) -> torch.Tensor:
    """Return every design of d variables with q states, (q^d, d)."""
    return torch.tensor(list(itertools.product(range(q), repeat=d)), dtype=torch.float64)


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> NKProblem:
    """Draw instances; d is 6 and n is 50 by default."""
    problem = NK(**{"d": 6, "n": 50, **settings}).problem(seeds)
    assert isinstance(problem, NKProblem)
    return problem


@pytest.mark.parametrize(
    ("d", "q", "k"),
    [(5, 2, 0), (5, 3, 1), (7, 2, 2), (7, 3, 2), (4, 4, 2), (6, 2, 4), (5, 2, 4), (12, 2, 3)],
)
def test_the_optimum_is_the_best_of_all_designs(d: int, q: int, k: int) -> None:
    problem = problem_of(d=d, q=q, k=k)
    values = problem.evaluate(all_designs(q, d).expand(3, -1, -1))
    assert problem.optimum is not None
    torch.testing.assert_close(problem.optimum, values.max(dim=1).values, rtol=1e-12, atol=0)


def test_a_value_is_the_mean_over_the_windows() -> None:
    problem = problem_of((3,), d=5, q=3, k=1)
    x = [2, 0, 1, 1, 2]
    held = [float(problem.tables[0, i, 3 * x[i] + x[(i + 1) % 5]]) for i in range(5)]
    value = float(problem.evaluate(torch.tensor([[x]]))[0, 0])
    assert value == pytest.approx(sum(held) / 5, rel=1e-12)


@pytest.mark.parametrize(
    ("d", "q", "best", "optimum"), [(40, 2, 0.658, 0.751), (64, 3, 0.628, 0.838)]
)
def test_uniform_rows_leave_room_below_the_optimum(
    d: int, q: int, best: float, optimum: float
) -> None:
    """The figures are means over seeds 0 to 99; a mean of ten differs by about 0.01."""
    problem = problem_of(tuple(range(10)), d=d, q=q, k=2, n=5000)
    assert problem.optimum is not None
    assert float(problem.data.y.max(dim=1).values.mean()) == pytest.approx(best, abs=0.02)
    assert float(problem.optimum.mean()) == pytest.approx(optimum, abs=0.02)


def test_the_graph_joins_the_variables_of_each_window() -> None:
    (graph,) = problem_of((0,), d=7, k=2).graphs or ()
    assert graph.cliques == tuple(sorted(tuple(sorted((i, (i + 1) % 7, (i + 2) % 7)))
                                         for i in range(7)))  # fmt: skip
    (alone,) = problem_of((0,), d=7, k=0).graphs or ()
    assert alone.edges == ()


def test_designs_are_uniform_states_and_their_values_are_true() -> None:
    problem = problem_of(d=10, q=4, n=2000)
    data = problem.data
    assert data.space.sizes == (4,) * 10
    for state in range(4):
        assert 0.24 < float((data.x == state).double().mean()) < 0.26
    assert torch.equal(problem.evaluate(data.x), data.y)
    assert problem.tables.min() >= 0
    assert problem.tables.max() < 1


@pytest.mark.parametrize("truncate", [None, 40.0])
def test_fewer_rows_are_the_first_of_more_rows(truncate: float | None) -> None:
    few = problem_of(n=30, d=12, truncate=truncate).data
    many = problem_of(n=300, d=12, truncate=truncate).data
    assert torch.equal(few.x, many.x[:, :30])
    assert torch.equal(few.y, many.y[:, :30])


def test_truncation_hides_the_best_of_the_same_rows() -> None:
    whole, part = problem_of(d=12, n=4000), problem_of(d=12, n=1000, truncate=40.0)
    ceiling = part.data.y.max(dim=1).values
    for seed in range(3):
        share = float((whole.data.y[seed] <= ceiling[seed]).double().mean())
        assert share == pytest.approx(0.4, abs=0.03)
        below = whole.data.x[seed][whole.data.y[seed] <= ceiling[seed]]
        assert torch.equal(below[:1000], part.data.x[seed])
    assert torch.equal(whole.tables, part.tables)


@pytest.mark.parametrize("entry", [0.5, 3.0, -1.0, float("nan")])
def test_a_design_of_other_states_is_invalid(entry: float) -> None:
    designs = torch.zeros(1, 2, 6, dtype=torch.float64)
    designs[0, 1, 3] = entry
    assert problem_of((0,), q=3).evaluate(designs).isnan().tolist() == [[False, True]]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"q": 1},
            "task.q must be a whole number of at least 2, got 1; "
            "a variable needs at least two states",
        ),
        ({"k": -1}, "task.k must be a whole number of at least 0, got -1"),
        ({"k": 6}, "task.k must be below d=6, as a window has k + 1 variables, got 6"),
        (
            {"d": 20, "q": 20, "k": 3},
            "task.q=20 and task.k=3 need a table of 1,280,000,000 entries for the exact optimum, "
            "more than 50,000,000; use fewer states or neighbours",
        ),
        (
            {"truncate": 100.0},
            "task.truncate must be a percentile from 1 to below 100, got 100.0; "
            "use null to hide nothing",
        ),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def test_the_description_states_what_is_hidden() -> None:
    assert "percentile 40" in NK(d=6, n=50, truncate=40.0).describe().text
    assert "percentile" not in NK(d=6, n=50).describe().text

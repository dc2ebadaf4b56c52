"""Promises of the classic functions: textbook values, a known graph, an optimum in the box."""

import re
from typing import Any

import pytest
import torch

from ddobench.check.task_promises import find_missing_edge
from ddobench.errors import UsageError
from ddobench.tasks.classic import FUNCTIONS, Classic, ClassicProblem

SEEDS = (0, 1, 2)

# values of the books' functions, which are minimised there, at (1, 2, 3)
AT_123 = {
    "rastrigin": 14.0,
    "styblinski_tang": 0.5 * ((1 - 16 + 5) + (16 - 64 + 10) + (81 - 144 + 15)),
    "rosenbrock": 100 * (1**2 + 1**2) + 0 + 1,
    "dixon_price": 0 + 2 * (8 - 1) ** 2 + 3 * (18 - 2) ** 2,
}
each_function = pytest.mark.parametrize("function", FUNCTIONS)


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> ClassicProblem:
    """Draw instances; d is 5 and n is 50 by default."""
    problem = Classic(**{"d": 5, "n": 50, **settings}).problem(seeds)
    assert isinstance(problem, ClassicProblem)
    return problem


@each_function
def test_without_a_shift_values_are_those_of_the_books(function: str) -> None:
    problem = problem_of((0,), d=3, function=function, shift=0.0)
    value = problem.evaluate(torch.tensor([[[1.0, 2.0, 3.0]]], dtype=torch.float64))
    assert float(value) == pytest.approx(-AT_123[function], rel=1e-12)


@each_function
@pytest.mark.parametrize("rotated", [False, True])
@pytest.mark.parametrize("shift", [0.0, 0.8, 1.0])
def test_the_optimum_is_attained_inside_the_box(function: str, rotated: bool, shift: float) -> None:
    problem = problem_of(function=function, rotated=rotated, shift=shift, d=11)
    values = problem.evaluate(problem.best_designs()[:, None])[:, 0]
    assert problem.optimum is not None
    torch.testing.assert_close(values, problem.optimum, rtol=1e-12, atol=1e-12)


@each_function
def test_nothing_near_the_optimum_or_far_away_is_better(function: str) -> None:
    generator = torch.Generator().manual_seed(0)
    for d in (2, 3, 6):
        best = FUNCTIONS[function].maximiser(d)
        optimum = float(FUNCTIONS[function].value(best))
        for scale in (1e-3, 0.1, 1.0, 10.0):
            steps = scale * torch.randn(20_000, d, generator=generator, dtype=torch.float64)
            assert float(FUNCTIONS[function].value(best + steps).max()) <= optimum + 1e-12


def test_the_optimum_of_styblinski_tang_is_the_published_one() -> None:
    problem = problem_of((0,), function="styblinski_tang", d=4)
    assert problem.optimum is not None
    assert float(problem.optimum) == pytest.approx(4 * 39.16616570377142, rel=1e-13)


@pytest.mark.parametrize(
    ("function", "edges"),
    [
        ("rastrigin", ()),
        ("styblinski_tang", ()),
        ("rosenbrock", ((0, 1), (1, 2), (2, 3), (3, 4))),
        ("dixon_price", ((0, 1), (1, 2), (2, 3), (3, 4))),
    ],
)
def test_the_graph_has_no_edges_or_is_a_chain(
    function: str, edges: tuple[tuple[int, int], ...]
) -> None:
    problem = problem_of(function=function)
    assert problem.graphs is not None
    assert problem.graphs[0].edges == edges
    assert find_missing_edge(problem) is None


@each_function
def test_a_rotation_destroys_the_graph(function: str) -> None:
    rotated, plain = (problem_of(function=function, rotated=r) for r in (True, False))
    assert rotated.graphs is not None
    assert len(rotated.graphs[0].edges) == 10
    without = ClassicProblem(**{**vars(rotated), "graphs": plain.graphs})
    assert "no edge joins them" in str(find_missing_edge(without))


def test_a_design_outside_the_box_is_invalid_and_its_border_is_not() -> None:
    problem = problem_of((0,), function="rastrigin")
    designs = torch.zeros(1, 4, 5, dtype=torch.float64)
    designs[0, 1:, 2] = torch.tensor([5.12, 5.13, -5.13])
    assert problem.evaluate(designs).isnan().tolist() == [[False, False, True, True]]


def test_designs_are_uniform_in_the_box() -> None:
    plain, rotated = problem_of(n=2000), problem_of(n=2000, rotated=True, shift=0.0)
    assert torch.equal(plain.data.x, rotated.data.x)
    assert -5.0 <= float(plain.data.x.min()) < -4.9
    assert 9.9 < float(plain.data.x.max()) <= 10.0
    assert float(plain.data.x.mean()) == pytest.approx(2.5, abs=0.15)
    assert torch.equal(plain.evaluate(plain.data.x), plain.data.y)


def test_each_seed_has_a_place_and_a_rotation_of_its_own() -> None:
    problem = problem_of(rotated=True)
    assert not torch.equal(problem.instances[0].place, problem.instances[1].place)
    turn = problem.instances[0].rotation
    assert turn is not None
    assert torch.allclose(turn @ turn.T, torch.eye(5, dtype=torch.float64))
    still = problem_of(shift=0.0)
    assert torch.equal(still.best_designs(), torch.ones(3, 5, dtype=torch.float64))


@pytest.mark.parametrize("truncate", [None, 30.0])
def test_fewer_rows_are_the_first_of_more_rows(truncate: float | None) -> None:
    few = problem_of(n=30, truncate=truncate).data
    many = problem_of(n=300, truncate=truncate).data
    assert torch.equal(few.x, many.x[:, :30])
    assert torch.equal(few.y, many.y[:, :30])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"function": "ackley"},
            "task.function must be one of rastrigin, styblinski_tang, rosenbrock, dixon_price, "
            "got 'ackley'",
        ),
        (
            {"d": 1},
            "d must be a whole number of at least 2, got 1; a single variable has no graph",
        ),
        (
            {"shift": 1.5},
            "task.shift must be from 0 (the optimum at its textbook place) to 1 (anywhere in the "
            "box), got 1.5",
        ),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def test_the_description_states_what_interacts() -> None:
    def describe(**settings: Any) -> str:
        return Classic(d=5, n=50, **settings).describe().text

    assert "Neighbours interact." in describe()
    assert "No variables interact." in describe(function="rastrigin")
    assert "All variables interact" in describe(function="rastrigin", rotated=True)
    assert "percentile 30" in describe(truncate=30.0)

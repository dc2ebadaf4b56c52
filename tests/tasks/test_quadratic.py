"""Promises of the toy quadratic, against enumeration."""

import itertools
import re
from typing import Any

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks.quadratic import Quadratic, QuadraticProblem

SEEDS = (0, 1, 2)


def all_designs(d: int) -> torch.Tensor:
    """Return every string of d bits, (2^d, d)."""
    return torch.tensor(list(itertools.product((0.0, 1.0), repeat=d)), dtype=torch.float64)


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> QuadraticProblem:
    """Draw instances; d is 6 and n is 50 by default."""
    problem = Quadratic(**{"d": 6, "n": 50, **settings}).problem(seeds)
    assert isinstance(problem, QuadraticProblem)
    return problem


@pytest.mark.parametrize("signs", ["ones", "random"])
@pytest.mark.parametrize("d", [4, 5, 9])
def test_the_optimum_is_the_best_of_all_designs(d: int, signs: str) -> None:
    problem = problem_of(tuple(range(8)), d=d, signs=signs)
    values = problem.evaluate(all_designs(d).expand(8, -1, -1))
    assert problem.optimum is not None
    assert torch.equal(problem.optimum, values.max(dim=1).values)


def test_without_signs_the_optimum_is_all_ones() -> None:
    problem = problem_of(d=40)
    assert problem.optimum is not None
    assert problem.optimum.tolist() == [40.0] * 3
    assert problem.evaluate(torch.ones(3, 1, 40)).flatten().tolist() == [40.0] * 3


def test_a_value_is_the_number_of_neighbouring_ones_around_the_cycle() -> None:
    designs = torch.tensor([[1, 1, 0, 1], [1, 0, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]])
    values = problem_of((0,), d=4).evaluate(designs[None])
    assert values.tolist() == [[2.0, 0.0, 2.0, 0.0]]


def test_signs_are_drawn_per_seed() -> None:
    problem = problem_of(d=20, signs="random")
    assert problem.signs is not None
    assert set(problem.signs.flatten().tolist()) == {-1.0, 1.0}
    assert not torch.equal(problem.signs[0], problem.signs[1])


def test_visible_designs_are_fair_bits_and_their_values_are_true() -> None:
    problem = problem_of(d=10, n=500)
    data = problem.data
    assert (data.x.shape, data.y.shape) == ((3, 500, 10), (3, 500))
    assert set(data.x.flatten().tolist()) == {0.0, 1.0}
    assert 0.48 < data.x.mean() < 0.52
    assert torch.equal(problem.evaluate(data.x), data.y)
    assert not torch.equal(data.x[0], data.x[1])


def test_noise_is_on_the_visible_values_alone_and_has_the_asked_size() -> None:
    clean, noisy = problem_of(n=2000), problem_of(n=2000, noise=0.5)
    assert torch.equal(clean.data.x, noisy.data.x)
    error = noisy.data.y - clean.data.y
    assert error.mean().abs() < 0.02
    assert 0.48 < error.std() < 0.52
    assert torch.equal(noisy.evaluate(noisy.data.x), clean.data.y)
    assert torch.equal(noisy.optimum, clean.optimum)  # type: ignore[arg-type]


def test_the_signs_do_not_change_which_designs_are_visible() -> None:
    assert torch.equal(problem_of().data.x, problem_of(signs="random").data.x)


@pytest.mark.parametrize("settings", [{}, {"signs": "random"}, {"noise": 1.0}])
def test_fewer_rows_are_the_first_of_more_rows(settings: dict[str, Any]) -> None:
    few, many = problem_of(n=30, **settings).data, problem_of(n=100, **settings).data
    assert torch.equal(few.x, many.x[:, :30])
    assert torch.equal(few.y, many.y[:, :30])


def test_a_seed_is_the_same_instance_beside_any_seeds() -> None:
    together = problem_of((4, 7, 1), signs="random", noise=1.0)
    alone = problem_of((7,), signs="random", noise=1.0)
    assert torch.equal(together.data.x[1], alone.data.x[0])
    assert torch.equal(together.data.y[1], alone.data.y[0])
    assert torch.equal(together.optimum[1:2], alone.optimum)  # type: ignore[index, arg-type]


@pytest.mark.parametrize("entry", [0.5, 2.0, -1.0, float("nan"), float("inf")])
def test_a_design_of_other_values_than_bits_is_invalid(entry: float) -> None:
    designs = torch.zeros(1, 2, 6, dtype=torch.float64)
    designs[0, 1, 3] = entry
    assert problem_of((0,)).evaluate(designs).isnan().tolist() == [[False, True]]


def test_the_graph_is_the_cycle_and_visible_only_on_request() -> None:
    problem = problem_of(d=5)
    assert problem.graphs is not None
    assert len(problem.graphs) == 3
    assert problem.graphs[0].edges == ((0, 1), (0, 4), (1, 2), (2, 3), (3, 4))
    assert problem.visible_to(frozenset()).privileged.graphs is None
    assert problem.visible_to(frozenset({"graph"})).privileged.graphs == problem.graphs


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"d": 3},
            "d must be a whole number of at least 4, got 3; "
            "at d=3 the cycle is a single triangle, use d=4 or more",
        ),
        ({"n": 1}, "n must be a whole number of at least 2, got 1"),
        ({"signs": "none"}, "task.signs must be one of ones, random, got 'none'"),
        ({"noise": -1.0}, "task.noise must be a standard deviation >= 0, got -1.0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def test_the_description_states_the_signs() -> None:
    plain, signed = (Quadratic(d=6, n=50, signs=signs).describe() for signs in ("ones", "random"))
    assert "sᵢ = 1" in plain.formula
    assert "±1" in signed.formula
    assert "50 uniform designs" in plain.text

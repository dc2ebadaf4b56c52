"""Promises of the contracts between tasks, methods and the harness."""

import pytest
import torch

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from tests.support.fakes import Climb, Sum, SumProblem


def test_a_continuous_space_holds_every_finite_design() -> None:
    x = torch.tensor([[0.5, -3.0], [torch.nan, 0.0], [0.0, -torch.inf]])
    assert Space(2).contains(x).tolist() == [True, False, False]
    assert not Space(2).categorical


def test_a_categorical_space_holds_existing_categories_alone() -> None:
    space = Space(2, (2, 3))
    x = torch.tensor([[1.0, 2.0], [2.0, 0.0], [0.0, 0.5], [-1.0, 0.0], [torch.nan, 0.0]])
    assert space.contains(x).tolist() == [True, False, False, False, False]
    assert space.categorical


@pytest.mark.parametrize(
    ("x", "y"), [((2, 5, 3), (2, 5)), ((2, 5, 4), (2, 4)), ((5, 4), (5,)), ((2, 5, 4), (2, 5, 1))]
)
def test_a_table_with_mismatched_axes_is_refused(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"a dataset needs x \(S, N, 4\) and y \(S, N\), got"):
        Dataset(torch.zeros(x), torch.zeros(y), Space(4))


def test_the_best_row_is_found_for_each_seed() -> None:
    x = torch.arange(12.0).reshape(2, 3, 2)
    y = torch.tensor([[0.0, 5.0, 1.0], [7.0, 0.0, 1.0]])
    data = Dataset(x, y, Space(2))
    assert data.best().tolist() == [[2.0, 3.0], [6.0, 7.0]]
    assert data.n == 3


def sum_problem() -> SumProblem:
    """Draw two instances."""
    problem = Sum(d=3, n=20).problem([0, 1])
    assert isinstance(problem, SumProblem)
    return problem


def test_a_design_outside_the_space_or_refused_by_the_task_has_no_value() -> None:
    x = torch.zeros(2, 3, 3)
    x[0, 1, 2] = torch.nan
    x[1, 2, 0] = 2.5
    values = sum_problem().evaluate(x)
    assert values.dtype == torch.float64
    assert values.isnan().tolist() == [[False, True, False], [False, False, True]]


@pytest.mark.parametrize("shape", [(1, 4, 3), (2, 4, 2), (4, 3), (2, 4, 3, 1)])
def test_designs_of_the_wrong_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"designs must be \(S=2, K, d=3\), got \("):
        sum_problem().evaluate(torch.zeros(shape))


def test_evaluating_leaves_the_designs_alone() -> None:
    x = torch.full((2, 1, 3), torch.nan)
    sum_problem().evaluate(x)
    assert x.isnan().all()


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"d": 0, "n": 5}, r"^d must be a whole number of at least 1, got 0$"),
        ({"d": 3, "n": 1}, r"^n must be a whole number of at least 2, got 1$"),
        ({"d": 2.0, "n": 5}, r"^d must be a whole number of at least 1, got 2.0$"),
        ({"d": True, "n": 5}, r"^d must be a whole number of at least 1, got True$"),
    ],
)
def test_every_task_refuses_impossible_sizes(knobs: dict[str, int], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Sum(**knobs)


def test_a_method_needs_no_more_than_fit_and_propose() -> None:
    method = Climb()
    assert method.declines(sum_problem().data) is None
    assert method.privileges(sum_problem().data.space) == frozenset()
    assert dict(method.failures()) == {}
    assert list(method.diagnostics()) == []

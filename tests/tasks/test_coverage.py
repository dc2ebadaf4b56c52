"""Promises of the example of the paper's theorem."""

import re
from typing import Any

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks.coverage import Coverage, CoverageProblem


def problem_of(**settings: Any) -> CoverageProblem:
    """Draw two seeds; d is 2 and n is 5000 by default."""
    problem = Coverage(**{"d": 2, "n": 5000, **settings}).problem((0, 1))
    assert isinstance(problem, CoverageProblem)
    return problem


@pytest.mark.parametrize("d", [2, 100])
def test_the_optimum_is_attained_by_the_stacked_peak_and_by_nothing_near_it(d: int) -> None:
    problem = problem_of(d=d, n=10)
    best = problem.best_designs()[:, None]
    near = best + 1e-3 * torch.eye(d, dtype=torch.float64)
    assert problem.optimum is not None
    assert torch.equal(problem.evaluate(best)[:, 0], problem.optimum)
    assert (problem.evaluate(near) < problem.optimum[:, None]).all()


def test_the_value_is_that_of_the_paper() -> None:
    designs = torch.tensor([[[0.0, 0.0]], [[2.0, 5.0]]])
    assert problem_of().evaluate(designs).flatten().tolist() == [-5.0, -10.0]


def test_rows_cover_each_component_of_the_optimum_but_not_both() -> None:
    away = (problem_of().data.x - torch.tensor([1.0, 2.0])).abs()  # (S, N, 2)
    assert (away.amin(dim=1) < 0.01).all()
    assert (away.amax(dim=-1).amin(dim=1) > 0.5).all()


def test_rows_have_the_mean_spread_and_correlation_that_are_asked_for() -> None:
    problem = problem_of(d=4, n=50_000, mean=3.0, spread=2.0, correlation=0.6)
    for x in problem.data.x:
        truth = 4.0 * torch.eye(4, dtype=torch.float64)
        truth[0, 1] = truth[1, 0] = truth[2, 3] = truth[3, 2] = 2.4
        torch.testing.assert_close(x.mean(dim=0), torch.full_like(x[0], 3.0), rtol=0, atol=0.06)
        torch.testing.assert_close(x.T.cov(), truth, rtol=0, atol=0.15)


def test_noise_is_in_units_of_the_spread_of_noise_free_values() -> None:
    plain = Coverage(d=6, n=50_000, correlation=-0.5, mean=0.5)
    noisy = Coverage(d=6, n=50_000, correlation=-0.5, mean=0.5, noise=0.3)
    y, other = plain.problem([0]).data.y, noisy.problem([0]).data.y
    assert float(y.std()) == pytest.approx(plain.sd, rel=0.02)
    assert float((other - y).std()) == pytest.approx(0.3 * plain.sd, rel=0.02)


def test_a_smaller_table_is_the_beginning_of_a_larger_one() -> None:
    small, large = problem_of(n=20, d=6).data, problem_of(n=50, d=6).data
    assert torch.equal(small.x, large.x[:, :20])
    assert torch.equal(small.y, large.y[:, :20])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d": 3}, "d must be even for pairs of variables, got 3; use 4"),
        ({"correlation": -1.0}, "task.correlation must lie between -1 and 1"),
        ({"mean": float("nan")}, "task.mean must be a finite number, got nan"),
        ({"spread": 0.0}, "task.spread must be a standard deviation > 0, got 0.0"),
        ({"noise": -1.0}, "task.noise must be a standard deviation >= 0, got -1.0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        Coverage(**{"d": 2, "n": 10, **settings})

"""Checks of what a task draws and measures, so that a mistake is an error and not a wrong score.

Proposals of methods are checked when they are collected (`run`).
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ddobench.contracts import LARGEST, Description, Problem, Task
from ddobench.store.runs import reserved_columns

SLACK = 1e-6  # of the optimum and the spread of values, for rounding


def check_problem(problem: Problem, task: Task, seeds: int) -> None:
    """Raise unless a task has drawn what the contract promises."""
    if not isinstance(problem, Problem):
        raise ValueError(f"a task must draw a Problem, got {type(problem).__name__}")
    x, y = problem.data.x, problem.data.y
    if x.shape[:2] != (seeds, task.n):
        raise ValueError(
            f"a task must draw N={task.n} visible rows for each of S={seeds} seeds, "
            f"got {x.shape[1]} for {x.shape[0]}"
        )
    if x.dtype != torch.float64 or y.dtype != torch.float64:
        raise ValueError(f"visible designs and values must be float64, got {x.dtype}, {y.dtype}")
    if not problem.data.space.contains(x).all():
        raise ValueError("every visible design must be a point of the task's space, some are not")
    if not (y.abs() <= LARGEST).all():
        raise ValueError(
            f"visible values must be finite and at most {LARGEST:.1e}, got {_worst(y):g}; "
            "smaller parameters of the task may help"
        )
    if problem.optimum is not None and problem.optimum.shape != (seeds,):
        raise ValueError(
            f"the optimum must be (S={seeds},) or None, got {tuple(problem.optimum.shape)}"
        )
    if problem.optimum is not None and torch.isinf(problem.optimum).any():
        raise ValueError("the optimum must be finite, or None where it is not known, got inf")
    if problem.full_range is not None:
        _check_range(problem.full_range, y)
    bound = problem.lower_bound
    if bound is not None and (bound.shape != (seeds,) or not torch.isfinite(bound).all()):
        raise ValueError(
            f"the lower bound must be finite and (S={seeds},) or None, got {bound.tolist()}"
        )
    if problem.graphs is not None and len(problem.graphs) != seeds:
        raise ValueError(f"there must be a graph for each of S={seeds} seeds or None, "
                         f"got {len(problem.graphs)}")  # fmt: skip
    if problem.hidden is not None and problem.hidden.shape[:2] != x.shape[:2]:
        raise ValueError(
            f"hidden coordinates must be (S, N, ...) = {tuple(x.shape[:2])} or None, "
            f"got {tuple(problem.hidden.shape)}"
        )


def _check_range(full_range: torch.Tensor, y: torch.Tensor) -> None:
    """Raise unless the range of all data is valid and contains the visible values y (S, N)."""
    if full_range.shape != (len(y), 2):
        raise ValueError(
            f"the full range must be (S={len(y)}, 2) or None, got {tuple(full_range.shape)}"
        )
    low, high = full_range.unbind(dim=1)
    if not ((low <= y.amin(dim=1)) & (y.amax(dim=1) <= high) & (low < high)).all():
        raise ValueError("the full range must contain all visible values, and be more than a point")


def check_description(description: Description) -> Description:
    """Return the description of a task, or raise if it is not one."""
    if not isinstance(description, Description):
        raise ValueError(f"describe() must return a Description, got {type(description).__name__}")
    return description


def check_measurements(
    measured: Mapping[str, Tensor], designs: Tensor, first: Mapping[str, Tensor] | None
) -> Mapping[str, Tensor]:  # (S, K) each, of designs (S, K, d)
    """Return further measurements, or raise unless their names and shapes are valid."""
    if not isinstance(measured, Mapping):
        raise ValueError(f"measure() must return a dictionary, got {type(measured).__name__}")
    if first is not None and measured.keys() != first.keys():
        raise ValueError(
            f"measure() must return the same names at every iteration, "
            f"got {_names(measured)} after {_names(first)}"
        )
    for name, numbers in measured.items():
        if not isinstance(name, str) or name in reserved_columns():
            raise ValueError(
                f"measure() must use names of its own, got {name!r}, "
                "which the harness uses for something else"
            )
        if not isinstance(numbers, Tensor) or numbers.shape != designs.shape[:2]:
            raise ValueError(
                f"measure() must return (S, K) = {tuple(designs.shape[:2])} for {name!r}, "
                f"got {_describe(numbers)}"
            )
    return measured


def find_better_than_optimum(problem: Problem, best: Tensor) -> dict[int, str]:  # (S,)
    """Return the seeds whose best known value is above what the task calls the optimum, and why."""
    if problem.optimum is None:
        return {}
    optimum = problem.optimum.to(torch.float64)
    slack = SLACK * (optimum.abs() + problem.data.y.std(dim=1))
    return {
        int(i): f"the task's optimum is {optimum[i]:g}, but a design has the value {best[i]:g}"
        for i in torch.nonzero(best > optimum + slack).flatten()
    }


def _worst(y: Tensor) -> float:
    return float(y.flatten()[y.abs().nan_to_num(torch.inf).argmax()])


def _names(measured: Mapping[str, Any]) -> str:
    return ", ".join(map(str, measured)) or "nothing"


def _describe(value: object) -> str:
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__

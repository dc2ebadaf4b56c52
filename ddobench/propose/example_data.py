"""The rows of a task as a table to try `propose` with, and the true values of designs."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from ddobench.cli.hooks import specify_points
from ddobench.contracts import Task
from ddobench.errors import UsageError
from ddobench.runner.build import build_task
from ddobench.runner.run import evaluate_designs


def example_table(
    task: str = "chain",
    d: int | None = None,
    n: int | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
) -> pd.DataFrame:
    """Return the visible rows of a task: columns x0, x1, ... and y."""
    data = _build(task, d, n, overrides).problem([seed]).data
    return pd.DataFrame(data.x[0].numpy(), columns=_names(data.space.d)).assign(y=data.y[0].numpy())


def example_values(
    designs: pd.DataFrame,
    task: str = "chain",
    d: int | None = None,
    n: int | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
) -> "pd.Series[float]":
    """Return the true values of designs of such a table, NaN where a design is invalid."""
    problem = _build(task, d, n, overrides).problem([seed])
    names = _names(problem.data.space.d)
    missing = [name for name in names if name not in designs]
    if missing:
        raise UsageError(
            f"a design of this task has the columns x0 to {names[-1]}, got no {missing[0]}"
        )
    x = torch.tensor(designs[names].to_numpy(dtype=np.float64))  # (K, d)
    values = evaluate_designs(problem, x[None])[0]
    return pd.Series(values.numpy(), index=designs.index, name="value")


def _build(task: str, d: int | None, n: int | None, overrides: Sequence[str]) -> Task:
    sizes = [f"{key}={size}" for key, size in (("d", d), ("n", n)) if size is not None]
    (spec,) = specify_points([[f"task={task}", *sizes, *overrides]])
    return build_task(spec.config["task"])


def _names(d: int) -> list[str]:
    return [f"x{i}" for i in range(d)]

"""What is stored: one finished run, and a sample of a task."""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

ARRAYS = ("values", "predictions", "designs")  # of a record: (T, K), (T, K), (K, d)
SAMPLES = ("designs_sample", "codes_sample", "decoded_sample", "values_sample")  # in diagnostics
PLANE = "plane"  # in diagnostics: the function, rows and proposals of a task of two real numbers
DATA = "data_digest"  # column of a row: the digest of the visible table; older runs lack it
LEFT_OUT = "left_out"  # key of the diagnostics that were dropped when a run was published


@dataclass(frozen=True)
class Record:
    """What is stored of one run: the summary first, then the parts read only on demand."""

    row: dict[str, Any]  # one flat row, the columns of `ddobench.load`
    config: dict[str, Any] = field(default_factory=dict)  # resolved task, method, budget
    provenance: dict[str, Any] = field(default_factory=dict)
    curves: dict[str, NDArray[np.float64]] = field(default_factory=dict)  # each (T,)
    values: NDArray[np.float32] | None = None  # (T, K) raw, NaN where invalid
    predictions: NDArray[np.float32] | None = None  # (T, K) raw
    designs: NDArray[np.float32] | None = None  # (K, d) of the last iteration
    diagnostics: dict[str, Any] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()  # parts that were dropped when it was published


@dataclass(frozen=True)
class TaskSample:
    """What a task looks like at one seed, so that a report can show it without building it."""

    task: str
    task_variant: str
    d: int
    n: int
    seed: int
    title: str
    formula: str
    text: str
    edges: list[tuple[int, int]] | None  # of the true graph, where known
    observed: list[list[float]]  # some visible designs, their first coordinates
    hidden: list[list[float]] | None  # the coordinates behind them, where there are any
    y: list[float]  # the visible values of those designs


def to_json(value: Any) -> str:
    """Return JSON; numbers and arrays of NumPy and torch become plain ones."""
    return json.dumps(
        value, default=lambda one: one.tolist() if hasattr(one, "tolist") else str(one)
    )

"""One finished run, and what a task looks like: what is stored, before it is written."""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Status = Literal["ok", "declined", "failed"]
SAMPLES = ("designs_sample", "codes_sample", "decoded_sample", "values_sample")  # in diagnostics
LEFT_OUT = "left_out"  # where a published record, or its diagnostics, say what they had


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
class Portrait:
    """What a task looks like at one seed, so that a report can show it without drawing it anew."""

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

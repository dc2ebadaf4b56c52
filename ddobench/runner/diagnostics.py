"""What only the harness can tell of a fitted method: how its codes relate to the hidden truth.

Round trip: visible designs encoded and decoded, are they still valid and do they keep their value?
Alignment: does each code follow a single hidden coordinate, more than random axes would? Recovery:
where the codes are the hidden coordinates, how close is the graph to the true one? Sample: a few
designs beside their codes, to look at.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Insight, Method, Problem
from ddobench.graphs import Recovery
from ddobench.scores import PREDICTED, VALUE_MODEL

ROWS = 2000  # visible designs looked at
SAME = 0.999  # correlation from which a code counts as a hidden coordinate
DRAWS = 1000  # random directions behind the chance level
SHOWN = 200  # designs in the sample
COORDINATES = 3  # of each of them
DIGITS = 4  # significant ones of their numbers

Matrix = NDArray[np.float64]
Oracle = Callable[[Tensor], Tensor]  # (S, K, d) -> (S, K), NaN where invalid


def diagnose(method: Method, problem: Problem, evaluate: Oracle) -> list[dict[str, Any]]:
    """Return what each seed of a method has to say of itself, and what the harness makes of it."""
    told = [dict(one) for one in method.diagnostics()] or [{} for _ in problem.data.x]
    insight = method.insight(problem.data.x[:, :ROWS])
    if insight is not None:
        for report, found in zip(told, inspect(insight, problem, evaluate), strict=True):
            report |= found
    return told


def inspect(insight: Insight, problem: Problem, evaluate: Oracle) -> list[dict[str, Any]]:
    """Return for each seed what there is to tell of how its first visible designs are seen."""
    rows = insight.codes.shape[1]
    values = evaluate(insight.reconstructed).numpy()  # (S, K), NaN where invalid
    reports = []
    for seed, y in enumerate(problem.data.y[:, :rows].numpy()):
        report: dict[str, Any] = describe_round_trip(values[seed], y)
        report |= {
            "codes_sample": _excerpt(insight.codes[seed]),
            "designs_sample": _excerpt(problem.data.x[seed]),
            "decoded_sample": _excerpt(insight.reconstructed[seed]),
            "values_sample": [_shorten(value) for value in y[:SHOWN]],
        }
        if problem.hidden is not None:
            codes = insight.codes[seed].numpy()
            correlations = correlate(codes, problem.hidden[seed, :rows].numpy())
            report |= describe_alignment(correlations)
            if problem.graphs is not None and are_the_same(correlations):
                recovery = Recovery.of(insight.graphs[seed], problem.graphs[seed])
                report["graph_recovery"] = recovery.describe()
        reports.append(report)
    return reports


def describe_round_trip(values: Matrix, y: Matrix) -> dict[str, float]:  # (K,), (K,)
    """Say how designs fare that were encoded and decoded."""
    valid = ~np.isnan(values)
    correlation = float("nan")
    if valid.sum() > 1 and np.ptp(values[valid]) > 0 and np.ptp(y[valid]) > 0:
        correlation = float(np.corrcoef(values[valid], y[valid])[0, 1])
    return {
        "round_trip_correlation": correlation,
        "round_trip_valid": float(valid.mean()),
    }


def describe_excess(curves: Mapping[str, Matrix]) -> dict[str, list[float]]:
    """Say by how many standard deviations the designs a method ranks first fall short."""
    excess = curves[PREDICTED.name] - curves[VALUE_MODEL.name]  # (T,)
    return {} if np.isnan(excess).all() else {"overestimation": excess.tolist()}


def describe_alignment(correlations: Matrix) -> dict[str, float]:  # (e, d_hidden)
    """Say how closely each code follows one hidden coordinate, and how closely chance would."""
    draws = np.random.default_rng(0).normal(size=(DRAWS, correlations.shape[1]))
    directions = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return {
        "alignment": float(np.abs(correlations).max(axis=1).mean()),
        "alignment_by_chance": float(np.abs(directions).max(axis=1).mean()),
    }


def are_the_same(correlations: Matrix) -> bool:
    """Tell whether every code is the hidden coordinate of the same number."""
    e, hidden = correlations.shape
    return e == hidden and bool((np.abs(np.diagonal(correlations)) > SAME).all())


def correlate(codes: Matrix, hidden: Matrix) -> Matrix:  # (K, e), (K, d_hidden) -> (e, d_hidden)
    """Return the correlation of every code with every hidden coordinate, 0 for a constant one."""
    scaled = []
    for table in (codes, hidden):
        sd = table.std(axis=0)
        scaled.append((table - table.mean(axis=0)) / np.where(sd > 0, sd, 1.0))
    correlations: Matrix = scaled[0].T @ scaled[1] / len(codes)
    return correlations


def _excerpt(table: Tensor) -> list[list[float]]:  # (K, e)
    """Return the first coordinates of the first rows, short enough to be stored with every run."""
    return [[_shorten(x) for x in row] for row in table[:SHOWN, :COORDINATES].tolist()]


def _shorten(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")

"""What only the harness can tell of a fitted method: how its codes relate to the hidden truth.

Round trip: visible designs encoded and decoded, are they still valid and do they keep their value?
Alignment: does each code follow a single hidden coordinate, more than random axes would? Recovery:
where the codes are the hidden coordinates, or the designs, how close is the graph to the true one?
Units: which hidden coordinates does each unit of a model look at? Sample: a few designs beside
their codes.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Insight, Method, Problem
from ddobench.graphs import Recovery
from ddobench.runner.unit_graphs import describe_units
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
    seen = method.insight(problem.data.x[:, :ROWS]) if problem.measures else None
    if seen:
        for report, found in zip(told, inspect(seen, problem, evaluate), strict=True):
            report |= found
    return told


def inspect(
    seen: Sequence[Insight | None], problem: Problem, evaluate: Oracle
) -> list[dict[str, Any]]:
    """Return for each seed what there is to tell of how its first visible designs are seen."""
    rows = next((len(one.codes) for one in seen if one is not None), 0)
    x, y = problem.data.x[:, :rows], problem.data.y[:, :rows]
    decoded = [x[seed] if one is None else one.reconstructed.to(x) for seed, one in enumerate(seen)]
    values = evaluate(torch.stack(decoded)).numpy()  # (S, K), NaN where invalid
    return [
        {} if one is None else _inspect_seed(one, seed, problem, values[seed], y[seed].numpy())
        for seed, one in enumerate(seen)
    ]


def _inspect_seed(
    insight: Insight, seed: int, problem: Problem, values: Matrix, y: Matrix
) -> dict[str, Any]:
    """Tell of one seed, whose decoded designs have the values (K,) and whose designs had y (K,)."""
    report: dict[str, Any] = describe_round_trip(values, y)
    report |= {
        "codes_sample": _excerpt(insight.codes),
        "designs_sample": _excerpt(problem.data.x[seed]),
        "decoded_sample": _excerpt(insight.reconstructed),
        "values_sample": [_shorten(value) for value in y[:SHOWN]],
    }
    truth = None if problem.graphs is None else problem.graphs[seed]
    if problem.hidden is None:
        if truth is not None and torch.equal(insight.codes, problem.data.x[seed, : len(y)]):
            report["graph_recovery"] = Recovery.of(insight.graph, truth).describe()
        return report
    codes, hidden = insight.codes.numpy(), problem.hidden[seed, : len(y)].numpy()
    correlations = correlate(codes, hidden)
    report |= describe_alignment(correlations)
    if truth is not None and are_the_same(correlations):
        report["graph_recovery"] = Recovery.of(insight.graph, truth).describe()
    if insight.directions is not None:
        report |= describe_units(insight.directions.numpy(), codes, hidden, truth)
    return report


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

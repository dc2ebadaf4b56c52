"""How the codes of a fitted method relate to the hidden truth, which only the harness knows.

Round trip: visible designs encoded and decoded, are they still valid and do they keep their value?
Alignment: does each code follow a single hidden coordinate, more than random axes would? Recovery:
where the codes are the hidden coordinates, or the designs, how close is the graph to the true one?
Units: which hidden coordinates does each unit of a model depend on? Sample: a few designs beside
their codes. Plane: designs of two real numbers beside the function itself.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Insight, Method, Problem
from ddobench.graphs import Graph, Recovery
from ddobench.scores import GRAPH_DENSITY, PREDICTED, VALUE_MODEL
from ddobench.store.records import PLANE

ROWS = 2000  # visible designs used
SAME = 0.999  # correlation from which a code counts as a hidden coordinate
DRAWS = 1000  # random directions behind the chance level
SHOWN = 200  # designs in the sample
COORDINATES = 3  # of each of them
DIGITS = 4  # significant digits of the numbers in the sample
UNIT_DIGITS = 3  # decimals of stored shares of energy
EDGE_SHARE = 0.1  # of a unit's energy in each of two coordinates for an edge between them
CLIQUE_SHARE = 0.8  # of a unit's energy inside a clique for that clique to count as found

GRID = 31  # points along each axis of a plane
ROWS_IN_PLANE, PROPOSALS_IN_PLANE = 400, 64  # designs

Matrix = NDArray[np.float64]
Oracle = Callable[[Tensor], Tensor]  # (S, K, d) -> (S, K), NaN where invalid


def diagnose(method: Method, problem: Problem, evaluate: Oracle) -> list[dict[str, Any]]:
    """Return the method's own diagnostics of each seed together with those of the harness."""
    reports = [dict(one) for one in method.diagnostics()] or [{} for _ in problem.data.x]
    for report in reports:
        report.pop(GRAPH_DENSITY.name, None)  # a score of the harness, which a method must not set
    insights = method.insight(problem.data.x[:, :ROWS].clone()) if problem.measures else None
    if insights:
        for report, found in zip(reports, inspect(insights, problem, evaluate), strict=True):
            report |= found
    return reports


def inspect(
    insights: Sequence[Insight | None], problem: Problem, evaluate: Oracle
) -> list[dict[str, Any]]:
    """Return for each seed how the codes of its first visible designs relate to the truth."""
    rows = next((len(one.codes) for one in insights if one is not None), 0)
    x, y = problem.data.x[:, :rows], problem.data.y[:, :rows]
    decoded = [
        x[seed] if one is None else one.reconstructed.to(x) for seed, one in enumerate(insights)
    ]
    values = evaluate(torch.stack(decoded)).numpy()  # (S, K), NaN where invalid
    return [
        {} if one is None else _inspect_seed(one, seed, problem, values[seed], y[seed].numpy())
        for seed, one in enumerate(insights)
    ]


def _inspect_seed(
    insight: Insight, seed: int, problem: Problem, values: Matrix, y: Matrix
) -> dict[str, Any]:
    """Inspect one seed; its decoded designs have the values (K,), the designs themselves y (K,)."""
    report: dict[str, Any] = describe_round_trip(values, y)
    pairs = insight.graph.d * (insight.graph.d - 1) / 2
    report |= {
        GRAPH_DENSITY.name: len(insight.graph.edges) / pairs if pairs else 0.0,
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


def describe_planes(
    problem: Problem, evaluate: Oracle, proposed: Sequence[Matrix]
) -> list[dict[str, Any]]:  # (K, 2) for each seed
    """Return functions of two real numbers on a grid, with rows and proposals; else nothing.

    The grid covers the visible rows and the optimum. Where no best design is known, the oracle may
    be a simulator, and is not called for a picture.
    """
    x, y = problem.data.x, problem.data.y
    best = problem.best_designs()
    if x.shape[2] != 2 or problem.data.space.categorical or best is None:
        return [{} for _ in x]
    shown = torch.cat([x, best[:, None]], dim=1)
    low, high = shown.amin(dim=1, keepdim=True), shown.amax(dim=1, keepdim=True)  # (S, 1, 2)
    steps = torch.linspace(-0.05, 1.05, GRID, dtype=torch.float64)
    grid = low + torch.cartesian_prod(steps, steps) * (high - low)  # (S, GRID^2, 2)
    values = evaluate(grid)
    planes: list[dict[str, Any]] = []
    for seed, designs in enumerate(proposed):
        found = designs[np.isfinite(designs).all(axis=1)][:PROPOSALS_IN_PLANE]
        plane = {
            "grid": _shorten_table(grid[seed]),
            "values": [_shorten(value) for value in values[seed].tolist()],
            "rows": _shorten_table(x[seed, :ROWS_IN_PLANE]),
            "best_visible": _shorten_table(x[seed, y[seed].argmax()][None]),
            "proposed": _shorten_table(torch.from_numpy(found)),
            "optimum": _shorten_table(best[seed, None]),
        }
        planes.append({PLANE: plane})
    return planes


def describe_round_trip(values: Matrix, y: Matrix) -> dict[str, float]:  # (K,), (K,)
    """Return how many designs stay valid when encoded and decoded, and whether values stay."""
    valid = ~np.isnan(values)
    correlation = float("nan")
    if valid.sum() > 1 and np.ptp(values[valid]) > 0 and np.ptp(y[valid]) > 0:
        correlation = float(np.corrcoef(values[valid], y[valid])[0, 1])
    return {
        "round_trip_correlation": correlation,
        "round_trip_valid": float(valid.mean()),
    }


def describe_excess(curves: Mapping[str, Matrix]) -> dict[str, list[float]]:
    """Return by how many standard deviations a method overestimates the designs it ranks first."""
    excess = curves[PREDICTED.name] - curves[VALUE_MODEL.name]  # (T,)
    return {} if np.isnan(excess).all() else {"overestimation": excess.tolist()}


def describe_alignment(correlations: Matrix) -> dict[str, float]:  # (e, d_hidden)
    """Return how closely each code follows one hidden coordinate, and the level of chance."""
    draws = np.random.default_rng(0).normal(size=(DRAWS, correlations.shape[1]))
    directions = draws / np.linalg.norm(draws, axis=1, keepdims=True)
    return {
        "alignment": float(np.abs(correlations).max(axis=1).mean()),
        "alignment_by_chance": float(np.abs(directions).max(axis=1).mean()),
    }


def are_the_same(correlations: Matrix) -> bool:
    """Return whether every code is the hidden coordinate with the same index."""
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


def describe_units(
    directions: NDArray[Any],  # (U, R, e)
    codes: Matrix,  # (K, e)
    hidden: Matrix,  # (K, d_hidden)
    truth: Graph | None,
) -> dict[str, Any]:
    """Return which hidden coordinates and true cliques the units of a model depend on.

    Units look along directions in the method's own codes. Where the codes are about linear in the
    hidden coordinates, each direction can be written in these. Too few rows give nothing: any codes
    would be linear in that many coordinates.
    """
    rows, d = hidden.shape
    if rows <= d + 1:
        return {}
    slopes, residual = regress(codes, hidden)
    energy = share_energy(directions.astype(np.float64) @ slopes)  # (U, d_hidden)
    graph = join_coordinates(energy)
    report: dict[str, Any] = {
        "edges": [list(edge) for edge in graph.edges],
        "edge_share": EDGE_SHARE,
        "residual": float(f"{residual:.{UNIT_DIGITS}g}"),
        "energy": energy.round(UNIT_DIGITS).tolist(),
    }
    if truth is not None:
        inside = share_cliques(energy, truth)  # (U, C)
        report |= {
            "clique_share": CLIQUE_SHARE,
            "clique_energy": inside.round(UNIT_DIGITS).tolist(),
            "cliques_found": int((inside > CLIQUE_SHARE).any(axis=0).sum()),
            "cliques_true": len(truth.cliques),
            "recovery": Recovery.of(graph, truth).describe(),
        }
    return {"units_graph": report}


def regress(codes: Matrix, hidden: Matrix) -> tuple[Matrix, float]:
    """Return the slopes (e, d_hidden) of codes in hidden coordinates, by least squares.

    The second value is the share of the variance of all codes that is left unexplained.
    """
    centred, moved = hidden - hidden.mean(axis=0), codes - codes.mean(axis=0)
    slopes: Matrix = np.linalg.lstsq(centred, moved, rcond=None)[0].T
    total = float(np.square(moved).sum())
    left = float(np.square(moved - centred @ slopes.T).sum())
    return slopes, left / total if total else 0.0


def share_energy(directions: Matrix) -> Matrix:  # (U, R, d_hidden) -> (U, d_hidden)
    """Return each unit's shares of squared weight over the coordinates, 0 without any weight."""
    energy = np.square(directions).sum(axis=1)
    total = energy.sum(axis=1, keepdims=True)
    shares: Matrix = energy / np.where(total > 0, total, 1.0)
    return shares


def share_cliques(energy: Matrix, truth: Graph) -> Matrix:  # (U, d_hidden) -> (U, C)
    """Return which share of each unit's energy lies in each true clique."""
    columns = [energy[:, list(clique)].sum(axis=1) for clique in truth.cliques]
    return np.stack(columns, axis=1)


def join_coordinates(energy: Matrix) -> Graph:  # (U, d_hidden)
    """Return the graph with an edge wherever some unit depends on both ends."""
    used = [np.flatnonzero(unit >= EDGE_SHARE).tolist() for unit in energy]
    edges = {pair for own in used for pair in combinations(own, 2)}
    return Graph.from_edges(energy.shape[1], sorted(edges))


def _excerpt(table: Tensor) -> list[list[float]]:  # (K, e)
    """Return the first coordinates of the first rows, short enough to be stored with every run."""
    return _shorten_table(table[:SHOWN, :COORDINATES])


def _shorten_table(table: Tensor) -> list[list[float]]:
    return [[_shorten(x) for x in row] for row in table.tolist()]


def _shorten(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")

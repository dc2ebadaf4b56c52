"""The graph that can be read off the units of a model, once the truth is at hand.

A method with units looks at its codes along learned directions, and the codes are its own. Where
there are hidden coordinates and the codes are about linear in them, each direction can be written
in hidden coordinates: then it shows which of them a unit looks at. Only the harness can do that; no
method sees what is told here.
"""

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddobench.graphs import Graph, Recovery

SHARED = 0.1  # of a unit's energy, which two coordinates need each to be joined by it
INSIDE = 0.8  # of a unit's energy, from which on a clique counts as found
DIGITS = 3  # decimals of stored shares

Matrix = NDArray[np.float64]


def describe_units(
    directions: NDArray[Any],  # (U, R, e)
    codes: Matrix,  # (K, e)
    hidden: Matrix,  # (K, d_hidden)
    truth: Graph | None,
) -> dict[str, Any]:
    """Tell which hidden coordinates and true cliques units look at; nothing where rows are few."""
    rows, d = hidden.shape
    if rows <= d + 1:  # any codes would be linear in so many coordinates
        return {}
    slopes, residual = regress(codes, hidden)
    energy = share_energy(directions.astype(np.float64) @ slopes)  # (U, d_hidden)
    graph = join_coordinates(energy)
    told: dict[str, Any] = {
        "edges": [list(edge) for edge in graph.edges],
        "edge_share": SHARED,
        "residual": float(f"{residual:.{DIGITS}g}"),
        "energy": energy.round(DIGITS).tolist(),
    }
    if truth is not None:
        inside = share_cliques(energy, truth)  # (U, C)
        told |= {
            "clique_share": INSIDE,
            "clique_energy": inside.round(DIGITS).tolist(),
            "cliques_found": int((inside > INSIDE).any(axis=0).sum()),
            "cliques_true": len(truth.cliques),
            "recovery": Recovery.of(graph, truth).describe(),
        }
    return {"units_graph": told}


def regress(codes: Matrix, hidden: Matrix) -> tuple[Matrix, float]:
    """Return the slopes (e, d_hidden) of codes in hidden coordinates, by least squares.

    The second number is what they leave unexplained, as a share of the variance of all codes.
    """
    centred, moved = hidden - hidden.mean(axis=0), codes - codes.mean(axis=0)
    slopes: Matrix = np.linalg.lstsq(centred, moved, rcond=None)[0].T
    total = float(np.square(moved).sum())
    left = float(np.square(moved - centred @ slopes.T).sum())
    return slopes, left / total if total else 0.0


def share_energy(directions: Matrix) -> Matrix:  # (U, R, d_hidden) -> (U, d_hidden)
    """Return how a unit's squared weights spread over the coordinates, 0 where it looks nowhere."""
    energy = np.square(directions).sum(axis=1)
    total = energy.sum(axis=1, keepdims=True)
    shares: Matrix = energy / np.where(total > 0, total, 1.0)
    return shares


def share_cliques(energy: Matrix, truth: Graph) -> Matrix:  # (U, d_hidden) -> (U, C)
    """Return which share of each unit's energy lies in each true clique."""
    columns = [energy[:, list(clique)].sum(axis=1) for clique in truth.cliques]
    return np.stack(columns, axis=1)


def join_coordinates(energy: Matrix) -> Graph:  # (U, d_hidden)
    """Return the graph with an edge wherever some unit looks at both ends."""
    watched = [np.flatnonzero(unit >= SHARED).tolist() for unit in energy]
    edges = {pair for own in watched for pair in combinations(own, 2)}
    return Graph.from_edges(energy.shape[1], sorted(edges))

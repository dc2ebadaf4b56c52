"""How far proposed designs are from the rows that a model was fitted to."""

import numpy as np
from scipy.spatial.distance import cdist, pdist

from ddobench.tabular.rows import Values

ROWS = 2000  # that the typical distance is taken from


def nearest(codes: Values, visible: Values) -> Values:  # (K, e), (N, e) -> (K,)
    """Return the distance of each design to the nearest visible row.

    Every column counts in standard deviations of its visible entries.
    """
    scale = _scale(visible)
    distances: Values = cdist(codes / scale, visible / scale).min(axis=1)
    return distances


def typical(visible: Values) -> float:
    """Return the median distance of a visible row to the nearest other one, repeats left out."""
    rows = np.unique(visible, axis=0)
    if len(rows) < 2:
        return 0.0
    scale = _scale(visible)
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), ROWS)).astype(int)]
    distances = cdist(some / scale, rows / scale)
    distances[distances == 0] = np.inf  # to itself
    return float(np.median(distances.min(axis=1)))


def between(codes: Values, visible: Values) -> float:  # (K, e), (N, e)
    """Return the median distance of two designs, each column in its visible deviations."""
    apart: Values = pdist(codes / _scale(visible))
    return float(np.median(apart)) if len(apart) else 0.0


def _scale(visible: Values) -> Values:
    sd: Values = visible.std(axis=0)
    return np.where(sd > 0, sd, 1.0)

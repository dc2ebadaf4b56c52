"""Least squares that is well defined when the features are dependent."""

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


def least_squares(features: Values, y: Values, ridge: float = 0.0) -> Values:
    """Return the weights (P,) minimising |features w - y|^2 + ridge |w|^2.

    With `ridge` 0 the minimiser of smallest norm is taken: one-hot features are always dependent.
    """
    left, singular, right = np.linalg.svd(features, full_matrices=False)
    keep = singular > singular.max(initial=0.0) * max(features.shape) * np.finfo(float).eps
    left, singular, right = left[:, keep], singular[keep], right[keep]
    weights: Values = right.T @ (singular / (singular**2 + ridge) * (left.T @ y))
    return weights

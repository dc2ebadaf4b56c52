"""The two directions in which a fitted model changes most: what its proposals are drawn in.

The model is asked a little to both sides of each column at some of the rows; the leading axes of
these slopes (an active subspace) are the directions that matter to it. Without a model they are the
principal axes of the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ddobench.proposing.fitted import Codes
from ddobench.tabular.rows import Values

ROWS = 200  # at which slopes are taken
STEP = 0.1  # standard deviations to either side
NAMED = 3  # columns that an axis is named by

Predict = Callable[[Codes], Values | None]  # (K, e) -> (K,)


@dataclass(frozen=True)
class Directions:
    """Two axes through the mean of the rows, each column in its standard deviations."""

    mean: Values  # (e,)
    scale: Values  # (e,)
    axes: Values  # (e, 2)
    shares: Values  # (2,) of the squared slopes, or of the variance
    by_model: bool

    def project(self, codes: Codes) -> Values:  # (K, e) -> (K, 2)
        """Return where designs lie in the two directions."""
        placed: Values = (codes - self.mean) / self.scale @ self.axes
        return placed

    def describe(self, axis: int, names: list[str]) -> str:
        """Name an axis by the columns that weigh most in it."""
        weights = self.axes[:, axis]
        heaviest = np.argsort(-np.abs(weights), kind="stable")[:NAMED]
        parts = [f"{weights[i]:+.2f} {names[i]}" for i in heaviest if abs(weights[i]) > 0.005]
        return " ".join(parts) + (" …" if len(weights) > NAMED else "")


def find_directions(visible: Codes, predict: Predict) -> Directions:
    """Find the two directions for rows (N, e)."""
    mean, sd = visible.mean(axis=0), visible.std(axis=0)
    scale = np.where(sd > 0, sd, 1.0)
    slopes = _slopes(visible[np.linspace(0, len(visible) - 1, ROWS).astype(int)], scale, predict)
    by_model = slopes is not None and bool(np.isfinite(slopes).all() and slopes.any())
    table = slopes if slopes is not None and by_model else (visible - mean) / scale
    values, vectors = np.linalg.eigh(table.T @ table / len(table))
    axes, shares = vectors[:, ::-1][:, :2], values[::-1][:2] / max(values.sum(), 1e-300)
    if axes.shape[1] < 2:  # a single column: the second direction is flat
        axes, shares = np.hstack([axes, np.zeros_like(axes)]), np.append(shares, 0.0)
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    return Directions(mean, scale, axes * np.where(signs == 0, 1.0, signs), shares, by_model)


def _slopes(rows: Codes, scale: Values, predict: Predict) -> Values | None:
    """Return the slope of the model at rows (K, e) along every column, None without a model."""
    steps = STEP * np.diag(scale)  # (e, e)
    around = np.stack([rows[:, None, :] + steps, rows[:, None, :] - steps])  # (2, K, e, e)
    predicted = predict(around.reshape(-1, rows.shape[1]))
    if predicted is None:
        return None
    above, below = predicted.reshape(2, *rows.shape)
    slopes: Values = (above - below) / (2 * STEP)
    return slopes

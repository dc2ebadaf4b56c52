"""Turns the true and predicted values of a trajectory into the numbers that are reported.

Values are in standard deviations of the visible data. Two rankings pick the designs that count at
each iteration: the method's own prediction (`model`, the honest headline) and the truth (`oracle`).
An invalid design counts as the worst visible value in both; `survivors` is the paper's curve over
valid designs alone, which stops for good once fewer than `top` of them are left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """What the visible values of one seed look like, and the optimum where it is known."""

    mean: float
    sd: float
    worst: float
    best: float
    optimum: float  # NaN where unknown

    @classmethod
    def of(cls, y: Values, optimum: float) -> "Reference":
        """Describe the visible values y (N,)."""
        sd = float(y.std())
        return cls(float(y.mean()), sd if sd > 0 else 1.0, float(y.min()), float(y.max()), optimum)

    def standardise(self, y: Values) -> Values:
        """Express raw values in standard deviations above the visible mean."""
        return (y - self.mean) / self.sd


def score(
    values: Values, predicted: Values | None, top: int, reference: Reference
) -> dict[str, Values]:
    """Return one number per iteration for each score, from raw values and predictions (T, K)."""
    truth = reference.standardise(values)
    invalid = np.isnan(truth)
    punished = np.where(invalid, reference.standardise(np.asarray(reference.worst)), truth)
    top = min(top, truth.shape[1])
    if predicted is None:
        order = np.broadcast_to(np.arange(truth.shape[1]), truth.shape)
        standardised = np.full(truth.shape, np.nan)
    else:
        standardised = reference.standardise(predicted)
        order = np.argsort(
            np.where(np.isnan(standardised), np.inf, -standardised), axis=1, kind="stable"
        )
    chosen = order[:, :top]
    valid = (~invalid).sum(axis=1)
    alive = np.logical_and.accumulate(valid >= top)
    best_valid = -np.sort(np.where(invalid, np.inf, -truth), axis=1)[:, :top]
    return {
        "value_model": np.take_along_axis(punished, chosen, axis=1).mean(axis=1),
        "value_oracle": -np.sort(-punished, axis=1)[:, :top].mean(axis=1),
        "survivors": np.where(
            alive, np.where(alive[:, None], best_valid, 0.0).mean(axis=1), np.nan
        ),
        "invalid": invalid.mean(axis=1),
        "predicted": np.take_along_axis(standardised, chosen, axis=1).mean(axis=1),
        "median": np.median(punished, axis=1),
        "best": punished.max(axis=1),
    }

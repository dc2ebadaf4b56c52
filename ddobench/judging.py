"""What the oracle makes of the designs of one run: the material that every curve is computed from.

Values are in standard deviations of the visible data. An invalid design counts as the worst visible
value, whoever picks it.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr

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


@dataclass(frozen=True)
class Judged:
    """The designs of every recorded iteration, and which of them the method ranks first."""

    truth: Values  # (T, K), NaN where invalid
    invalid: NDArray[np.bool_]  # (T, K)
    punished: Values  # (T, K), the truth with the worst visible value where invalid
    predicted: Values  # (T, K), NaN where the method predicts nothing
    chosen: NDArray[np.intp]  # (T, top), columns of the designs ranked first
    top: int

    @classmethod
    def of(
        cls, values: Values, predicted: Values | None, top: int, reference: Reference
    ) -> "Judged":
        """Judge raw values and predictions (T, K)."""
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
        return cls(truth, invalid, punished, standardised, order[:, :top], top)

    def mean_of_chosen(self, table: Values) -> Values:  # (T, K) -> (T,)
        """Average over the designs that the method ranks first."""
        means: Values = np.take_along_axis(table, self.chosen, axis=1).mean(axis=1)
        return means


TOP_SHARE = 0.1  # of the rows held out: those that a method ranks first


@dataclass(frozen=True)
class HeldOut:
    """How a method predicts rows that it was not shown, NaN where it predicts nothing."""

    error: float = float("nan")  # root mean square, in standard deviations of the visible values
    rank: float = float("nan")  # rank correlation of predictions and values
    top: float = float("nan")  # mean value of the tenth ranked first, in standard deviations

    @classmethod
    def of(cls, values: Values, predicted: Values, reference: Reference) -> "HeldOut":
        """Judge raw predictions of raw values, (H,) each."""
        truth, guess = reference.standardise(values), reference.standardise(predicted)
        if not len(truth) or not np.isfinite(guess).all():
            return cls()
        first = np.argsort(-guess, kind="stable")[: max(1, round(TOP_SHARE * len(truth)))]
        varied = len(truth) > 2 and np.ptp(truth) > 0 and np.ptp(guess) > 0
        return cls(
            error=float(np.sqrt(np.mean((guess - truth) ** 2))),
            rank=float(spearmanr(guess, truth).statistic) if varied else float("nan"),
            top=float(truth[first].mean()),
        )


@dataclass(frozen=True)
class Ending:
    """What a score of a run is taken from: its curves, and where the optimum is."""

    curves: dict[str, Values]  # (T,) each
    optimum: float  # in standard deviations, NaN where unknown
    regret_scale: float  # units of regret in a standard deviation
    held_out: HeldOut = HeldOut()  # of a task that hides rows

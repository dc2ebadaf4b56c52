"""The valued designs of one run, from which curves and scores are computed.

Values are in standard deviations of the visible data. An invalid design counts as the worst visible
value.
"""

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ddobench.planes import LocalPlanes, different_rows

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Reference:
    """Mean, spread and range of the visible values of one seed, and the optimum where known."""

    mean: float
    sd: float
    worst: float
    best: float
    optimum: float  # NaN where unknown
    low: float = float("nan")  # the least and the largest value of all data, hidden ones included
    high: float = float("nan")

    @classmethod
    def of(
        cls, y: Values, optimum: float, full_range: tuple[float, float] = (np.nan, np.nan)
    ) -> "Reference":
        """Describe the visible values y (N,)."""
        sd = float(y.std()) or 1.0
        return cls(float(y.mean()), sd, float(y.min()), float(y.max()), optimum, *full_range)

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
        from scipy.stats import spearmanr  # slow to import, and a look at the store needs none

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


FARTHEST = 1e30  # larger distances are stored as NaN
BATCH = 16  # designs that are measured at once, as an engineer would


@dataclass(frozen=True)
class Spread:
    """How far the designs of the last iteration that a method ranks first are from each other.

    A distance is the root mean square over the variables of differences in standard deviations of
    the visible designs; of categories, the share of variables that differ. A batch is the first
    16 of these designs that differ from each other.
    """

    diversity: float = float("nan")  # mean distance between two of them
    novelty: float = float("nan")  # mean distance to the nearest visible design
    off_surface: float = float("nan")  # median, see `planes`; NaN for categories
    batch_least: float = float("nan")  # least distance between two designs of a batch
    batch_mean: float = float("nan")  # mean distance between them

    @classmethod
    def of(cls, designs: Values, visible: Values, categorical: bool) -> "Spread":
        """Measure designs (K, d), the best first, against visible ones (N, d)."""
        from scipy.spatial.distance import cdist  # slow, as above

        designs = designs[np.isfinite(designs).all(axis=1)]
        if not len(designs):
            return cls()
        metric: Literal["hamming", "euclidean"] = "hamming" if categorical else "euclidean"
        sd = np.ones(visible.shape[1]) if categorical else visible.std(axis=0)
        scale = np.where(sd > 0, sd, 1.0) * np.sqrt(designs.shape[1])  # (d,)
        off = np.nan
        if not categorical:
            ratios = LocalPlanes.of(visible).off_surface(designs)
            off = np.median(np.where(np.isnan(ratios), np.inf, ratios))
        with np.errstate(over="ignore", invalid="ignore"):
            ours, theirs = designs / scale, visible / scale
            between = _distances(ours, metric)
            batch = _distances(ours[different_rows(designs)[:BATCH]], metric)
            nearest = cdist(ours, theirs, metric).min(axis=1)
            numbers = between.mean(), nearest.mean(), off, batch.min(), batch.mean()
        return cls(*(_nan_if_far(float(number)) for number in numbers))


def _distances(designs: Values, metric: Literal["hamming", "euclidean"]) -> Values:
    """Return the distances between any two designs, or 0 if there is only one."""
    from scipy.spatial.distance import pdist  # slow, as above

    return pdist(designs, metric) if len(designs) > 1 else np.zeros(1)


def _nan_if_far(number: float) -> float:
    return float(number) if abs(number) < FARTHEST else float("nan")  # also for NaN


def overlap_area(predicted: Values, truth: Values) -> float:  # (K,), (K,)
    """Return how alike two orders are from the top (AUPCC): 1 for the same, 0.5 for chance.

    The mean over k of the share that the first k by prediction have in common with the first k by
    truth (Tan et al. 2025). Among equal predictions the worst comes first, among equal truths what
    is predicted. NaN where one side is constant or unknown.
    """
    known = np.isfinite(predicted) & np.isfinite(truth)
    predicted, truth = predicted[known], truth[known]
    count = len(truth)
    if count < 2 or np.ptp(predicted) == 0 or np.ptp(truth) == 0:
        return float("nan")
    firsts = np.arange(1, count + 1)
    guessed, right = np.empty(count), np.empty(count)  # places in the two orders
    guessed[np.lexsort((truth, -predicted))] = firsts
    right[np.lexsort((guessed, -truth))] = firsts
    later = np.maximum(guessed, right)
    shared = np.searchsorted(np.sort(later), firsts, side="right")
    return float(np.mean(shared / firsts))


@dataclass(frozen=True)
class LastDesigns:
    """The designs of the last iteration, beyond what curves hold."""

    values: Values  # (top,) of those ranked first, in standard deviations; empty: not measured
    batch: Values = field(default_factory=lambda: np.empty(0))  # (at most 16,) of those that differ
    low: float = float("nan")  # the range of all data in standard deviations, NaN where unknown
    high: float = float("nan")
    order: float = float("nan")  # of predictions and values of all of them
    order_visible: float = float("nan")  # of predictions and values of the best visible tenth
    spread: Spread = Spread()

    @classmethod
    def of(
        cls,
        judged: Judged,
        reference: Reference,
        order_visible: float,
        designs: Values,
        spread: Spread,
    ) -> "LastDesigns":
        """Describe the last iteration of a run, with the designs (top, d) that are ranked first."""
        low, high = reference.standardise(np.asarray([reference.low, reference.high]))
        values = judged.punished[-1, judged.chosen[-1]]
        return cls(
            values=values,
            batch=values[different_rows(designs)[:BATCH]],
            low=float(low),
            high=float(high),
            order=overlap_area(judged.predicted[-1], judged.punished[-1]),
            order_visible=order_visible,
            spread=spread,
        )

    def mask_unmeasured(self) -> "LastDesigns":
        """Return the same for designs that were not measured."""
        return replace(self, values=np.empty(0), batch=np.empty(0), order=float("nan"))


UNKNOWN_DESIGNS = LastDesigns(np.empty(0))


@dataclass(frozen=True)
class RunEnd:
    """What scores of a run are computed from: curves, last designs, and landmarks."""

    curves: dict[str, Values]  # (T,) each
    optimum: float  # in standard deviations, NaN where unknown
    regret_scale: float  # units of regret in a standard deviation
    held_out: HeldOut = HeldOut()  # of a task that hides rows
    worst: float = float("nan")  # visible value, in standard deviations
    best: float = float("nan")  # visible value
    last: LastDesigns = UNKNOWN_DESIGNS
    density: float = float("nan")  # of the graph of the fitted method, NaN without one

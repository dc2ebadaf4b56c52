"""Turns the true and predicted values of a trajectory into the numbers that are reported.

Two rankings pick the designs that count at each iteration: the method's own prediction (`model`,
the honest headline) and the truth (`oracle`). Which numbers there are, `ddobench.scores` declares.
"""

from collections.abc import Mapping

import numpy as np

from ddobench.judging import NOTHING, Ending, HeldOut, Judged, LastDesigns, Reference, Values
from ddobench.scores import CURVES, HEADLINE, compute_curves, compute_scores


def score(
    values: Values, predicted: Values | None, top: int, reference: Reference
) -> dict[str, Values]:
    """Return one number per iteration for each curve, from raw values and predictions (T, K)."""
    return compute_curves(Judged.of(values, predicted, top, reference))


def forget_values(curves: Mapping[str, Values]) -> dict[str, Values]:
    """Return curves of designs that nobody measured: only what was predicted is known."""
    predicted = {curve.name for curve in CURVES if curve.predicted}
    return {
        name: curve if name in predicted else np.full(len(curve), np.nan)
        for name, curve in curves.items()
    }


def conclude(
    curves: Mapping[str, Values],
    reference: Reference,
    regret_unit: str,
    held_out: HeldOut = HeldOut(),  # noqa: B008 - frozen
    last: LastDesigns = NOTHING,
) -> dict[str, float]:
    """Return one number for each score of a run."""
    landmarks = np.asarray([reference.optimum, reference.worst, reference.best])
    optimum, worst, best = reference.standardise(landmarks).tolist()
    scale = reference.sd if regret_unit == "raw" else 1.0
    return compute_scores(Ending(dict(curves), optimum, scale, held_out, worst, best, last))


def find_non_finite(
    curves: Mapping[str, Values], scores: Mapping[str, float], measured: bool = True
) -> str | None:
    """Say which number of a run is none that can be averaged or drawn, if there is one.

    NaN stands for what is not known, which the headline always is where designs are measured.
    """
    if measured and np.isnan(scores[HEADLINE.name]):
        return f"{HEADLINE.name} is nan, and every run must have it"
    single = {name: np.asarray([number]) for name, number in scores.items()}
    for name, numbers in {**curves, **single}.items():
        infinite = numbers[np.isinf(numbers)]
        if len(infinite):
            return f"{name} is {infinite[0]}, and a score must be finite"
    return None

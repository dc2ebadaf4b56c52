"""Turns the true and predicted values of a trajectory into the numbers that are reported.

Two rankings pick the designs that count at each iteration: the method's own prediction (`model`,
the honest headline) and the truth (`oracle`). Which numbers there are, `ddobench.scores` declares.
"""

from collections.abc import Mapping

import numpy as np

from ddobench.judging import Ending, Judged, Reference, Values
from ddobench.scores import compute_curves, compute_scores


def score(
    values: Values, predicted: Values | None, top: int, reference: Reference
) -> dict[str, Values]:
    """Return one number per iteration for each curve, from raw values and predictions (T, K)."""
    return compute_curves(Judged.of(values, predicted, top, reference))


def conclude(
    curves: Mapping[str, Values], reference: Reference, regret_unit: str
) -> dict[str, float]:
    """Return one number for each score of a run."""
    optimum = float(reference.standardise(np.asarray(reference.optimum)))
    scale = reference.sd if regret_unit == "raw" else 1.0
    return compute_scores(Ending(dict(curves), optimum, scale))

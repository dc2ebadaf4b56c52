"""Numbers that cannot be averaged: infinite ones, and those whose powers are.

A run that measured one counts as failed, with the number as its reason, so that tables name it and
no mean rests on it. What a method predicts may be anything: it is left out, and the run stays.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.scores import curve_names, predicted_names, stored_names

LARGEST = 1e75  # the fourth power is still a number


def fail_unusable_runs(runs: pd.DataFrame, curves: pd.DataFrame | None = None) -> pd.DataFrame:
    """Let finished runs fail that measured what cannot be averaged, in a score or in a curve."""
    finished = runs["status"] == "ok"
    reasons = pd.Series("", index=runs.index, dtype=object)
    for name in stored_names():
        unusable = too_large(runs[name])
        if name not in predicted_names():
            reasons = reasons.where(~(unusable & finished) | (reasons != ""), _explain(name))
        runs[name] = runs[name].where(~unusable)
    for name in (name for name in curve_names() if name not in predicted_names()):
        if curves is not None and name in curves:
            points = curves.loc[too_large(curves[name]), ["digest", "seed"]]
            hit = pd.MultiIndex.from_frame(runs[["digest", "seed"]]).isin(
                pd.MultiIndex.from_frame(points)
            )
            reasons = reasons.where(~(hit & finished) | (reasons != ""), _explain(name))
    failed = reasons != ""
    runs["reason"] = runs["reason"].where(~failed, reasons)
    runs["status"] = runs["status"].where(~failed, "failed")
    return runs


def drop_unusable_points(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out what cannot be averaged from curves."""
    names = [name for name in curve_names() if name in points]
    numbers = points[names].apply(pd.to_numeric, errors="coerce")
    return points.assign(**{name: numbers[name].where(~too_large(numbers[name])) for name in names})


def too_large(numbers: "pd.Series[float]") -> NDArray[np.bool_]:
    """Tell which numbers cannot be averaged; what is not there is not among them."""
    found: NDArray[np.bool_] = np.abs(numbers.to_numpy(float)) > LARGEST
    return found


def _explain(name: str) -> str:
    return f"it stored a {name} that is infinite or beyond {LARGEST:g}; none of its scores is used"

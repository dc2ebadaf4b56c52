"""Warnings: where what a model promises should not be believed as it stands."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ddobench.proposing.check import Check
from ddobench.tabular.rows import Values

FAR = 3.0  # typical distances between rows, from which a design is far from the data
BOLD = 3.0  # standard deviations above the best row, from which a promise is bold
WEAK_RANK = 0.3  # rank correlation on hidden rows, below which a model cannot rank the best
LARGE_ERROR = 1.0  # standard deviations of error on hidden rows, from which values mean little
WEAK_AGREEMENT = 0.5  # rank correlation between seeds, below which their models disagree
ALIKE = 0.25  # typical distances between rows, below which proposals are nearly the same


def warn_of_distance(ratios: Values, outside: Values) -> Iterator[str]:
    """Say how many designs are rows already, far from all of them, or outside of their range."""
    far, left = int((ratios > FAR).sum()), int((outside > 0).sum())
    known = int((ratios == 0).sum())
    if known:
        yield f"{known} of {len(ratios)} proposals are rows of the table already."
    if far:
        yield (
            f"{far} of {len(ratios)} proposals lie more than {FAR:g} times as far from every row "
            "as rows lie from each other: there the model guesses."
        )
    if left:
        yield (
            f"{left} of {len(outside)} proposals leave the range that the rows have in some "
            "column; bounds='visible' (--inside) keeps them there."
        )


def warn_of_likeness(spread: float, typical: float) -> Iterator[str]:
    """Say if the proposals are nearly one design: `spread` is the median distance of two."""
    if 0 < spread < ALIKE * typical:
        yield (
            f"The proposals are nearly the same: two of them are typically {spread:.2g} standard "
            f"deviations apart, neighbouring rows {typical:.2g}; measure a few of them, not all."
        )


def warn_of_promises(predicted: Values, y: Values) -> Iterator[str]:
    """Say if a model promises much more than was ever seen, or less; larger is better."""
    known = predicted[np.isfinite(predicted)]
    if not len(known):
        return
    excess = (known.max() - y.max()) / (y.std() or 1.0)
    if excess > BOLD:
        yield (
            f"The model promises {excess:.1f} standard deviations more than the best row has; "
            "such promises are rarely kept far from the data."
        )
    if excess < 0:
        yield (
            "The model predicts less of its proposals than the best row has: it smooths the rows, "
            "so take its order of designs and not its numbers."
        )


def warn_of_check(check: Check | None) -> Iterator[str]:
    """Say if the model failed on rows that were hidden from it."""
    if check is None:
        return
    found = check.held_out
    if np.isnan(found.rank) or found.rank < WEAK_RANK:
        yield (
            "Fitted without the best fifth of the rows, the model hardly ranks these: rank "
            f"correlation {found.rank:.2f} where 1 is perfect and 0 is chance."
        )
    if found.error > LARGE_ERROR:
        yield (
            "Fitted without the best fifth of the rows, the model misses their values by "
            f"{found.error:.1f} standard deviations of the rest, {_tell_side(check)}."
        )


def _tell_side(check: Check) -> str:
    """Say to which side most of the error on hidden rows goes, and what follows."""
    if check.excess > check.held_out.error / 2:
        return "by predicting too much: expect less than it promises"
    if check.excess < -check.held_out.error / 2:
        return "by predicting too little: it does not reach beyond what it has seen"
    return "too much here and too little there: its values mean little"


def warn_of_candidates(method: str, candidates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say if a method that chooses by itself trusted none of its candidates."""
    if not candidates or any(one.get("chosen") for one in candidates):
        return
    judged = [one for one in candidates if isfinite(one["held_out_top_rank"])]
    if judged:
        best = max(judged, key=lambda one: float(one["held_out_top_rank"]))
        why = (
            f"the best of them, {best['candidate']}, puts the best rows in order with a rank "
            f"correlation of {best['held_out_top_rank']:.2f}, which may be chance"
        )
    else:
        why = "; ".join(sorted({str(one["reason"]) for one in candidates}))
    yield (
        f"{method} trusts none of its candidates on these rows ({why}), so that it proposes "
        "nothing beyond them; name a method to get new designs all the same."
    )


def warn_of_disagreement(agreement: float) -> Iterator[str]:
    """Say if the models of several seeds rank the same designs differently."""
    if agreement < WEAK_AGREEMENT:
        yield (
            f"The seeds disagree on the proposals: their predictions have a rank correlation of "
            f"{agreement:.2f}, where 1 is full agreement."
        )

"""Warnings: where what a model promises should not be believed as it stands."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ddobench.proposing.check import Check
from ddobench.tabular.rows import Values

FAR = 3.0  # typical distances between rows, from which a design is far from the data
BOLD = 3.0  # standard deviations above the best row, from which a promise is bold
WEAK_RANK = 0.3  # rank correlation on hidden rows, below which a model cannot rank the best
LARGE_ERROR = 1.0  # standard deviations of error on hidden rows, from which values mean little
WEAK_AGREEMENT = 0.5  # rank correlation between seeds, below which their models disagree


def warn_of_distance(ratios: Values, outside: Values) -> Iterator[str]:
    """Say how many designs are far from all rows, or outside of what was ever seen."""
    far, left = int((ratios > FAR).sum()), int((outside > 0).sum())
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


def warn_of_promises(predicted: Values, y: Values) -> Iterator[str]:
    """Say if a model promises much more than was ever seen; larger is better."""
    known = predicted[np.isfinite(predicted)]
    if not len(known):
        return
    excess = (known.max() - y.max()) / (y.std() or 1.0)
    if excess > BOLD:
        yield (
            f"The model promises {excess:.1f} standard deviations more than the best row has; "
            "such promises are rarely kept far from the data."
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
            f"{found.error:.1f} standard deviations of the rest: expect less than it predicts."
        )


def warn_of_candidates(method: str, candidates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Say if a method that chooses by itself trusted none of its candidates."""
    if candidates and not any(one.get("chosen") for one in candidates):
        reasons = sorted({str(one["reason"]) for one in candidates if one.get("reason")})
        why = "; ".join(reasons) or "none orders the best rows better than chance may"
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

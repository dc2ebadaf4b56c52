"""Warnings: when the predictions for proposed designs should not be taken at face value."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from ddobench.propose.fitting import FittedMethod, HeldOutCheck
from ddobench.propose.ranking import OUTSIDE, PREDICTED, RATIO, RankedDesigns
from ddobench.tabular.rows import Values

FAR = 3.0  # a design with a larger distance ratio is far from the data
OPTIMISTIC = 3.0  # standard deviations above the best row
WEAK_RANK = 0.3  # rank correlation on held-out rows
LARGE_ERROR = 1.0  # standard deviations, on held-out rows
WEAK_AGREEMENT = 0.5  # rank correlation between seeds
NEARLY_EQUAL = 0.25  # of the typical distance between rows


def collect_warnings(
    fitted: FittedMethod,
    ranked: RankedDesigns,
    check: HeldOutCheck | None,
    candidates: Sequence[Mapping[str, Any]],
    y: Values,
    k: int,
    minimise: bool,
) -> Iterator[str]:
    """Yield every warning about proposals from rows with values y (N,), larger is better."""
    method, found = fitted.spec.method, len(ranked.designs)
    yield from warn_candidates(method, candidates)
    for seed, reason in fitted.failures.items():
        yield f"Seed {seed} failed and is left out: {reason}."
    if found < k:
        yield (
            f"{method} proposes {found} different design{'s' if found > 1 else ''}, fewer than "
            f"the {k} requested."
        )
    columns = (ranked.assessment[name].to_numpy() for name in (RATIO, OUTSIDE, PREDICTED))
    ratios, outside, predicted = columns
    yield from warn_distance(ratios, outside)
    yield from warn_similar(ranked.median_distance, ranked.typical_distance)
    yield from warn_predicted(-predicted if minimise else predicted, y)
    yield from warn_check(check)
    if ranked.agreement < WEAK_AGREEMENT:
        yield (
            "The seeds disagree about the proposals: their predictions have a rank correlation of "
            f"{ranked.agreement:.2f} (1 is full agreement)."
        )


def warn_distance(ratios: Values, outside: Values) -> Iterator[str]:
    """Warn of designs that are rows already, far from all rows, or outside their range."""
    known, far, left = (int(x.sum()) for x in (ratios == 0, ratios > FAR, outside > 0))
    if known:
        yield f"{known} of {len(ratios)} proposals are already rows of the table."
    if far:
        yield (
            f"{far} of {len(ratios)} proposals are more than {FAR:g} times as far from the nearest "
            "row as rows are from each other, so their predictions are extrapolations."
        )
    if left:
        yield (
            f"{left} of {len(outside)} proposals leave the range of the rows in some column; "
            "inside=True (--inside) keeps them inside."
        )


def warn_similar(median: float, typical: float) -> Iterator[str]:
    """Warn if designs are nearly equal: `median` is the distance between two of them."""
    if 0 < median < NEARLY_EQUAL * typical:
        yield (
            f"The proposals are nearly the same: two of them are typically {median:.2g} standard "
            f"deviations apart, neighbouring rows {typical:.2g}; measure a few of them, not all."
        )


def warn_predicted(predicted: Values, y: Values) -> Iterator[str]:
    """Warn if predictions are far better than the best row, or all worse; larger is better."""
    known = predicted[np.isfinite(predicted)]
    if not len(known):
        return
    excess = (known.max() - y.max()) / (y.std() or 1.0)
    if excess > OPTIMISTIC:
        yield (
            f"The best prediction is {excess:.1f} standard deviations better than the best row; "
            "such predictions are rarely reached."
        )
    if excess < 0:
        yield (
            "All proposals are predicted to be worse than the best row, which is common for models "
            "that smooth the rows; rely on the ranking of the designs, not on the predicted values."
        )


def warn_check(check: HeldOutCheck | None) -> Iterator[str]:
    """Warn if the model predicts held-out rows badly."""
    if check is None:
        return
    found = check.held_out
    if np.isnan(found.rank) or found.rank < WEAK_RANK:
        yield (
            "Fitted without the best fifth of the rows, the model hardly ranks them: the rank "
            f"correlation is {found.rank:.2f} (1 is perfect, 0 is chance)."
        )
    if found.error > LARGE_ERROR:
        if check.bias > found.error / 2:
            direction = "mostly too optimistic, so expect less than it predicts"
        elif check.bias < -found.error / 2:
            direction = "mostly too pessimistic, as it does not extrapolate"
        else:
            direction = "some too optimistic and some too pessimistic, so its values mean little"
        yield (
            "Fitted without the best fifth of the rows, the model predicts them with an error of "
            f"{found.error:.1f} standard deviations of the other rows: {direction}."
        )


def warn_candidates(method: str, candidates: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Warn if a method that compares candidates chose none of them."""
    if not candidates or any(one.get("chosen") for one in candidates):
        return
    judged = [one for one in candidates if isfinite(one["held_out_top_rank"])]
    if judged:
        best = max(judged, key=lambda one: float(one["held_out_top_rank"]))
        why = (
            f"the best of them, {best['candidate']}, ranks the best rows with a rank correlation "
            f"of {best['held_out_top_rank']:.2f}, which may be chance"
        )
    else:
        why = "; ".join(sorted({str(one["reason"]) for one in candidates}))
    yield (
        f"{method} trusts none of its candidates on these rows ({why}), so it proposes only the "
        "best row; name a method to get new designs."
    )

"""How far to trust proposals: what each is expected to gain, in one word with its reason; warnings.

The gain of a design is its prediction minus the value of the best row. To either side, its interval
is the error that 90 % of the held-out rows do not exceed, both of the best and of others: a search
also finds errors that are rare among rows. It grows in proportion where a design is farther from
the rows than held-out rows are, or off the surface that the rows lie on. Its upper end is at least
the gain over the prediction of the best row, as a model that smooths the rows predicts too little
for both.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from ddobench.propose.fitting import FittedMethod, HeldOutCheck
from ddobench.propose.ranking import (
    DISTANCE,
    OFF_SURFACE,
    OUTSIDE,
    PREDICTED,
    RATIO,
    EncodedRows,
    RankedDesigns,
)
from ddobench.tabular.rows import Values

GAIN, GAIN_LOW, GAIN_HIGH = "gain", "gain_low", "gain_high"  # over the best row, positive is better
TRUST = "trust"
HIGH, SOME, LITTLE, NONE = "high", "some", "little", "none"
FAR = 3.0  # a design with a larger distance ratio is far from the data
OFF = 1.5  # a design with a larger ratio is off the surface of the rows
NOWHERE = 3.0  # and beyond this one its prediction means nothing
OPTIMISTIC = 3.0  # standard deviations above the best row
WEAK_RANK = 0.3  # rank correlation on held-out rows
WEAK_MODEL = 0.1  # share of the squared error of the mean that a model must avoid
WEAK_AGREEMENT = 0.5  # rank correlation between seeds
NEARLY_EQUAL = 0.25  # of the typical distance between rows


@dataclass(frozen=True)
class Trust:
    """What each design is expected to gain, and how far to trust that."""

    columns: pd.DataFrame  # gain, its interval if there was a check, and the word
    reasons: tuple[str, ...]  # for the words
    reference: float  # prediction of the best row, in the units of the table; NaN without a model


def judge_designs(
    ranked: RankedDesigns,
    rows: EncodedRows,
    y: Values,
    reference: float,
    check: HeldOutCheck | None,
    minimise: bool,
) -> Trust:
    """Judge designs for rows with values y (N,); `reference` predicts the best, larger is better.

    Predictions of the designs are in the units of the table, where smaller may be better.
    """
    sign = -1.0 if minimise else 1.0
    table = ranked.assessment
    predicted = sign * table[PREDICTED].to_numpy()
    repeated = (ranked.codes == rows.codes[y.argmax()]).all(axis=1)
    gain = np.where(repeated, 0.0, predicted - y.max())
    columns: dict[str, Any] = {GAIN: gain}
    low = np.full(len(gain), np.nan)
    if check is not None:
        usual = float(np.median(rows.nearest(rows.codes[check.rows], check.fitted)))
        farther = table[DISTANCE].to_numpy() / usual if usual > 0 else np.ones(len(gain))
        growth = np.fmax(1.0, np.fmax(farther, table[OFF_SURFACE].to_numpy()))
        half = np.where(repeated, 0.0, check.error * growth)
        low, high = gain - half, gain + half
        high = np.where(repeated, high, np.fmax(high, predicted - reference))
        columns |= {GAIN_LOW: low, GAIN_HIGH: high}
    judged = [
        _judge(
            gain[i], low[i], gain[i] / (y.std() or 1.0), predicted[i] > reference,
            table[RATIO][i], table[OFF_SURFACE][i], check, bool(repeated[i]),
        )
        for i in range(len(gain))
    ]  # fmt: skip
    columns[TRUST] = [word for word, _ in judged]
    return Trust(pd.DataFrame(columns), tuple(reason for _, reason in judged), sign * reference)


def _judge(
    gain: float,
    low: float,
    excess: float,
    preferred: bool,  # by the model, which predicts more for it than for the best row
    ratio: float,
    off: float,
    check: HeldOutCheck | None,
    repeated: bool,
) -> tuple[str, str]:
    """Return the word for one design, and its reason: the first that applies."""
    if repeated:
        return HIGH, "it is the best row itself, which was measured"
    if isnan(gain):
        return NONE, "the method has no model of the values"
    if off > NOWHERE:
        return NONE, f"it is {off:.0f} times as far off the surface of the rows as rows are"
    if excess > OPTIMISTIC:
        return NONE, f"it promises {excess:.1f} standard deviations more than the best row"
    if check is not None and not check.rank >= WEAK_RANK:
        return NONE, f"the model hardly ranks held-out rows (rank correlation {check.rank:.2f})"
    if check is not None and not check.explained >= WEAK_MODEL:
        return NONE, "the model predicts held-out rows hardly better than their mean does"
    if off > OFF:
        return LITTLE, f"it is {off:.1f} times as far off the surface of the rows as rows are"
    if ratio > FAR:
        return LITTLE, f"it is {ratio:.1f} times as far from the nearest row as rows usually are"
    if check is None:
        return LITTLE, "the model was not checked on held-out rows"
    if gain <= 0 and preferred:
        return LITTLE, (
            "it is predicted worse than the best row was measured, though better than that row is "
            "predicted"
        )
    if gain <= 0:
        return LITTLE, "the model expects no gain"
    if not check.best_rank >= WEAK_RANK:
        return SOME, (
            "the model hardly ranks the best rows among themselves (rank correlation "
            f"{check.best_rank:.2f})"
        )
    if low <= 0:
        return SOME, "the gain is within the error on held-out rows"
    return HIGH, "the gain exceeds the error on held-out rows"


def collect_warnings(
    fitted: FittedMethod,
    ranked: RankedDesigns,
    rows: EncodedRows,
    check: HeldOutCheck | None,
    candidates: Sequence[Mapping[str, Any]],
    y: Values,
    k: int,
    least: float | None,
    minimise: bool,
) -> Iterator[str]:
    """Yield every warning about proposals from rows with values y (N,), larger is better."""
    method, found = fitted.spec.method, len(ranked.designs)
    if candidates and not any(one["chosen"] for one in candidates):
        yield warn_candidates(method, candidates)
        return
    if candidates and found == 1 and ranked.assessment[DISTANCE][0] == 0:
        chosen = " and ".join(dict.fromkeys(str(x["candidate"]) for x in candidates if x["chosen"]))
        yield (
            f"The designs of {chosen}, which {method} chose, all end farther from the rows than "
            f"rows are from each other, so {method} proposes only the best row."
        )
        return
    for seed, reason in fitted.failures.items():
        yield f"Seed {seed} failed and is left out: {reason}."
    names = (RATIO, OFF_SURFACE, OUTSIDE, PREDICTED)
    ratios, off, outside, predicted = (ranked.assessment[name].to_numpy() for name in names)
    yield from warn_distance(ratios, off, outside)
    if found < k and least is None:
        yield (
            f"{method} proposes {found} different design{'s' if found > 1 else ''}, fewer than "
            f"the {k} requested."
        )
    elif found < k:
        yield (
            f"{method} proposes {found} design{'s' if found > 1 else ''} that may gain, at least "
            f"{'' if least == 1 else f'{least:g} times '}the typical distance between rows apart, "
            f"fewer than the {k} requested; a smaller min_distance (--min-distance) may give more."
        )
    if least is None:
        yield from warn_similar(ranked.median_distance, rows.typical)
    yield from warn_predicted(-predicted if minimise else predicted, y)
    if check is not None and not check.rank >= WEAK_RANK:
        yield (
            f"Fitted without {len(check.rows)} of the rows, the model hardly ranks them: the rank "
            f"correlation is {check.rank:.2f} (1 is perfect, 0 is chance)."
        )
    elif check is not None and not check.explained >= WEAK_MODEL:
        yield (
            f"Fitted without {len(check.rows)} of the rows, the model predicts them hardly better "
            "than their mean does."
        )
    if ranked.agreement < WEAK_AGREEMENT:
        yield (
            "The seeds disagree about the proposals: their predictions have a rank correlation of "
            f"{ranked.agreement:.2f} (1 is full agreement)."
        )


def warn_distance(ratios: Values, off: Values, outside: Values) -> Iterator[str]:
    """Warn of designs that are rows already, off the surface, far from rows, or out of range."""
    known, left_surface, far, left = (
        int(x.sum()) for x in (ratios == 0, off > OFF, ratios > FAR, outside > 0)
    )
    if known:
        yield f"{known} of {len(ratios)} proposals are already rows of the table."
    if left_surface:
        yield (
            f"{left_surface} of {len(off)} proposals are off the surface that the rows lie on, up "
            f"to {np.nanmax(off):.3g} times as far as rows are, and up to {np.nanmax(ratios):.2g} "
            "times as far from the nearest row as rows usually are: they combine columns as no row "
            "does, so their predictions mean little."
        )
    elif far:
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
    """Warn if predictions are far better than the best row; larger is better."""
    known = predicted[np.isfinite(predicted)]
    excess = (known.max(initial=-np.inf) - y.max()) / (y.std() or 1.0)
    if excess > OPTIMISTIC:
        yield (
            f"The best prediction is {excess:.1f} standard deviations better than the best row; "
            "such predictions are rarely reached."
        )


def warn_candidates(method: str, candidates: Sequence[Mapping[str, Any]]) -> str:
    """Say why a method that compares candidates chose none of them."""
    reasons: dict[str, list[str]] = {}  # candidates of each
    for one in candidates:
        if one.get("reason"):
            reasons.setdefault(str(one["reason"]).removesuffix("."), []).append(one["candidate"])
    ranks = {str(one["candidate"]): float(one["held_out_top_rank"]) for one in candidates}
    best = max(ranks, key=lambda name: np.nan_to_num(ranks[name], nan=-2.0))
    if len(reasons) == 1 and isnan(ranks[best]):
        why = next(iter(reasons))
    elif reasons:
        why = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
    else:
        why = (
            f"the best of them, {best}, ranks the best rows with a rank correlation of "
            f"{ranks[best]:.2f}, which may be chance"
        )
    return (
        f"{method} trusts none of its candidates on these rows ({why}), so it proposes only the "
        "best row; name a method to get new designs."
    )

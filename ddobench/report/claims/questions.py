"""What a claim asks of the stored runs: one number per seed, by kind of question.

A kind is a small function that returns the numbers of every place it looks at. Whatever the kind,
`verdicts` judges the interval of their mean by the bounds that the claim expects.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ddobench.report.tables.formats import MINUS
from ddobench.scores import find_score
from ddobench.seeds import Seeds
from ddobench.variants import split_variant


@dataclass(frozen=True)
class Side:
    """A method in one variant, the default where the variant is empty."""

    method: str
    method_variant: str = ""

    def __str__(self) -> str:
        """Name it as a person would."""
        return f"{self.method} ({self.method_variant})" if self.method_variant else self.method


@dataclass(frozen=True)
class Question:
    """Which runs to look at, which number to take of each seed, and what to expect of its mean."""

    kind: str
    task: str
    n: int
    d: tuple[int, ...]
    score: str
    sides: tuple[Side, ...]  # one, or the first and the second
    low: float  # the mean is expected between these two
    high: float
    inclusive: bool  # whether the bounds themselves will do
    task_variant: str = ""
    budget: str = "full"
    minus: str = ""  # a landmark to subtract
    seeds: Seeds | None = None  # the only ones to look at
    but: Seeds | None = None  # those not to look at

    def expectation(self) -> str:
        """Spell what the mean is expected to be."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return f"between {_format(self.low)} and {_format(self.high)}"
        if np.isfinite(self.low):
            return f"above {_format(self.low)}"
        return f"below {_format(self.high)}"

    def across(self, low: float, high: float) -> str:
        """Spell the bounds that an interval reaches across."""
        bounds = [bound for bound in (self.low, self.high) if low <= bound <= high]
        return " and ".join(_format(bound) for bound in bounds)


@dataclass(frozen=True)
class Answer:
    """The numbers of one place, one per seed; none where the reason says why."""

    where: str
    numbers: "pd.Series[float]"  # by seed
    lost: int  # seeds that all sides have tried but that have no number
    unit: str
    reason: str = ""
    oldest: pd.Timestamp | None = None  # when the first of the runs was finished, if they say so
    undated: bool = False  # whether some do not
    seen: pd.Timestamp | None = None  # when a first seed had all its runs: a number could be seen


Kind = Callable[[pd.DataFrame, Question], list[Answer]]


def answer_level(runs: pd.DataFrame, question: Question) -> list[Answer]:
    """Take the score of one method, from a landmark if asked to, at each d."""
    return [_answer(runs, question, d) for d in question.d]


def answer_difference(runs: pd.DataFrame, question: Question) -> list[Answer]:
    """Take the first method's score minus the second's on the same seed, at each d."""
    return [_answer(runs, question, d) for d in question.d]


def answer_growth(runs: pd.DataFrame, question: Question) -> list[Answer]:
    """Take the slope on d of a score, or of the difference of two, over all d at once."""
    answers = [_answer(runs, question, d) for d in question.d]
    where = f"d = {', '.join(map(str, question.d))}"
    unit = f"{answers[0].unit} per dimension"
    reason = "; ".join(answer.reason for answer in answers if answer.reason)
    numbers = [answer.numbers for answer in answers]
    whole = pd.concat(numbers, axis=1, keys=question.d, join="inner")
    if reason or whole.empty:
        return [Answer(where, whole.sum(axis=1), 0, unit, reason or "no seed has every d")]
    steps = np.asarray(question.d, dtype=float) - np.mean(question.d)
    slopes = (whole * steps).sum(axis=1) / float((steps**2).sum())
    lost = max(answer.lost for answer in answers)
    oldest, seen = (
        min((moment for moment in moments if moment is not None), default=None)
        for moments in ([one.oldest for one in answers], [one.seen for one in answers])
    )
    undated = any(answer.undated for answer in answers)
    return [Answer(where, slopes, lost, unit, "", oldest, undated, seen)]


KINDS: Mapping[str, tuple[Kind, int]] = {  # with how many sides each has at most
    "level": (answer_level, 1),
    "difference": (answer_difference, 2),
    "growth": (answer_growth, 2),
}


def answer(runs: pd.DataFrame, question: Question) -> list[Answer]:
    """Return the numbers that a question asks for, one answer per place."""
    return KINDS[question.kind][0](runs, question)


def _answer(runs: pd.DataFrame, question: Question, d: int) -> Answer:
    where = f"d = {d}"
    cell = runs[
        (runs["task"] == question.task)
        & (runs["n"] == question.n)
        & (runs["d"] == d)
        & (runs["budget"] == question.budget)
    ]
    cell = cell[_same_words(cell["task_variant"], question.task_variant)]
    cell = cell[cell["seed"].map(lambda seed: _is_asked(question, seed)).astype(bool)]
    found = [_select(cell, side) for side in question.sides]
    absent = [str(side) for side, own in zip(question.sides, found, strict=True) if own.empty]
    unit = _unit(cell, question.score)
    if absent:
        empty = pd.Series(dtype=float)
        seeds = f" with seeds {question.seeds}" if question.seeds else ""
        reason = f"no run of {' and '.join(absent)} at {where}{seeds}"
        return Answer(where, empty, 0, unit, reason)
    columns = [_scores(own, question) for own in found]
    table = pd.concat(columns, axis=1, join="inner")
    whole = table.dropna()
    values = whole.iloc[:, 0] - (whole.iloc[:, 1] if len(columns) > 1 else 0.0)
    reason = "" if len(values) else f"no seed has a score at {where}"
    counted = pd.concat([own[own["seed"].isin(values.index)] for own in found])
    moments = pd.to_datetime(counted["finished"], utc=True, errors="coerce", format="ISO8601")
    whole_at = moments.groupby(counted["seed"].to_numpy()).max()
    return Answer(
        where, values, len(table) - len(values), unit, reason,
        oldest=moments.min() if moments.notna().any() else None,
        undated=bool(moments.isna().any()),
        seen=whole_at.min() if whole_at.notna().any() else None,
    )  # fmt: skip


def _is_asked(question: Question, seed: int) -> bool:
    wanted = question.seeds is None or seed in question.seeds
    return wanted and not (question.but is not None and seed in question.but)


def _format(bound: float) -> str:
    return f"{bound:g}".replace("-", MINUS)


def _select(cell: pd.DataFrame, side: Side) -> pd.DataFrame:
    own = cell[cell["method"] == side.method]
    return own[_same_words(own["method_variant"], side.method_variant)]


def _scores(runs: pd.DataFrame, question: Question) -> "pd.Series[float]":
    """Return the score by seed, NaN for runs that declined or failed."""
    runs = runs.set_index("seed")
    score = runs[question.score].where(runs["status"] == "ok")
    return score - runs[question.minus] if question.minus else score


def _same_words(variants: "pd.Series[str]", wanted: str) -> "pd.Series[bool]":
    """Say which variants change what is wanted and nothing else, in any order."""
    settings = split_variant(wanted)
    return variants.map(lambda variant: split_variant(variant) == settings).astype(bool)


def _unit(cell: pd.DataFrame, score: str) -> str:
    unit = find_score(score).unit
    if unit.told_by:
        named = "".join(cell[unit.told_by].head(1))
        return {"raw": "raw units", "": "raw units"}.get(named, named)
    return unit.sign

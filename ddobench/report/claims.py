"""Claims about stored runs: their file, its checks, and the numbers that test them.

A claim is tested by one number per seed, by its kind: the level of a score, the difference of two
methods, or the growth of either with d. `verdicts` judges the interval of their mean.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, time
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ddobench.errors import UsageError
from ddobench.report.tables.formatting import MINUS
from ddobench.scores import LANDMARKS, claimable_names, find_score
from ddobench.seeds import Seeds, parse_seeds
from ddobench.variants import split_variant

PACKAGED = "claims.yaml"  # in ddobench.conf
SOURCES = ("paper", "ours")
_CLAIM = (
    *("id", "text", "source", "where", "declared", "command", "test", "again", "explained_by"),
)
_FILE = ("claims", "readings", "readings_note", "conclusion")
_READING = ("name", "score", "variants", "n", "counts")
_AGAIN = ("seeds", "declared", "command")
_PLACE = ("kind", "task", "task_variant", "n", "d", "seeds", "budget", "score")
_BOUNDS = ("above", "below", "between")
_SIDES = {"level": ("of",), "difference": ("first", "second"), "growth": ("first", "second")}


@dataclass(frozen=True)
class Side:
    """A method in one variant, the default where the variant is empty."""

    method: str
    method_variant: str = ""
    task_variant: str | None = None  # None: that of the question
    n: int | None = None  # None: that of the question

    def __str__(self) -> str:
        """Name the method and what is special about its runs."""
        rows = "" if self.n is None else f"n={self.n}"
        special = " ".join(filter(None, [self.method_variant, self.task_variant, rows]))
        return f"{self.method} ({special})" if special else self.method


@dataclass(frozen=True)
class Question:
    """Which runs a claim is about, the number taken from each seed, and the expected mean."""

    kind: str
    task: str
    n: int
    d: tuple[int, ...]
    score: str
    sides: tuple[Side, ...]  # one, or the first and the second
    low: float  # the mean is expected between these two
    high: float
    inclusive: bool  # whether the bounds are included
    task_variant: str = ""
    budget: str = "full"
    minus: str = ""  # a landmark or another score of the same run to subtract
    seeds: Seeds | None = None  # None: all
    but: Seeds | None = None  # seeds to leave out

    def expectation(self) -> str:
        """Describe what the mean is expected to be."""
        if np.isfinite(self.low) and np.isfinite(self.high):
            return f"between {_format(self.low)} and {_format(self.high)}"
        if np.isfinite(self.low):
            return f"above {_format(self.low)}"
        return f"below {_format(self.high)}"

    def across(self, low: float, high: float) -> str:
        """Return the bounds that an interval includes."""
        bounds = [bound for bound in (self.low, self.high) if low <= bound <= high]
        return " and ".join(_format(bound) for bound in bounds)


@dataclass(frozen=True)
class Answer:
    """The numbers for one d, or for all of them in a question of growth."""

    where: str
    numbers: "pd.Series[float]"  # by seed
    lost: int  # seeds that all sides have run but that have no number
    unit: str
    reason: str = ""  # why there are no numbers
    oldest: pd.Timestamp | None = None  # when the first of the runs finished, if known
    undated: bool = False  # whether some runs have no date
    seen: pd.Timestamp | None = None  # when the first seed had all its runs


def answer(runs: pd.DataFrame, question: Question) -> list[Answer]:
    """Return the numbers of a question, one answer per d, or one for the slope on d.

    A number is the score of one side, minus a landmark if there is one, or the first side's score
    minus the second's on the same seed.
    """
    answers = [_answer(runs, question, d) for d in question.d]
    return answers if question.kind != "growth" else [_answer_growth(answers, question)]


def _answer_growth(answers: Sequence[Answer], question: Question) -> Answer:
    """Return the slope on d of every seed."""
    where = f"d = {', '.join(map(str, question.d))}"
    unit = f"{answers[0].unit} per dimension"
    reason = "; ".join(answer.reason for answer in answers if answer.reason)
    numbers = [answer.numbers for answer in answers]
    whole = pd.concat(numbers, axis=1, keys=question.d, join="inner")
    if reason or whole.empty:
        return Answer(where, whole.sum(axis=1), 0, unit, reason or "no seed has every d")
    steps = np.asarray(question.d, dtype=float) - np.mean(question.d)
    slopes = (whole * steps).sum(axis=1) / float((steps**2).sum())
    lost = max(answer.lost for answer in answers)
    oldest, seen = (
        min((moment for moment in moments if moment is not None), default=None)
        for moments in ([one.oldest for one in answers], [one.seen for one in answers])
    )
    undated = any(answer.undated for answer in answers)
    return Answer(where, slopes, lost, unit, "", oldest, undated, seen)


_ASKED = ("seed", "method", "n", "task_variant", "method_variant", "status", "finished")


def _answer(runs: pd.DataFrame, question: Question, d: int) -> Answer:
    """Return the numbers of the seeds that all sides have at one d."""
    where = f"d = {d}"
    unit = find_score(question.score).unit
    used = {*_ASKED, question.score} | {*filter(None, [question.minus, unit.sign_column])}
    here = (runs["d"] == d) & (runs["task"] == question.task) & (runs["budget"] == question.budget)
    if question.seeds is not None:
        here &= runs["seed"].isin([*question.seeds])
    if question.but is not None:
        here &= ~runs["seed"].isin([*question.but])
    runs = runs.loc[here, sorted(used)]  # few columns: copies of all would take longest
    sign = unit.sign
    if unit.sign_column:
        named = "".join(runs[unit.sign_column].head(1))
        sign = {"raw": "raw units", "": "raw units"}.get(named, named)
    found = []
    for side in question.sides:
        rows = question.n if side.n is None else side.n
        variant = question.task_variant if side.task_variant is None else side.task_variant
        own = runs[(runs["method"] == side.method) & (runs["n"] == rows)]
        own = own[_same_words(own["task_variant"], variant)]
        found.append(own[_same_words(own["method_variant"], side.method_variant)])
    absent = [str(side) for side, own in zip(question.sides, found, strict=True) if own.empty]
    if absent:
        seeds = f" with seeds {question.seeds}" if question.seeds else ""
        reason = f"no run of {' and '.join(absent)} at {where}{seeds}"
        return Answer(where, pd.Series(dtype=float), 0, sign, reason)
    columns = []
    for own in (side.set_index("seed") for side in found):
        score = own[question.score].where(own["status"] == "ok")  # NaN if declined or failed
        columns.append(score - own[question.minus] if question.minus else score)
    table = pd.concat(columns, axis=1, join="inner")
    whole = table.dropna()
    values = whole.iloc[:, 0] - (whole.iloc[:, 1] if len(columns) > 1 else 0.0)
    reason = "" if len(values) else f"no seed has a score at {where}"
    counted = pd.concat([own[own["seed"].isin(values.index)] for own in found])
    moments = pd.to_datetime(counted["finished"], utc=True, errors="coerce", format="ISO8601")
    whole_at = moments.groupby(counted["seed"].to_numpy()).max()
    return Answer(
        where, values, len(table) - len(values), sign, reason,
        oldest=moments.min() if moments.notna().any() else None,
        undated=bool(moments.isna().any()),
        seen=whole_at.min() if whole_at.notna().any() else None,
    )  # fmt: skip


def _format(bound: float) -> str:
    return f"{bound:g}".replace("-", MINUS)


def _same_words(variants: "pd.Series[str]", wanted: str) -> "pd.Series[bool]":
    """Return which variants have the wanted settings, in any order."""
    settings = split_variant(wanted)
    return variants.map(lambda variant: split_variant(variant) == settings).astype(bool)


@dataclass(frozen=True)
class Claim:
    """A sentence about methods, its source, and the question that decides it."""

    id: str
    text: str
    source: str
    where: str
    command: str  # that makes its runs
    question: Question
    declared: datetime | None = None  # when it was written
    in_view: bool = False  # written after its runs were seen: its verdict only describes them
    explained_by: tuple[str, ...] = ()  # the ids of claims that explain why it may not hold


@dataclass(frozen=True)
class Reading:
    """An alternative reading of the paper's claims: another score, variant or number of rows."""

    name: str
    score: str = ""  # instead of the headline
    variants: Mapping[str, str] = field(default_factory=dict)  # by method
    n: int | None = None
    counts: bool = True  # when results are taken together


@dataclass(frozen=True)
class ClaimFile:
    """The content of a file of claims."""

    claims: tuple[Claim, ...]
    readings: tuple[Reading, ...] = ()
    readings_note: str = ""
    conclusion: str = ""  # the id of the claim that the first screen shows; "": none


def read_claims(file: str | Path | None = None) -> ClaimFile:
    """Read a file of claims, by default the one that comes with the package."""
    try:
        if file is None:
            text = resources.files("ddobench.conf").joinpath(PACKAGED).read_text(encoding="utf-8")
        else:
            text = Path(file).read_text(encoding="utf-8")
        content = yaml.safe_load(text)
    except OSError as error:
        raise UsageError(
            f"claims must be a readable file of claims, got {file} ({error.strerror})"
        ) from None
    except RecursionError:
        raise UsageError(f"claims must be YAML with few levels, got {file} with too many") from None
    except (yaml.YAMLError, ValueError) as error:  # not YAML, not text, or an impossible date
        problem = " ".join(str(error).split())
        raise UsageError(f"claims must be YAML, got {file}: {problem}") from None
    return parse_claims(content)


def parse_claims(content: Any) -> ClaimFile:
    """Check the content of a file of claims and return it."""
    if not isinstance(content, Mapping) or not isinstance(content.get("claims"), list):
        raise UsageError("a file of claims must have a list under the key claims, got none")
    entries = enumerate(content["claims"], start=1)
    claims = [claim for i, entry in entries for claim in _parse_claim(i, entry)]
    names = [claim.id for claim in claims]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"every claim must have a unique id, got {twice[0]!r} twice")
    for claim in claims:
        for name in claim.explained_by:
            _check_choice(f"explained_by of claim {claim.id}", name, names)
    _check_keys("a file of claims", content, _FILE, needed=("claims",))
    conclusion = str(content.get("conclusion", ""))
    if conclusion:
        _check_choice("conclusion of a file of claims", conclusion, names)
    readings = content.get("readings", [])
    if not isinstance(readings, list):
        raise UsageError(f"readings in a file of claims must be a list, got {readings!r}")
    note = " ".join(str(content.get("readings_note", "")).split())
    return ClaimFile(tuple(claims), tuple(map(_parse_reading, readings)), note, conclusion)


def _parse_reading(entry: Any) -> Reading:
    about = f"reading {entry.get('name')}" if isinstance(entry, Mapping) else "a reading"
    _check_keys(about, entry, _READING, needed=("name",))
    if "score" in entry:
        _check_choice(f"score of {about}", entry["score"], claimable_names())
    variants = entry.get("variants", {})
    if not isinstance(variants, Mapping):
        raise UsageError(f"variants of {about} must map methods to variants, got {variants!r}")
    counts = entry.get("counts", True)
    if not isinstance(counts, bool):
        raise UsageError(f"counts of {about} must be true or false, got {counts!r}")
    return Reading(
        name=str(entry["name"]),
        score=str(entry.get("score", "")),
        variants={str(method): str(variant) for method, variant in variants.items()},
        n=_whole(f"n of {about}", entry["n"]) if "n" in entry else None,
        counts=counts,
    )


def _parse_claim(place: int, entry: Any) -> list[Claim]:
    """Return a claim, followed by its repetition on fresh seeds if it has one."""
    named = entry.get("id", f"number {place}") if isinstance(entry, Mapping) else f"number {place}"
    about = f"claim {named}"
    _check_keys(about, entry, _CLAIM, needed=("id", "text", "test"))
    source = str(entry.get("source", "ours"))
    _check_choice(f"source of {about}", source, SOURCES)
    explained_by = entry.get("explained_by", [])
    if not isinstance(explained_by, list):
        raise UsageError(f"explained_by of {about} must be a list of ids, got {explained_by!r}")
    claim = Claim(
        id=str(entry["id"]),
        text=" ".join(str(entry["text"]).split()),
        source=source,
        where=str(entry.get("where", "")),
        command=str(entry.get("command", "")),
        question=_parse_test(f"test of {about}", entry["test"]),
        declared=_parse_moment(f"declared of {about}", entry.get("declared")),
        explained_by=tuple(map(str, explained_by)),
    )
    return [claim] if "again" not in entry else _repeat(claim, entry["again"])


def _repeat(claim: Claim, again: Any) -> list[Claim]:
    """Return a claim written after its runs were seen, and its repetition on fresh seeds.

    Only the second uses the fresh seeds.
    """
    about = f"again of claim {claim.id}"
    _check_keys(about, again, _AGAIN, needed=("seeds", "declared"))
    fresh = _parse_seeds(f"seeds in {about}", again["seeds"])
    second = replace(
        claim,
        id=f"{claim.id}-again",
        text=f"{claim.text.removesuffix('.')}, on fresh seeds.",
        where=f"{claim.id}, tested again on seeds {fresh}",
        command=str(again.get("command", claim.command)),
        question=replace(claim.question, seeds=fresh),
        declared=_parse_moment(f"declared in {about}", again["declared"]),
    )
    return [replace(claim, in_view=True, question=replace(claim.question, but=fresh)), second]


def _parse_test(about: str, test: Any) -> Question:
    _check_keys(about, test, None, needed=("kind",))
    kind = str(test["kind"])
    _check_choice(f"kind in the {about}", kind, tuple(_SIDES))
    sides = _SIDES[kind]
    needed = sides[:1] if kind == "growth" else sides
    minus = ("minus",) if kind == "level" else ()
    _check_keys(about, test, (*_PLACE, *sides, *minus, *_BOUNDS),
                needed=("task", "n", "d", "score", *needed))  # fmt: skip
    _check_choice(f"score in the {about}", test["score"], claimable_names())
    if "minus" in test:
        names = [*[mark.name for mark in LANDMARKS], *claimable_names()]
        _check_choice(f"minus in the {about}", test["minus"], names)
    dimensions = test["d"] if isinstance(test["d"], list) else [test["d"]]
    if kind == "growth" and len(dimensions) < 2:
        raise UsageError(f"d in the {about} must list two or more dimensions, got {test['d']!r}")
    low, high, inclusive = _parse_bounds(about, test)
    return Question(
        kind=kind,
        task=str(test["task"]),
        task_variant=str(test.get("task_variant", "")),
        n=_whole(f"n in the {about}", test["n"]),
        d=tuple(_whole(f"d in the {about}", d) for d in dimensions),
        budget=str(test.get("budget", "full")),
        score=test["score"],
        sides=tuple(_parse_side(f"{s} in the {about}", test[s]) for s in sides if s in test),
        minus=str(test.get("minus", "")),
        low=low,
        high=high,
        inclusive=inclusive,
        seeds=_parse_seeds(f"seeds in the {about}", test["seeds"]) if "seeds" in test else None,
    )


def _parse_seeds(name: str, seeds: Any) -> Seeds:
    try:
        return parse_seeds(seeds)
    except UsageError:
        raise UsageError(f"{name} must be seeds such as 10-19, got {seeds!r}") from None


def _parse_moment(name: str, moment: Any) -> datetime | None:
    """Return when a claim was declared; a day counts as its end."""
    if moment is None:
        return None
    if isinstance(moment, datetime):
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    if isinstance(moment, date):
        return datetime.combine(moment, time.max, UTC)
    raise UsageError(
        f"{name} must be a day such as 2026-11-17 or a moment such as 2026-11-17T06:28:23Z, "
        f"got {moment!r}"
    )


def _parse_side(about: str, side: Any) -> Side:
    if isinstance(side, str):
        return Side(side)
    known = ("method", "method_variant", "task_variant", "n")
    _check_keys(about, side, known, needed=("method",))
    variant = side.get("task_variant")
    return Side(
        str(side["method"]),
        str(side.get("method_variant", "")),
        None if variant is None else str(variant),
        _whole(f"n of {about}", side["n"]) if "n" in side else None,
    )


def _parse_bounds(about: str, test: Mapping[str, Any]) -> tuple[float, float, bool]:
    given = [name for name in _BOUNDS if name in test]
    if len(given) != 1:
        got = " and ".join(given) or "none"
        raise UsageError(f"the {about} must have one of {', '.join(_BOUNDS)}, got {got}")
    bound = test[given[0]]
    pair = isinstance(bound, list) and len(bound) == 2
    numbers: Sequence[Any] = bound if pair else [bound]
    if pair != (given[0] == "between") or any(
        isinstance(number, bool) or not isinstance(number, int | float) for number in numbers
    ):
        wanted = "two numbers, [low, high]" if given[0] == "between" else "a number"
        raise UsageError(f"{given[0]} in the {about} must be {wanted}, got {bound!r}")
    low = float(numbers[0]) if given[0] != "below" else float("-inf")
    high = float(numbers[-1]) if given[0] != "above" else float("inf")
    return low, high, pair


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UsageError(f"{name} must be a whole number or a list of them, got {value!r}")
    return value


def _check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    if value not in choices:
        raise UsageError(f"the {name} must be one of {', '.join(choices)}, got {value!r}")


def _check_keys(about: str, entry: Any, known: Sequence[str] | None, needed: Sequence[str]) -> None:
    """Raise unless the entry is a mapping with all needed keys and no unknown ones."""
    if not isinstance(entry, Mapping):
        raise UsageError(f"{about} must be a mapping with {', '.join(needed)}, got {entry!r}")
    absent = [key for key in needed if key not in entry]
    if absent:
        raise UsageError(f"{about} must have {', '.join(needed)}, got no {absent[0]}")
    unknown = sorted(str(key) for key in entry if known is not None and key not in known)
    if unknown and known is not None:
        raise UsageError(f"{about} may have {', '.join(known)}, got {unknown[0]!r}")

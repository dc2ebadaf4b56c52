"""Whether a claim holds: its numbers, their 95 % interval, and whether the reading matters.

The interval decides. A claim about several d holds only if it holds at each of them, and fails if
it fails at any. Verdicts are not adjusted for multiple testing: among many claims, some will appear
decided by chance.

The paper does not specify who ranks designs, when to stop, how invalid designs count and how many
rows there are, so each of its claims is tested in several readings. The declared reading decides:
the method ranks its own last designs, and every design counts. A claim that holds in every reading
is robust, one that holds in none is refuted.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from ddobench.report.claims import (
    SOURCES,
    Answer,
    Claim,
    ClaimFile,
    Question,
    Reading,
    Side,
    answer,
)
from ddobench.report.tables.formatting import (
    DASH,
    INTERVAL_RULE,
    Column,
    Group,
    Table,
    format_digits,
)
from ddobench.scores import HEADLINE, oracle_names
from ddobench.stats.samples import Interval, mean_interval
from ddobench.variants import format_variant, split_variant

Result = Literal["holds", "fails", "undecided", "not run"]
Robustness = Literal["robust", "refuted", "depends on the reading", "undecided", "not run"]
SIGNS: dict[Result, str] = {
    "holds": "\u2713", "fails": "\u2717", "undecided": "?", "not run": DASH,
}  # fmt: skip
FEWEST = 3  # seeds before an interval decides anything
_KINDS = {
    "t": "Student's t", "bca": "BCa bootstrap", "percentile": "percentile bootstrap",
    "equal": "all seeds agree", "none": "no interval",
}  # fmt: skip
_NOUNS = {"level": "mean", "difference": "difference", "growth": "slope"}
_COLUMNS = [
    *("id", "source", "verdict", "text", "where", "kind", "score", "expected", "place", "here"),
    *("mean", "low", "high", "interval", "unit", "seeds", "lost", "reason", "declared", "order"),
    "command",
]
TITLES = {"paper": "The paper's claims", "ours": "Our own claims"}  # by source
NOTE = (
    "A claim holds if the whole 95\u00a0% interval is in the claimed range, fails if the whole "
    f"interval is outside, and is undecided otherwise or with fewer than {FEWEST} seeds. The "
    f"interval is {INTERVAL_RULE}. A claim about several d holds if it holds at each of them and "
    "fails if it fails at any; a slope on d is one number for all of them. Verdicts are not "
    "adjusted for multiple testing. Each claim has the date of its declaration. If its runs are "
    "older, or were seen before, its verdict describes these runs and predicts nothing."
)


@dataclass(frozen=True)
class Finding:
    """The result of a claim at one d."""

    answer: Answer
    mean: float
    interval: Interval
    result: Result
    reason: str  # why it is undecided or not run


@dataclass(frozen=True)
class Verdict:
    """A claim, its findings, and its overall result."""

    claim: Claim
    findings: tuple[Finding, ...]
    result: Result

    @property
    def order(self) -> str:
        """Whether the claim was declared before its runs, in words; "" if that is unknown."""
        answers = [found.answer for found in self.findings if len(found.answer.numbers)]
        declared = self.claim.declared
        if declared is None or not answers:
            return ""
        if self.claim.in_view:
            return "after its runs were seen"
        if any(answer.seen is not None and answer.seen < declared for answer in answers):
            return "after its runs"
        if any(answer.oldest is not None and answer.oldest < declared for answer in answers):
            return "after the runs of one method, before those of the other"
        undated = any(answer.undated for answer in answers)
        return "its runs have no date" if undated else "before its runs"


def judge(runs: pd.DataFrame, claims: Sequence[Claim]) -> list[Verdict]:
    """Return the verdict on each claim."""
    return [judge_claim(runs, claim) for claim in claims]


def judge_claim(runs: pd.DataFrame, claim: Claim) -> Verdict:
    """Return the verdict on one claim."""
    question = claim.question
    findings = tuple(_find(question, found) for found in answer(runs, question))
    return Verdict(claim, findings, combine({finding.result for finding in findings}))


def combine(results: set[Result]) -> Result:
    """Combine the results at each d."""
    if "fails" in results:
        return "fails"
    return results.pop() if len(results) == 1 else "undecided"


def _find(question: Question, found: Answer) -> Finding:
    values = found.numbers.to_numpy(dtype=float)
    if not len(values):
        return Finding(found, np.nan, Interval(np.nan, np.nan, "none"), "not run", found.reason)
    interval, mean = mean_interval(values), float(values.mean())
    if len(values) < FEWEST:
        few = f"fewer than {FEWEST} seeds at {found.where}"
        return Finding(found, mean, interval, "undecided", few)
    result = decide(question, interval)
    bounds = question.across(interval.low, interval.high)
    reason = f"the interval includes {bounds}" if result == "undecided" else ""
    return Finding(found, mean, interval, result, reason)


def decide(question: Question, interval: Interval) -> Result:
    """Return whether an interval lies within the expected bounds, outside them, or across one."""
    if question.inclusive:
        within = question.low <= interval.low and interval.high <= question.high
    else:
        within = question.low < interval.low and interval.high < question.high
    if within:
        return "holds"
    outside = interval.high < question.low or interval.low > question.high
    return "fails" if outside else "undecided"


def format_finding(question: Question, finding: Finding) -> str:
    """Format a finding: "difference 1.77 [1.06, 2.48] sd, 5 pairs (Student's t)"."""
    if not np.isfinite(finding.mean):
        return finding.reason
    unit = finding.answer.unit
    scale = 100 if unit.startswith("%") else 1
    if unit == "%" and question.kind == "difference":
        unit = "percentage points"
    digits = 3 if question.kind == "growth" else 1 if scale == 100 else 2
    mean, low, high = (
        format_digits(scale * number, digits)
        for number in (finding.mean, finding.interval.low, finding.interval.high)
    )
    seeds = len(finding.answer.numbers)
    noun = ("pair" if len(question.sides) > 1 else "seed") + ("" if seeds == 1 else "s")
    lost = f", {finding.answer.lost} lost" if finding.answer.lost else ""
    bounds = f" [{low}, {high}]" if np.isfinite(finding.interval.low) else ""
    text = f"{_NOUNS[question.kind]} {mean}{bounds} {unit}".rstrip() + f", {seeds} {noun}{lost}"
    return f"{text} ({_KINDS[finding.interval.kind]})"


def format_numbers(verdict: Verdict) -> str:
    """Format all findings of a claim, each with its d if there are several."""
    question, several = verdict.claim.question, len(verdict.findings) > 1
    return "; ".join(
        (f"{finding.answer.where}: " if several and np.isfinite(finding.mean) else "")
        + format_finding(question, finding)
        for finding in verdict.findings
    )


def format_reason(verdict: Verdict) -> str:
    """Return why a claim is undecided, "" if it is decided or has no numbers."""
    reasons = [f.reason for f in verdict.findings if f.reason and np.isfinite(f.mean)]
    return "; ".join(dict.fromkeys(reasons)) if verdict.result == "undecided" else ""


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return one row per claim and finding."""
    rows: list[dict[str, Any]] = [
        {
            "id": verdict.claim.id,
            "source": verdict.claim.source,
            "verdict": verdict.result,
            "text": verdict.claim.text,
            "where": verdict.claim.where,
            "kind": verdict.claim.question.kind,
            "score": verdict.claim.question.score,
            "expected": verdict.claim.question.expectation(),
            "place": finding.answer.where,
            "here": finding.result,
            "mean": finding.mean,
            "low": finding.interval.low,
            "high": finding.interval.high,
            "interval": finding.interval.kind,
            "unit": "fraction" if finding.answer.unit == "%" else finding.answer.unit,
            "seeds": len(finding.answer.numbers),
            "lost": finding.answer.lost,
            "reason": finding.reason,
            "declared": format_day(verdict.claim),
            "order": verdict.order,
            "command": verdict.claim.command,
        }
        for verdict in verdicts
        for finding in verdict.findings
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def format_day(claim: Claim) -> str:
    """Format the day on which a claim was declared, "" if unknown."""
    return claim.declared.date().isoformat() if claim.declared else ""


def format_declared(verdict: Verdict) -> str:
    """Format when a claim was declared, and whether before its runs."""
    return ", ".join(filter(None, [format_day(verdict.claim), verdict.order]))


def by_source(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts by source, the paper's first; sources without claims are left out."""
    found = {name: [v for v in verdicts if v.claim.source == name] for name in SOURCES}
    return {name: own for name, own in found.items() if own}


def describe_verdicts(verdicts: Sequence[Verdict]) -> Table:
    """Describe the verdicts, one group per source."""
    columns = [
        Column("verdict", lambda v: f"{SIGNS[v.result]} {v.result}",
               lambda v: list(SIGNS).index(v.result), words=True, width=0.12),
        Column("claim", lambda v: v.claim.text, words=True, width=0.28),
        Column("background", lambda v: v.claim.where, words=True, width=0.13),
        Column("numbers", lambda v: "; ".join(filter(None, [format_numbers(v), format_reason(v)])),
               words=True, width=0.31),
    ]  # fmt: skip
    groups = [
        Group(TITLES[source], f"claims-{source}", own, columns)
        for source, own in by_source(verdicts).items()
    ]
    note = NOTE if verdicts else ""
    return Table("claims", "Claims", note, verdict_table(verdicts), groups)


DECLARED = "declared"


@dataclass(frozen=True)
class Outcome:
    """A claim's declared verdict, and its result in every other reading that applies."""

    verdict: Verdict
    readings: Mapping[str, Result]  # by name, the declared one first
    counted: Container[str]  # the readings that are taken together

    @property
    def robustness(self) -> Robustness:
        """Whether the result depends on the reading, over those that count and have runs."""
        results = [result for name, result in self.readings.items()
                   if result != "not run" and name in self.counted]  # fmt: skip
        if self.verdict.result == "not run":
            return "not run"
        if set(results) == {"holds"}:
            return "robust"
        if "holds" not in results:
            return "refuted" if "fails" in results else "undecided"
        return "depends on the reading"


@dataclass(frozen=True)
class Judgement:
    """All verdicts of a report, and the paper's claims in all readings."""

    verdicts: Sequence[Verdict] = ()
    outcomes: Sequence[Outcome] = ()
    conclusion: Verdict | None = None
    readings: Sequence[str] = ()  # the names of all, in order
    readings_note: str = ""


def judge_all(runs: pd.DataFrame, declared: ClaimFile) -> Judgement:
    """Judge every claim of a file, and those of the paper in every reading that applies.

    Claims of the paper that differ only in the number of rows, or in who ranks the designs, count
    as one: the declared reading has most rows and is ranked by the method itself.
    """
    verdicts = judge(runs, declared.claims)
    same: dict[Question, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.claim.source == "paper":
            question = verdict.claim.question
            score = HEADLINE.name if question.score in oracle_names() else question.score
            same.setdefault(replace(question, n=0, score=score), []).append(verdict)
    outcomes = [_read_claim(runs, own, declared.readings) for own in same.values()]
    conclusion = next((v for v in verdicts if v.claim.id == declared.conclusion), None)
    names = [DECLARED, *(reading.name for reading in declared.readings)]
    return Judgement(verdicts, outcomes, conclusion, names, declared.readings_note)


def _read_claim(
    runs: pd.DataFrame, same: Sequence[Verdict], readings: Sequence[Reading]
) -> Outcome:
    own = [v for v in same if v.claim.question.score not in oracle_names()] or same
    declared = max(own, key=lambda verdict: (verdict.result != "not run", verdict.claim.question.n))
    question = declared.claim.question
    found = {DECLARED: declared.result}
    for reading in readings:
        asked = read_question(question, reading, runs)
        if asked is not None and asked != question:
            found[reading.name] = judge_claim(runs, replace(declared.claim, question=asked)).result
    counted = {DECLARED, *(reading.name for reading in readings if reading.counts)}
    return Outcome(declared, found, counted)


def read_question(question: Question, reading: Reading, runs: pd.DataFrame) -> Question | None:
    """Return a question in another reading, None if that does not apply."""
    if reading.score:
        if question.score != HEADLINE.name:
            return None
        question = replace(question, score=reading.score)
    sides = tuple(_change_side(side, reading) for side in question.sides)
    question = replace(question, sides=sides)
    return question if reading.n is None else _with_rows(question, reading.n, runs)


def _change_side(side: Side, reading: Reading) -> Side:
    """Return a side in the variant of a reading, unless it sets the same keys already."""
    own = split_variant(side.method_variant)
    other = split_variant(reading.variants.get(side.method, ""))
    if {*own} & {*other}:
        return side
    return replace(side, method_variant=format_variant(own | other))


def _with_rows(question: Question, n: int, runs: pd.DataFrame) -> Question | None:
    """Return a question at another number of rows, at the dimensions that were run there."""
    at_each = "level" if len(question.sides) == 1 else "difference"
    found = answer(runs[runs["n"] == n], replace(question, n=n, kind=at_each))
    places = zip(question.d, found, strict=True)
    d = tuple(size for size, one in places if len(one.numbers) or one.lost)
    enough = len(d) > 1 or (d and question.kind != "growth")
    return replace(question, n=n, d=d) if enough else None


def describe_readings(judged: Judgement) -> Table:
    """Describe the paper's claims in every reading."""
    outcomes = judged.outcomes
    shown = [name for name in judged.readings if any(name in o.readings for o in outcomes)]
    columns = [
        Column("claim", lambda o: o.verdict.claim.text, words=True, width=0.3),
        *(_reading_column(name) for name in shown),
        Column("together", lambda o: o.robustness, words=True),
    ]
    frame = pd.DataFrame(
        [{"id": o.verdict.claim.id, **{name: o.readings.get(name, "") for name in shown},
          "together": o.robustness} for o in outcomes],
        columns=["id", *shown, "together"],
    )  # fmt: skip
    run = [outcome for outcome in outcomes if outcome.robustness != "not run"]
    groups = [Group("", "readings", run, columns)] if run else []
    return Table(
        "readings", "The paper's claims in every reading", judged.readings_note, frame, groups
    )


def _reading_column(name: str) -> Column:
    return Column(name, lambda outcome: outcome.readings.get(name, DASH), words=True)


def format_counts(results: Iterable[str], order: Sequence[str]) -> str:
    """Count results, in this order: "3 hold, 1 fails"."""
    found = list(results)
    counts = [(name, found.count(name)) for name in order]
    return ", ".join(f"{count} {_PHRASES[name][count != 1]}" for name, count in counts if count)


_PHRASES = {  # of one claim, of several
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "robust": ("is robust", "are robust"),
    "refuted": ("is refuted", "are refuted"),
    "depends on the reading": ("depends on the reading", "depend on the reading"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("has no runs here", "have no runs here"),
}

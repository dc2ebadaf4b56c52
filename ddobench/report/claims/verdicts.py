"""Whether a claim holds: its numbers, their 95 % interval, and a word.

The interval decides. A claim about several places holds only if it holds at each of them, and fails
if it fails at any. Verdicts are not adjusted for one another: of many claims without substance some
will seem decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ddobench.report.claims.claims import SOURCES, Claim
from ddobench.report.claims.questions import Answer, Question, answer
from ddobench.report.tables.differences import format_digits
from ddobench.report.tables.formats import DASH, INTERVAL_RULE, markdown_table
from ddobench.stats.samples import Interval, mean_interval

Word = Literal["holds", "fails", "undecided", "not run"]
SIGNS: dict[Word, str] = {
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
HEADER = ["verdict", "claim", "background", "numbers", "declared", "reproduce"]
TITLES = {"paper": "The paper's claims", "ours": "Claims of ours"}  # by source
NOTE = (
    "A claim holds where the whole 95\u00a0% interval is where the claim puts it, fails where the "
    f"whole interval is elsewhere, and is undecided otherwise or with fewer than {FEWEST} seeds. "
    f"The interval is {INTERVAL_RULE}. A claim about several d holds if it holds at each of them, "
    "fails if it fails at any, and is undecided otherwise; a slope on d is one number for all of "
    "them. Verdicts are not adjusted for their number. Each claim says when it was declared, and "
    "whether its runs are older, by their stamps: then, and where it was written with its runs in "
    "view, its verdict describes these runs and predicts nothing."
)


@dataclass(frozen=True)
class Finding:
    """What one place says about a claim."""

    answer: Answer
    mean: float
    interval: Interval
    word: Word
    reason: str  # why it is undecided


@dataclass(frozen=True)
class Verdict:
    """A claim, what was found at each place, and the word for all of them."""

    claim: Claim
    findings: tuple[Finding, ...]
    word: Word

    @property
    def order(self) -> str:
        """Which came first, the claim or its runs, in words; nothing where that is unknown."""
        answers = [found.answer for found in self.findings if len(found.answer.numbers)]
        declared = self.claim.declared
        if declared is None or not answers:
            return ""
        if self.claim.in_view:
            return "with its runs in view"
        if any(answer.seen is not None and answer.seen < declared for answer in answers):
            return "after its runs"
        if any(answer.oldest is not None and answer.oldest < declared for answer in answers):
            return "after the runs of one method, before those of the other"
        undated = any(answer.undated for answer in answers)
        return "its runs have no date" if undated else "before its runs"


def judge(runs: pd.DataFrame, claims: Sequence[Claim]) -> list[Verdict]:
    """Return the verdict on each claim."""
    return [_judge(runs, claim) for claim in claims]


def _judge(runs: pd.DataFrame, claim: Claim) -> Verdict:
    question = claim.question
    findings = tuple(_find(question, found) for found in answer(runs, question))
    return Verdict(claim, findings, combine({finding.word for finding in findings}))


def combine(words: set[Word]) -> Word:
    """Return the word on a claim from the words on its places."""
    if "fails" in words:
        return "fails"
    return words.pop() if len(words) == 1 else "undecided"


def _find(question: Question, found: Answer) -> Finding:
    values = found.numbers.to_numpy(dtype=float)
    nothing = Interval(np.nan, np.nan, "none")
    if not len(values):
        return Finding(found, np.nan, nothing, "not run", found.reason)
    interval, mean = mean_interval(values), float(values.mean())
    if len(values) < FEWEST:
        few = f"fewer than {FEWEST} seeds at {found.where}"
        return Finding(found, mean, interval, "undecided", few)
    word = decide(question, interval)
    bounds = question.across(interval.low, interval.high)
    reason = f"the interval includes {bounds}" if word == "undecided" else ""
    return Finding(found, mean, interval, word, reason)


def decide(question: Question, interval: Interval) -> Word:
    """Say whether an interval lies within the expected bounds, outside them, or across one."""
    if question.inclusive:
        within = question.low <= interval.low and interval.high <= question.high
    else:
        within = question.low < interval.low and interval.high < question.high
    if within:
        return "holds"
    outside = interval.high < question.low or interval.low > question.high
    return "fails" if outside else "undecided"


def format_finding(question: Question, finding: Finding) -> str:
    """Spell the numbers of one place: "difference 1.77 [1.06, 2.48] sd, 5 pairs (Student's t)"."""
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
    """Spell the numbers of all places of a claim, each named where there are several."""
    question, several = verdict.claim.question, len(verdict.findings) > 1
    return "; ".join(
        (f"{finding.answer.where}: " if several and np.isfinite(finding.mean) else "")
        + format_finding(question, finding)
        for finding in verdict.findings
    )


def format_reason(verdict: Verdict) -> str:
    """Say why a claim is undecided, once for each reason that the numbers do not tell already."""
    reasons = [f.reason for f in verdict.findings if f.reason and np.isfinite(f.mean)]
    return "; ".join(dict.fromkeys(reasons)) if verdict.word == "undecided" else ""


def verdict_table(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return one row per claim and place."""
    rows: list[dict[str, Any]] = [
        {
            "id": verdict.claim.id,
            "source": verdict.claim.source,
            "verdict": verdict.word,
            "text": verdict.claim.text,
            "where": verdict.claim.where,
            "kind": verdict.claim.question.kind,
            "score": verdict.claim.question.score,
            "expected": verdict.claim.question.expectation(),
            "place": finding.answer.where,
            "here": finding.word,
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
    """Spell the day on which a claim was declared, nothing where nobody said."""
    return claim.declared.date().isoformat() if claim.declared else ""


def format_declared(verdict: Verdict) -> str:
    """Say when a claim was declared, and whether before its runs."""
    return ", ".join(filter(None, [format_day(verdict.claim), verdict.order]))


def format_verdicts(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Spell the verdicts for people, one line each under HEADER."""
    lines = []
    for verdict in verdicts:
        claim, reason = verdict.claim, format_reason(verdict)
        numbers = format_numbers(verdict) + (f"; {reason}" if reason else "")
        word = f"{SIGNS[verdict.word]} {verdict.word}"
        declared = format_declared(verdict)
        lines.append([word, claim.text, claim.where, numbers, declared, claim.command])
    return lines


def by_source(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts on the claims of each source that has any, the paper's first."""
    found = {name: [v for v in verdicts if v.claim.source == name] for name in SOURCES}
    return {name: own for name, own in found.items() if own}


def verdict_markdown(verdicts: Sequence[Verdict]) -> str:
    """Spell the verdicts, a table for the claims of each source."""
    parts = ["# Claims\n", *([f"{NOTE}\n"] if verdicts else [])]
    for source, own in by_source(verdicts).items():
        table = markdown_table(HEADER, format_verdicts(own), words=range(len(HEADER)))
        parts += [f"## {TITLES[source]}\n", table]
    return "\n".join(parts)

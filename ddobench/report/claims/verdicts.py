"""Whether a claim holds: its numbers, their 95 % interval, and a word.

The interval decides. Student's stands for fewer than ten seeds, the BCa bootstrap for more. A claim
about several places holds only if it holds at each of them, and fails if it fails at any. Verdicts
are not adjusted for one another: of many claims without substance some will seem decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from ddobench.report.claims.claims import Claim
from ddobench.report.claims.questions import Answer, Question, answer
from ddobench.report.tables.differences import format_digits
from ddobench.report.tables.formats import INTERVAL_RULE, markdown_table
from ddobench.stats.samples import Interval, mean_interval

Word = Literal["holds", "fails", "undecided"]
SIGNS: dict[Word, str] = {"holds": "\u2713", "fails": "\u2717", "undecided": "?"}
FEWEST = 3  # seeds before an interval decides anything
_KINDS = {
    "t": "Student's t", "bca": "BCa bootstrap", "percentile": "percentile bootstrap",
    "equal": "all seeds agree", "none": "no interval",
}  # fmt: skip
_NOUNS = {"level": "mean", "difference": "difference", "growth": "slope"}
_COLUMNS = [
    *("id", "source", "verdict", "text", "where", "kind", "score", "expected", "place", "here"),
    *("mean", "low", "high", "interval", "unit", "seeds", "lost", "reason", "command"),
]
HEADER = ["verdict", "claim", "said in", "numbers", "reproduce"]
NOTE = (
    "A claim holds where the whole 95\u00a0% interval is where the claim puts it, fails where the "
    f"whole interval is elsewhere, and is undecided otherwise or with fewer than {FEWEST} seeds. "
    f"The interval is {INTERVAL_RULE}. Verdicts are not "
    "adjusted for their number. Claims are the paper's unless marked as ours."
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


def judge(runs: pd.DataFrame, claims: Sequence[Claim]) -> list[Verdict]:
    """Return the verdict on each claim."""
    return [_judge(runs, claim) for claim in claims]


def _judge(runs: pd.DataFrame, claim: Claim) -> Verdict:
    question = claim.question
    findings = tuple(_find(question, found) for found in answer(runs, question))
    words = {finding.word for finding in findings}
    word: Word = "fails" if "fails" in words else "undecided" if "undecided" in words else "holds"
    return Verdict(claim, findings, word)


def _find(question: Question, found: Answer) -> Finding:
    values = found.numbers.to_numpy(dtype=float)
    nothing = Interval(np.nan, np.nan, "none")
    if not len(values):
        return Finding(found, np.nan, nothing, "undecided", found.reason)
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
    text = f"{_NOUNS[question.kind]} {mean}{bounds} {unit}, {seeds} {noun}{lost}"
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
            "command": verdict.claim.command,
        }
        for verdict in verdicts
        for finding in verdict.findings
    ]
    return pd.DataFrame(rows, columns=_COLUMNS)


def format_verdicts(verdicts: Sequence[Verdict]) -> list[list[str]]:
    """Spell the verdicts for people, one line each under HEADER."""
    lines = []
    for verdict in verdicts:
        claim, reason = verdict.claim, format_reason(verdict)
        said = claim.where if claim.source == "paper" else " ".join(filter(None, ["ours,",
               claim.where])).removesuffix(",")  # fmt: skip
        numbers = format_numbers(verdict) + (f"; {reason}" if reason else "")
        word = f"{SIGNS[verdict.word]} {verdict.word}"
        lines.append([word, claim.text, said, numbers, claim.command])
    return lines


def verdict_markdown(verdicts: Sequence[Verdict]) -> str:
    """Spell the verdicts as one table."""
    table = markdown_table(HEADER, format_verdicts(verdicts), words=range(len(HEADER)))
    return "\n".join(["# Claims\n", f"{NOTE}\n", table]) if verdicts else "# Claims\n"

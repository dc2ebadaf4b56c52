"""What became of claims, each counted once: some are put twice, once by an oracle's choice.

The paper does not say who ranks its designs. Where a claim has been put both ways, the honest way
counts: the method ranks its own last designs. If only the other way holds, that is said.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ddobench.report.claims.questions import Question
from ddobench.report.claims.verdicts import Verdict
from ddobench.scores import oracle_names

Fate = Literal["holds", "oracle", "fails", "undecided", "not run"]
WORDS: Mapping[Fate, tuple[str, str]] = {  # of one claim, of several
    "holds": ("holds", "hold"),
    "oracle": ("holds only by an oracle's choice", "hold only by an oracle's choice"),
    "fails": ("fails", "fail"),
    "undecided": ("is undecided", "are undecided"),
    "not run": ("has no runs here", "have no runs here"),
}


@dataclass(frozen=True)
class Outcome:
    """A claim, what became of it, and the same claim by an oracle's choice if it was put so too."""

    verdict: Verdict
    by_oracle: Verdict | None
    fate: Fate


def find_outcomes(verdicts: Sequence[Verdict]) -> list[Outcome]:
    """Return what became of every claim, twins counted once."""
    chosen = [v for v in verdicts if v.claim.question.score in oracle_names()]
    twins = {_twin_key(verdict): verdict for verdict in chosen}
    own = {v.claim.id for v in verdicts} - {v.claim.id for v in chosen}
    paired = {
        twins[_twin_key(v)].claim.id
        for v in verdicts
        if v.claim.id in own and _twin_key(v) in twins
    }
    return [
        _outcome(verdict, twins.get(_twin_key(verdict)) if verdict.claim.id in own else None)
        for verdict in verdicts
        if verdict.claim.id not in paired
    ]


def count_fates(outcomes: Iterable[Outcome]) -> dict[Fate, int]:
    """Return how many claims met each fate, those that none met left out."""
    fates = [outcome.fate for outcome in outcomes]
    return {fate: fates.count(fate) for fate in WORDS if fate in fates}


def spell_fates(counts: Mapping[Fate, int]) -> str:
    """Spell such counts: "1 holds, 2 fail"."""
    return ", ".join(f"{count} {WORDS[fate][count != 1]}" for fate, count in counts.items())


def _outcome(verdict: Verdict, by_oracle: Verdict | None) -> Outcome:
    only = by_oracle is not None and by_oracle.word == "holds" and verdict.word != "holds"
    return Outcome(verdict, by_oracle, "oracle" if only else verdict.word)


def _twin_key(verdict: Verdict) -> tuple[str, Question]:
    """Return what a claim by the method's choice and its twin by the oracle's have in common."""
    return verdict.claim.source, replace(verdict.claim.question, score="")

"""Settings of a method chosen without an oracle: `select=RULE`, for any method with settings. Ours.

What a benchmark publishes of a method depends on its numbers of steps and its rates, and these must
not be chosen by the oracle. Every candidate is the method with some of its settings changed, as the
grid of the rule's file declares; a rule that reads visible rows alone chooses, for each seed:

- `error`: the smallest squared error on a tenth of the rows, drawn at random. For settings of
  models.
- `rank`: the best order (rank correlation) of the rows above percentile 90 of the value, when
  fitted to those below. For settings of models too: the error within the data tells little of what
  is beyond.
- `referee`: the highest mean value of what a candidate proposes when fitted to the rows below
  percentile 90, by the first candidate's model fitted to all rows: a referee that knows better. For
  settings of searches, which change no prediction.

What is chosen is then fitted to all rows. If nothing can be judged, the first candidate is taken:
the settings that the grid lists first. Each record tells of all candidates and of the choice, and
its variant says `select=RULE`. What a rule loses against an oracle's choice can be read off the
runs of the candidates by themselves, which have the same numbers.

A row: python -m ddobench -m method=ga select=heldout_top task=chain d=41 seed=0-9
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any, ClassVar

import torch

from ddobench.baselines.choosing import Chooser, Judgement, Trial
from ddobench.contracts import Dataset, Privilege, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.rng import Streams

# how good a candidate is by what is known of it; NaN: not known
RULES: Mapping[str, Callable[[Judgement], float]] = {
    "error": lambda told: -told.error,
    "rank": lambda told: told.rank,
    "referee": lambda told: told.value,
}


@dataclass(kw_only=True)
class Selected(Chooser):
    """Judge settings of one method on visible rows, and take the best of each seed."""

    name: ClassVar[str] = "selected"
    seeds_at_once: ClassVar[int | None] = 10

    rule: str
    percentile: float = 90.0
    least_rows: int = 20
    scouts: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("select.rule", self.rule, tuple(RULES))
        check_whole("select.least_rows", self.least_rows, 1)
        check_whole("select.scouts", self.scouts, 1)
        if not 0 < self.percentile < 100:
            raise UsageError(f"select.percentile must be between 0 and 100, got {self.percentile}")

    def privileges(self, space: Space) -> frozenset[Privilege]:
        """Ask for what the candidates need."""
        asked = [method.privileges(space) for method in self.candidates.values()]
        return frozenset().union(*asked)

    def declines(self, data: Dataset) -> str | None:
        """Decline what every candidate declines, and knowledge that cannot be cut in two."""
        if "hidden" in self.privileges(data.space):
            return "select= fits a method to some of the rows, and hidden coordinates are of all"
        refusals = [method.declines(data) for method in self.candidates.values()]
        return refusals[0] if all(refusals) else None

    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Return for each seed what the rule needs to know of every candidate."""
        if self.rule == "error":
            trial = Trial.at_random(data, self.percentile, rng.child("rows"))
        else:
            trial = Trial.above(data, self.percentile)
        told = self.judge_by(trial, data, self.least_rows, rng)
        if self.rule == "referee" and trial.refuse(self.least_rows) is None:
            self._referee(told, trial, data, rng)
        return told

    def choose(self, told: Sequence[Judgement], data: Dataset) -> str:  # noqa: ARG002
        """Return the best candidate by the rule, the first of several, or the first of all."""
        known = [one for one in told if isfinite(RULES[self.rule](one))]
        best = max(known, key=RULES[self.rule], default=told[0])
        return best.candidate

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return also by which rule the choice was made."""
        reports = super().diagnostics()
        return [{**report, "chosen_by": self.rule} for report in reports]

    def _referee(
        self, told: list[list[Judgement]], trial: Trial, data: Dataset, rng: Streams
    ) -> None:
        """Let candidates, fitted to the shown rows, propose, and value what they end with."""
        referee = deepcopy(next(iter(self.candidates.values())))
        referee.fit(data, rng.child("referee"))
        picked = rng.child("scouts").sample(trial.shown.n, self.scouts)  # (S, K)
        starts = torch.take_along_dim(trial.shown.x, picked[..., None], dim=1)
        for place, (name, method) in enumerate(self.candidates.items()):
            if all(judgements[place].reason for judgements in told):
                continue
            *_, last = method.propose(starts, rng.child(f"{name}/propose"))
            value = referee.predict(last.designs)
            for seed, judgements in enumerate(told):
                if value is not None and not judgements[place].reason:
                    mean = float(value[seed].mean())
                    judgements[place] = replace(judgements[place], value=mean)

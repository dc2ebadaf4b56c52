"""Choosing among candidates without an oracle, by rows that were hidden from them.

A visible table is split in two. Every candidate is fitted to one part and evaluated on the other;
each seed then uses its own choice, fitted to all rows. `Chooser` is the base class of methods that
choose: `method=auto` chooses among methods, `select=RULE` (`Selected`) among settings of one.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from math import isfinite
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Insight, Method, Privilege, Proposal, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.models.training import rank_correlation
from ddobench.progress import stage
from ddobench.rng import Streams


@dataclass(frozen=True)
class Judgement:
    """How well a candidate predicted the hidden rows of one seed, or why it did not."""

    candidate: str
    rank: float = float("nan")  # rank correlation
    error: float = float("nan")  # squared error as a share of the variance of all visible values
    reason: str = ""  # why it was not judged, or why it lost
    value: float = float("nan")  # of its proposals according to a referee, if there is one

    def describe(self, chosen: str) -> dict[str, Any]:
        """Return the judgement as stored in a record."""
        report = {
            "candidate": self.candidate,
            "held_out_top_rank": self.rank,
            "held_out_error": self.error,
            "reason": self.reason,
            "chosen": self.candidate == chosen,
        }
        return report | ({"referee_value": self.value} if isfinite(self.value) else {})


@dataclass(frozen=True)
class ProposalJudgement(Judgement):
    """How well a candidate predicted hidden rows of one seed, and what it proposed."""

    off_surface: float = float("nan")  # median of its proposals, by the rows' own
    nearest: float = float("nan")  # median distance of these to a row, by the rows' own
    promised: float = float("nan")  # value above the best visible one, in standard deviations
    carried: float = float("nan")  # the same, less the share that its held-out error leaves open

    def describe(self, chosen: str) -> dict[str, Any]:
        """Return the judgement as stored in a record."""
        return {
            **super().describe(chosen),
            "off_surface": self.off_surface,
            "nearest": self.nearest,
            "promised_gain": self.promised,
            "carried_gain": self.carried,
        }


@dataclass(frozen=True)
class Trial:
    """A visible table split into the rows that candidates are fitted to and those hidden."""

    shown: Dataset
    x: Tensor  # (S, H, d) hidden designs
    y: Tensor  # (S, H) and their values

    @classmethod
    def above(cls, data: Dataset, percentile: float) -> "Trial":
        """Hide the rows above a percentile of the value."""
        order = data.y.argsort(dim=1)  # (S, N)
        shown = round(data.n * percentile / 100)
        return cls.split(data, order[:, :shown], order[:, shown:])

    @classmethod
    def at_random(cls, data: Dataset, percentile: float, rng: Streams) -> "Trial":
        """Hide as many rows, drawn at random."""
        order = rng.permutation(data.n)  # (S, N)
        shown = round(data.n * percentile / 100)
        return cls.split(data, order[:, :shown], order[:, shown:])

    @classmethod
    def among(cls, data: Dataset, percentile: float, least: int) -> "Trial":
        """Hide every other row above a percentile of the value, and as many of the others.

        At least `least` of either kind are hidden, but no more than half of all rows. The best come
        first among the hidden rows, the others are evenly spaced by value.
        """
        order = data.y.argsort(dim=1, descending=True, stable=True)  # (S, N)
        few = (data.n - round(data.n * percentile / 100)) // 2
        few = max(few, min(least, data.n // 4))
        rest = data.n - 2 * few
        others = 2 * few + ((torch.arange(few) + 0.5) * rest / max(few, 1)).long()
        places = torch.cat([2 * torch.arange(few) + 1, others])  # in the order; the best is shown
        shown = torch.ones(data.n, dtype=torch.bool)
        shown[places] = False
        return cls.split(data, order[:, shown], order[:, places])

    @classmethod
    def split(cls, data: Dataset, shown: Tensor, hidden: Tensor) -> "Trial":
        """Take the rows (S, N - H) and (S, H) of each seed."""
        return cls(
            replace(
                data,
                x=torch.take_along_dim(data.x, shown[..., None], dim=1),
                y=torch.take_along_dim(data.y, shown, dim=1),
            ),
            torch.take_along_dim(data.x, hidden[..., None], dim=1),
            torch.take_along_dim(data.y, hidden, dim=1),
        )

    def refuse(self, least_rows: int) -> str | None:
        """Return why there are too few rows on one side, or None if there are enough."""
        if min(self.y.shape[1], self.shown.n) >= least_rows:
            return None
        return f"fewer than {least_rows} rows to judge by, or to be fitted to"


@dataclass(kw_only=True)
class Chooser(Method):
    """Judge the candidates and use one of them, seed by seed."""

    candidates: Mapping[str, Method]

    def __post_init__(self) -> None:
        if not self.candidates:
            raise UsageError("method.candidates must name at least one method, got none")

    def list_candidates(self, data: Dataset) -> Mapping[str, Method]:  # noqa: ARG002
        """Return the candidates for these data, by name."""
        return self.candidates

    @abstractmethod
    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Return a judgement of every candidate, for each seed."""

    @abstractmethod
    def choose(self, judgements: Sequence[Judgement], data: Dataset) -> str:
        """Return the name of the candidate that one seed uses."""

    def find_method(self, name: str) -> Method:
        """Return the method of a name that `choose` returned."""
        return self._known[name]

    def copy_choice(self, name: str) -> Method | None:
        """Return what was chosen by a name, to be fitted to other rows; None for no candidate."""
        return deepcopy(self._known.get(name))

    def working_bytes(self, n: int, d: int) -> float:
        """Return the largest number of any candidate: they are fitted one after the other."""
        return max(method.working_bytes(n, d) for method in self.candidates.values())

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Judge on hidden rows, then fit the chosen methods to all rows."""
        self._known = self.list_candidates(data)
        self._judged: list[str] = []  # candidates that were fitted, for all seeds
        self._judgements = self.judge(data, rng.child("judge"))
        self._chosen = [self.choose(one, data) for one in self._judgements]
        self._seeds = len(data.x)
        self._teams: list[tuple[list[int], Method]] = []  # seeds with the same choice, and it
        for name in dict.fromkeys(self._chosen):
            seeds = [seed for seed, one in enumerate(self._chosen) if one == name]
            method = self.find_method(name)
            method.cache = self.cache
            with stage(f"fitting {name}"):
                method.fit(take_seeds(data, seeds), take_streams(rng, seeds))
            self._teams.append((seeds, method))

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the proposals of the chosen methods; those that end early repeat their last.

        There are as many iterations as the longest candidate has, even if no seed chose it: the
        record of a seed must not depend on the choices of the seeds beside it.
        """
        least: Iterable[Proposal | None] = repeat(None, self.count_other_iterations(starts, rng))
        paths: list[Iterable[Proposal | None]] = [
            method.propose(starts[seeds], take_streams(rng, seeds)) for seeds, method in self._teams
        ]
        latest: list[Proposal | None] = [None] * len(paths)
        for *steps, _ in zip_longest(*paths, least):
            latest = [step or old for step, old in zip(steps, latest, strict=True)]
            designs = torch.empty_like(starts)
            predicted = starts.new_empty(starts.shape[:2])
            for (seeds, method), step in zip(self._teams, latest, strict=True):
                assert step is not None
                value = step.predicted
                if value is None:
                    value = method.predict(step.designs)
                rows = torch.arange(starts.shape[1]) % step.designs.shape[1]  # (K,) with repeats
                designs[seeds] = step.designs[:, rows].to(designs)
                predicted[seeds] = 0.0 if value is None else value[:, rows].to(predicted)
            yield Proposal(designs, predicted)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the values by the chosen models, NaN for a seed whose choice has none."""
        values = x.new_full(x.shape[:2], torch.nan)
        for seeds, method in self._teams:
            value = method.predict(x[seeds])
            if value is not None:
                values[seeds] = value.to(values)
        return values

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return the insight of the method that each seed chose."""
        found: list[Insight | None] = [None] * len(x)
        for seeds, method in self._teams:
            for seed, one in zip(
                seeds, method.insight(x[seeds]) or [None] * len(seeds), strict=True
            ):
                found[seed] = one
        return found

    def failures(self) -> dict[int, str]:
        """Return the seeds whose chosen method failed."""
        return {
            seeds[row]: reason
            for seeds, method in self._teams
            for row, reason in method.failures().items()
        }

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the diagnostics of the chosen method, the choice, and all judgements."""
        reports: list[dict[str, Any]] = [{} for _ in range(self._seeds)]
        for seeds, method in self._teams:
            own = method.diagnostics() or [{} for _ in seeds]
            for seed, report in zip(seeds, own, strict=True):
                reports[seed] = dict(report)
        for seed, report in enumerate(reports):
            chosen = self._chosen[seed]
            report["chosen"] = chosen
            report["candidates"] = [one.describe(chosen) for one in self._judgements[seed]]
        return reports

    def count_other_iterations(self, starts: Tensor, rng: Streams) -> int:
        """Return the largest number of iterations of the candidates that no seed chose."""
        return max(
            (
                sum(1 for _ in self._known[name].propose(starts[:, :1], rng.child(name)))
                for name in self._judged
                if name not in self._chosen
            ),
            default=0,
        )

    def judge_by(
        self, trial: Trial, data: Dataset, least_rows: int, rng: Streams
    ) -> list[list[Judgement]]:
        """Fit every candidate to the shown rows of a trial, and judge it on the hidden ones."""
        results: list[list[Judgement]] = [[] for _ in data.x]
        for name, method in self._known.items():
            refusal = method.declines(data) or trial.refuse(least_rows)
            if refusal is None:
                with stage(f"judging {name}"):
                    method.fit(trial.shown, rng.child(name))
                self._judged.append(name)
                failures = method.failures()
                value = method.predict(trial.x)
                for seed, judgements in enumerate(results):
                    judgements.append(compare(name, value, trial, data, seed, failures))
            else:
                for judgements in results:
                    judgements.append(Judgement(name, reason=refusal))
        return results


def compare(
    name: str,
    value: Tensor | None,
    trial: Trial,
    data: Dataset,
    seed: int,
    failures: Mapping[int, str],
) -> Judgement:
    """Compare the predictions of a candidate with the true values of the hidden rows of a seed."""
    if value is None or seed in failures:
        return Judgement(name, reason=failures.get(seed, "it predicts nothing"))
    y = trial.y[seed]
    rank = rank_correlation(value[seed].numpy(), y.numpy())
    error = (value[seed] - y).square().mean() / data.y[seed].var().clamp(min=1e-12)
    reason = "" if isfinite(rank) else "it predicts the same of all rows"
    return Judgement(name, rank, float(error), reason)


def take_seeds(data: Dataset, seeds: Sequence[int]) -> Dataset:
    """Return the tables of some seeds (positions along S), and their graphs if these are known."""
    graphs = data.privileged.graphs
    known = replace(
        data.privileged, graphs=None if graphs is None else tuple(graphs[seed] for seed in seeds)
    )
    return replace(data, x=data.x[list(seeds)], y=data.y[list(seeds)], privileged=known)


def take_streams(rng: Streams, seeds: Sequence[int]) -> Streams:
    """Return the streams of some seeds (positions along S), from their beginning."""
    return Streams([rng.seeds[seed] for seed in seeds], rng.name)


# the score of a candidate by which a rule chooses; NaN: unknown
RULES: Mapping[str, Callable[[Judgement], float]] = {
    "error": lambda judgement: -judgement.error,
    "rank": lambda judgement: judgement.rank,
    "referee": lambda judgement: judgement.value,
}


@dataclass(kw_only=True)
class Selected(Chooser):
    """Choose the settings of a method without an oracle: `select=RULE`. Ours.

    The published result of a method depends on its numbers of steps and its rates, and these must
    not be chosen by the oracle. Every candidate is the method with some of its settings changed, as
    the grid in the rule's file declares. A rule that reads only visible rows chooses for each seed:

    - `error`: the smallest squared error on a tenth of the rows, drawn at random. For settings of
      models.
    - `rank`: the best rank correlation on the rows above percentile 90 of the value, when fitted to
      those below. Also for settings of models: the error within the data says little about
      extrapolation.
    - `referee`: the highest mean value of what a candidate proposes when fitted to the rows below
      percentile 90, according to a referee: the first candidate's model, fitted to all rows. For
      settings of searches, which change no prediction.

    The choice is then fitted to all rows. If no candidate can be judged, the first is taken: the
    settings that the grid lists first. Each record contains the judgements of all candidates and
    the choice, and its variant says `select=RULE`. The loss of a rule against the oracle's choice
    follows from runs of the candidates by themselves, which have the same results.

    Command: python -m ddobench -m method=ga select=heldout_top task=chain d=41 seed=0-9
    """

    name: ClassVar[str] = "selected"
    seeds_at_once: ClassVar[int | None] = 10

    rule: str
    percentile: float = 90.0
    least_rows: int = 20
    scouts: int = 128  # designs that a candidate proposes to the referee

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
        """Decline what every candidate declines, and hidden coordinates, which cannot be split."""
        if "hidden" in self.privileges(data.space):
            return "select= fits a method to some of the rows, and hidden coordinates are of all"
        refusals = [method.declines(data) for method in self.candidates.values()]
        return refusals[0] if all(refusals) else None

    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Judge every candidate as the rule needs it, for each seed."""
        if self.rule == "error":
            trial = Trial.at_random(data, self.percentile, rng.child("rows"))
        else:
            trial = Trial.above(data, self.percentile)
        results = self.judge_by(trial, data, self.least_rows, rng)
        if self.rule == "referee" and trial.refuse(self.least_rows) is None:
            self._referee(results, trial, data, rng)
        return results

    def choose(self, judgements: Sequence[Judgement], data: Dataset) -> str:  # noqa: ARG002
        """Return the best candidate by the rule, or the first if none has a score."""
        known = [one for one in judgements if isfinite(RULES[self.rule](one))]
        best = max(known, key=RULES[self.rule], default=judgements[0])
        return best.candidate

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return also the rule by which the choice was made."""
        reports = super().diagnostics()
        return [{**report, "chosen_by": self.rule} for report in reports]

    def _referee(
        self, results: list[list[Judgement]], trial: Trial, data: Dataset, rng: Streams
    ) -> None:
        """Let the fitted candidates propose designs, and add the referee's value of these."""
        referee = deepcopy(next(iter(self.candidates.values())))
        referee.fit(data, rng.child("referee"))
        picked = rng.child("scouts").sample(trial.shown.n, self.scouts)  # (S, K)
        starts = torch.take_along_dim(trial.shown.x, picked[..., None], dim=1)
        for place, (name, method) in enumerate(self.candidates.items()):
            if all(judgements[place].reason for judgements in results):
                continue
            *_, last = method.propose(starts, rng.child(f"{name}/propose"))
            value = referee.predict(last.designs)
            for seed, judgements in enumerate(results):
                if value is not None and not judgements[place].reason:
                    mean = float(value[seed].mean())
                    judgements[place] = replace(judgements[place], value=mean)

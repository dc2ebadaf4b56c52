"""Choosing among methods without an oracle: candidates are judged by rows that they were not shown.

What is shared by methods that choose: `auto`, among methods, and `select=RULE`, among settings of
one. A table is cut in two; every candidate is fitted to one part and judged on the other; each seed
goes on with its own choice, fitted to all rows.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat, zip_longest
from math import isfinite
from typing import Any

import torch
from torch import Tensor

from ddobench.baselines.naive import Naive
from ddobench.contracts import Dataset, Insight, Method, Proposal
from ddobench.errors import UsageError
from ddobench.parts.surrogates import rank_correlation
from ddobench.progress import stage
from ddobench.rng import Streams

NOTHING = "naive"  # what is left when no candidate is trusted
CONSTANT = "it predicts the same of all rows"


@dataclass(frozen=True)
class Judgement:
    """How a candidate predicted the rows that one seed hid from it, or why it did not."""

    candidate: str
    rank: float = float("nan")  # correlation of ranks
    error: float = float("nan")  # share of the variance of all visible values
    reason: str = ""
    value: float = float("nan")  # of what it proposed, by a referee, where there is one

    def describe(self, chosen: str) -> dict[str, Any]:
        """Return all of it for a record."""
        told = {
            "candidate": self.candidate,
            "held_out_top_rank": self.rank,
            "held_out_error": self.error,
            "reason": self.reason,
            "chosen": self.candidate == chosen,
        }
        return told | ({"referee_value": self.value} if isfinite(self.value) else {})


@dataclass(frozen=True)
class Trial:
    """A visible table cut in two: what candidates are fitted to, and the rows that judge them."""

    shown: Dataset
    x: Tensor  # (S, H, d)
    y: Tensor  # (S, H)

    @classmethod
    def above(cls, data: Dataset, percentile: float) -> "Trial":
        """Hide the rows above a percentile of the value."""
        order = data.y.argsort(dim=1)  # (S, N)
        shown = round(data.n * percentile / 100)
        return cls.cut(data, order[:, :shown], order[:, shown:])

    @classmethod
    def at_random(cls, data: Dataset, percentile: float, rng: Streams) -> "Trial":
        """Hide as many rows, whatever their values."""
        order = rng.permutation(data.n)  # (S, N)
        shown = round(data.n * percentile / 100)
        return cls.cut(data, order[:, :shown], order[:, shown:])

    @classmethod
    def cut(cls, data: Dataset, shown: Tensor, hidden: Tensor) -> "Trial":
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

    @property
    def hidden(self) -> int:
        """The number H of rows that judge."""
        return self.y.shape[1]

    def refuse(self, least_rows: int) -> str | None:
        """Return why nothing can be told from so few rows, or None if it can."""
        if min(self.hidden, self.shown.n) >= least_rows:
            return None
        return f"fewer than {least_rows} rows to judge by, or to be fitted to"


@dataclass(kw_only=True)
class Chooser(Method):
    """Judge the candidates, and hand over to one of them, seed by seed."""

    candidates: Mapping[str, Method]

    def __post_init__(self) -> None:
        if not self.candidates:
            raise UsageError("method.candidates must name at least one method, got none")

    def list_candidates(self, data: Dataset) -> Mapping[str, Method]:  # noqa: ARG002
        """Return the candidates for such data, by name."""
        return self.candidates

    @abstractmethod
    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Return for each seed what is known of every candidate."""

    @abstractmethod
    def choose(self, told: Sequence[Judgement], data: Dataset) -> str:
        """Return the candidate of one seed, or NOTHING."""

    def working_bytes(self, n: int, d: int) -> float:
        """Ask the candidates, which are fitted one after the other."""
        return max(method.working_bytes(n, d) for method in self.candidates.values())

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Judge on hidden rows, then fit what was chosen to all of them."""
        self._known = self.list_candidates(data)
        self._judged: list[str] = []  # candidates that were fitted, all seeds of each
        self._judgements = self.judge(data, rng.child("judge"))
        self._chosen = [self.choose(told, data) for told in self._judgements]
        self._seeds = len(data.x)
        self._teams: list[tuple[list[int], Method]] = []
        for name in dict.fromkeys(self._chosen):
            seeds = [seed for seed, one in enumerate(self._chosen) if one == name]
            method = self._known.get(name) or Naive()
            method.cache = self.cache
            with stage(f"fitting {name}"):
                method.fit(take_seeds(data, seeds), take_streams(rng, seeds))
            self._teams.append((seeds, method))

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield what the chosen methods propose; who is done before the longest stays there.

        There are as many iterations as the longest of the candidates has, whoever was chosen: what
        a seed records must not depend on what the seeds beside it chose.
        """
        least: Iterable[Proposal | None] = repeat(None, self._longest_of_the_others(starts, rng))
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
                rows = torch.arange(starts.shape[1]) % step.designs.shape[1]  # (K,) repeats a few
                designs[seeds] = step.designs[:, rows].to(designs)
                predicted[seeds] = 0.0 if value is None else value[:, rows].to(predicted)
            yield Proposal(designs, predicted)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the values of the chosen models, NaN where nothing was trusted."""
        values = x.new_full(x.shape[:2], torch.nan)
        for seeds, method in self._teams:
            value = method.predict(x[seeds])
            if value is not None:
                values[seeds] = value.to(values)
        return values

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return how the method that each seed chose sees designs."""
        seen: list[Insight | None] = [None] * len(x)
        for seeds, method in self._teams:
            for seed, one in zip(
                seeds, method.insight(x[seeds]) or [None] * len(seeds), strict=True
            ):
                seen[seed] = one
        return seen

    def failures(self) -> dict[int, str]:
        """Return the seeds whose chosen method broke down."""
        return {
            seeds[row]: reason
            for seeds, method in self._teams
            for row, reason in method.failures().items()
        }

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return what was chosen and why, and what the chosen method has to say."""
        reports: list[dict[str, Any]] = [{} for _ in range(self._seeds)]
        for seeds, method in self._teams:
            told = method.diagnostics() or [{} for _ in seeds]
            for seed, report in zip(seeds, told, strict=True):
                reports[seed] = dict(report)
        for seed, report in enumerate(reports):
            chosen = self._chosen[seed]
            report["chosen"] = chosen
            report["candidates"] = [one.describe(chosen) for one in self._judgements[seed]]
        return reports

    def _longest_of_the_others(self, starts: Tensor, rng: Streams) -> int:
        """Count the iterations that the candidates which no seed chose would take."""
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
        """Return for each seed how every candidate did on the hidden rows of a trial."""
        told: list[list[Judgement]] = [[] for _ in data.x]
        for name, method in self._known.items():
            refusal = method.declines(data) or trial.refuse(least_rows)
            if refusal is None:
                with stage(f"judging {name}"):
                    method.fit(trial.shown, rng.child(name))
                self._judged.append(name)
                failures = method.failures()
                value = method.predict(trial.x)
                for seed, judgements in enumerate(told):
                    judgements.append(compare(name, value, trial, data, seed, failures))
            else:
                for judgements in told:
                    judgements.append(Judgement(name, reason=refusal))
        return told


def compare(
    name: str,
    value: Tensor | None,
    trial: Trial,
    data: Dataset,
    seed: int,
    failures: Mapping[int, str],
) -> Judgement:
    """Compare what a candidate says of the hidden rows of a seed with what they are worth."""
    if value is None or seed in failures:
        return Judgement(name, reason=failures.get(seed, "it predicts nothing"))
    y = trial.y[seed]
    rank = rank_correlation(value[seed].numpy(), y.numpy())
    error = (value[seed] - y).square().mean() / data.y[seed].var().clamp(min=1e-12)
    return Judgement(name, rank, float(error), "" if isfinite(rank) else CONSTANT)


def take_seeds(data: Dataset, seeds: Sequence[int]) -> Dataset:
    """Return the tables of some seeds (positions along S), and their graphs if these are told."""
    graphs = data.privileged.graphs
    known = replace(
        data.privileged, graphs=None if graphs is None else tuple(graphs[seed] for seed in seeds)
    )
    return replace(data, x=data.x[list(seeds)], y=data.y[list(seeds)], privileged=known)


def take_streams(rng: Streams, seeds: Sequence[int]) -> Streams:
    """Return the streams of some seeds (positions along S), from their beginning."""
    return Streams([rng.seeds[seed] for seed in seeds], rng.name)

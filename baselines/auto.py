"""Auto: choose a method by what it would have predicted of the best rows. Ours.

A user with one table has no oracle to choose by. What counts is how a model does beyond the data it
has seen, so each candidate is fitted to the rows below a percentile of the value and judged on the
rows above it: does it put them in the right order (rank correlation), and by how much is it wrong
(squared error as a share of the variance of all visible values)? The candidate with the best order
is then fitted to all rows and proposes. If no candidate's order is better than chance allows, the
best visible design is proposed: doing nothing is a candidate. Of a table with few rows more are
judged by (the percentile in `conf/method/auto.yaml` falls), so that 40 rows are enough.

Nothing is chosen by the oracle. Every candidate is a method as it stands in `conf/method`, so what
is learned about it there holds here. Categorical designs have two candidates more, which need no
training: ridge regression on the codes, and FGM's tables over discovered pairs (`on_categories`; in
no YAML, so that the digests of runs on continuous designs stay).

Its row: python -m ddobench -m method=auto task=chain d=41 seed=0-9
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat, zip_longest
from math import isfinite, sqrt
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.baselines.fgm_discrete import DiscreteFGM
from ddobench.baselines.linear import Linear
from ddobench.baselines.naive import Naive
from ddobench.contracts import Dataset, Insight, Method, Proposal
from ddobench.errors import UsageError
from ddobench.parts.axes import Identity as OwnAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.latents import Identity
from ddobench.parts.pairs import Pairs
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.parts.surrogates import rank_correlation
from ddobench.progress import stage
from ddobench.rng import Streams

NOTHING = "naive"  # what is left when no candidate is trusted
CONSTANT = "it predicts the same of all rows"


@dataclass(frozen=True)
class Judgement:
    """How a candidate predicted the hidden best rows of one seed, or why it did not."""

    candidate: str
    rank: float = float("nan")  # correlation of ranks
    error: float = float("nan")  # share of the variance of all visible values
    reason: str = ""

    def describe(self, chosen: str) -> dict[str, Any]:
        """Return all of it for a record."""
        return {
            "candidate": self.candidate,
            "held_out_top_rank": self.rank,
            "held_out_error": self.error,
            "reason": self.reason,
            "chosen": self.candidate == chosen,
        }


@dataclass(kw_only=True)
class Auto(Method):
    """Judge the candidates on the best visible rows, and hand over to one of them."""

    name: ClassVar[str] = "auto"
    version: ClassVar[int] = 2  # as many iterations beside any companions
    seeds_at_once: ClassVar[int | None] = 10

    candidates: Mapping[str, Method]
    percentile: float = 90.0
    chance: float = 2.0
    least_rows: int = 20
    on_categories: Mapping[str, Method] = field(default_factory=lambda: categorical_candidates())

    def __post_init__(self) -> None:
        if not self.candidates:
            raise UsageError("method.candidates must name at least one method, got none")
        if not 0 < self.percentile < 100:
            raise UsageError(f"method.percentile must be between 0 and 100, got {self.percentile}")

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Judge on the best rows, then fit what was chosen to all of them."""
        more = self.on_categories if data.space.categorical else {}
        self._known = {**self.candidates, **more}
        self._judgements = self._judge(data, rng.child("judge"))
        self._chosen = [self._choose(told, data) for told in self._judgements]
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

    def _judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Return for each seed how every candidate did on the best rows."""
        self._judged: list[str] = []  # candidates that were fitted, all seeds of each
        told: list[list[Judgement]] = [[] for _ in data.x]
        top = data.n - round(data.n * self.percentile / 100)
        order = data.y.argsort(dim=1)  # (S, N)
        enough = min(top, data.n - top) >= self.least_rows
        below = Dataset(
            x=torch.take_along_dim(data.x, order[:, : data.n - top, None], dim=1),
            y=torch.take_along_dim(data.y, order[:, : data.n - top], dim=1),
            space=data.space,
        )
        x = torch.take_along_dim(data.x, order[:, data.n - top :, None], dim=1)  # (S, top, d)
        y = torch.take_along_dim(data.y, order[:, data.n - top :], dim=1)  # (S, top)
        for name, method in self._known.items():
            refusal = method.declines(data)
            if refusal is None and not enough:
                refusal = f"fewer than {self.least_rows} rows to judge by, or to be fitted to"
            if refusal is None:
                with stage(f"judging {name}"):
                    method.fit(below, rng.child(name))
                self._judged.append(name)
                refusals = method.failures()
                value = method.predict(x)
                for seed in range(len(told)):
                    told[seed].append(self._compare(name, value, y, data, seed, refusals))
            else:
                for judgements in told:
                    judgements.append(Judgement(name, reason=refusal))
        return told

    def _compare(
        self,
        name: str,
        value: Tensor | None,
        y: Tensor,
        data: Dataset,
        seed: int,
        failures: Mapping[int, str],
    ) -> Judgement:
        """Compare what a candidate says of the best rows of a seed with what they are worth."""
        if value is None or seed in failures:
            return Judgement(name, reason=failures.get(seed, "it predicts nothing"))
        rank = rank_correlation(value[seed].numpy(), y[seed].numpy())
        error = (value[seed] - y[seed]).square().mean() / data.y[seed].var().clamp(min=1e-12)
        return Judgement(name, rank, float(error), "" if isfinite(rank) else CONSTANT)

    def _choose(self, told: Sequence[Judgement], data: Dataset) -> str:
        """Return the candidate with the best order, or nothing if that may be chance."""
        known = [one for one in told if isfinite(one.rank)]
        best = max(known, key=lambda one: one.rank, default=None)
        top = data.n - round(data.n * self.percentile / 100)
        if best is None or best.rank < self.chance / sqrt(max(top, 1)):
            return NOTHING
        return best.candidate


def categorical_candidates() -> dict[str, Method]:
    """Return what is tried on categorical designs beside the candidates of any designs."""
    linear = Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=Linear(), search=Ascent()
    )
    return {"linear": linear, "pairs": DiscreteFGM(graph=Pairs())}


def take_seeds(data: Dataset, seeds: Sequence[int]) -> Dataset:
    """Return the tables of some seeds (positions along S)."""
    return replace(data, x=data.x[list(seeds)], y=data.y[list(seeds)])


def take_streams(rng: Streams, seeds: Sequence[int]) -> Streams:
    """Return the streams of some seeds (positions along S), from their beginning."""
    return Streams([rng.seeds[seed] for seed in seeds], rng.name)

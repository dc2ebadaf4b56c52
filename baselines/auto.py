"""Auto: choose a method by what it predicts and proposes when some rows are hidden. Ours.

A user with one table has no oracle to choose by, so some rows are hidden: every other one of the
best rows, and as many of the others. Each candidate is fitted to the rest. Then, for each seed:

1. A candidate must predict the hidden rows better than their mean does, rank them better than by
   chance, and not order the best of them backwards. The candidates that do are queued by their
   error, an estimate of that on all rows. Equal errors are ordered by rank correlation.
2. The first in the queue proposes designs. It passes if these are no more than `farthest` times
   as far from the planes of their nearest rows, and from the nearest row, as rows are from those of
   each other (`ddobench.planes`), and if its promise is one that its error can carry:
   with an error e, as a share of the variance, the gain above the best visible value may be
   (1 - e) / e times the range of the visible values. It must not value its designs below the best
   row, by more than its error.
3. Otherwise it loses to the next one. Candidates whose error is at most 5 % larger than that of the
   first that passed are its equals and propose as well: the one whose error carries the largest
   gain is chosen. If all lose, the best visible design is proposed.

The choice is fitted to all rows and proposes. What it predicts above the best visible value is
shrunk by its error: a model that explains half of the variance is believed half the gain. Designs
that end farther from the rows, or promise more than the error can carry and are still believed to
gain more than the range of the visible values, are replaced by the others, or all of them by the
best visible design.

Rows that do not fill their space (`filled`) lie on a surface, which is curved between rows: there
designs must be as near to the planes as rows are, and nearer to a row than most rows are
(`farthest_on_surfaces`). Candidates that work in few codes of a VAE, or along the rows, are
considered as well: these stay near the surface.

Candidates that take long are judged with less training (`trials`). A table of more than 10,000 rows
is judged by as many of them, evenly spaced by value; the choice is still fitted to all rows.
Categorical designs have two more candidates, which need no training: ridge regression on the codes,
and FGM's tables over discovered pairs (`on_categories`, in no YAML). They have no planes, so only
predictions and promises are judged.

Nothing is chosen by the oracle. `names` says how a candidate is typed: `method=NAME`, then what
differs from that method's file.

Command: python -m ddobench -m method=auto task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ddobench.baselines.fgm import DiscreteFGM
from ddobench.baselines.linear import Linear
from ddobench.baselines.naive import Naive
from ddobench.contracts import Dataset, Method, Proposal
from ddobench.errors import UsageError, check_whole
from ddobench.models.training import rank_correlation
from ddobench.parts.choosing import (
    Chooser,
    Judgement,
    ProposalJudgement,
    Trial,
    take_seeds,
    take_streams,
)
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete, Pairs
from ddobench.parts.latents import Identity
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.planes import LocalPlanes
from ddobench.progress import stage
from ddobench.rng import Streams

NONE_TRUSTED = "naive"  # the choice if every candidate loses
SLIGHT = 0.1  # standard deviations below the best row that do not count as a loss
JUDGED = 0.25  # share of the trial proposals that are judged: those with the largest predictions
EQUAL = 1.05  # errors up to so many times that of the first that passed count as equal
MOST_ROWS = 10_000  # of a table that candidates are judged by


@dataclass(kw_only=True)
class Auto(Chooser):
    """Judge the candidates by hidden rows and by their proposals, and use one of them."""

    name: ClassVar[str] = "auto"
    version: ClassVar[int] = 5  # among equal errors the largest gain; no surface in filled spaces
    seeds_at_once: ClassVar[int | None] = 10

    trials: Mapping[str, Method] = field(default_factory=dict)
    on_surfaces: Mapping[str, Method] = field(default_factory=dict)
    on_categories: Mapping[str, Method] = field(default_factory=lambda: categorical_candidates())
    names: Mapping[str, str] = field(default_factory=dict)
    percentile: float = 90.0
    chance: float = 2.0
    least_rows: int = 20
    scouts: int = 128
    farthest: float = 2.0
    farthest_on_surfaces: float = 0.6
    filled: float = 0.6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("method.least_rows", self.least_rows, 2)
        check_whole("method.scouts", self.scouts, 1)
        if not 0 < self.percentile < 100:
            raise UsageError(f"method.percentile must be between 0 and 100, got {self.percentile}")
        for name in ("farthest", "farthest_on_surfaces", "filled"):
            if getattr(self, name) <= 0:
                raise UsageError(f"method.{name} must be positive, got {getattr(self, name)}")

    def list_candidates(self, data: Dataset) -> Mapping[str, Method]:
        """Return the candidates for these data, by the name one can type."""
        more = self.on_categories if data.space.categorical else self.on_surfaces
        return {self._name(key): method for key, method in {**self.candidates, **more}.items()}

    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Judge every candidate by the hidden rows of each seed, then the best by proposals."""
        trial = Trial.among(thin_rows(data, MOST_ROWS), self.percentile, self.least_rows)
        self._data, self._quick = data, {self._name(key): one for key, one in self.trials.items()}
        self._planes = [] if data.space.categorical else [LocalPlanes.of(x.numpy()) for x in data.x]
        self._kept = [1.0] * len(data.x)  # share of the last designs that are trusted
        folded = [s for s, planes in enumerate(self._planes) if planes.filled() < self.filled]
        self._limits = [
            self.farthest_on_surfaces if s in folded else self.farthest for s in range(len(data.x))
        ]
        only_there = {self._name(key) for key in self.on_surfaces}
        fitted: dict[str, Fitted] = {}
        results: list[list[ProposalJudgement]] = [[] for _ in data.x]
        for name, full in self._known.items():
            method = self._quick.get(name, full)
            seeds = folded if name in only_there else list(range(len(data.x)))
            refusal = method.declines(data) or trial.refuse(self.least_rows)
            if refusal is None and seeds:
                with stage(f"judging {name}"):
                    method.fit(take_seeds(trial.shown, seeds), take_streams(rng.child(name), seeds))
                    value = method.predict(trial.x[seeds])
                fitted[name] = Fitted(method, seeds, value)
            for seed, judgements in enumerate(results):
                if refusal is not None or seed not in seeds:
                    why = refusal or "it is for rows on a surface, and these fill their space"
                    judgements.append(ProposalJudgement(name, reason=why))
                else:
                    judgements.append(self._compare(name, fitted[name], trial, seed))
        return [list(one) for one in self._judge_proposals(results, fitted, trial, rng)]

    def choose(self, judgements: Sequence[Judgement], data: Dataset) -> str:  # noqa: ARG002
        """Return the candidate with the largest gain of those that passed, else `naive`."""
        passed = [
            one
            for one in judgements
            if isinstance(one, ProposalJudgement) and not one.reason and isfinite(one.promised)
        ]
        if not passed:
            return NONE_TRUSTED
        return max(passed, key=lambda one: (one.carried, -one.error)).candidate

    def find_method(self, name: str) -> Method:
        """Return a candidate, or the best visible design if none is trusted."""
        return self._known[name] if name in self._known else Naive()

    def copy_choice(self, name: str) -> Method | None:
        """Return what was judged by a name, which takes less long than what was chosen."""
        return deepcopy(self._quick.get(name, self._known.get(name)))

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield what the chosen methods propose last, without designs that cannot be trusted."""
        *_, last = super().propose(starts, rng)
        designs, predicted = last.designs, last.predicted
        assert predicted is not None
        for seed, name in enumerate(self._chosen):
            if name == NONE_TRUSTED:
                continue
            y = self._data.y[seed].to(predicted)
            error = self._error(seed)
            most = max(self._most(seed, error), self._span(seed) / max(1 - error, 1e-12))
            good = predicted[seed] <= y.max() + y.std() * most  # (K,), false for NaN
            if self._planes:
                off, nearest = self._planes[seed].ratios(designs[seed].double().numpy())
                near = (off <= self._most_off(seed)) & (nearest <= self._limits[seed])
                good &= torch.from_numpy(near)
            self._kept[seed] = float(good.double().mean())
            if good.any():
                (kept,) = good.nonzero(as_tuple=True)
                rows = kept[torch.arange(len(good)) % len(kept)]
                designs[seed], predicted[seed] = designs[seed][rows], predicted[seed][rows]
            else:
                designs[seed] = self._data.best()[seed].to(designs)
                predicted[seed] = y.max()
        yield Proposal(designs, self._carry(predicted))

    def predict(self, x: Tensor) -> Tensor | None:
        """Return the values by the chosen models, with the gains that their errors carry."""
        values = super().predict(x)
        return None if values is None else self._carry(values)

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return also the share of the last designs that were kept."""
        reports = super().diagnostics()
        return [
            {**report, "kept_designs": kept}
            for report, kept in zip(reports, self._kept, strict=True)
        ]

    def count_other_iterations(self, starts: Tensor, rng: Streams) -> int:  # noqa: ARG002
        """Return 0: only the last iteration of each seed is used."""
        return 0

    def _name(self, key: str) -> str:
        return self.names.get(key, key)

    def _carry(self, predicted: Tensor) -> Tensor:  # (S, K) -> (S, K)
        """Shrink what is predicted above the best visible value by the held-out error."""
        errors = [min(1.0, self._error(seed)) for seed in range(len(self._chosen))]
        best = self._data.y.amax(dim=1, keepdim=True).to(predicted)  # (S, 1)
        gain = (predicted - best).clamp(min=0.0)
        return predicted - gain * predicted.new_tensor(errors)[:, None]

    def _error(self, seed: int) -> float:
        """Return the held-out error of what a seed chose, 0 for the best visible design."""
        known = {one.candidate: one.error for one in self._judgements[seed]}
        return known.get(self._chosen[seed], 0.0)

    def _span(self, seed: int) -> float:
        """Return the range of the visible values in their standard deviations."""
        y = self._data.y[seed]
        return float(y.max() - y.min()) / (float(y.std()) or 1.0)

    def _most(self, seed: int, error: float) -> float:
        """Return the largest gain that an error can carry, in standard deviations."""
        return self._span(seed) * (1 - error) / max(error, 1e-12)

    def _most_off(self, seed: int) -> float:
        """Return the largest off-surface ratio: rows that fill their space have no surface."""
        return max(1.0, self._limits[seed])

    def _compare(self, name: str, fit: "Fitted", trial: Trial, seed: int) -> ProposalJudgement:
        """Compare the predictions of a candidate with the hidden rows of a seed."""
        row = fit.seeds.index(seed)
        failure = fit.method.failures().get(row)
        if fit.value is None or failure is not None:
            return ProposalJudgement(name, reason=failure or "it predicts nothing")
        y, value = trial.y[seed].double(), fit.value[row].double()  # (H,)
        few, n = len(y) // 2, trial.shown.n + len(y)  # the first half are the best rows
        share = 2 * few / n  # of the rows that the best hidden ones stand for
        weight = torch.cat([y.new_full((few,), share / few), y.new_full((few,), (1 - share) / few)])
        wrong = (weight * (value - y).square()).sum()
        error = float(wrong / self._data.y[seed].var().clamp(min=1e-12))
        top_rank = rank_correlation(value[:few].numpy(), y[:few].numpy())
        evidence = rank_correlation(value.numpy(), y.numpy()) * sqrt(len(y) - 1)
        reason = ""
        if not isfinite(error):
            reason = "it predicts nothing"
        elif float(value.std()) == 0:
            reason = "it predicts the same of all rows"
        elif error >= 1:
            reason = "it predicts hidden rows no better than their mean"
        elif not evidence >= self.chance:
            reason = "it ranks hidden rows no better than by chance"
        elif top_rank < -self.chance / sqrt(few):
            reason = "it orders the best hidden rows backwards"
        return ProposalJudgement(name, top_rank, error, reason)

    def _judge_proposals(
        self,
        results: list[list[ProposalJudgement]],
        fitted: Mapping[str, "Fitted"],
        trial: Trial,
        rng: Streams,
    ) -> list[list[ProposalJudgement]]:
        """Let the candidates propose, those with the smallest error first, until some passed."""
        picked = rng.child("scouts").sample(trial.shown.n, self.scouts)  # (S, K)
        starts = torch.take_along_dim(trial.shown.x, picked[..., None], dim=1)
        proposed: dict[str, Proposal] = {}
        own: dict[str, Tensor | None] = {}  # (len(seeds), 1) values of the best row
        for seed, judgements in enumerate(results):
            queue = sorted(
                (place for place, one in enumerate(judgements) if not one.reason),
                key=lambda place: (judgements[place].error, -judgements[place].rank),
            )
            most = float("inf")  # error of a candidate that is still considered
            for place in queue:
                if judgements[place].error > most:
                    break
                name = judgements[place].candidate
                method, seeds, _ = fitted[name]
                if name not in proposed:
                    streams = take_streams(rng.child(f"{name}/propose"), seeds)
                    with stage(f"judging proposals of {name}"):
                        *_, proposed[name] = method.propose(starts[seeds], streams)
                    if proposed[name].predicted is None:
                        value = method.predict(proposed[name].designs)
                        proposed[name] = replace(proposed[name], predicted=value)
                    own[name] = method.predict(self._data.best()[seeds][:, None])
                row = seeds.index(seed)
                judgements[place] = self._judge_one(
                    judgements[place], proposed[name], own[name], seed, row
                )
                if not judgements[place].reason:
                    most = min(most, EQUAL * judgements[place].error)
        return results

    def _judge_one(
        self,
        judgement: ProposalJudgement,
        proposal: Proposal,
        own: Tensor | None,
        seed: int,
        row: int,
    ) -> ProposalJudgement:
        """Judge the designs that a candidate values most, and what it promises of them."""
        assert proposal.predicted is not None
        predicted = proposal.predicted[row].double()  # (K,)
        best = predicted.argsort(descending=True, stable=True)
        best = best[: max(1, round(JUDGED * len(best)))]
        y = self._data.y[seed]
        sd = float(y.std()) or 1.0
        promised = float(predicted[best].mean() - y.max()) / sd
        loss = 0.0 if own is None else float(own[row, 0] - predicted.max()) / sd
        most = self._most(seed, judgement.error)
        off = nearest = float("nan")
        if self._planes:
            designs = proposal.designs[row][best].double().numpy()
            off, nearest = (float(np.median(one)) for one in self._planes[seed].ratios(designs))
        reason = ""
        if not isfinite(promised):
            reason = "it promises no finite value"
        elif self._planes and not off <= self._most_off(seed):
            reason = f"its designs are off the surface of the rows, {off:.3g} times as far as rows"
        elif self._planes and not nearest <= self._limits[seed]:
            reason = f"its designs are {nearest:.3g} times as far from a row as rows are"
        elif loss > max(SLIGHT, sqrt(judgement.error)):
            reason = f"it values its own designs {loss:.3g} sd below the best row"
        elif promised > most:
            reason = (
                f"it promises {promised:.3g} sd above the best row, and its held-out error "
                f"carries {most:.3g}"
            )
        return replace(
            judgement, reason=reason, off_surface=off, nearest=nearest, promised=promised,
            carried=promised - max(promised, 0.0) * min(judgement.error, 1.0),
        )  # fmt: skip


class Fitted(NamedTuple):
    """A candidate fitted to the shown rows of some seeds, and its values of the hidden rows."""

    method: Method
    seeds: list[int]
    value: Tensor | None  # (len(seeds), H)


def thin_rows(data: Dataset, most: int) -> Dataset:
    """Return at most so many rows of each seed: evenly spaced by value, and the best of them."""
    if data.n <= most:
        return data
    order = data.y.argsort(dim=1, descending=True, stable=True)  # (S, N)
    places = torch.arange(most) * data.n // most
    return Trial.split(data, order[:, places], order[:, :0]).shown


def categorical_candidates() -> dict[str, Method]:
    """Return the candidates that are tried on categorical designs only."""
    linear = Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=Linear(), search=Ascent()
    )
    return {"linear": linear, "fgm graph=pairs": DiscreteFGM(graph=Pairs())}

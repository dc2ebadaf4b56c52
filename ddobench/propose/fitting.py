"""A method fitted to a user's rows for one or more seeds, and the check on held-out rows.

Random streams are those of a benchmark run: a method fits with `method/fit` and proposes with
`method/propose` of its seed. It starts from rows drawn as tasks of the family RBF draw them (`rbf`,
`chain`, `mixture`), so a table written from one of these tasks gives the benchmark's own proposals.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Space
from ddobench.errors import UsageError
from ddobench.models.training import rank_correlation
from ddobench.progress import active, stage
from ddobench.rng import Streams
from ddobench.runner.run import FIT, PROPOSE, collect, draw_starts
from ddobench.runner.spec import Specification
from ddobench.seeds import format_seeds
from ddobench.tabular.encodings import Encoding
from ddobench.tabular.rows import Values

log = logging.getLogger(__name__)

START_STREAM = "task/RBF"
HELD_OUT = 0.1  # of the rows: so many of the best, and so many of the others
FEWEST_HELD_OUT = 5  # of either
COVERAGE = 0.9  # of the held-out errors are within an interval

Codes = NDArray[np.float64]  # (K, e) encoded designs


@dataclass(frozen=True)
class Batch:
    """Seeds that were fitted together."""

    seeds: tuple[int, ...]
    method: Method
    data: Dataset


@dataclass(frozen=True)
class SeedProposals:
    """The designs that one seed proposes, encoded, and the method's own values of them."""

    seed: int
    codes: Codes  # (P, e) of the last iteration, then on the way there
    predicted: Values | None  # (P,)
    last: NDArray[np.bool_]  # (P,) which are of the last iteration


class FittedMethod:
    """A method fitted for several seeds; seeds that fail are left out."""

    def __init__(self, spec: Specification, encoding: Encoding) -> None:
        self.spec, self.encoding = spec, encoding
        self.batches: list[Batch] = []
        self.failures: dict[int, str] = {}  # the reason, by seed

    @property
    def seeds(self) -> list[int]:
        """The seeds that did not fail."""
        return [s for batch in self.batches for s in batch.seeds if s not in self.failures]

    def fit(self, codes: Codes, y: Values, seeds: Sequence[int]) -> None:
        """Fit the method to encoded designs (N, e) and values y (N,), larger is better."""
        size = self.spec.build_method().seeds_at_once or len(seeds)
        for start in range(0, len(seeds), size):
            some = tuple(seeds[start : start + size])
            active().begin(f"{self.spec.method} seed {format_seeds(some)}")
            log.info("fitting %s to %d rows, seed %s", self.spec.method, len(y), format_seeds(some))
            data = repeat_rows(codes, y, self.encoding.space, len(some))
            method = self.spec.build_method()
            method.fit(data, Streams(some, FIT))
            self.batches.append(Batch(some, method, data))
            self._add_failures(self.batches[-1])
        self._check_failures()

    def propose(
        self, count: int, constrain: Callable[[Codes], Codes] | None = None, way_points: int = 0
    ) -> list[SeedProposals]:
        """Return the designs of the last iteration of every seed, started from `count` rows.

        `constrain` moves the starts to where designs are allowed. So many `way_points`, evenly
        spaced between each start and its last design, follow if there is a model to predict them.
        """
        found = []
        for batch in self.batches:
            starts = draw_starts(batch.data, count, Streams(batch.seeds, START_STREAM))
            if constrain is not None:
                starts = torch.stack([torch.from_numpy(constrain(x.numpy())) for x in starts])
            trajectory = collect(batch.method, starts, Streams(batch.seeds, PROPOSE))
            self._add_failures(batch)
            designs, predicted = trajectory.designs[-1], trajectory.predicted[-1]
            last = np.arange(designs.shape[1] * (1 + way_points)) < designs.shape[1]
            between = _interpolate(starts, designs, way_points)
            values = None if between is None else batch.method.predict(between)
            if between is None or values is None or predicted is None:
                last = last[last]
            else:
                designs = torch.cat([designs.to(between), between], dim=1)  # (S, P, e)
                predicted = torch.cat([predicted.to(values), values.detach().cpu()], dim=1)
            found += [
                SeedProposals(
                    seed=seed,
                    codes=designs[i].double().numpy(),
                    predicted=None if predicted is None else predicted[i].double().numpy(),
                    last=last,
                )
                for i, seed in enumerate(batch.seeds)
                if seed not in self.failures
            ]
            active().finish(len(batch.seeds))
        self._check_failures()
        return found

    def predict(self, codes: Codes) -> Values | None:
        """Return every seed's prediction of encoded designs, (S, K), None without models."""
        found = []
        for batch in self.batches:
            x = _repeat(codes, len(batch.seeds)).to(batch.data.x.dtype)
            predicted = batch.method.predict(x)
            if predicted is None:
                return None
            kept = [i for i, seed in enumerate(batch.seeds) if seed not in self.failures]
            found.append(predicted.detach().cpu().double().numpy()[kept])
        return np.concatenate(found)

    def predict_mean(self, codes: Codes) -> Values | None:
        """Return the mean over the seeds with finite predictions, (K,), None without models."""
        finite = finite_rows(self.predict(codes))
        if finite is None:
            return None
        mean: Values = finite.mean(axis=0)
        return mean

    def diagnostics(self) -> list[dict[str, Any]]:
        """Return the diagnostics of the method, one per seed."""
        return [dict(one) for batch in self.batches for one in batch.method.diagnostics()]

    def _add_failures(self, batch: Batch) -> None:
        self.failures |= {batch.seeds[i]: why for i, why in batch.method.failures().items()}

    def _check_failures(self) -> None:
        """Raise if every seed failed."""
        if self.failures and not self.seeds:
            seed, reason = next(iter(self.failures.items()))
            raise UsageError(
                f"{self.spec.method} failed on seed {seed}: {reason}; try another method"
            )


def _interpolate(starts: Tensor, last: Tensor, count: int) -> Tensor | None:  # (S, K, e) both
    """Return designs between starts and last designs, (S, count * K, e).

    None if there are none, such as between categories, or from all starts to the same design.
    """
    if not count or starts.shape != last.shape or (last == last[:, :1]).all():
        return None
    last = last.to(starts)
    shares = torch.arange(1, count + 1) / (count + 1)
    return torch.cat([starts + float(share) * (last - starts) for share in shares], dim=1)


def finite_rows(predicted: Values | None) -> Values | None:  # (S, K)
    """Return the seeds whose predictions are all finite, None if there are none."""
    if predicted is None:
        return None
    finite = predicted[np.isfinite(predicted).all(axis=1)]
    return finite if len(finite) else None


def repeat_rows(codes: Codes, y: Values, space: Space, seeds: int) -> Dataset:
    """Return a dataset with the same rows for every seed."""
    return Dataset(x=_repeat(codes, seeds), y=_repeat(y, seeds), space=space)


def _repeat(values: Values, seeds: int) -> Tensor:  # (...) -> (S, ...)
    return torch.tensor(values).repeat(seeds, *[1] * values.ndim)


@dataclass(frozen=True)
class HeldOutCheck:
    """How a model predicts rows that it was not fitted to: some of the best, some of the others."""

    method: str
    rows: NDArray[np.intp]  # (H,) that were held out
    fitted: NDArray[np.intp]  # (N - H,) the others
    best: NDArray[np.bool_]  # (H,) which are the best rows of the table
    predicted: Values  # (H,) larger is better
    rank: float  # correlation of predictions and values
    best_rank: float  # within the best rows
    explained: float  # share of the squared error of predicting the mean that is avoided
    error: float  # that 90 % of the best rows, and 90 % of the others, do not exceed


def check_held_out(name: str, method: Method, data: Dataset, seed: int) -> HeldOutCheck | None:
    """Fit without some rows and predict them; None with too few rows or without a model.

    Half of them are the best rows, as designs should be better still; the others are drawn.
    """
    x, y = data.x, data.y[0].numpy()
    count = max(FEWEST_HELD_OUT, round(HELD_OUT * len(y)))
    if len(y) < 4 * count:
        return None
    order = np.argsort(-y, kind="stable")
    drawn = Streams([seed], "check").permutation(len(y) - count)[0, :count].numpy()
    held_out = np.concatenate([order[:count], order[count:][drawn]])
    others = np.setdiff1d(np.arange(len(y)), held_out)
    if np.ptp(y[others]) == 0:
        return None
    log.info("checking %s: fitting without %d rows", name, len(held_out))
    with stage("without some rows"):
        method.fit(replace(data, x=x[:, others], y=data.y[:, others]), Streams([seed], FIT))
    value = method.predict(x[:, held_out])
    if value is None or method.failures() or not value.isfinite().all():
        return None
    predicted = value[0].detach().cpu().double().numpy()
    best = np.arange(2 * count) < count
    errors = np.abs(y[held_out] - predicted)
    return HeldOutCheck(
        method=name,
        rows=held_out,
        fitted=others,
        best=best,
        predicted=predicted,
        rank=rank_correlation(predicted, y[held_out]),
        best_rank=rank_correlation(predicted[best], y[held_out][best]),
        explained=1 - float(np.mean(errors**2) / np.mean((y[held_out] - y[others].mean()) ** 2)),
        error=max(float(np.quantile(errors[group], COVERAGE)) for group in (best, ~best)),
    )

"""A method fitted to rows that people brought, for one or more seeds, and what it proposes.

The same streams as in a run of the benchmark: a method fits with `method/fit` and proposes with
`method/propose` of its seed. It starts from rows drawn as tasks of the family RBF draw them (`rbf`,
`chain`, `mixture`), so that a table written from one of these gives the benchmark's own proposals.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Space
from ddobench.errors import UsageError
from ddobench.progress import active
from ddobench.rng import Streams
from ddobench.runner.execute import FIT, PROPOSE, collect, draw_starts
from ddobench.runner.spec import Specification
from ddobench.seeds import format_seeds
from ddobench.tabular.encodings import Encoding
from ddobench.tabular.rows import Values

log = logging.getLogger(__name__)

STARTS = "task/RBF"  # whose starts are those of a table

Codes = NDArray[np.float64]  # (K, e) encoded designs
Pull = Callable[[Codes], Codes]  # to where designs may be


@dataclass(frozen=True)
class Batch:
    """Seeds that were fitted together."""

    seeds: tuple[int, ...]
    method: Method
    data: Dataset

    def predict(self, codes: Codes) -> Values | None:
        """Return what the model of each seed predicts of encoded designs, (S, K)."""
        x = _repeat(codes, len(self.seeds)).to(self.data.x.dtype)
        predicted = self.method.predict(x)
        return None if predicted is None else predicted.detach().cpu().double().numpy()


@dataclass(frozen=True)
class Proposed:
    """What one seed proposes: encoded designs and the method's own values of them."""

    seed: int
    codes: Codes  # (K, e)
    predicted: Values | None  # (K,)


class Fitted:
    """A method, fitted for every seed that did not break down."""

    def __init__(self, spec: Specification, encoding: Encoding) -> None:
        self.spec, self.encoding = spec, encoding
        self.batches: list[Batch] = []
        self.broken: dict[int, str] = {}  # seeds that broke down, and why

    @property
    def seeds(self) -> list[int]:
        """The seeds that are fitted."""
        return [s for batch in self.batches for s in batch.seeds if s not in self.broken]

    def fit(self, codes: Codes, y: Values, seeds: Sequence[int]) -> None:
        """Fit the method to encoded designs (N, e) and values y (N,), larger being better."""
        for start, size in self._cuts(len(seeds)):
            some = tuple(seeds[start : start + size])
            active().begin(f"{self.spec.method} seed {format_seeds(some)}")
            log.info("fitting %s to %d rows, seed %s", self.spec.method, len(y), format_seeds(some))
            data = repeat_table(codes, y, self.encoding.space, len(some))
            method = self.spec.build_method()
            method.fit(data, Streams(some, FIT))
            self.batches.append(Batch(some, method, data))
            self._note_failures(self.batches[-1])
        self._check_failures()

    def propose(self, designs: int, pull: Pull | None = None) -> list[Proposed]:
        """Return the designs of the last iteration of every seed, from starts that are allowed."""
        found = []
        for batch in self.batches:
            starts = draw_starts(batch.data, designs, Streams(batch.seeds, STARTS))
            if pull is not None:
                starts = torch.stack([torch.from_numpy(pull(x.numpy())) for x in starts])
            trajectory = collect(batch.method, starts, Streams(batch.seeds, PROPOSE))
            self._note_failures(batch)
            predicted = trajectory.predicted[-1]
            found += [
                Proposed(
                    seed=seed,
                    codes=trajectory.designs[-1][i].double().numpy(),
                    predicted=None if predicted is None else predicted[i].double().numpy(),
                )
                for i, seed in enumerate(batch.seeds)
                if seed not in self.broken
            ]
            active().finish(len(batch.seeds))
        self._check_failures()
        return found

    def predict(self, codes: Codes) -> Values | None:
        """Return what every seed's model thinks of encoded designs, (S, K), None without models."""
        found = []
        for batch in self.batches:
            predicted = batch.predict(codes)
            if predicted is None:
                return None
            sound = [i for i, seed in enumerate(batch.seeds) if seed not in self.broken]
            found.append(predicted[sound])
        return np.concatenate(found)

    def predict_mean(self, codes: Codes) -> Values | None:
        """Return the mean over the seeds that have a model, (K,), None if none has."""
        predicted = self.predict(codes)
        if predicted is None:
            return None
        sound = np.isfinite(predicted).all(axis=1)
        mean: Values = predicted[sound].mean(axis=0) if sound.any() else np.empty(0)
        return mean if sound.any() else None

    def diagnostics(self) -> list[dict[str, Any]]:
        """Return what the method has to say of each seed."""
        return [dict(told) for batch in self.batches for told in batch.method.diagnostics()]

    def _cuts(self, seeds: int) -> list[tuple[int, int]]:
        size = self.spec.build_method().seeds_at_once or seeds
        return [(start, size) for start in range(0, seeds, size)]

    def _note_failures(self, batch: Batch) -> None:
        self.broken |= {batch.seeds[i]: why for i, why in batch.method.failures().items()}

    def _check_failures(self) -> None:
        """Raise if no seed is left."""
        if len(self.broken) == sum(len(one.seeds) for one in self.batches) > 0:
            seed, reason = next(iter(self.broken.items()))
            raise UsageError(
                f"{self.spec.method} broke down on seed {seed}: {reason}; try another method"
            )


def repeat_table(codes: Codes, y: Values, space: Space, seeds: int) -> Dataset:
    """Give every seed the same rows."""
    return Dataset(x=_repeat(codes, seeds), y=_repeat(y, seeds), space=space)


def _repeat(table: Values, seeds: int) -> Tensor:
    """Give every seed the same table, (S, ...)."""
    return torch.tensor(table).repeat(seeds, *[1] * table.ndim)

"""Tangent: a search along the surface that the visible rows lie on. Ours.

Where columns depend on each other, rows lie near a curved surface, and a gradient leads away from
it: to designs that no model knows. Here a design moves within the plane of its nearest rows
(`ddobench.planes`), along the gradient of the model. It is then put on the plane of its new
neighbours, and keeps the new place if the model's value is higher there and some row is as near as
rows are to each other. A step begins as long as that distance, is halved where it fails and grows
where it succeeds, so that no rate has to be chosen.

A model without gradients is climbed by random steps within the plane, of random length, which are
kept on the same conditions. Where gradients fail, such steps are taken too: next to a limit
gradients point across it.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import AscentStep, Encode, Search, check_beginning, pick_beginning
from ddobench.parts.surrogates import Model
from ddobench.planes import LocalPlanes
from ddobench.rng import Stream, Streams

GROWTH, SHRINK = 1.5, 0.5  # of a step that succeeds or fails
STUCK = 0.1  # gradient steps shorter than this share of the first one give way to random ones

Values = NDArray[np.float64]


@dataclass(kw_only=True)
class Tangent(Search):
    """Steps within the planes of the nearest rows, kept where they lead upwards and stay near."""

    name: ClassVar[str] = "tangent"
    uses_gradient: ClassVar[bool] = False  # where there is none, it tries random directions

    begin_at: str = "top"
    designs: int = 128
    steps: int = 60
    first: float = 1.0
    limit: float = 0.5
    neighbours: int = 40
    variance: float = 0.98
    record_every: int = 2

    def __post_init__(self) -> None:
        check_beginning(self.begin_at, self.designs)
        for name in ("steps", "record_every"):
            check_whole(f"search.{name}", getattr(self, name), 1)
        check_whole("search.neighbours", self.neighbours, 2)
        for name in ("first", "limit"):
            if getattr(self, name) <= 0:
                raise UsageError(f"search.{name} must be positive, got {getattr(self, name)}")
        if not 0 < self.variance <= 1:
            raise UsageError(f"search.variance must be a share in (0, 1], got {self.variance}")

    def prepare(self, rows: Tensor, encode: Encode, snap: Encode) -> None:  # noqa: ARG002
        """Store the rows, on whose planes the search moves."""
        self._rows = rows

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:
        """Return the best visible rows, or some of the starts."""
        return pick_beginning(self.begin_at, self.designs, starts, data)

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,
        failures: MutableMapping[int, str],  # noqa: ARG002 - a step that fails is not kept
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first step and after every `record_every`-th."""
        walkers = [
            Walker(LocalPlanes.of(rows.cpu().numpy(), self.neighbours, self.variance), stream)
            for rows, stream in zip(self._rows, rng.child("tangent").rows, strict=True)
        ]
        for walker, z in zip(walkers, start.cpu().numpy(), strict=True):
            walker.stand(z, self.first)
        x = start.clone()  # (S, K, e)
        value, gradient = model.value_and_gradient(x)
        yield AscentStep(0, x, value)
        for iteration in range(1, self.steps + 1):
            tried = [
                walker.try_step(z, slope)
                for walker, z, slope in zip(
                    walkers, x.cpu().numpy(), gradient.cpu().numpy(), strict=True
                )
            ]
            moved = torch.from_numpy(np.stack(tried)).to(x)
            reached, slope = model.value_and_gradient(moved)
            better = (reached > value).cpu().numpy()  # (S, K); false where not finite
            kept = torch.from_numpy(
                np.stack([w.judge(b, self.limit) for w, b in zip(walkers, better, strict=True)])
            ).to(x.device)
            x, gradient = (new.where(kept[..., None], old) for new, old in
                           ((moved, x), (slope, gradient)))  # fmt: skip
            value = reached.where(kept, value)
            if iteration % self.record_every == 0 or iteration == self.steps:
                yield AscentStep(iteration, x, value)


class Walker:
    """The designs of one seed on the planes of its rows."""

    def __init__(self, planes: LocalPlanes, stream: Stream) -> None:
        self.planes = planes
        self.stream = stream

    def stand(self, z: Values, length: float) -> None:  # (K, e)
        """Begin at some designs, with steps of a length in units of the rows' own distance."""
        self.first = length
        self.length = np.full(len(z), length)  # (K,)
        self.directions = self.planes.directions(z)  # (K, e, q) in standard deviations

    def try_step(self, z: Values, gradient: Values) -> Values:  # (K, e), (K, e) -> (K, e)
        """Return designs one step along the surface from z, upwards where that is known."""
        slope = np.einsum("keq,ke->kq", self.directions, gradient * self.planes.sd)
        drawn = self.stream.normal(*slope.shape, dtype=torch.float64).numpy()
        known = np.isfinite(slope).all(axis=1) & (np.abs(slope).sum(axis=1) > 0)
        share = self.stream.uniform(len(z), dtype=torch.float64).numpy()  # (K,)
        self.blind = ~known | (self.length < STUCK * self.first)
        slope = np.where(self.blind[:, None], drawn, slope)
        step = np.einsum("keq,kq->ke", self.directions, slope)
        step /= np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300)
        length = np.where(self.blind, share * self.first, self.length)
        step *= (length * self.planes.distance)[:, None]
        landed, self.reached, self.nearest = self.planes.land(z + step * self.planes.sd)
        return landed

    def judge(self, better: NDArray[np.bool_], limit: float) -> NDArray[np.bool_]:  # (K,) -> (K,)
        """Return which steps are kept: those that lead upwards and end near some row."""
        kept = better & (self.nearest <= limit)
        width = max(self.directions.shape[2], self.reached.shape[2])
        old, new = (
            np.pad(found, ((0, 0), (0, 0), (0, width - found.shape[2])))
            for found in (self.directions, self.reached)
        )
        self.directions = np.where(kept[:, None, None], new, old)
        longer = np.where(self.blind, self.first, self.length * GROWTH)
        self.length = np.where(kept, np.minimum(longer, self.first), self.length * SHRINK)
        return kept

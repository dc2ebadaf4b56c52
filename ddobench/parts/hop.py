"""Hops: an ascent that also leaps from peak to peak of a model made of parts.

A gradient leads to the nearest peak. A model that is a sum of bumps can say where its other peaks
are, so designs climb, leap to where a few parts that overlap are highest, climb again, and stay
where they got only if it is higher than where they came from.

How far the model is trusted is decided by its own held-out error (a share of the variance): the
designs climb value - L |z|^2 / 2 with L = prior + caution sqrt(error), after stages with larger
weights, which lead towards the middle of the data first.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import AscentStep, Search, note_failures, weigh_error
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Hop(Search):
    """Climb under a falling prior weight, then leap and climb again and again."""

    name: ClassVar[str] = "hop"
    leaps: ClassVar[bool] = True

    rate: float = 0.05
    root_d: bool = True
    stages: Sequence[float] = (0.3, 0.2, 0.1, 0.05)
    steps: int = 60
    prior: float = 0.0
    caution: float = 0.3
    hops: int = 60
    hop_steps: int = 30
    further: int = 2
    softness: float = 0.1
    record_every: int = 30

    def __post_init__(self) -> None:
        for name in ("steps", "hop_steps", "record_every"):
            check_whole(f"search.{name}", getattr(self, name), 1)
        check_whole("search.hops", self.hops, 0)
        check_whole("search.further", self.further, 0)
        for name in ("rate", "softness"):
            if getattr(self, name) <= 0:
                raise UsageError(f"search.{name} must be positive, got {getattr(self, name)}")
        for name in ("prior", "caution"):
            if getattr(self, name) < 0:
                raise UsageError(f"search.{name} must be 0 or more, got {getattr(self, name)}")

    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first step, now and then while they climb, and per hop."""
        least = self.prior + weigh_error(model, self.caution).to(start)  # (S, 1, 1)
        climber = Climber(
            model, self.rate * (sqrt(start.shape[2]) if self.root_d else 1.0), failures
        )
        z = start.clone()  # (S, K, e)
        yield AscentStep(0, z, model.value(z))
        for weight in [least.clamp(min=stage) for stage in self.stages] + [least]:
            for _ in range(self.steps):
                z = climber.step(z, weight)
                if climber.taken % self.record_every == 0:
                    yield AscentStep(climber.taken, z, model.value(z))
        streams = rng.child("hops")
        height = climber.height(z, least)
        for hop in range(self.hops):
            leapt = model.leap(z, hop % (self.further + 1), self.softness, streams)
            for _ in range(self.hop_steps):
                leapt = climber.step(leapt, least)
            reached = climber.height(leapt, least)
            better = reached > height  # (S, K); false where not finite
            z, height = leapt.where(better[..., None], z), reached.where(better, height)
            if (hop + 1) % max(1, self.record_every // self.hop_steps) == 0 or hop + 1 == self.hops:
                yield AscentStep(climber.taken, z, model.value(z))


class Climber:
    """Takes gradient steps and counts them."""

    def __init__(self, model: Model, size: float, failures: MutableMapping[int, str]) -> None:
        self.model = model
        self.size = size
        self.failures = failures
        self.taken = 0

    def step(self, z: Tensor, weight: Tensor) -> Tensor:  # (S, K, e), (S, 1, 1) -> (S, K, e)
        """Move along the gradient of value - weight |z|^2 / 2, where that is finite."""
        gradient = self.model.value_and_gradient(z)[1]
        sound = torch.isfinite(gradient).all(dim=-1, keepdim=True)  # (S, K, 1)
        note_failures(sound, self.taken, self.failures)
        self.taken += 1
        return z + self.size * (gradient - weight * z).where(sound, 0.0)

    def height(self, z: Tensor, weight: Tensor) -> Tensor:  # (S, K, e), (S, 1, 1) -> (S, K)
        """Return what is climbed."""
        return self.model.value(z) - weight[..., 0] * z.square().sum(dim=-1) / 2

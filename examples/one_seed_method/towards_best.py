"""Move every design a step towards the best row of the table."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from ddobench.contracts import OneSeedMethod


@dataclass(kw_only=True)
class TowardsBest(OneSeedMethod):
    name: ClassVar[str] = "towards_best"  # in the digest of a run: keep it when files move

    step: float = 0.5

    def fit_one(self, x, y, space, rng):  # x (N, d), y (N,): all you ever see
        self.space = space
        self.best = x[y.argmax()]

    def propose_one(self, starts, rng):  # starts (K, d): visible designs
        yield starts  # (K, d), once for each iteration
        if self.space.categorical:  # half a step is no category: take some variables whole
            taken = rng.uniform(*starts.shape) < self.step
            yield torch.where(taken, self.best, starts)
        else:
            yield starts + self.step * (self.best - starts)

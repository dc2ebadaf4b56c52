"""A latent: every code decodes to a design near the range of the data."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from ddobench.errors import UsageError
from ddobench.parts.latents import Codes, Latent


@dataclass(kw_only=True)
class Inside(Latent):
    name: ClassVar[str] = "inside"

    margin: float = 0.1

    def __post_init__(self):
        if self.margin <= 0:
            raise UsageError(f"latent.margin must be positive, got {self.margin}")

    def fit(self, data, rng, cache):  # data.x (S, N, d)
        low, high = data.x.amin(dim=1, keepdim=True), data.x.amax(dim=1, keepdim=True)
        width = (high - low).where(high > low, 1.0)  # (S, 1, d), 1 for a constant column
        self.low = low - self.margin * width
        self.width = width * (1 + 2 * self.margin)

    def encode(self, x):  # (S, K, d) -> (S, K, e)
        return Codes(torch.logit((x - self.low) / self.width, eps=1e-6))

    def decode(self, z):  # (S, K, e) -> (S, K, d)
        return self.low + self.width * torch.sigmoid(z)

"""A surrogate: one parabola for each coordinate, by ridge regression."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from ddobench.models.least_squares import least_squares
from ddobench.parts.surrogates import Model, Surrogate


@dataclass(kw_only=True)
class Parabolas(Surrogate):
    name: ClassVar[str] = "parabolas"

    ridge: float = 1.0

    def fit(self, data, rng):
        z, y = data.coordinates.z.numpy(), data.y.numpy()  # (S, N, e), (S, N) standardised
        ones = np.ones_like(z[..., :1])
        features = np.concatenate([ones, z, z**2], axis=2)  # (S, N, 1 + 2 e)
        weights = [least_squares(f, v, self.ridge) for f, v in zip(features, y, strict=True)]
        return Fitted(torch.from_numpy(np.stack(weights))[:, None].to(data.device))


class Fitted(Model):
    def __init__(self, weights):  # (S, 1, 1 + 2 e)
        self.height, rest = weights[..., 0], weights[..., 1:]
        self.slope, self.bend = rest.chunk(2, dim=2)  # each (S, 1, e)

    def value(self, z):  # (S, K, e) -> (S, K)
        return self.height + (self.slope * z + self.bend * z**2).sum(dim=-1)

    def value_and_gradient(self, z):
        return self.value(z), self.slope + 2 * self.bend * z

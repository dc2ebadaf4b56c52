"""Linear: ridge regression on the standardised designs, then the ascent GA uses.

The simplest model with a direction, and a control: what a method gains over it is what its
non-linear model is worth. No paper; the ridge is ours.

Its row: python -m ddobench -m method=linear task=chain d=41 seed=0-9
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.models.least_squares import least_squares
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Linear(Surrogate):
    """A hyperplane of the coordinates, by ridge regression."""

    name: ClassVar[str] = "linear"

    ridge: float = 1.0

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"surrogate.ridge must be 0 or more, got {self.ridge}")

    def fit(self, data: TrainingData, rng: Streams) -> "Hyperplane":  # noqa: ARG002 - nothing is drawn
        """Solve for the slopes of each seed."""
        tables = zip(data.coordinates.z.numpy(), data.y.numpy(), strict=True)
        slopes = np.stack([least_squares(z, y, self.ridge) for z, y in tables])
        return Hyperplane(torch.from_numpy(slopes)[:, None, :].to(data.device))


class Hyperplane(Model):
    """The slopes of each seed, (S, 1, e)."""

    def __init__(self, slopes: Tensor) -> None:
        self.slopes = slopes

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the height of the hyperplane."""
        return (z * self.slopes).sum(dim=-1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the height at z (S, K, e), (S, K), and the slopes everywhere."""
        return self.value(z), self.slopes.expand_as(z)

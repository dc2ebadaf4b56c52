"""Linear: ridge regression on the standardised designs, then the ascent GA uses.

The simplest model with a gradient, and a control: the gain of another method over it is due to its
non-linear model. No paper; the ridge is ours.

Command: python -m ddobench -m method=linear task=chain d=41 seed=0-9
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
    """A linear function of the coordinates, by ridge regression."""

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
        """Return the values."""
        return (z * self.slopes).sum(dim=-1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of z (S, K, e), (S, K), and the slopes."""
        return self.value(z), self.slopes.expand_as(z)

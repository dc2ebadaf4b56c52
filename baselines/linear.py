"""Linear: ridge regression on the standardised designs, then the ascent GA uses.

The simplest model with a direction, and a control: what a method gains over it is what its
non-linear model is worth. No paper; the ridge is ours.

Its row: python -m ddobench -m method=linear task=chain d=41 seed=0-9
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ddobench.ascent import Ascent
from ddobench.contracts import Dataset, Method, Proposal
from ddobench.errors import UsageError
from ddobench.regression import least_squares
from ddobench.standardisation import Standardiser
from ddobench.streams import Streams


@dataclass(kw_only=True)
class Linear(Method):
    """Fit a hyperplane, then climb it."""

    name: ClassVar[str] = "linear"
    version: ClassVar[int] = 2

    ascent: Ascent
    ridge: float = 1.0

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"method.ridge must be 0 or more, got {self.ridge}")
        self._failures: dict[int, str] = {}

    def declines(self, data: Dataset) -> str | None:
        """Decline designs without a gradient."""
        return "linear climbs continuous designs only" if data.space.categorical else None

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002 - nothing is drawn
        """Solve for the slopes of each seed."""
        self._x_scale, self._y_scale = Standardiser.of(data.x), Standardiser.of(data.y)
        z, y = self._x_scale.apply(data.x).numpy(), self._y_scale.apply(data.y).numpy()
        slopes = [least_squares(*table, self.ridge) for table in zip(z, y, strict=True)]
        self._slopes = torch.from_numpy(np.stack(slopes))[:, None, :]  # (S, 1, d)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Climb from the starts."""
        z = self._x_scale.apply(starts)
        for ledge in self.ascent.climb(z, self._value_and_gradient, self._failures):
            yield Proposal(
                self._x_scale.undo(ledge.x), self._y_scale.undo(ledge.value), ledge.iteration
            )

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the height of the hyperplane."""
        return self._y_scale.undo(self._value_and_gradient(self._x_scale.apply(x))[0])

    def failures(self) -> dict[int, str]:
        """Return the seeds whose ascent broke down."""
        return self._failures

    def _value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:  # (S, K, d)
        return (z * self._slopes).sum(dim=-1), self._slopes.expand_as(z)

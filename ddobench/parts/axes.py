"""Rotations of a latent space, between the latent and the graph.

A standard normal looks the same along any axes, a functional graph does not: this part says along
which axes it is looked for.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.rng import Streams


@dataclass(kw_only=True)
class Axes(ABC):
    """A way to choose axes; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change

    @abstractmethod
    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor | None:
        """Return rotations (S, e, e) from codes z (S, N, e), values y (S, N); None: as they are.

        Rotated codes are z @ rotation. Both tables are standardised, in float64.
        """


@dataclass(kw_only=True)
class Identity(Axes):
    """The axes of the latent itself."""

    name: ClassVar[str] = "identity"

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> None:
        """Leave the codes as they are."""


@dataclass(kw_only=True)
class Random(Axes):
    """Axes drawn uniformly, to tell what the latent's own axes are worth."""

    name: ClassVar[str] = "random"

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor:  # noqa: ARG002 - blind to data
        """Draw a rotation for each seed."""
        e = z.shape[2]
        return torch.stack([_draw_rotation(g) for g in rng.normal(e, e, dtype=torch.float64)])


def _draw_rotation(gauss: Tensor) -> Tensor:  # (e, e) -> (e, e)
    """Turn a standard normal matrix into a uniformly distributed orthogonal one."""
    q, r = torch.linalg.qr(gauss)
    return torch.mul(q, r.diagonal().sign())

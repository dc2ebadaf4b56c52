"""Coordinates: the standardised and rotated codes of a latent, and the axes that rotate them.

The pipeline looks for a graph and searches in these coordinates. Codes are standardised over the
visible designs unless the latent does so itself. A standard normal distribution looks the same
along any axes, a functional graph does not: `Axes` choose the rotation.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.models.tensors import Standardiser, multiply
from ddobench.parts.latents import Codes, Latent
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Axes(ABC):
    """A way to choose axes; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change

    @abstractmethod
    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor | None:
        """Return rotations (S, e, e) for codes z (S, N, e) and values y (S, N); None: no rotation.

        Rotated codes are z @ rotation. Codes and values are standardised, in float64.
        """


@dataclass(kw_only=True)
class OwnAxes(Axes):
    """The axes of the latent itself."""

    name: ClassVar[str] = "identity"

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> None:
        """Return no rotation."""


@dataclass(kw_only=True)
class RandomAxes(Axes):
    """Axes drawn uniformly: an ablation of the latent's own axes."""

    name: ClassVar[str] = "random"

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor:  # noqa: ARG002 - data are not used
        """Draw a rotation for each seed."""
        e = z.shape[2]
        return torch.stack([_draw_rotation(g) for g in rng.normal(e, e, dtype=torch.float64)])


def _draw_rotation(gauss: Tensor) -> Tensor:  # (e, e) -> (e, e)
    """Return a uniformly distributed orthogonal matrix, made from a standard normal one."""
    q, r = torch.linalg.qr(gauss)
    return torch.mul(q, r.diagonal().sign())


@dataclass(frozen=True)
class Coordinates:
    """The map from designs to coordinates and back, for each seed."""

    latent: Latent
    scale: Standardiser
    rotation: Tensor | None  # (S, e, e); None: no rotation
    visible: Codes  # (S, N, e) of the visible designs, standardised, not rotated
    z: Tensor  # (S, N, e) coordinates of the visible designs, drawn where codes are uncertain

    @classmethod
    def draw(cls, latent: Latent, axes: Axes, x: Tensor, y: Tensor, rng: Streams) -> "Coordinates":
        """Return the coordinates of visible designs x (S, N, d) with values y (S, N)."""
        codes = latent.encode(x)
        sample = codes.sample(rng.child("codes"))
        scale = Standardiser.none(sample) if latent.standardised else Standardiser.of(sample)
        z = scale.apply(sample)
        rotation = axes.find(z, y, rng.child("axes"))
        visible = Codes(
            scale.apply(codes.mean), None if codes.sd is None else codes.sd / scale.scale
        )
        return cls(latent, scale, rotation, visible, rotate(z, rotation))

    def encode(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        """Return the coordinates of designs."""
        return rotate(self.scale.apply(self.latent.encode(x).mean), self.rotation)

    def decode(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Return the designs at coordinates."""
        back = None if self.rotation is None else self.rotation.mT
        return self.latent.decode(self.scale.undo(rotate(z, back)))


def rotate(z: Tensor, rotation: Tensor | None) -> Tensor:  # (S, K, e), (S, e, e) -> (S, K, e)
    """Rotate the rows of each seed; None changes nothing."""
    return z if rotation is None else multiply(z, rotation.to(z))

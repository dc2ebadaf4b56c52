"""A coordinates: designs as coordinates in which a graph is sought and climbed, and back.

Coordinates are the codes of a latent, each standardised over the visible designs unless they are
already, then rotated.
"""

from dataclasses import dataclass

from torch import Tensor

from ddobench.models.products import multiply
from ddobench.models.standardise import Standardiser
from ddobench.parts.axes import Axes
from ddobench.parts.latents import Codes, Latent
from ddobench.rng import Streams


@dataclass(frozen=True)
class Coordinates:
    """The way from designs to coordinates and back, for each seed."""

    latent: Latent
    scale: Standardiser
    rotation: Tensor | None  # (S, e, e); None: no rotation
    visible: Codes  # (S, N, e) of the visible designs, standardised, not rotated
    z: Tensor  # (S, N, e) coordinates of the visible designs, drawn where codes are uncertain

    @classmethod
    def draw(cls, latent: Latent, axes: Axes, x: Tensor, y: Tensor, rng: Streams) -> "Coordinates":
        """Coordinates the visible designs x (S, N, d) with standardised values y (S, N)."""
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
    """Turn the rows of each seed; None leaves them as they are."""
    return z if rotation is None else multiply(z, rotation.to(z))

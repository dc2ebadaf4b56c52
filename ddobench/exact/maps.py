"""How hidden coordinates are observed: an affine map and a softplus, in either order."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ddobench.rng import Stream

MAPS = ("orthogonal", "gaussian")
ORDERS = ("affine_softplus", "softplus_affine")  # in the order of application


@dataclass(frozen=True)
class Observation:
    """The map of one instance, injective: observed dimension e >= hidden dimension d."""

    matrix: Tensor  # (d, e)
    inverse: Tensor  # (e, d) the pseudo-inverse
    shift: Tensor  # (e,)
    softplus_last: bool

    def observe(self, hidden: Tensor) -> Tensor:  # (K, d) -> (K, e)
        """Return the observed designs."""
        if self.softplus_last:
            return softplus(hidden @ self.matrix + self.shift)
        return softplus(hidden) @ self.matrix + self.shift

    def recover(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (K, e) -> (K, d), (K,)
        """Return the least-squares pre-images and the distance of each design from the surface.

        A design without a pre-image is NaN in both. A pre-image that overflows is infinite. The
        distance is Euclidean, between the design and the affine image of its pre-image, before the
        softplus if that is applied last.
        """
        image = inverse_softplus(x) if self.softplus_last else x
        centred = image - self.shift
        hidden = centred @ self.inverse
        residual = torch.linalg.vector_norm(centred - hidden @ self.matrix, dim=1)
        if not self.softplus_last:
            hidden = inverse_softplus(hidden)
        exists = ~(image if self.softplus_last else hidden).isnan().any(dim=1)
        hidden = torch.where(hidden.isnan(), torch.inf, hidden)
        residual = torch.where(residual.isnan(), torch.inf, residual)
        return (
            torch.where(exists[:, None], hidden, torch.nan),
            torch.where(exists, residual, torch.nan),
        )


def draw_observation(
    kind: str, d: int, observed: int, order: str, condition: float | None, stream: Stream
) -> Observation:
    """Draw a map of the given kind; `condition` replaces its singular values.

    The new ones fall geometrically from largest to smallest with the given ratio, around the
    geometric mean of the old ones.
    """
    gauss = stream.child("matrix").normal(d, observed, dtype=torch.float64)
    left, values, right = torch.linalg.svd(gauss / d**0.5, full_matrices=False)
    if kind == "orthogonal":
        values = torch.ones_like(values)
    if condition is not None:
        powers = torch.linspace(0.5, -0.5, d, dtype=torch.float64)
        values = values.log().mean().exp() * condition ** (powers - powers.mean())
    return Observation(
        matrix=(left * values) @ right,
        inverse=(right.T / values) @ left.T,
        shift=stream.child("shift").normal(observed, dtype=torch.float64),
        softplus_last=order == "affine_softplus",
    )


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), without torch's linear branch, which loses half the digits."""
    return torch.logaddexp(x, torch.zeros_like(x))


def inverse_softplus(y: Tensor) -> Tensor:
    """Return x with softplus(x) = y, NaN if y <= 0."""
    positive = y > 0
    safe = torch.where(positive, y, 1.0)
    return torch.where(positive, safe + torch.log(-torch.expm1(-safe)), torch.nan)

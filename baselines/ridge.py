"""Ridge regression on fixed features: additive along random axes, and quadratic. Ours.

Two models without a graph and without training, which can be fitted to few rows:

- `AdditiveRidge`: sums of functions of one direction each, along the axes of several random
  rotations. Per direction some Gaussian bumps, centred over the rows.
- `QuadraticRidge`: all products of two coordinates.

The ridge is chosen among `ridges` by the error on held-out rows; the model is then fitted to all
rows. Where features outnumber rows, the dual is solved, with the same numbers up to rounding.
Designs with very many codes (categories with many levels) have more features than can be solved
for, and are declined.

Commands: python -m ddobench -m method=additive,quadratic_ridge task=chain d=41 n=2000 seed=0-9
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.models.least_squares import ridge_equations
from ddobench.models.training import unexplained
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.rng import Stream, Streams

MOST_FEATURES = 10_000  # whose products take 0.8 GB; with fewer rows, as many numbers in the table


@dataclass(kw_only=True)
class Ridge(Surrogate):
    """Least squares on the features of a subclass, with a penalty chosen on held-out rows."""

    ridges: Sequence[float] = (1.0, 10.0, 100.0, 1000.0)
    holdout: float = 0.1

    def __post_init__(self) -> None:
        if not self.ridges or min(self.ridges) <= 0:
            raise UsageError(f"surrogate.ridges must be positive numbers, got {self.ridges}")
        if not 0 < self.holdout < 1:
            raise UsageError(f"surrogate.holdout must be a share in (0, 1), got {self.holdout}")

    @abstractmethod
    def count_features(self, codes: int) -> int:
        """Return the number of features of a design with `codes` codes."""

    @abstractmethod
    def make_features(self, z: Tensor, stream: Stream) -> "Features":  # (N, e)
        """Return the features of one seed for its visible coordinates."""

    def declines(self, n: int, codes: int) -> str | None:
        """Decline designs with too many features for that many rows."""
        features = self.count_features(codes)
        most = max(MOST_FEATURES, MOST_FEATURES**2 // n)
        if features <= most:
            return None
        return (
            f"a ridge regression on {codes} codes has {features:,} features, and more than "
            f"{most:,} cannot be solved for with {n:,} rows; use surrogate=linear or mlp"
        )

    def working_bytes(self, n: int, codes: int) -> float:
        """Return the memory of the feature table, and of its rows that are not held out."""
        return (2 - self.holdout) * torch.float64.itemsize * n * self.count_features(codes)

    def fit(self, data: TrainingData, rng: Streams) -> "RidgeModel":
        """Choose the ridge of each seed, then solve for all rows."""
        held = max(1, round(self.holdout * data.n))
        order = rng.child("split").permutation(data.n)  # (S, N)
        z, y = data.means(), data.values()
        fits = [
            self._fit_one(z[s], y[s], order[s, held:], order[s, :held], stream)
            for s, stream in enumerate(rng.child("surrogate").rows)
        ]
        return RidgeModel(fits)

    def _fit_one(
        self, z: Tensor, y: Tensor, trained: Tensor, held_out: Tensor, stream: Stream
    ) -> "RidgeFit":
        features = self.make_features(z, stream)
        table = features(z).to(torch.float64)  # (N, P)
        mean = table.mean(dim=0)
        table -= mean  # in place, as it is large
        target = y.to(torch.float64)
        shift = target[trained].mean()
        equations = ridge_equations(table)
        chosen = equations(trained, target[trained] - shift)
        errors = []
        for ridge in self.ridges:
            predicted = table[held_out] @ chosen.solve(ridge) + shift
            errors.append(float(unexplained(predicted[None], target[held_out][None])[0]))
        best = min(range(len(errors)), key=lambda i: errors[i])
        shift = target.mean()
        ridge = self.ridges[best] * len(target) / len(trained)
        slopes = equations(slice(None), target - shift).solve(ridge)
        base = shift - mean @ slopes
        return RidgeFit(features, slopes.to(z.dtype), base.to(z.dtype), self.ridges[best],
                        errors[best])  # fmt: skip


@dataclass(kw_only=True)
class AdditiveRidge(Ridge):
    """Functions of single directions, along the axes of several random rotations."""

    name: ClassVar[str] = "additive"

    rotations: int = 10
    bumps: int = 6
    reach: float = 2.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("surrogate.rotations", self.rotations, 1)
        check_whole("surrogate.bumps", self.bumps, 2)
        if self.reach <= 0:
            raise UsageError(f"surrogate.reach must be positive, got {self.reach}")

    def count_features(self, codes: int) -> int:
        """Return the number of bumps along all directions."""
        return self.rotations * self.bumps * codes

    def make_features(self, z: Tensor, stream: Stream) -> "Features":
        """Draw the rotations."""
        draws = stream.normal(self.rotations, z.shape[1], z.shape[1], dtype=torch.float64)
        turned = torch.cat(list(torch.linalg.qr(draws).Q), dim=1)  # (e, directions)
        centres = torch.linspace(-self.reach, self.reach, self.bumps)
        return Bumps(turned.to(z.dtype), centres.to(z.dtype))


@dataclass(kw_only=True)
class QuadraticRidge(Ridge):
    """All coordinates and all products of two."""

    name: ClassVar[str] = "quadratic_ridge"

    def count_features(self, codes: int) -> int:
        """Return the number of coordinates and products."""
        return codes + codes * (codes + 1) // 2

    def make_features(self, z: Tensor, stream: Stream) -> "Features":  # noqa: ARG002
        """Return the coordinates and their products."""
        return Products(z.shape[1])


class Features:
    """A fixed map of coordinates to P features."""

    @abstractmethod
    def __call__(self, z: Tensor) -> Tensor:  # (K, e) -> (K, P)
        """Return the features."""

    @abstractmethod
    def value_and_gradient(self, z: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weighted sum of the features of z (K, e), (K,), and its gradient, (K, e)."""


class Bumps(Features):
    """Gaussian bumps along directions, as wide as they are apart."""

    def __init__(self, directions: Tensor, centres: Tensor) -> None:  # (e, D), (B,)
        self.directions = directions
        self.centres = centres
        self.width = float(centres[1] - centres[0])

    def __call__(self, z: Tensor) -> Tensor:
        """Return the bumps of each direction, bump by bump."""
        seen = z @ self.directions  # (K, D)
        return torch.cat([self._bump(seen, centre) for centre in self.centres], dim=1)

    def value_and_gradient(self, z: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Sum the bumps without storing all of them."""
        seen = z @ self.directions  # (K, D)
        value, along = torch.zeros_like(seen), torch.zeros_like(seen)
        weights = slopes.view(len(self.centres), -1)  # (B, D)
        for centre, weight in zip(self.centres, weights, strict=True):
            bump = self._bump(seen, centre).mul_(weight)
            value += bump
            along.addcmul_(bump, seen - centre, value=-1 / self.width**2)
        return value.sum(dim=1), along @ self.directions.T

    def _bump(self, seen: Tensor, centre: Tensor) -> Tensor:
        return (seen - centre).square_().mul_(-0.5 / self.width**2).exp_()


class Products(Features):
    """Coordinates, then products of two, i <= j."""

    def __init__(self, e: int) -> None:
        self.rows, self.columns = torch.triu_indices(e, e)

    def __call__(self, z: Tensor) -> Tensor:
        """Return e + e (e + 1) / 2 columns."""
        return torch.cat([z, z[:, self.rows] * z[:, self.columns]], dim=1)

    def value_and_gradient(self, z: Tensor, slopes: Tensor) -> tuple[Tensor, Tensor]:
        """Use the symmetric matrix of the products."""
        e = z.shape[1]
        matrix = slopes.new_zeros(e, e)
        matrix[self.rows, self.columns] = slopes[e:]
        matrix = (matrix + matrix.T) / 2
        curved = z @ matrix  # (K, e)
        return z @ slopes[:e] + (curved * z).sum(dim=1), slopes[:e] + 2 * curved


@dataclass(frozen=True)
class RidgeFit:
    """The model of one seed."""

    features: Features
    slopes: Tensor  # (P,)
    base: Tensor  # ()
    ridge: float
    error: float

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of coordinates z (K, e), (K,), and their gradients, (K, e)."""
        value, gradient = self.features.value_and_gradient(z, self.slopes)
        return value + self.base, gradient


class RidgeModel(Model):
    """The fits of all seeds."""

    def __init__(self, fits: Sequence[RidgeFit]) -> None:
        self.fits = fits

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the value of coordinates."""
        return self.value_and_gradient(z)[0]

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of coordinates z (S, K, e), (S, K), and their gradients."""
        pairs = [
            fit.features.value_and_gradient(rows, fit.slopes)
            for fit, rows in zip(self.fits, z.to(torch.float32), strict=True)
        ]
        value = torch.stack(
            [pair[0] + fit.base for pair, fit in zip(pairs, self.fits, strict=True)]
        )
        return value.to(z.dtype), torch.stack([pair[1] for pair in pairs]).to(z.dtype)

    def error(self) -> Tensor:  # (S,)
        """Return the squared error on held-out rows as a share of their variance."""
        return torch.tensor([fit.error for fit in self.fits], dtype=torch.float64)

    def describe(self) -> list[dict[str, Any]]:
        """Return the chosen ridge, and the accuracy on held-out rows."""
        return [{"ridge": fit.ridge, "held_out_r2": 1 - fit.error} for fit in self.fits]

"""BDI: bidirectional learning with an infinitely wide network (Chen et al., NeurIPS 2022).

A design should be predicted to be good from the rows, and the rows should be predicted well from
the design. With k the neural tangent kernel of a network with five hidden layers of infinite width,
rows X with values y, a design x and a goal of 10 standard deviations,

    forward    f(x) = k(x, X) (k(X, X) + ridge)^-1 y     should be the goal,
    backward   p(X) = k(X, x) k(x, x)^-1 goal            should be y,

and each design follows the gradient of - (f(x) - goal)^2 / 2 - mean (p(X) - y)^2 / 2 with Adam.

Without biases the kernel is k(x, z) = |x| |z| g(c) / e, where c is the cosine of x and z, and g
follows from a recursion over the layers. Values and gradients are computed by hand, in float64. A
constant factor of the kernel cancels in both predictions, so that its layers are scaled to keep the
variance.

The settings are those of its code (GGchen1997/BDI at b670115).

Deviations from its code, with reasons:
- the kernel is fitted to at most 4000 rows, drawn at random; theirs to all, which for the 32,768
  rows of TFBind8 is a matrix of 8 GB. With all rows nothing is random: the published 0.973 has a
  deviation of 0.000;
- all rows have the same weight, as for TFBind8; for its other tasks the weights are proportional to
  exp(0.001 y), which is nearly the same.

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=bdi task=chain d=41 seed=0-9
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import Objective, TopAscent
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.progress import track
from ddobench.rng import Streams

LEAST_SINE = 1e-6  # squared; at a row itself the slope of the kernel is unbounded
LEAST_LENGTH = 1e-12
ROWS_AT_ONCE = 1024  # designs predicted at a time


@dataclass(kw_only=True)
class InfiniteWidth(Surrogate):
    """Kernel regression by an infinitely wide network on some of the rows."""

    name: ClassVar[str] = "infinite_width"

    rows: int = 4000
    depth: int = 5
    ridge: float = 1e-6

    def __post_init__(self) -> None:
        check_whole("surrogate.rows", self.rows, 2)
        check_whole("surrogate.depth", self.depth, 0)
        if self.ridge <= 0:
            raise UsageError(f"surrogate.ridge must be positive, got {self.ridge}")

    def working_bytes(self, n: int, codes: int) -> float:  # noqa: ARG002
        """Return the memory of some matrices of the rows."""
        return 6.0 * 8 * min(self.rows, n) ** 2

    def fit(self, data: TrainingData, rng: Streams) -> "KernelModel":
        """Fit the kernel regression of one seed after the other."""
        z, y = data.coordinates.z.cpu().double(), data.y.cpu().double()
        fits = []
        for seed, stream in enumerate(track(rng.child("surrogate").rows, "kernel")):
            picked = stream.permutation(data.n)[: self.rows].sort().values
            fits.append(KernelFit(z[seed, picked], y[seed, picked], self.depth, self.ridge))
        return KernelModel(fits)


class KernelFit:
    """The kernel regression of rows z (N, e), y (N,)."""

    def __init__(self, z: Tensor, y: Tensor, depth: int, ridge: float) -> None:
        self.y, self.depth, self.e = y, depth, z.shape[1]
        self.towards, self.length = _polar(z)  # (N, e), (N,)
        shape, _ = tangent_kernel(self.towards @ self.towards.T, depth)
        kernel = shape * torch.outer(self.length, self.length) / self.e  # (N, N)
        kernel.diagonal().add_(ridge * kernel.diagonal().mean() + LEAST_LENGTH)
        self.weights = torch.linalg.solve(kernel, y)  # (N,)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (K, e) -> (K,), (K, e)
        """Return the values of designs by the rows, and their gradients."""
        towards, length = _polar(x)
        cosine = towards @ self.towards.T  # (K, N)
        shape, slope = tangent_kernel(cosine, self.depth)
        weights = self.weights * self.length / self.e  # (N,)
        along = (shape - cosine * slope) @ weights  # (K,)
        gradient = along[:, None] * towards + (weights * slope) @ self.towards
        return length * (shape @ weights), gradient

    def backward(self, x: Tensor, goal: float) -> tuple[Tensor, Tensor]:  # (K, e) -> (K,), (K, e)
        """Return half the mean squared error of the rows by each design, and its gradient."""
        towards, length = _polar(x)
        cosine = towards @ self.towards.T  # (K, N)
        shape, slope = tangent_kernel(cosine, self.depth)
        scale = goal * self.length / ((self.depth + 1) * length[:, None])  # (K, N)
        error = scale * shape - self.y  # (K, N)
        weight = error * scale / len(self.y)
        along = (weight * (shape + cosine * slope)).sum(dim=1, keepdim=True)  # (K, 1)
        gradient = ((weight * slope) @ self.towards - along * towards) / length[:, None]
        return error.square().mean(dim=1) / 2, gradient


def tangent_kernel(cosine: Tensor, depth: int) -> tuple[Tensor, Tensor]:  # (A, B) -> both (A, B)
    """Return the neural tangent kernel of unit vectors and its slope in their cosine.

    Each hidden layer of ReLU turns the cosine c = cos t into (sin t + (pi - t) c) / pi; the kernel
    becomes that plus the kernel so far times (pi - t) / pi. At c = 1 it is depth + 1.
    """
    cosine = cosine.clamp(-1, 1)
    change = torch.ones_like(cosine)  # of the cosine of this layer
    kernel, slope = cosine, change
    for _ in range(depth):
        sine = (1 - cosine.square()).clamp(min=LEAST_SINE).sqrt()
        passed = 1 - cosine.acos() / pi
        kernel_passed, slope_passed = (
            kernel * passed,
            slope * passed + kernel * change / (pi * sine),
        )
        cosine = ((1 - cosine.square()).clamp(min=0).sqrt() / pi + passed * cosine).clamp(-1, 1)
        change = change * passed
        kernel, slope = cosine + kernel_passed, change + slope_passed
    return kernel, slope


def _polar(x: Tensor) -> tuple[Tensor, Tensor]:  # (K, e) -> (K, e), (K,)
    """Return directions and lengths."""
    length = x.square().sum(dim=1).sqrt().clamp(min=LEAST_LENGTH)
    return x / length[:, None], length


class KernelModel(Model):
    """The kernel regressions of all seeds."""

    def __init__(self, fits: Sequence[KernelFit]) -> None:
        self.fits = fits

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the values of coordinates."""
        pieces = [self.value_and_gradient(some)[0] for some in torch.split(z, ROWS_AT_ONCE, dim=1)]
        return torch.cat(pieces, dim=1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of coordinates z (S, K, e), (S, K), and their gradients."""
        pairs = [fit.forward(rows) for fit, rows in zip(self.fits, z.cpu().double(), strict=True)]
        values, gradients = zip(*pairs, strict=True)
        return torch.stack(values).to(z), torch.stack(gradients).to(z)

    def backward_gradient(self, z: Tensor, goal: float) -> Tensor:  # (S, K, e) -> (S, K, e)
        """Return the gradient of half the mean squared error of the rows by each design."""
        pairs = zip(self.fits, z.cpu().double(), strict=True)
        return torch.stack([fit.backward(rows, goal)[1] for fit, rows in pairs]).to(z)


@dataclass(kw_only=True)
class Bidirectional(TopAscent):
    """Designs move to where they and the rows predict each other."""

    name: ClassVar[str] = "bidirectional"

    goal: float = 10.0
    backward: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.backward < 0:
            raise UsageError(f"search.backward must be 0 or more, got {self.backward}")

    def refuses(self, surrogate: Surrogate) -> str | None:
        """Refuse models that cannot predict rows from a design."""
        if isinstance(surrogate, InfiniteWidth):
            return None
        return "search=bidirectional needs a kernel; use surrogate=infinite_width"

    def objective(self, start: Tensor, model: Model, rng: Streams) -> Objective:  # noqa: ARG002
        """Return the values of designs by the rows, and the direction in which both errors fall."""
        assert isinstance(model, KernelModel)

        def follow(x: Tensor) -> tuple[Tensor, Tensor]:  # (S, K, e) -> (S, K), (S, K, e)
            value, slope = model.value_and_gradient(x)
            direction = (self.goal - value)[..., None] * slope
            if self.backward:
                direction = direction - self.backward * model.backward_gradient(x, self.goal)
            return value, direction

        return follow

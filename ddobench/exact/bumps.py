"""Sums of bumps over cliques: f(x) = sum over C of w_C k(x_C - mu_C), for three forms of k.

All are 1 at the centre and fall with the distance from it. A Gaussian bump is exp(-r^2), a Laplace
bump exp(-L1 norm), with a kink along every axis through its centre, a Cauchy bump 1 / (1 + 2 r^2).
The last is as sharp at its centre as (1 + r^2)^-2, the density of a Cauchy variable in three
dimensions, but has heavier tails, and they do not depend on the size of the clique: of the two it
is less like a Gaussian bump, which is what a form other than Gaussian is for.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.exact.families import Cliques
from ddobench.rng import Stream

Numbers = TypeVar("Numbers", Tensor, NDArray[np.float64])  # the oracle's, or those of a search


class Form(ABC):
    """How high a bump is at some distance from its centre."""

    formula: ClassVar[str]  # of one bump

    @abstractmethod
    def distance(self, away: Tensor) -> Tensor:
        """Return what a difference along one variable adds to the distance."""

    @abstractmethod
    def height(self, distance: Numbers) -> Numbers:
        """Return the height of a bump of weight 1."""


class Radial(Form):
    """Falls with the squared Euclidean distance, convex in it."""

    def distance(self, away: Tensor) -> Tensor:
        """Return the square."""
        return away.square()

    @abstractmethod
    def slope(self, distance: Numbers) -> Numbers:
        """Return how fast the height falls per squared distance."""


class Gaussian(Radial):
    """The paper's bump."""

    formula = "exp(-‖x_C - μ_C‖²)"

    def height(self, distance: Numbers) -> Numbers:
        """Return exp(-r^2)."""
        return _exp(-distance)

    def slope(self, distance: Numbers) -> Numbers:
        """Return exp(-r^2)."""
        return _exp(-distance)


class Cauchy(Radial):
    """A bump with heavy tails."""

    formula = "(1 + 2‖x_C - μ_C‖²)⁻¹"

    def height(self, distance: Numbers) -> Numbers:
        """Return 1 / (1 + 2 r^2)."""
        return 1.0 / (1.0 + 2.0 * distance)

    def slope(self, distance: Numbers) -> Numbers:
        """Return 2 / (1 + 2 r^2)^2."""
        return 2.0 / (1.0 + 2.0 * distance) ** 2


class Laplace(Form):
    """A bump with kinks."""

    formula = "exp(-‖x_C - μ_C‖₁)"

    def distance(self, away: Tensor) -> Tensor:
        """Return the absolute value."""
        return away.abs()

    def height(self, distance: Numbers) -> Numbers:
        """Return exp(-L1 norm)."""
        return _exp(-distance)


@dataclass(frozen=True)
class RBFSum:
    """One such function of d variables. A variable in several cliques has a centre in each."""

    d: int
    cliques: Cliques
    centres: tuple[Tensor, ...]  # (size of the clique,) each, float64
    weights: Tensor  # (C,)
    form: Form = Gaussian()  # noqa: RUF009 - without fields, so that one is as good as another

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values in float64: 0 infinitely far away, NaN for a design of NaN."""
        columns = x.T.contiguous()  # (d, K)
        total = torch.zeros(len(x), dtype=torch.float64)
        for clique, centre, weight in zip(self.cliques, self.centres, self.weights, strict=True):
            distance = torch.zeros(len(x), dtype=torch.float64)
            for variable, middle in zip(clique, centre, strict=True):
                distance += self.form.distance(columns[variable] - middle)
            total += weight * self.form.height(distance)
        return total


def draw_rbf(d: int, cliques: Cliques, stream: Stream, form: Form) -> RBFSum:
    """Draw centres from N(0, I), and weights. Forms share both."""
    centres = stream.child("centres")
    return RBFSum(
        d=d,
        cliques=cliques,
        centres=tuple(centres.normal(len(clique), dtype=torch.float64) for clique in cliques),
        weights=draw_weights(len(cliques), stream),
        form=form,
    )


def draw_weights(cliques: int, stream: Stream) -> Tensor:
    """Draw softmax(N(0, 1) / sqrt(number of cliques)), (C,)."""
    logits = stream.child("weights").normal(cliques, dtype=torch.float64)
    return torch.softmax(logits / cliques**0.5, dim=0)


def _exp(x: Numbers) -> Numbers:
    return torch.exp(x) if isinstance(x, Tensor) else np.exp(x)

"""The functions of single cliques that a task is a sum of: bumps of three forms, and networks.

Bumps: f(x) = sum over C of w_C k(x_C - mu_C). Every form is 1 at its centre and decreases with the
distance from it. A Gaussian bump is exp(-r^2). A Laplace bump is exp(-L1 norm), with a kink along
every axis through its centre. A Cauchy bump is 1 / (1 + 2 r^2). It is as sharp at its centre as
(1 + r^2)^-2, the density of a Cauchy variable in three dimensions, but its tails are heavier and do
not depend on the size of the clique: it differs more from a Gaussian bump, which is its purpose.

Networks: f(x) = sum over C of w_C s(v_C' tanh(W_C x_C + b_C)) exp(-|x_C|^2 / 4), with s the
logistic function. The last factor is a Gaussian bump of twice the width around the origin. With s
every term is positive, which bounds where the maximum can be: see `ddobench.exact.boxes`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.exact.families import Cliques
from ddobench.rng import Stream

UNITS = 8  # of each network
SPREAD = 2.0  # the square of the standard deviation of a network's bump
FORMULA = "logistic(v_Cᵀ tanh(W_C x_C + b_C)) exp(-‖x_C‖²/4)"

Numbers = TypeVar("Numbers", Tensor, NDArray[np.float64])  # tensors in the oracle, arrays elsewhere


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
    """A sum of bumps of d variables. A variable in several cliques has a centre in each."""

    d: int
    cliques: Cliques
    centres: tuple[Tensor, ...]  # (size of the clique,) each, float64
    weights: Tensor  # (C,)
    form: Form = Gaussian()  # noqa: RUF009 - it has no fields, so that one can be shared

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values in float64: 0 at infinity, NaN where the design is NaN."""
        return add_up(self.parts(x), len(x))

    def parts(self, x: Tensor) -> Iterator[Tensor]:  # (K, d) -> C times (K,)
        """Yield the value of each bump."""
        columns = x.T.contiguous()  # (d, K)
        for clique, centre, weight in zip(self.cliques, self.centres, self.weights, strict=True):
            distance = torch.zeros(len(x), dtype=torch.float64)
            for variable, middle in zip(clique, centre, strict=True):
                distance += self.form.distance(columns[variable] - middle)
            yield weight * self.form.height(distance)


def add_up(parts: Iterable[Tensor], rows: int) -> Tensor:
    """Add the values of single cliques, one after the other, (rows,)."""
    total = torch.zeros(rows, dtype=torch.float64)
    for part in parts:
        total += part
    return total


def draw_rbf(d: int, cliques: Cliques, stream: Stream, form: Form) -> RBFSum:
    """Draw centres from N(0, I), and weights; both are the same for every form."""
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


@dataclass(frozen=True)
class Network:
    """One layer of tanh units and its sum."""

    inner: Tensor  # (units, size of the clique) W
    shift: Tensor  # (units,) b
    outer: Tensor  # (units,) v

    def __call__(self, columns: list[Tensor]) -> Tensor:  # of (K,) each -> (K,)
        """Return the sum, unit by unit, so that the bits of a row do not depend on the others."""
        total = torch.zeros_like(columns[0])
        for inner, shift, outer in zip(self.inner, self.shift, self.outer, strict=True):
            inside = shift.expand_as(total)
            for weight, column in zip(inner, columns, strict=True):
                inside = inside + weight * column
            total += outer * torch.tanh(inside)
        return total


@dataclass(frozen=True)
class NetworkSum:
    """A sum of networks of d variables."""

    d: int
    cliques: Cliques
    networks: tuple[Network, ...]
    weights: Tensor  # (C,)

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values in float64: 0 at infinity, NaN where the design is NaN."""
        return add_up(self.parts(x), len(x))

    def parts(self, x: Tensor) -> Iterator[Tensor]:  # (K, d) -> C times (K,)
        """Yield the value of each network."""
        columns = x.T.contiguous()  # (d, K)
        for clique, network, weight in zip(self.cliques, self.networks, self.weights, strict=True):
            own = [columns[variable] for variable in clique]
            square = torch.zeros(len(x), dtype=torch.float64)
            for column in own:
                square += column.square()
            bump = torch.exp(-square / (2.0 * SPREAD))
            # At infinity the sum inside a unit is undefined.
            term = torch.where(bump == 0.0, 0.0, bump * torch.sigmoid(network(own)))
            yield weight * term


def draw_networks(d: int, cliques: Cliques, stream: Stream) -> NetworkSum:
    """Draw W from N(0, 1 / size of the clique), b and v from N(0, 1), weights as for bumps."""
    numbers = stream.child("networks")
    networks = tuple(
        Network(
            inner=numbers.normal(UNITS, len(clique), dtype=torch.float64) / len(clique) ** 0.5,
            shift=numbers.normal(UNITS, dtype=torch.float64),
            outer=numbers.normal(UNITS, dtype=torch.float64),
        )
        for clique in cliques
    )
    return NetworkSum(d, cliques, networks, draw_weights(len(cliques), stream))


CliqueSum = RBFSum | NetworkSum


@dataclass(frozen=True)
class Term:
    """A kind of function, and how to draw a sum of such functions over the cliques of a graph."""

    noun: str
    formula: str  # in the variables x_C of its clique
    draw: Callable[[int, Cliques, Stream], CliqueSum]
    largest: int | None = None  # number of variables of a clique; None: any

    def check(self, size: int) -> None:
        """Raise an error if a clique cannot have `size` variables."""
        if self.largest is not None and size > self.largest:
            raise UsageError(
                f"task.clique_size must be at most {self.largest} for a {self.noun} per clique, "
                f"whose optimum is searched in all variables, got {size}; use {self.largest}"
            )


def _bump(noun: str, form: Form) -> Term:
    return Term(noun, form.formula, partial(draw_rbf, form=form))


TERMS = {
    "gaussian": _bump("Gaussian bump", Gaussian()),
    "laplace": _bump("Laplace bump", Laplace()),
    "cauchy": _bump("Cauchy bump", Cauchy()),
    "network": Term("random network", FORMULA, draw_networks, largest=3),
}

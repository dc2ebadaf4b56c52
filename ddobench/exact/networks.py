"""Sums of small random networks over cliques, each times a wide bump that keeps it bounded.

f(x) = sum over C of w_C s(v_C' tanh(W_C x_C + b_C)) exp(-|x_C|^2 / 4), s the logistic function.
The bump is a Gaussian one of twice the width around the origin. Without s the terms would change
their sign; with it they are positive, and from that follows where the maximum can be: in a box,
see `ddobench.exact.boxes`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ddobench.exact.bumps import draw_weights
from ddobench.exact.families import Cliques
from ddobench.rng import Stream

UNITS = 8  # of each network
SPREAD = 2.0  # the square of the bump's standard deviation
FORMULA = "logistic(v_Cᵀ tanh(W_C x_C + b_C)) exp(-‖x_C‖²/4)"


@dataclass(frozen=True)
class Network:
    """One layer of tanh units and its sum."""

    inner: Tensor  # (units, size of the clique) W
    shift: Tensor  # (units,) b
    outer: Tensor  # (units,) v

    def __call__(self, columns: list[Tensor]) -> Tensor:  # of (K,) each -> (K,)
        """Return the sum, unit by unit: a row's bits do not depend on how many there are."""
        total = torch.zeros_like(columns[0])
        for inner, shift, outer in zip(self.inner, self.shift, self.outer, strict=True):
            inside = shift.expand_as(total)
            for weight, column in zip(inner, columns, strict=True):
                inside = inside + weight * column
            total += outer * torch.tanh(inside)
        return total


@dataclass(frozen=True)
class NetworkSum:
    """One such function of d variables."""

    d: int
    cliques: Cliques
    networks: tuple[Network, ...]
    weights: Tensor  # (C,)

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values in float64: 0 infinitely far away, NaN for a design of NaN."""
        columns = x.T.contiguous()  # (d, K)
        total = torch.zeros(len(x), dtype=torch.float64)
        for clique, network, weight in zip(self.cliques, self.networks, self.weights, strict=True):
            own = [columns[variable] for variable in clique]
            square = torch.zeros(len(x), dtype=torch.float64)
            for column in own:
                square += column.square()
            bump = torch.exp(-square / (2.0 * SPREAD))
            # What is infinitely far away has no defined sum inside of a unit.
            term = torch.where(bump == 0.0, 0.0, bump * torch.sigmoid(network(own)))
            total += weight * term
        return total


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

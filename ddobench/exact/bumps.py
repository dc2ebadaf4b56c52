"""Sums of Gaussian bumps over cliques: f(x) = sum over C of w_C exp(-|x_C - mu_C|^2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from ddobench.exact.families import Cliques
from ddobench.rng import Stream


@dataclass(frozen=True)
class RBFSum:
    """One such function of d variables. A variable in several cliques has a centre in each."""

    d: int
    cliques: Cliques
    centres: tuple[Tensor, ...]  # (size of the clique,) each, float64
    weights: Tensor  # (C,)

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values in float64: 0 infinitely far away, NaN for a design of NaN."""
        columns = x.T.contiguous()  # (d, K)
        total = torch.zeros(len(x), dtype=torch.float64)
        for clique, centre, weight in zip(self.cliques, self.centres, self.weights, strict=True):
            distance = torch.zeros(len(x), dtype=torch.float64)
            for variable, middle in zip(clique, centre, strict=True):
                distance += (columns[variable] - middle).square()
            total += weight * torch.exp(-distance)
        return total


def draw_rbf(d: int, cliques: Cliques, stream: Stream) -> RBFSum:
    """Draw centres from N(0, I) and weights from softmax(N(0, 1) / sqrt(number of cliques))."""
    centres = stream.child("centres")
    logits = stream.child("weights").normal(len(cliques), dtype=torch.float64)
    return RBFSum(
        d=d,
        cliques=cliques,
        centres=tuple(centres.normal(len(clique), dtype=torch.float64) for clique in cliques),
        weights=torch.softmax(logits / len(cliques) ** 0.5, dim=0),
    )

"""A task with a known graph and optimum: a rope whose neighbours pull at each other."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError
from ddobench.graphs import Graph


@dataclass(frozen=True)
class RopeProblem(Problem):
    centre: torch.Tensor | None = None  # (S, d)

    def _evaluate(self, x):  # (S, K, d) -> (S, K); NaN for an invalid design, here none
        return pull(x, self.centre)


def pull(x, centre):  # (S, K, d), (S, d) -> (S, K), larger is better
    u = x - centre[:, None]
    return -u[..., 0].square() - u.diff(dim=-1).square().sum(dim=-1)


@dataclass(frozen=True, kw_only=True)
class Rope(Task):
    name: ClassVar[str] = "rope"  # part of the digest and of the random streams

    distance: float = 1.0

    def __post_init__(self):
        super().__post_init__()  # checks d and n
        if self.distance < 0:
            raise UsageError(f"task.distance must be 0 or more, got {self.distance}")

    def describe(self):
        return Description(
            title=f"A rope of {self.d} links",
            formula="f(x) = -u₁² - Σ (uᵢ₊₁ - uᵢ)², u = x - c",
            text=f"{self.n} normal designs are visible; every seed has its own c.",
        )

    def _draw(self, rng):  # one instance for each seed of rng
        x = rng.child("designs").normal(self.n, self.d, dtype=torch.float64)  # (S, N, d)
        centre = self.distance * rng.child("centre").normal(self.d, dtype=torch.float64)
        path = Graph.from_edges(self.d, [(i, i + 1) for i in range(self.d - 1)])
        return RopeProblem(
            data=Dataset(x=x, y=pull(x, centre), space=Space(self.d)),
            optimum=torch.zeros(len(centre), dtype=torch.float64),  # at x = c; None if not known
            graphs=(path,) * len(centre),  # which variables interact; None if not known
            centre=centre,
        )

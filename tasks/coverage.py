"""The example of the paper's theorem: rows that show each component of the optimum, never both.

f(x) = sum over pairs of -(x_1 - 1)^2 - (x_2 - 2)^2. The rows of a pair are normal and correlated,
so that some have x_1 = 1 and some x_2 = 2, but none has both (the paper's figure of the data
distribution). Its text names neither mean nor correlation; with ours, 0 and -0.95, the optimum
(1, 2) is 9.5 standard deviations from the mean along the short axis, and 1 and 2 in each variable.

With d = 2, 4, ... such pairs are stacked, each drawn independently: the density of rows at the
optimum falls exponentially with d, that in each variable stays. The optimum is 0 at
(1, 2, 1, 2, ...), the true graph has no edge, and a smaller table of rows is the beginning of a
larger one.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.coverage import CliqueFunctions, Instance, NormalRows
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.rng import Stream, Streams

PEAK = (1.0, 2.0)  # of a pair [P]


@dataclass(frozen=True, kw_only=True)
class CoverageProblem(Problem):
    """The same sum of squares for every seed."""

    rows: NormalRows

    def _evaluate(self, x: Tensor) -> Tensor:
        return find_value(x)

    def best_designs(self) -> Tensor:
        """Return the design of each seed that attains the optimum, (S, d)."""
        seeds, _, d = self.data.x.shape
        return _peak(d).repeat(seeds, 1)

    def theory(self) -> list[Instance]:
        """Add the distribution of the rows, and the squares."""
        d = self.data.space.d
        squares = CliqueFunctions(
            [(i,) for i in range(d)], lambda x: -np.square(x - _peak(d).numpy())
        )
        return [replace(one, rows=self.rows, functions=squares) for one in super().theory()]


def find_value(x: Tensor) -> Tensor:  # (..., d) -> (...)
    """Return minus the squared distance from the optimum."""
    return -(x - _peak(x.shape[-1])).square().sum(dim=-1)


def _peak(d: int) -> Tensor:
    return torch.tensor(PEAK, dtype=torch.float64).repeat(d // 2)


@dataclass(frozen=True, kw_only=True)
class Coverage(Task):
    """Correlated normal pairs and the squared distance from (1, 2) in each of them."""

    name: ClassVar[str] = "Coverage"
    # The spread of the values changes with the settings, by which runs are compared.
    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    correlation: float = -0.95
    mean: float = 0.0
    spread: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d % 2:
            raise UsageError(
                f"d must be even for pairs of variables, got {self.d}; use {self.d + 1}"
            )
        if not -1.0 < self.correlation < 1.0:
            raise UsageError(
                "task.correlation must lie between -1 and 1, for the variables of a pair, "
                f"got {self.correlation}; use 0 for independent ones"
            )
        if not abs(self.mean) < inf:
            raise UsageError(f"task.mean must be a finite number, got {self.mean}")
        if not 0.0 < self.spread < inf:
            raise UsageError(f"task.spread must be a standard deviation > 0, got {self.spread}")
        if not 0.0 <= self.noise < inf:
            raise UsageError(f"task.noise must be a standard deviation >= 0, got {self.noise}")

    def describe(self) -> Description:
        """Describe the task."""
        text = (
            f"{self.n} designs are visible. They cover each component of the optimum "
            "(1, 2, 1, 2, ...), which is 0, and hardly ever two of a pair. Regret is the squared "
            "distance from it, in raw units."
        )
        if self.noise:
            text += (
                f" Their values carry noise of {self.noise:g} standard deviations of the "
                "noise-free ones."
            )
        return Description(
            title=f"Squared distances of {self.d // 2} correlated pairs from (1, 2)",
            formula="f(x) = -Σ [(x₁ - 1)² + (x₂ - 2)²] over pairs (x₁, x₂) ~ "
            f"N({self.mean:g}, {self.spread:g}² R), R₁₂ = {self.correlation:g}",
            text=text,
        )

    @property
    def sd(self) -> float:
        """The standard deviation of the values of rows without noise."""
        away = [self.mean - peak for peak in PEAK]
        square, rho = self.spread**2, self.correlation
        single = sum(2 * square**2 + 4 * square * one**2 for one in away)
        both = 2 * (rho * square) ** 2 + 4 * rho * square * away[0] * away[1]
        return float((self.d / 2 * (single + 2 * both)) ** 0.5)

    def _draw(self, rng: Streams) -> CoverageProblem:
        x = torch.stack([self._draw_rows(stream.child("designs")) for stream in rng.rows])
        rho = self.correlation
        y = find_value(x)
        if self.noise:
            y += self.noise * self.sd * rng.child("noise").normal(self.n, dtype=torch.float64)
        return CoverageProblem(
            data=Dataset(x=x, y=y, space=Space(self.d)),
            optimum=torch.zeros(len(x), dtype=torch.float64),
            graphs=(Graph.from_edges(self.d, []),) * len(x),
            rows=NormalRows(
                np.full(self.d, self.mean),
                self.spread**2 * np.kron(np.eye(self.d // 2), np.array([[1.0, rho], [rho, 1.0]])),
            ),
        )

    def _draw_rows(self, stream: Stream) -> Tensor:  # (N, d)
        normal = stream.normal(self.n, self.d // 2, 2, dtype=torch.float64)
        first, fresh = normal.unbind(dim=-1)
        second = self.correlation * first + (1.0 - self.correlation**2) ** 0.5 * fresh
        return self.mean + self.spread * torch.stack([first, second], dim=-1).flatten(start_dim=1)

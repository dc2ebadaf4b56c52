"""The toy quadratic of the paper: f(x) = sum of s_i x_i x_(i+1) around a cycle, x in {0,1}^d.

All signs are +1 in the paper, so that the optimum is all ones, and even a linear fit finds it with
enough data. With `signs=random` they are drawn for each seed, which makes the task harder. The
optimum is exact for both, by max-sum around the cycle.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.coverage import CategoricalRows, CliqueFunctions, Instance, Values
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.exact.max_sum import Table, maximise
from ddobench.graphs import Graph
from ddobench.rng import Streams

SIGNS = ("ones", "random")


@dataclass(frozen=True)
class QuadraticProblem(Problem):
    """Cycles of products with the signs of each seed."""

    signs: Tensor | None = None  # (S, d)
    best: Tensor | None = None  # (S, d)

    def _evaluate(self, x: Tensor) -> Tensor:
        assert self.signs is not None
        return cycle_value(x, self.signs)

    def best_designs(self) -> Tensor | None:
        """Return a design of each seed that attains the optimum, (S, d)."""
        return self.best

    def theory(self) -> list[Instance]:
        """Add that rows are uniform, and the products, whose signs do not matter."""
        rows = CategoricalRows.uniform(self.data.space.sizes or ())
        d = self.data.space.d
        products = CliqueFunctions(
            [(i, (i + 1) % d) for i in range(d)], lambda x: x * np.roll(x, -1, axis=-1)
        )
        return [replace(one, rows=rows, functions=products) for one in super().theory()]


def cycle_value(x: Tensor, signs: Tensor) -> Tensor:  # (S, K, d), (S, d) -> (S, K)
    """Return the signed sum of products of neighbours around the cycle."""
    return (x * x.roll(-1, dims=-1) * signs[:, None, :]).sum(dim=-1)


@dataclass(frozen=True, kw_only=True)
class Quadratic(Task):
    """Uniform binary designs on a cycle of interacting neighbours."""

    name: ClassVar[str] = "Quadratic"
    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    signs: str = "ones"
    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("d", self.d, 4, "at d=3 the cycle is a single triangle, use d=4 or more")
        check_one_of("task.signs", self.signs, SIGNS)
        if self.noise < 0:
            raise UsageError(f"task.noise must be a standard deviation >= 0, got {self.noise}")

    def describe(self) -> Description:
        """Describe the task."""
        return Description(
            title=f"Toy quadratic on a cycle of {self.d} bits",
            formula="f(x) = Σ sᵢ xᵢ xᵢ₊₁ around the cycle, x ∈ {0,1}^d"
            + (", sᵢ = 1" if self.signs == "ones" else ", sᵢ = ±1 at random"),
            text=f"{self.n} uniform designs are visible"
            + (
                f", their values with noise of standard deviation {self.noise}"
                if self.noise
                else ""
            )
            + "; regret is the optimum minus f(x̂), in raw units.",
        )

    def _draw(self, rng: Streams) -> QuadraticProblem:
        seeds = len(rng.seeds)
        x = rng.child("designs").integers(2, self.n, self.d).to(torch.float64)
        signs = torch.ones(seeds, self.d, dtype=torch.float64)
        if self.signs == "random":
            signs = 2.0 * rng.child("signs").integers(2, self.d).to(torch.float64) - 1.0
        y = cycle_value(x, signs)
        if self.noise:
            y = y + self.noise * rng.child("noise").normal(self.n, dtype=torch.float64)
        cycle = Graph.from_edges(self.d, [(i, (i + 1) % self.d) for i in range(self.d)])
        optimum, best = _find_optimum(signs.numpy())
        return QuadraticProblem(
            data=Dataset(x=x, y=y, space=Space(self.d, (2,) * self.d)),
            optimum=torch.from_numpy(optimum),
            graphs=(cycle,) * seeds,
            signs=signs,
            best=torch.from_numpy(best).to(torch.float64),
        )


def _find_optimum(signs: Values) -> tuple[Values, NDArray[np.int64]]:
    """Return the exact optimum of each row of signs, (S,), and a design that has it, (S, d)."""
    seeds, d = signs.shape
    tables = []
    for i in range(d):
        values = np.zeros((seeds, 2, 2))
        values[:, 1, 1] = signs[:, i]
        tables.append(Table((i, (i + 1) % d), values))
    return maximise(tables, [2] * d)

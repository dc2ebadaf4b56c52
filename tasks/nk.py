"""NK landscapes with adjacent neighbours around a cycle, after Kauffman and Weinberger (1989).

f(x) = mean over i of T_i[x_i, x_(i+1), ..., x_(i+K)], with x in q^d and every entry of every table
uniform on [0, 1). K neighbours make the landscape rugged: at K=0 every variable has its own best
state, at K=d-1 all values are independent. The classical case is q=2.

The optimum is exact: max-sum around the cycle of windows. The function of a seed depends on d, q
and k alone, and a smaller table of rows is the beginning of a larger one.
"""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_truncation, check_whole
from ddobench.exact.max_sum import LARGEST_TABLE, Table, maximise
from ddobench.graphs import Graph
from ddobench.rng import Stream, Streams
from ddobench.tasks.truncation import fill_below


@dataclass(frozen=True, kw_only=True)
class NKProblem(Problem):
    """Cycles of windows with the tables of each seed."""

    tables: Tensor  # (S, d, q^(K+1)); the first variable of a window is the most significant
    states: int
    neighbours: int

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.stack(
            [
                mean_of_windows(rows, own, self.states, self.neighbours)
                for rows, own in zip(x, self.tables, strict=True)
            ]
        )


def mean_of_windows(x: Tensor, tables: Tensor, q: int, k: int) -> Tensor:
    """Return the mean over the windows of designs (K, d) by tables (d, q^(k+1)), (K,)."""
    whole = x.to(torch.int64)
    entry = torch.zeros_like(whole)
    for offset in range(k + 1):
        entry = q * entry + whole.roll(-offset, dims=-1)
    return tables[torch.arange(len(tables)), entry].mean(dim=-1)


@dataclass(frozen=True, kw_only=True)
class NK(Task):
    """Uniform designs of q states on a cycle of windows of k + 1 variables."""

    name: ClassVar[str] = "NK"
    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    q: int = 2
    k: int = 2
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("task.q", self.q, 2, "a variable needs at least two states")
        check_whole("task.k", self.k, 0)
        if self.k >= self.d:
            raise UsageError(
                f"task.k must be below d={self.d}, as a window has k + 1 variables, got {self.k}"
            )
        entries = self.q ** min(2 * self.k + 1, self.d)
        if entries > LARGEST_TABLE:
            raise UsageError(
                f"task.q={self.q} and task.k={self.k} need a table of {entries:,} entries for the "
                f"exact optimum, more than {LARGEST_TABLE:,}; use fewer states or neighbours"
            )
        check_truncation(self.truncate)

    def describe(self) -> Description:
        """Describe the task."""
        hidden = (
            ""
            if self.truncate is None
            else f", of values up to percentile {self.truncate:g} of uniform ones"
        )
        return Description(
            title=f"NK landscape of {self.d} variables with {self.q} states and "
            f"{self.k} neighbours",
            formula=f"f(x) = mean of Tᵢ[xᵢ, ..., xᵢ₊ₖ] around the cycle, K = {self.k}, "
            f"x ∈ {{0, ..., {self.q - 1}}}^{self.d}, T ~ U(0, 1)",
            text=f"{self.n} uniform designs are visible{hidden}; regret is the optimum minus "
            "f(x̂), in raw units. The optimum is exact.",
        )

    def _draw(self, rng: Streams) -> NKProblem:
        seeds = len(rng.seeds)
        tables = rng.child("tables").uniform(
            self.d, self.q ** (self.k + 1), dtype=torch.float64
        )  # (S, d, q^(k+1))
        x = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for s, stream in enumerate(rng.rows):
            pilot = partial(self._take, stream.child("pilot"), tables[s])
            rows = partial(self._take, stream.child("designs"), tables[s])
            fill_below(x[s], y[s], self.truncate, pilot=pilot, rows=rows)
        return NKProblem(
            data=Dataset(x=x, y=y, space=Space(self.d, (self.q,) * self.d)),
            optimum=torch.tensor([self._largest_value(own) for own in tables], dtype=torch.float64),
            graphs=(Graph.from_cliques(self.d, self._windows()),) * seeds,
            tables=tables,
            states=self.q,
            neighbours=self.k,
        )

    def _take(self, designs: Stream, tables: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Draw the next designs (rows, d) and their values (rows,)."""
        x = designs.integers(self.q, rows, self.d).to(torch.float64)
        return x, mean_of_windows(x, tables, self.q, self.k)

    def _windows(self) -> list[tuple[int, ...]]:
        """Return the variables of each window, from its first on."""
        return [tuple((i + j) % self.d for j in range(self.k + 1)) for i in range(self.d)]

    def _largest_value(self, tables: Tensor) -> float:
        """Return the exact optimum of one instance, tables (d, q^(k+1))."""
        shape = (1, *(self.q,) * (self.k + 1))
        windows = [
            Table(window, np.asarray(own).reshape(shape))
            for window, own in zip(self._windows(), tables, strict=True)
        ]
        return float(maximise(windows, [self.q] * self.d)[0][0]) / self.d

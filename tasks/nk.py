"""NK landscapes with adjacent neighbours around a cycle, after Kauffman and Weinberger (1989).

f(x) = mean over i of T_i[x_i, x_(i+1), ..., x_(i+K)], with x in q^d and every entry of every table
uniform on [0, 1). K neighbours make the landscape rugged: at K=0 every variable has its own best
state, at K=d-1 all values are independent. The classical case is q=2.

The optimum is exact: max-sum around the cycle of windows. The function of a seed depends on d, q
and k alone, and a smaller table of rows is the beginning of a larger one.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.coverage import CategoricalRows, CliqueFunctions, Instance, Rows, Values
from ddobench.errors import UsageError, check_truncation, check_whole
from ddobench.exact.max_sum import LARGEST_TABLE, Table, maximise
from ddobench.graphs import Graph
from ddobench.rng import Stream, Streams
from ddobench.tasks.truncation import HIDDEN, fill_below


@dataclass(frozen=True, kw_only=True)
class NKProblem(Problem):
    """Cycles of windows with the tables of each seed."""

    tables: Tensor  # (S, d, q^(K+1)); the first variable of a window is the most significant
    states: int
    neighbours: int
    best: Tensor  # (S, d)
    truncated: bool

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.stack(
            [
                mean_of_windows(rows, own, self.states, self.neighbours)
                for rows, own in zip(x, self.tables, strict=True)
            ]
        )

    def best_designs(self) -> Tensor:
        """Return a design of each seed that attains the optimum, (S, d)."""
        return self.best

    def theory(self) -> list[Instance]:
        """Add that rows are uniform unless some are hidden, and the tables of windows."""
        rows: Rows | str = CategoricalRows.uniform(self.data.space.sizes or ())
        if self.truncated:
            rows = HIDDEN
        found = []
        for one, own in zip(super().theory(), self.tables, strict=True):

            def values(x: Values, own: Tensor = own) -> Values:
                designs = torch.from_numpy(x)
                table: Values = find_entries(designs, own, self.states, self.neighbours).numpy()
                return table

            scopes = list_windows(self.data.space.d, self.neighbours)
            found.append(replace(one, rows=rows, functions=CliqueFunctions(scopes, values)))
        return found


def mean_of_windows(x: Tensor, tables: Tensor, q: int, k: int) -> Tensor:
    """Return the mean over the windows of designs (K, d) by tables (d, q^(k+1)), (K,)."""
    return find_entries(x, tables, q, k).mean(dim=-1)


def find_entries(x: Tensor, tables: Tensor, q: int, k: int) -> Tensor:
    """Return the entries of all windows of designs (K, d) in tables (d, q^(k+1)), (K, d)."""
    whole = x.to(torch.int64)
    entry = torch.zeros_like(whole)
    for offset in range(k + 1):
        entry = q * entry + whole.roll(-offset, dims=-1)
    return tables[torch.arange(len(tables)), entry]


def list_windows(d: int, k: int) -> list[tuple[int, ...]]:
    """Return the variables of each window, from its first on."""
    return [tuple((i + j) % d for j in range(k + 1)) for i in range(d)]


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
        optima = [self._find_optimum(own) for own in tables]
        return NKProblem(
            data=Dataset(x=x, y=y, space=Space(self.d, (self.q,) * self.d)),
            optimum=torch.tensor([value for value, _ in optima], dtype=torch.float64),
            graphs=(Graph.from_cliques(self.d, list_windows(self.d, self.k)),) * seeds,
            tables=tables,
            states=self.q,
            neighbours=self.k,
            best=torch.stack([best for _, best in optima]),
            truncated=self.truncate is not None,
        )

    def _take(self, designs: Stream, tables: Tensor, rows: int) -> tuple[Tensor, Tensor]:
        """Draw the next designs (rows, d) and their values (rows,)."""
        x = designs.integers(self.q, rows, self.d).to(torch.float64)
        return x, mean_of_windows(x, tables, self.q, self.k)

    def _find_optimum(self, tables: Tensor) -> tuple[float, Tensor]:
        """Return the exact optimum of one instance, tables (d, q^(k+1)), and a design, (d,)."""
        shape = (1, *(self.q,) * (self.k + 1))
        windows = [
            Table(window, np.asarray(own).reshape(shape))
            for window, own in zip(list_windows(self.d, self.k), tables, strict=True)
        ]
        values, designs = maximise(windows, [self.q] * self.d)
        return float(values[0]) / self.d, torch.from_numpy(designs[0]).to(torch.float64)

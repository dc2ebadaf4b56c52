"""FGM on categorical designs (Grudzien, Uehara, Levine, Abbeel 2024): part of the method `fgm`.

Eq. "simple2" of the paper: least squares on the one-hot code of every clique, then the argmax.

**With the graph told**, as in the paper's regret figure (a task that knows its graph, unless
`graph=pairs`): a table for each clique, and one design, the maximiser. Where the paper is silent:
- the one-hot features are dependent (on a cycle of d bits their rank is 2d + 1), so the solution of
  smallest norm is taken; `ridge` > 0 tames the interpolation peak of noisy data at N near 2d;
- the argmax is found exactly by max-sum, since enumerating the designs is impossible.

**With the graph discovered** (`graph=pairs`, or a task that knows none): ours, as the paper's test
is for normal codes.
- Edges are the pairs that a test of two-way tables finds: see ddobench/parts/pairs.py.
- A table over a large clique has more cells than there are rows. Cliques of more than a number of
  variables are covered by their subsets of that size; the number is the largest (at least 2) for
  which all cells together are at most half of the rows.
- Unless `ridge` is given, it is chosen on a tenth of the rows held out, then all rows are fitted.
- The best 128 designs of the fitted sum are proposed (`+method.designs`), each once, found exactly
  by max-sum; where a table of max-sum would have more than 100,000 cells, they are where single
  changes of the starts lead. The record says which (`found_by`). The headline is then a mean over
  128 different designs, where climbers may propose one design 128 times.

Its row: python -m ddobench -m method=fgm task=quadratic seed=0-49
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.baselines.ridge import NormalEquations
from ddobench.baselines.table_sums import TableSum, cut_in_tables, fit_tables
from ddobench.contracts import Dataset, Insight, Method, Privilege, Proposal, Space
from ddobench.errors import UsageError, check_whole
from ddobench.exact.best_designs import largest_table
from ddobench.exact.max_sum import LARGEST_TABLE, Scope, Table, maximise
from ddobench.graphs import Graph
from ddobench.models.one_hot import OneHot, Values, count_cells, one_hot
from ddobench.parts.discovery import Discovered, GraphInputs
from ddobench.parts.pairs import Pairs
from ddobench.rng import Streams

EXACT, CLIMBED = "max-sum", "single changes"  # how designs were found


@dataclass(kw_only=True)
class DiscreteFGM(Method):
    """Fit one table per clique of the graph, then take the best designs of their sum."""

    ridge: float = 0.0
    graph: Pairs | None = None  # None: told by the task, discovered where it knows none
    designs: int = 128
    ridges: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    holdout: float = 0.1
    rows_per_cell: float = 2.0

    _found: Sequence[Discovered] = field(init=False, default=(), repr=False)
    _found_by: list[str] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"method.ridge must be 0 or more, got {self.ridge}")
        check_whole("method.designs", self.designs, 1)

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002 - in any space
        """Ask for the true graph, unless one is to be discovered."""
        return frozenset({"graph"}) if self.graph is None else frozenset()

    def declines(self, data: Dataset) -> str | None:
        """Decline what is not categorical."""
        return None if data.space.categorical else "these tables are for categorical designs only"

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Solve the least-squares problem of each seed."""
        assert data.space.sizes is not None
        sizes = data.space.sizes
        tables = [(x.numpy(), y.numpy()) for x, y in zip(data.x, data.y, strict=True)]
        told = data.privileged.graphs
        if told is not None:
            self._sums = [
                TableSum(fit_tables(x, y, graph.cliques, sizes, self.ridge), sizes)
                for (x, y), graph in zip(tables, told, strict=True)
            ]
            return
        inputs = GraphInputs(data.x, data.y, data.privileged, rng.child("graph"))
        self._found = (self.graph or Pairs()).discover(inputs)
        orders = rng.child("split").permutation(data.n).numpy()  # (S, N)
        fits = [
            self._fit_found(x, y, found.graph, sizes, order)
            for (x, y), found, order in zip(tables, self._found, orders, strict=True)
        ]
        self._sums, self._fits = [fit[0] for fit in fits], [fit[1] for fit in fits]

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the designs that maximise the fitted sum, for each seed."""
        best = [self._search(model, x.numpy()) for model, x in zip(self._sums, starts, strict=True)]
        self._found_by = [how for _, _, how in best]
        designs = torch.from_numpy(np.stack([designs for _, designs, _ in best]))
        yield Proposal(
            designs.to(starts.dtype), torch.from_numpy(np.stack([values for values, _, _ in best]))
        )

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the sum of the fitted tables at each design."""
        rows = [model(designs.numpy()) for model, designs in zip(self._sums, x, strict=True)]
        return torch.from_numpy(np.stack(rows))

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return the graph that was discovered between the variables; none if it was told."""
        return [
            Insight(codes=designs, reconstructed=designs, graph=found.graph)
            for designs, found in zip(x, self._found, strict=bool(self._found))
        ]

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return what was discovered, and how well it fits; nothing of a graph that was told."""
        searched = [{"found_by": how} for how in self._found_by]
        if not self._found:
            return searched if CLIMBED in self._found_by else []
        return [
            {**found.describe(), **fit, **how}
            for found, fit, how in zip(
                self._found, self._fits, searched or [{}] * len(self._fits), strict=True
            )
        ]

    def _search(self, model: TableSum, starts: Values) -> tuple[Values, Values, str]:
        """Return the values (K,) of the best designs, these (K, d), and how they were found."""
        if self._found:
            count = min(self.designs, len(starts), prod(model.sizes))
            values, designs, exact = model.find_best(count, starts)
            return values, designs.astype(float), EXACT if exact else CLIMBED
        if largest_table([table.scope for table in model.tables], model.sizes) <= LARGEST_TABLE:
            value, design = maximise(model.tables, model.sizes)  # (1,), (1, d)
            return value, design.astype(float), EXACT
        ends = model.climb(starts)
        best = ends[[model(ends).argmax()]]
        return model(best), best, CLIMBED

    def _fit_found(
        self, x: Values, y: Values, graph: Graph, sizes: tuple[int, ...], order: NDArray[np.int64]
    ) -> tuple[TableSum, dict[str, Any]]:
        """Fit tables over a discovered graph, and say how well they predict held-out rows."""
        scopes = cover(graph, sizes, len(y) / self.rows_per_cell)
        features = one_hot(x, scopes, sizes)  # (N, P)
        held = max(1, round(self.holdout * len(y)))
        shift = y.mean()
        errors = {}
        some = normal_equations(features.take(order[held:]), (y - shift)[order[held:]])
        others, truth = features.take(order[:held]), y[order[:held]]
        for ridge in self.ridges if self.ridge == 0 else (self.ridge,):
            missed = truth - shift - others.apply(some.solve(ridge).numpy())
            errors[ridge] = float(np.mean(missed**2) / max(truth.var(), 1e-12))
        ridge = min(errors, key=lambda one: errors[one])
        grown = ridge * len(y) / max(1, len(y) - held)
        weights = normal_equations(features, y - shift).solve(grown).numpy()
        tables = [*cut_in_tables(weights, scopes, sizes), Table((), np.array([shift]))]
        told = {
            "ridge": ridge,
            "held_out_r2": 1 - errors[ridge],
            "largest_clique": max(map(len, scopes)),
        }
        return TableSum(tables, sizes), told


def normal_equations(features: OneHot, y: Values) -> NormalEquations:  # (N, P), (N,)
    """Multiply out sparse features."""
    return NormalEquations(torch.from_numpy(features.gram()), torch.from_numpy(features.moment(y)))


def cover(graph: Graph, sizes: Sequence[int], most_cells: float) -> list[Scope]:
    """Return the cliques, cut to the largest size at which their tables have few cells together.

    Pairs are never cut.
    """
    for most in range(max(map(len, graph.cliques)), 1, -1):
        if sum(comb(len(clique), min(most, len(clique))) for clique in graph.cliques) > most_cells:
            continue
        scopes = _cut(graph, most)
        if sum(count_cells(scope, sizes) for scope in scopes) <= most_cells:
            return scopes
    return _cut(graph, 2)


def _cut(graph: Graph, most: int) -> list[Scope]:
    """Return the cliques, those of more than `most` variables as their subsets of that size."""
    return sorted(
        {part for clique in graph.cliques for part in combinations(clique, min(most, len(clique)))}
    )

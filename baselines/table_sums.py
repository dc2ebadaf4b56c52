"""Sums of tables over a few categories each: fitted, climbed, and maximised exactly where possible.

What `fgm` and `full_quadratic` have in common on categorical designs. Max-sum finds the best
design, or the best several, as long as the graph of the tables is sparse enough; where it is not,
every start climbs by single changes, which is exact only with luck.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddobench.exact.best_designs import find_best, largest_table
from ddobench.exact.max_sum import Scope, Table
from ddobench.models.least_squares import least_squares
from ddobench.models.one_hot import Values, configuration, count_cells, one_hot

Designs = NDArray[np.int64]  # (K, d)

MOST_SWEEPS = 100  # of a climb over all variables
MOST_CELLS = 100_000  # of a table of max-sum, when more than one design is asked for


@dataclass(frozen=True)
class TableSum:
    """The tables of one seed, (1, ...) each; a design is worth the sum of its entries."""

    tables: Sequence[Table]
    sizes: tuple[int, ...]

    def __call__(self, x: Values) -> Values:  # (K, d) -> (K,)
        """Return the value of designs."""
        values = np.zeros(len(x))
        for table in self.tables:
            cells = table.values[0].ravel()
            values = values + (cells[configuration(x, table.scope, self.sizes)] if table.scope
                               else cells)  # fmt: skip
        return values

    def find_best(self, count: int, starts: Values) -> tuple[Values, Designs, bool]:
        """Return the best `count` designs, their values first, and whether that is exact.

        If it is not, they are where starts (K, d) climb to, each once before any repeats.
        """
        if largest_table([table.scope for table in self.tables], self.sizes) <= MOST_CELLS:
            return *find_best(self.tables, self.sizes, count), True
        ends = self.climb(starts)
        values = self(ends)
        order = np.argsort(-values, kind="stable")
        first = np.zeros(len(ends), dtype=bool)
        first[np.unique(ends[order], axis=0, return_index=True)[1]] = True
        order = np.concatenate([order[first], order[~first]])[:count]
        return values[order], ends[order].astype(np.int64), False

    def climb(self, starts: Values) -> Values:  # (K, d) -> (K, d)
        """Set one variable after the other to its best level until none improves a design."""
        x = starts.copy()
        holding: list[list[Table]] = [[] for _ in self.sizes]
        for table in self.tables:
            for variable in table.scope:
                holding[variable].append(table)
        for _ in range(MOST_SWEEPS):
            before = x.copy()
            for variable, tables in enumerate(holding):
                gains = sum(
                    (_along(table, variable, x) for table in tables),
                    np.zeros((len(x), self.sizes[variable])),
                )
                best = gains.argmax(axis=1)
                rows = np.arange(len(x))
                now = x[:, variable].astype(np.int64)
                better = gains[rows, best] > gains[rows, now] + 1e-12
                x[:, variable] = np.where(better, best, now)
            if (x == before).all():
                break
        return x


def _along(table: Table, variable: int, x: Values) -> Values:  # (K, d) -> (K, size)
    """Return the entries of a table at designs with one variable at each of its levels."""
    axis = table.scope.index(variable)
    values = np.moveaxis(table.values[0], axis, -1)
    others = tuple(x[:, v].astype(np.int64) for v in table.scope if v != variable)
    entries: Values = values[others] if others else np.broadcast_to(values, (len(x), len(values)))
    return entries


def fit_tables(
    x: Values, y: Values, scopes: Sequence[Scope], sizes: tuple[int, ...], ridge: float
) -> list[Table]:
    """Return one table per scope; together they are the least-squares fit of y (N,).

    The features are dependent; without a ridge the solution of smallest norm is taken.
    """
    weights = least_squares(one_hot(x, scopes, sizes).dense(), y, ridge)
    return cut_in_tables(weights, scopes, sizes)


def cut_in_tables(weights: Values, scopes: Sequence[Scope], sizes: tuple[int, ...]) -> list[Table]:
    """Return the weights of one-hot features (cells of all scopes) as tables."""
    ends = np.cumsum([count_cells(scope, sizes) for scope in scopes])
    return [
        Table(scope, piece.reshape(1, *(sizes[v] for v in scope)))
        for scope, piece in zip(scopes, np.split(weights, ends[:-1]), strict=True)
    ]

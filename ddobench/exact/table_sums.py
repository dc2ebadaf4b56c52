"""Sums of tables over a few categories each: fitted, climbed, and maximised exactly if possible.

Methods on categorical designs (`fgm`, `full_quadratic`) fit such sums. Max-sum finds the best
design, or the best several, if the graph of the tables is sparse enough. Otherwise every start
climbs by changes of single variables, which need not reach the maximum.

The best several designs are found exactly by max-sum under constraints (Yanover and Weiss 2004).
The designs are partitioned into regions, each with a known best design. Max-marginals give the
second best design of a region, and a variable in which the two differ; there the region is split in
two. All regions whose second best design may be among the best are split at once, as one stack.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddobench.exact.max_sum import (
    Scope,
    Table,
    Values,
    elimination_order,
    max_marginals,
    maximise,
)
from ddobench.models.least_squares import configuration, count_cells, least_squares, one_hot

Designs = NDArray[np.int64]  # (K, d)

MOST_SWEEPS = 100  # of a climb over all variables
MOST_CELLS = 100_000  # of a table of max-sum, when more than one design is asked for
AT_ONCE = 2_000_000  # cells of the largest table of a stack

Design = tuple[int, ...]


@dataclass(frozen=True)
class TableSum:
    """The tables of one seed, (1, ...) each; the value of a design is the sum of its entries."""

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
        """Return values and designs of the best `count` designs, and whether these are exact.

        Otherwise they are where the starts (K, d) climb to, different ones first.
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
        """Set one variable after the other to its best level, until no change improves a design."""
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
    """Return the entries of a table at designs, for every level of one variable."""
    axis = table.scope.index(variable)
    values = np.moveaxis(table.values[0], axis, -1)
    others = tuple(x[:, v].astype(np.int64) for v in table.scope if v != variable)
    entries: Values = values[others] if others else np.broadcast_to(values, (len(x), len(values)))
    return entries


def fit_tables(
    x: Values, y: Values, scopes: Sequence[Scope], sizes: tuple[int, ...], ridge: float
) -> list[Table]:
    """Return one table per scope, whose sum is the least-squares fit of y (N,).

    The features are dependent; without a ridge the solution of smallest norm is taken.
    """
    weights = least_squares(one_hot(x, scopes, sizes).dense(), y, ridge)
    return split_into_tables(weights, scopes, sizes)


def split_into_tables(
    weights: Values, scopes: Sequence[Scope], sizes: tuple[int, ...]
) -> list[Table]:
    """Return the weights of one-hot features (cells of all scopes) as tables."""
    ends = np.cumsum([count_cells(scope, sizes) for scope in scopes])
    return [
        Table(scope, piece.reshape(1, *(sizes[v] for v in scope)))
        for scope, piece in zip(scopes, np.split(weights, ends[:-1]), strict=True)
    ]


@dataclass(frozen=True)
class _Region:
    """The designs that avoid the excluded levels of each variable."""

    excluded: tuple[NDArray[np.bool_], ...]  # for each variable, (size,)
    best: Design
    second: float  # the value of its second best design
    variable: int  # in which that differs
    level: int  # the level of the variable there

    def halves(self) -> tuple[tuple[NDArray[np.bool_], ...], tuple[NDArray[np.bool_], ...]]:
        """Return the exclusions of the two halves: the variable at `level`, and not at it."""
        own = self.excluded[self.variable]
        only = np.arange(len(own)) != self.level
        return self._exclude(own | only), self._exclude(own | ~only)

    def _exclude(self, levels: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], ...]:
        return (*self.excluded[: self.variable], levels, *self.excluded[self.variable + 1 :])


def largest_table(scopes: Sequence[Scope], sizes: Sequence[int]) -> int:
    """Return the number of cells of the largest table that max-sum needs."""
    neighbours: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for variable in scope:
            neighbours[variable] |= {*scope}
    most = 1
    for variable in elimination_order(scopes, sizes):
        near = neighbours[variable] | {variable}
        cells = 1
        for one in near:
            cells *= sizes[one]
        most = max(most, cells)
        for one in near - {variable}:
            neighbours[one] = (neighbours[one] | near) - {variable}
    return most


def find_best(
    tables: Sequence[Table], sizes: Sequence[int], count: int
) -> tuple[Values, NDArray[np.int64]]:
    """Return the largest values of the sum of one seed, decreasing, (K,), and their designs (K, d).

    K is `count`, or the number of designs if that is smaller.
    """
    search = _Search(tables, sizes)
    found: dict[Design, float] = {}
    regions = search.open([tuple(np.zeros(size, dtype=bool) for size in sizes)], found)
    while cut := _pick_promising(regions, found, count, search.rounding):
        regions = [one for one in regions if one.second < cut[-1].second]
        other, same = zip(*(one.halves() for one in cut), strict=True)
        regions += search.open(list(other), found)
        regions += search.reopen(list(same), [one.best for one in cut])
    order = sorted(found, key=lambda design: (-found[design], design))[:count]
    return np.array([found[design] for design in order]), np.array(order, dtype=np.int64)


def _pick_promising(
    regions: Sequence[_Region], found: Mapping[Design, float], count: int, rounding: float
) -> list[_Region]:
    """Return the regions whose second best may be among the `count` best, best first, with ties."""
    ranked = sorted(regions, key=lambda one: -one.second)
    known = sorted([*found.values(), *(one.second for one in ranked)], reverse=True)
    least = known[min(count, len(known)) - 1]
    if len(found) >= count and sorted(found.values())[-count] >= least - rounding:
        return [one for one in ranked if one.second > least + rounding]
    return [one for one in ranked if one.second >= least]


class _Search:
    """Max-sum over the same tables with different exclusions, many at once."""

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        self.tables, self.sizes = tables, sizes
        span = sum(float(np.ptp(table.values)) for table in tables)
        self.penalty = 1e3 * (span + 1.0)
        self.rounding = 1e-9 * (span + 1.0)
        self.floor = sum(float(table.values.min()) for table in tables) - span - 1.0
        self.stack = max(1, AT_ONCE // largest_table([t.scope for t in tables], sizes))

    def open(
        self, exclusions: list[tuple[NDArray[np.bool_], ...]], found: dict[Design, float]
    ) -> list[_Region]:
        """Find the best design of each region, add it to `found`, and find its second best."""
        best: list[Design] = []
        for some in self._stacks(exclusions):
            values, designs = maximise(some, self.sizes)
            for value, design in zip(values.tolist(), designs.tolist(), strict=True):
                found[tuple(design)] = value
                best.append(tuple(design))
        return self.reopen(exclusions, best)

    def reopen(
        self, exclusions: list[tuple[NDArray[np.bool_], ...]], best: list[Design]
    ) -> list[_Region]:
        """Find the second best design of regions; regions with a single design are left out."""
        regions, place = [], 0
        for some in self._stacks(exclusions):
            marginals = [values.copy() for values in max_marginals(some, self.sizes)]
            rows = len(marginals[0])
            own = np.array(best[place : place + rows])  # (B, d)
            for variable, values in enumerate(marginals):
                values[np.arange(rows), own[:, variable]] = -np.inf
            peaks = np.stack([values.max(axis=1) for values in marginals], axis=1)  # (B, d)
            for row, variable in enumerate(peaks.argmax(axis=1).tolist()):
                other = float(peaks[row, variable])
                if other > self.floor:
                    level = int(marginals[variable][row].argmax())
                    regions.append(
                        _Region(exclusions[place + row], best[place + row], other, variable, level)
                    )
            place += rows
        return regions

    def _stacks(self, exclusions: list[tuple[NDArray[np.bool_], ...]]) -> list[list[Table]]:
        """Return the tables with penalties for exclusions, as stacks of regions."""
        stacks = []
        for start in range(0, len(exclusions), self.stack):
            some = exclusions[start : start + self.stack]
            penalties = [
                Table((variable,), -self.penalty * np.stack(levels))
                for variable, levels in enumerate(zip(*some, strict=True))
            ]
            stacks.append([*penalties, *self.tables])
        return stacks

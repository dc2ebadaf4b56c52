"""The best several designs of a sum of tables, each once: exactly, by max-sum under bars.

The designs are parted into regions, each with its best design known. Max-marginals tell the best
other design of a region, and where the two differ: there the region is cut in two, each half with a
best design of its own (Yanover and Weiss 2004). All regions whose other design may be among the
best are cut at once, as one stack.
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

AT_ONCE = 2_000_000  # cells of the largest table of a stack

Design = tuple[int, ...]


@dataclass(frozen=True)
class _Region:
    """Some designs: those whose variables avoid what is barred."""

    barred: tuple[NDArray[np.bool_], ...]  # for each variable, (size,)
    best: Design
    other: float  # the value of its second best design
    variable: int  # where that differs
    level: int

    def halves(self) -> tuple[tuple[NDArray[np.bool_], ...], tuple[NDArray[np.bool_], ...]]:
        """Return what is barred where the variable has the other level, and where it has not."""
        own = self.barred[self.variable]
        only = np.arange(len(own)) != self.level
        return self._bar(own | only), self._bar(own | ~only)

    def _bar(self, levels: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], ...]:
        return (*self.barred[: self.variable], levels, *self.barred[self.variable + 1 :])


def largest_table(scopes: Sequence[Scope], sizes: Sequence[int]) -> int:
    """Return how many cells the largest table has that max-sum needs, without making it."""
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
    """Return the largest values of the sum of a single instance, falling, (K,), and where, (K, d).

    K is `count`, or less where there are fewer designs.
    """
    search = _Search(tables, sizes)
    found: dict[Design, float] = {}
    regions = search.open([tuple(np.zeros(size, dtype=bool) for size in sizes)], found)
    while cut := _pick_promising(regions, found, count, search.rounding):
        regions = [one for one in regions if one.other < cut[-1].other]
        other, same = zip(*(one.halves() for one in cut), strict=True)
        regions += search.open(list(other), found)
        regions += search.reopen(list(same), [one.best for one in cut])
    order = sorted(found, key=lambda design: (-found[design], design))[:count]
    return np.array([found[design] for design in order]), np.array(order, dtype=np.int64)


def _pick_promising(
    regions: Sequence[_Region], found: Mapping[Design, float], count: int, rounding: float
) -> list[_Region]:
    """Return the regions whose second best may be among the `count` best, the best of them first.

    Equal ones go together.
    """
    ranked = sorted(regions, key=lambda one: -one.other)
    known = sorted([*found.values(), *(one.other for one in ranked)], reverse=True)
    least = known[min(count, len(known)) - 1]
    if len(found) >= count and sorted(found.values())[-count] >= least - rounding:
        return [one for one in ranked if one.other > least + rounding]
    return [one for one in ranked if one.other >= least]


class _Search:
    """Max-sum over the same tables under different bars, many at once."""

    def __init__(self, tables: Sequence[Table], sizes: Sequence[int]) -> None:
        self.tables, self.sizes = tables, sizes
        span = sum(float(np.ptp(table.values)) for table in tables)
        self.penalty = 1e3 * (span + 1.0)
        self.rounding = 1e-9 * (span + 1.0)
        self.floor = sum(float(table.values.min()) for table in tables) - span - 1.0
        self.stack = max(1, AT_ONCE // largest_table([t.scope for t in tables], sizes))

    def open(
        self, bars: list[tuple[NDArray[np.bool_], ...]], found: dict[Design, float]
    ) -> list[_Region]:
        """Find the best design of each region, and note it in `found`; then its second best."""
        best: list[Design] = []
        for some in self._stacks(bars):
            values, designs = maximise(some, self.sizes)
            for value, design in zip(values.tolist(), designs.tolist(), strict=True):
                found[tuple(design)] = value
                best.append(tuple(design))
        return self.reopen(bars, best)

    def reopen(
        self, bars: list[tuple[NDArray[np.bool_], ...]], best: list[Design]
    ) -> list[_Region]:
        """Find the second best of regions; one with a single design is left out."""
        regions, place = [], 0
        for some in self._stacks(bars):
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
                        _Region(bars[place + row], best[place + row], other, variable, level)
                    )
            place += rows
        return regions

    def _stacks(self, bars: list[tuple[NDArray[np.bool_], ...]]) -> list[list[Table]]:
        """Return the tables with penalties for what is barred, as stacks of regions."""
        stacks = []
        for start in range(0, len(bars), self.stack):
            some = bars[start : start + self.stack]
            penalties = [
                Table((variable,), -self.penalty * np.stack(levels))
                for variable, levels in enumerate(zip(*some, strict=True))
            ]
            stacks.append([*penalties, *self.tables])
        return stacks

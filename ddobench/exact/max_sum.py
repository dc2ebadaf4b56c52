"""Exact maximisation of a sum of tables, each over a few finite variables (max-sum).

Variables are eliminated one at a time, always one with the fewest neighbours left; the largest
table has as many axes as the treewidth of the graph plus one. All seeds share the scopes and are
processed together: every table has a leading seed axis.
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Scope = tuple[int, ...]

LARGEST_TABLE = 50_000_000


@dataclass(frozen=True)
class Table:
    """A function of the variables in `scope`; `values` is (S, *sizes of the scope)."""

    scope: Scope
    values: Values


@dataclass(frozen=True)
class _Bucket:
    """The sum of all tables that depend on `variable` when it is eliminated.

    Its parent is the bucket of the variable of `rest` that is eliminated next.
    """

    variable: int
    rest: Scope
    values: Values  # (S, *sizes of rest, size of variable)


def maximise(tables: Sequence[Table], sizes: Sequence[int]) -> tuple[Values, NDArray[np.int64]]:
    """Return the largest value of the sum, (S,), and a maximiser, (S, number of variables)."""
    seeds = len(tables[0].values)
    choices: list[tuple[int, Scope, NDArray[np.int64]]] = []
    total = _constant(tables)
    for bucket in _eliminate(tables, sizes):
        choices.append((bucket.variable, bucket.rest, bucket.values.argmax(axis=-1)))
        if not bucket.rest:
            total += bucket.values.max(axis=-1)

    best = np.zeros((seeds, len(sizes)), dtype=np.int64)
    rows = np.arange(seeds)
    for variable, rest, choice in reversed(choices):
        best[:, variable] = choice[(rows, *(best[:, other] for other in rest))]
    return total, best


def max_marginals(tables: Sequence[Table], sizes: Sequence[int]) -> list[Values]:
    """Return, for each variable, the largest sum with it held at each of its values, (S, size).

    One pass up the buckets and one down: the message from a parent is the maximum over everything
    outside the branch of the bucket.
    """
    buckets = list(_eliminate(tables, sizes))
    turn = {bucket.variable: position for position, bucket in enumerate(buckets)}
    peaks = {b.variable: b.values.max(axis=-1) for b in buckets if not b.rest}  # (S,) each
    total = sum(peaks.values(), _constant(tables))
    beliefs: dict[int, Table] = {}
    for bucket in reversed(buckets):
        if bucket.rest:
            parent = beliefs[min(bucket.rest, key=turn.__getitem__)]
            outside = _reduce(parent, bucket.rest) - bucket.values.max(axis=-1)
        else:
            outside = total - peaks[bucket.variable]
        belief = bucket.values + outside[..., None]
        beliefs[bucket.variable] = Table((*bucket.rest, bucket.variable), belief)
    return [_reduce(beliefs[variable], (variable,)) for variable in range(len(sizes))]


def _eliminate(tables: Sequence[Table], sizes: Sequence[int]) -> Iterator[_Bucket]:
    """Yield the buckets in the order of elimination; a bucket without `rest` is a root."""
    seeds = len(tables[0].values)
    holding: list[set[int]] = [set() for _ in sizes]
    alive = dict(enumerate(tables))
    for key, table in alive.items():
        for variable in table.scope:
            holding[variable].add(key)

    for variable in elimination_order([table.scope for table in tables], sizes):
        keys = sorted(holding[variable])
        joined = [alive.pop(key) for key in keys]
        rest = tuple(sorted({v for table in joined for v in table.scope} - {variable}))
        summed = _add((*rest, variable), joined, sizes, seeds)
        if rest:
            key = len(tables) + variable
            alive[key] = Table(rest, summed.max(axis=-1))
            for other in rest:
                holding[other].difference_update(keys)
                holding[other].add(key)
        yield _Bucket(variable, rest, summed)


def _constant(tables: Sequence[Table]) -> Values:
    """Return the sum of the tables that depend on no variable, (S,)."""
    free = (table.values for table in tables if not table.scope)
    return sum(free, np.zeros(len(tables[0].values)))


def _reduce(table: Table, scope: Scope) -> Values:
    """Maximise over everything but `scope`, a part of the table's scope, in its order."""
    gone = tuple(axis + 1 for axis, v in enumerate(table.scope) if v not in scope)
    left = [variable for variable in table.scope if variable in scope]
    values = table.values.max(axis=gone) if gone else table.values
    return values.transpose(0, *(left.index(variable) + 1 for variable in scope))


def elimination_order(scopes: Sequence[Scope], sizes: Sequence[int]) -> list[int]:
    """Return a min-degree order; ties are broken by the size of the table."""
    neighbours: list[set[int]] = [set() for _ in sizes]
    for scope in scopes:
        for a, b in combinations(scope, 2):
            neighbours[a].add(b)
            neighbours[b].add(a)

    def cost(variable: int) -> tuple[int, int, int]:
        near = neighbours[variable]
        return len(near), sizes[variable] * prod(sizes[other] for other in near), variable

    queue = [cost(variable) for variable in range(len(sizes))]
    heapq.heapify(queue)
    order: list[int] = []
    done = [False] * len(sizes)
    while queue:
        entry = heapq.heappop(queue)
        variable = entry[-1]
        if done[variable] or entry != cost(variable):
            continue
        done[variable] = True
        order.append(variable)
        near = neighbours[variable]
        for a in near:
            neighbours[a] |= near
            neighbours[a] -= {a, variable}
            heapq.heappush(queue, cost(a))
    return order


def _add(scope: Scope, tables: Sequence[Table], sizes: Sequence[int], seeds: int) -> Values:
    """Return the sum of `tables` as one table over `scope`."""
    shape = [sizes[variable] for variable in scope]
    if seeds * prod(shape) > LARGEST_TABLE:
        raise ValueError(
            f"max-sum needs a table over {len(scope)} variables with {prod(shape):,} entries for "
            f"each of {seeds} seeds; the graph is too dense or the variables too finely divided"
        )
    total = np.zeros((seeds, *shape))
    for table in tables:
        order = sorted(range(len(table.scope)), key=lambda axis: scope.index(table.scope[axis]))
        values = table.values.transpose(0, *(axis + 1 for axis in order))
        mine = {table.scope[axis] for axis in order}
        total += values.reshape(
            len(values), *(size if v in mine else 1 for v, size in zip(scope, shape, strict=True))
        )
    return total

"""Exact maximisation of a sum of tables, each over a few finite variables (max-sum).

Variables are eliminated one at a time, always one with the fewest neighbours left; the largest
table that arises has the treewidth of the graph plus one axes. All instances share the scopes and
go through together: every table carries the seed axis in front.
"""

import heapq
from collections.abc import Sequence
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


def maximise(tables: Sequence[Table], sizes: Sequence[int]) -> tuple[Values, NDArray[np.int64]]:
    """Return the largest value of the sum, (S,), and a maximiser, (S, number of variables)."""
    seeds = len(tables[0].values)
    choices: list[tuple[int, Scope, NDArray[np.int64]]] = []
    total = np.zeros(seeds)
    holding: list[set[int]] = [set() for _ in sizes]
    alive = dict(enumerate(tables))
    for key, table in alive.items():
        for variable in table.scope:
            holding[variable].add(key)

    for variable in elimination_order([table.scope for table in tables], len(sizes)):
        keys = sorted(holding[variable])
        joined = [alive.pop(key) for key in keys]
        rest = tuple(sorted({v for table in joined for v in table.scope} - {variable}))
        summed = _add((*rest, variable), joined, sizes, seeds)
        choices.append((variable, rest, summed.argmax(axis=-1)))
        message = Table(rest, summed.max(axis=-1))
        if not rest:
            total += message.values
            continue
        key = len(tables) + variable
        alive[key] = message
        for other in rest:
            holding[other].difference_update(keys)
            holding[other].add(key)

    best = np.zeros((seeds, len(sizes)), dtype=np.int64)
    rows = np.arange(seeds)
    for variable, rest, choice in reversed(choices):
        best[:, variable] = choice[(rows, *(best[:, other] for other in rest))]
    return total, best


def elimination_order(scopes: Sequence[Scope], variables: int) -> list[int]:
    """Return a min-degree order: always the variable with the fewest neighbours left."""
    neighbours: list[set[int]] = [set() for _ in range(variables)]
    for scope in scopes:
        for a, b in combinations(scope, 2):
            neighbours[a].add(b)
            neighbours[b].add(a)
    queue = [(len(near), variable) for variable, near in enumerate(neighbours)]
    heapq.heapify(queue)
    order: list[int] = []
    done = [False] * variables
    while queue:
        degree, variable = heapq.heappop(queue)
        if done[variable] or degree != len(neighbours[variable]):
            continue
        done[variable] = True
        order.append(variable)
        near = neighbours[variable]
        for a in near:
            neighbours[a] |= near
            neighbours[a] -= {a, variable}
            heapq.heappush(queue, (len(neighbours[a]), a))
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

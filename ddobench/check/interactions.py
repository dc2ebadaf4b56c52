"""Does a graph tell the truth? Variables that no edge joins must not interact.

Without an interaction, what changing one variable does to the value does not depend on the other:
f(a', b') - f(a', b) - f(a, b') + f(a, b) = 0. New values of a variable are those of other rows, so
that the same holds for numbers and for categories.
"""

from itertools import combinations

import torch
from torch import Tensor

from ddobench.contracts import Problem

_ROWS = 16
_PAIRS = 60
_TOLERANCE = 1e-6  # of the spread of visible values


def find_missing_edge(problem: Problem) -> str | None:
    """Return a pair that interacts although the graph of its seed does not join it."""
    if problem.graphs is None:
        return None
    known = problem.data.x if problem.hidden is None else problem.hidden  # (S, N, d)
    base, others = known[:, :_ROWS], known[:, _ROWS : 2 * _ROWS]
    rows = min(base.shape[1], others.shape[1])
    base, others = base[:, :rows], others[:, :rows]
    spread = problem.data.y.std(dim=1)  # (S,)
    edges = [set(graph.edges) for graph in problem.graphs]
    pairs = [
        pair
        for pair in combinations(range(known.shape[2]), 2)
        if any(pair not in own for own in edges)
    ]
    for a, b in pairs[:: max(1, len(pairs) // _PAIRS)]:
        mixed = _mixed_difference(problem, base, others, a, b).abs()  # (S, rows)
        for seed, own in enumerate(edges):
            worst = float(mixed[seed].nan_to_num(0).max())
            if (a, b) not in own and worst > _TOLERANCE * (1 + float(spread[seed])):
                return (
                    f"variables {a} and {b} of place {seed} interact ({worst:.3g}), "
                    "but no edge joins them"
                )
    return None


def _mixed_difference(problem: Problem, base: Tensor, others: Tensor, a: int, b: int) -> Tensor:
    """Return by how much the effect of one variable depends on the other, (S, rows)."""
    total = torch.zeros(base.shape[:2], dtype=torch.float64)
    for changed, sign in (((a, b), 1), ((a,), -1), ((b,), -1), ((), 1)):
        x = base.clone()
        x[..., list(changed)] = others[..., list(changed)]
        total += sign * problem.evaluate(problem.observe(x))
    return total

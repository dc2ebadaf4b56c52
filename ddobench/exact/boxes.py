"""The box that contains the maximum of a sum of networks, and bounds of its terms on cells.

The box: setting a variable x_i to 0 multiplies the bump of each of its cliques by
exp(x_i^2 / 2 SPREAD) and the logistic factor by at least exp(-A_C), with A_C = |v_C|_1 the largest
output of the network. So at the maximum x_i^2 <= 2 SPREAD A_C for one of its cliques.

The curvature: let h = w s(a) exp(-|x|^2 / 2 SPREAD) be a term and l its logarithm. Then
h'' = h (l'' + l' l'^T) >= h l'', and for a direction u

    -u' l'' u = |u|^2 / SPREAD + s(a) s(-a) (a'.u)^2 - s(-a) u' a'' u.

On a cell with middle g and half widths e, the argument of a unit moves by at most t_j = |W_j|.e,
and tanh has derivatives of at most 1, BEND and TWIST, so everywhere in the cell

    |a'.u|    <= reach = |a'(g)|.e + sum of |v_j| BEND t_j^2,  which also bounds |a - a(g)|,
    -u' a'' u <= bend  = largest -u' a''(g) u + sum of |v_j| TWIST t_j^3.
"""

from itertools import combinations_with_replacement

import numpy as np
import torch

from ddobench.exact.bounding import Cells, Landscape
from ddobench.exact.max_sum import Table, Values
from ddobench.exact.terms import SPREAD, NetworkSum

BEND = 4.0 / 27.0**0.5  # the largest second derivative of tanh
TWIST = 2.0  # the largest third
ROWS = 20_000  # cells bounded at a time, to fit into the cache


class Box(Landscape):
    """A sum of networks, searched in all of its variables."""

    coarsest = 0.3
    cuts = 2  # more would make tables too large, with an axis for every variable of a clique

    def __init__(self, f: NetworkSum) -> None:
        self.f = f
        self.weights = f.weights.numpy()
        reach = np.zeros(f.d)  # (d,)
        for clique, network in zip(f.cliques, f.networks, strict=True):
            output = float(network.outer.abs().sum())
            own = list(clique)
            reach[own] = np.maximum(reach[own], (2.0 * SPREAD * output) ** 0.5)
        self.intervals = [(-far, far) for far in reach.tolist()]
        # The networks stacked for the ascent; smaller cliques are padded.
        size, units = max(map(len, f.cliques)), len(f.networks[0].shift)
        self.members = np.zeros((len(f.cliques), size), dtype=np.int64)
        self.real = np.zeros(self.members.shape, dtype=bool)
        self.inner = np.zeros((len(f.cliques), units, size))
        self.shift = np.stack([network.shift.numpy() for network in f.networks])  # (C, units)
        self.outer = np.stack([network.outer.numpy() for network in f.networks])  # (C, units)
        for c, (clique, network) in enumerate(zip(f.cliques, f.networks, strict=True)):
            self.members[c, : len(clique)] = clique
            self.real[c, : len(clique)] = True
            self.inner[c, :, : len(clique)] = network.inner.numpy()

    def lift(self, z: Values) -> Values:
        """Return the point x (d,), which equals the position."""
        return z

    def value(self, z: Values) -> float:
        """Return f at the position z (d,)."""
        return float(self.f(torch.from_numpy(z)[None])[0])

    def bounds(self, cells: list[Cells]) -> list[Table]:
        """Return the terms of the upper bound, one table per clique, with a seed axis of one."""
        return [
            self._tabulate(c, [cells[v] for v in self.f.cliques[c]])
            for c in range(len(self.weights))
        ]

    def _tabulate(self, clique: int, cells: list[Cells]) -> Table:
        first, *others = (c.middles for c in cells)
        half = np.array([c.half for c in cells])  # (size,)
        rows = max(1, ROWS // int(np.prod([len(m) for m in others])))
        blocks = [
            self._bound(clique, [first[start : start + rows], *others], half)
            for start in range(0, len(first), rows)
        ]
        values = self.weights[clique] * np.concatenate(blocks)
        return Table(self.f.cliques[clique], values[None])

    def _bound(self, clique: int, middles: list[Values], half: Values) -> Values:
        """Return a bound of a term of weight 1 on each cell of a grid."""
        outer = self.outer[clique]  # (units,)
        inner = self.inner[clique, :, : len(half)]  # (units, size)
        grow = np.exp(2.0 * self.shift[clique])  # of twice the argument, (*cells, units)
        square: Values = np.zeros(())  # (*cells)
        near = square
        for variable, middle in enumerate(middles):
            grow = grow[..., None, :] * np.exp(2.0 * middle[:, None] * inner[:, variable])
            square = square[..., None] + middle**2
            near = near[..., None] + np.maximum(np.abs(middle) - half[variable], 0.0) ** 2
        unit = 1.0 - 2.0 / (1.0 + grow)  # tanh
        first = 1.0 - unit**2  # its derivatives
        second = -2.0 * unit * first

        move = np.abs(inner) @ half  # (units,)
        most = BEND * float(np.abs(outer) @ move**2)
        output = unit @ outer
        reach = np.abs(first @ (outer[:, None] * inner)) @ half + most
        bend = np.full(square.shape, TWIST * float(np.abs(outer) @ move**3))
        for i, j in combinations_with_replacement(range(len(half)), 2):
            entry = second @ (-outer * inner[:, i] * inner[:, j]) * (half[i] * half[j])
            bend += np.maximum(entry, 0.0) if i == j else 2.0 * np.abs(entry)
        bend = np.minimum(bend, most)

        from scipy.special import expit  # slow to import, and a plan needs none

        high, low = expit(output + reach), expit(output - reach)
        steepest = np.clip(output, -reach, reach)
        steepest = expit(output - steepest) * expit(steepest - output)
        curved = float(half @ half) / SPREAD + steepest * reach**2 + (1.0 - low) * bend
        bump, nearest = np.exp(-square / (2.0 * SPREAD)), np.exp(-near / (2.0 * SPREAD))
        bound: Values = bump * expit(output) + nearest * high * curved / 2.0
        return bound

    def slack(self, z: Values) -> Values:
        """Return the same for every axis: all are split at once."""
        return np.ones(len(z))

    def climb(self, z: Values) -> Values:
        """Return the local maximiser reached from the position z (d,) by L-BFGS."""
        from scipy.optimize import minimize  # slow to import, and a plan needs none

        found = minimize(
            self._fall, z, jac=True, method="L-BFGS-B",
            options={"ftol": 0.0, "gtol": 1e-13, "maxiter": 1000},
        )  # fmt: skip
        return np.asarray(found.x, dtype=np.float64)

    def _fall(self, z: Values) -> tuple[float, Values]:
        """Return -f and its gradient (d,) at z (d,)."""
        own = np.where(self.real, z[self.members], 0.0)  # (C, size)
        units = np.tanh(np.einsum("cus,cs->cu", self.inner, own) + self.shift)
        from scipy.special import expit  # slow, as above

        factor = expit((units * self.outer).sum(axis=1))  # (C,)
        terms = self.weights * factor * np.exp(-(own**2).sum(axis=1) / (2.0 * SPREAD))
        pull = np.einsum("cu,cus->cs", self.outer * (1.0 - units**2), self.inner)
        slope = terms[:, None] * ((1.0 - factor)[:, None] * pull - own / SPREAD)
        total = np.zeros(len(z))
        np.add.at(total, self.members[self.real], slope[self.real])
        return -float(terms.sum()), -total

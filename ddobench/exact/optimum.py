"""The global maximum of a sum of Gaussian bumps, with a proof that nothing is higher.

Variables that belong to the same k cliques form a group. Only distances to its k centres matter,
so the maximiser lies in their convex hull: a group is searched along at most k - 1 axes, and a
variable of a single clique sits at its centre. Along each axis the hull is an interval, which is
cut into cells. Let g be the point of middles of the cells that hold the maximiser z*. The gradient
at z* is zero and the curvature of a bump w exp(-r^2) in a direction u is at least
-2 w exp(-r^2) |u|^2, so

    f(z*) <= sum over C of  w_C exp(-|g_C - mu_C|^2) + w_C exp(-near_C^2) |u_C|^2,

with |u_C| the half diagonal of the cell and near_C its distance to the centre. Max-sum over tables
of these terms bounds f(z*) from above, a local ascent from their maximiser from below. Cells whose
max-marginal is less than the lower bound are dropped, the others cut in three along the axes that
keep the bounds apart, and so on until they meet.
"""

from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from numpy.typing import NDArray

from ddobench.exact.bumps import RBFSum
from ddobench.exact.max_sum import Table, Values, max_marginals

TOLERANCE = 1e-9  # largest gap between the bounds, relative to the value
COARSEST = 0.25  # width of the first cells
CUTS = 3  # pieces a cell is cut into; odd, so that its middle stays a middle
ROUNDS = 40
STEPS = 2000  # of a local ascent


@dataclass(frozen=True)
class Peak:
    """A maximiser x (d,), its value, and how much higher any other point could possibly be."""

    x: Values
    value: float
    gap: float


@dataclass(frozen=True)
class _Cells:
    """The cells of one axis still in the race."""

    middles: Values  # (cells,)
    half: float  # half of their width

    @classmethod
    def over(cls, low: float, high: float) -> "_Cells":
        """Cut an interval into cells no wider than the coarsest."""
        count = max(1, int(np.ceil((high - low) / COARSEST)))
        half = (high - low) / (2 * count)
        return cls(low + half * np.arange(1.0, 2.0 * count, 2.0), half)

    def keep(self, which: NDArray[np.bool_]) -> "_Cells":
        """Drop the other cells."""
        return _Cells(self.middles[which], self.half)

    def cut(self) -> "_Cells":
        """Cut every cell into equal pieces."""
        half = self.half / CUTS
        offsets = 2.0 * half * (np.arange(CUTS) - CUTS // 2)
        return _Cells((self.middles[:, None] + offsets).ravel(), half)


def find_peak(f: RBFSum) -> Peak:
    """Return the global maximum of `f`."""
    ridge = _Ridge(f)
    best = np.array([(low + high) / 2 for low, high in ridge.intervals])
    value = ridge.value(best)
    if not ridge.intervals:
        return Peak(ridge.lift(best), value, 0.0)

    cells = [_Cells.over(low, high) for low, high in ridge.intervals]
    bound = np.inf
    for _ in range(ROUNDS):
        marginals = max_marginals(ridge.bounds(cells), [len(c.middles) for c in cells])
        bound = min(bound, float(marginals[0].max()))
        start = np.array([c.middles[m.argmax()] for c, m in zip(cells, marginals, strict=True)])
        z = ridge.climb(start)
        if ridge.value(z) > value:
            best, value = z, ridge.value(z)
        if bound - value <= TOLERANCE * value:
            break
        floor = value * (1.0 - 1e-12)  # rounding must not drop the cell of the maximiser
        cells = [c.keep(m[0] >= floor) for c, m in zip(cells, marginals, strict=True)]
        slack = ridge.slack(start) * np.array([c.half**2 for c in cells])  # (axes,)
        rough = slack > slack.max() / CUTS**2
        cells = [c.cut() if r else c for c, r in zip(cells, rough, strict=True)]
    else:
        raise ArithmeticError(f"the bounds {value} and {bound} did not meet in {ROUNDS} rounds")
    return Peak(ridge.lift(best), value, max(bound - value, 0.0))


class _Ridge:
    """The function along the axes that have to be searched, everything else at its best."""

    def __init__(self, f: RBFSum) -> None:
        self.f = f
        self.weights = f.weights.numpy()
        self.intervals: list[tuple[float, float]] = []  # one per axis
        self.scopes: list[tuple[int, ...]] = [() for _ in f.cliques]  # the axes of each clique
        self.centres: list[list[float]] = [[] for _ in f.cliques]  # its centre along them
        axes: list[Values] = []  # (d,) each
        self.origin = np.zeros(f.d)
        for owners, variables in _groups(f).items():
            middles = np.array(
                [[float(f.centres[c][f.cliques[c].index(v)]) for v in variables] for c in owners]
            )  # (k, group)
            self.origin[variables] = middles[0]
            spread = middles - middles[0]
            count = min(len(owners) - 1, len(variables))
            for direction in np.linalg.svd(spread)[2][:count]:  # (group,)
                along = spread @ direction  # (k,)
                for clique, centre in zip(owners, along, strict=True):
                    self.scopes[clique] += (len(axes),)
                    self.centres[clique].append(float(centre))
                self.intervals.append((float(along.min()), float(along.max())))
                axis = np.zeros(f.d)
                axis[variables] = direction
                axes.append(axis)
        self.axes = np.array(axes).reshape(-1, f.d)
        # The same, flat over all (clique, axis) pairs, for the ascent.
        self.members = np.array(list(chain(*self.scopes)), dtype=np.int64)
        self.middles = np.array(list(chain(*self.centres)))
        self.owners = np.repeat(np.arange(len(self.scopes)), [len(s) for s in self.scopes])

    def lift(self, z: Values) -> Values:
        """Return the point x (d,) at the position z (axes,)."""
        return self.origin + z @ self.axes

    def value(self, z: Values) -> float:
        """Return f at the position z (axes,)."""
        return float(self.f(torch.from_numpy(self.lift(z))[None])[0])

    def bounds(self, cells: list[_Cells]) -> list[Table]:
        """Return the terms of the upper bound, one table per clique, with a seed axis of one."""
        return [self._bound(clique, cells) for clique in range(len(self.scopes))]

    def _bound(self, clique: int, cells: list[_Cells]) -> Table:
        middle: Values = np.array(self.weights[clique])
        near = middle
        slack = 0.0
        for axis, centre in zip(self.scopes[clique], self.centres[clique], strict=True):
            distance = np.abs(cells[axis].middles - centre)
            nearest = np.maximum(distance - cells[axis].half, 0.0)
            middle = middle[..., None] * np.exp(-(distance**2))
            near = near[..., None] * np.exp(-(nearest**2))
            slack += cells[axis].half ** 2
        return Table(self.scopes[clique], (middle + slack * near)[None])

    def slack(self, z: Values) -> Values:
        """Return what each axis adds to the bound at z per squared half width, (axes,)."""
        bumps = self._bumps(z)[self.owners]  # (pairs,)
        return np.asarray(np.bincount(self.members, bumps, minlength=len(z)), dtype=np.float64)

    def climb(self, z: Values) -> Values:
        """Return the local maximiser reached from the position z (axes,).

        exp is convex, so a sum of bumps lies above one of parabolas that touch it at z; stepping to
        their joint maximum, the mean of the centres weighted by the bumps, never leads downhill.
        """
        height = 0.0
        for _ in range(STEPS):
            bumps = self._bumps(z)
            if bumps.sum() <= height:
                break
            height = bumps.sum()
            pulls = bumps[self.owners]  # (pairs,)
            total = np.bincount(self.members, pulls, minlength=len(z))
            mean = np.bincount(self.members, pulls * self.middles, minlength=len(z))
            z = np.divide(mean, total, out=z.copy(), where=total > 0.0)
        return z

    def _bumps(self, z: Values) -> Values:
        """Return the term of each clique at the position z (axes,), (C,)."""
        squares = (z[self.members] - self.middles) ** 2  # (pairs,)
        total = np.bincount(self.owners, squares, minlength=len(self.weights))
        return np.asarray(self.weights * np.exp(-total), dtype=np.float64)


def _groups(f: RBFSum) -> dict[tuple[int, ...], list[int]]:
    """Return the variables that belong to the same cliques, by these cliques."""
    owners: list[list[int]] = [[] for _ in range(f.d)]
    for number, clique in enumerate(f.cliques):
        for variable in clique:
            owners[variable].append(number)
    groups: dict[tuple[int, ...], list[int]] = {}
    for variable, cliques in enumerate(owners):
        if cliques:
            groups.setdefault(tuple(cliques), []).append(variable)
    return groups

"""The axes along which a sum of radial bumps has to be searched, and bounds along them.

Variables that belong to the same k cliques form a group. Only distances to its k centres matter,
so the maximiser is in their convex hull: a group is searched along at most k - 1 axes, and a
variable of a single clique is at its centre. Along each axis the hull is an interval. The height
p of a bump decreases with the squared distance r^2 and is convex in it, so its curvature in a
direction u is at least 2 w p'(r^2) |u|^2, and

    w_C p(|g_C - mu_C|^2) - w_C p'(near_C^2) |u_C|^2

is its term of the upper bound, with g_C the middle of a cell, |u_C| its half diagonal and near_C
its distance to the centre.
"""

from itertools import chain

import numpy as np
import torch

from ddobench.exact.bounding import Cells, Landscape
from ddobench.exact.max_sum import Table, Values
from ddobench.exact.terms import Radial, RBFSum

STEPS = 2000  # of a local ascent


class Ridge(Landscape):
    """A sum of radial bumps, with every variable of a single clique at its centre."""

    coarsest = 0.25
    cuts = 3  # odd, so that the middle of a cell stays a middle

    def __init__(self, f: RBFSum, form: Radial) -> None:
        self.f = f
        self.form = form
        self.weights = f.weights.numpy()
        self.intervals = []
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

    def bounds(self, cells: list[Cells]) -> list[Table]:
        """Return the terms of the upper bound, one table per clique, with a seed axis of one."""
        return [self._bound(clique, cells) for clique in range(len(self.scopes))]

    def _bound(self, clique: int, cells: list[Cells]) -> Table:
        middle: Values = np.array(0.0)  # squared distances
        near = middle
        half = 0.0  # squared half diagonal
        for axis, centre in zip(self.scopes[clique], self.centres[clique], strict=True):
            distance = np.abs(cells[axis].middles - centre)
            nearest = np.maximum(distance - cells[axis].half, 0.0)
            middle = middle[..., None] + distance**2
            near = near[..., None] + nearest**2
            half += cells[axis].half ** 2
        bound = self.form.height(middle) + half * self.form.slope(near)
        return Table(self.scopes[clique], (self.weights[clique] * bound)[None])

    def slack(self, z: Values) -> Values:
        """Return what each axis adds to the bound at z per squared half width, (axes,)."""
        slopes = (self.weights * self.form.slope(self._squares(z)))[self.owners]  # (pairs,)
        return np.asarray(np.bincount(self.members, slopes, minlength=len(z)), dtype=np.float64)

    def climb(self, z: Values) -> Values:
        """Return the local maximiser reached from the position z (axes,).

        A height is convex in the squared distance, so the sum of bumps is at least the sum of
        parabolas that touch it at z. The maximum of these, the mean of the centres weighted by the
        slopes, is therefore never lower.
        """
        height = 0.0
        for _ in range(STEPS):
            squares = self._squares(z)  # (C,)
            now = float((self.weights * self.form.height(squares)).sum())
            if now <= height:
                break
            height = now
            pulls = (self.weights * self.form.slope(squares))[self.owners]  # (pairs,)
            total = np.bincount(self.members, pulls, minlength=len(z))
            mean = np.bincount(self.members, pulls * self.middles, minlength=len(z))
            z = np.divide(mean, total, out=z.copy(), where=total > 0.0)
        return z

    def _squares(self, z: Values) -> Values:
        """Return the squared distance of each clique to its centre along the axes, (C,)."""
        squares = (z[self.members] - self.middles) ** 2  # (pairs,)
        total = np.bincount(self.owners, squares, minlength=len(self.weights))
        return np.asarray(total, dtype=np.float64)


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

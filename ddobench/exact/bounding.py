"""Branch and bound over max-sum tables: a global maximum with a certificate.

Every axis is an interval that contains the maximiser, and is split into cells. Let g be the middle
of the cells that contain the maximiser z*. The gradient at z* is zero, so

    f(z*) <= sum over C of  h_C(g_C) + max over u in the cell of -u' h_C''(y) u / 2,

with y somewhere in the cell. A landscape bounds these terms, in a table for each clique. Max-sum
over the tables bounds f(z*) from above, a local ascent from their maximiser from below. Cells whose
max-marginal is below the lower bound are dropped, the others are split along the axes with the
largest slack, until the bounds meet.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ddobench.exact.max_sum import Table, Values, max_marginals

TOLERANCE = 1e-9  # largest gap between the bounds, relative to the value
ROUNDS = 40


@dataclass(frozen=True)
class Peak:
    """A maximiser x (d,), its value, and a bound of how much higher any other point can be."""

    x: Values
    value: float
    gap: float


@dataclass(frozen=True)
class Cells:
    """The remaining cells of one axis."""

    middles: Values  # (cells,)
    half: float  # half of their width

    @classmethod
    def over(cls, low: float, high: float, width: float) -> "Cells":
        """Split an interval into cells of at most the given width."""
        count = max(1, int(np.ceil((high - low) / width)))
        half = (high - low) / (2 * count)
        return cls(low + half * np.arange(1.0, 2.0 * count, 2.0), half)

    def keep(self, which: NDArray[np.bool_]) -> "Cells":
        """Drop the other cells."""
        return Cells(self.middles[which], self.half)

    def cut(self, pieces: int) -> "Cells":
        """Split every cell into equal pieces."""
        half = self.half / pieces
        offsets = half * (2.0 * np.arange(pieces) - (pieces - 1))
        return Cells((self.middles[:, None] + offsets).ravel(), half)


class Landscape(ABC):
    """A function of the axes that have to be searched, maximised over everything else."""

    coarsest: float  # width of the first cells
    cuts: int  # pieces that a cell is split into
    intervals: list[tuple[float, float]]  # one per axis

    @abstractmethod
    def lift(self, z: Values) -> Values:
        """Return the point x (d,) at the position z (axes,)."""

    @abstractmethod
    def value(self, z: Values) -> float:
        """Return the function at the position z (axes,)."""

    @abstractmethod
    def bounds(self, cells: list[Cells]) -> list[Table]:
        """Return the terms of the upper bound, one table per clique, with a seed axis of one."""

    @abstractmethod
    def slack(self, z: Values) -> Values:
        """Return what each axis adds to the bound at z per squared half width, (axes,)."""

    @abstractmethod
    def climb(self, z: Values) -> Values:
        """Return the local maximiser reached from the position z (axes,)."""


def maximise_landscape(land: Landscape) -> Peak:
    """Return the global maximum."""
    best = np.array([(low + high) / 2 for low, high in land.intervals])
    value = land.value(best)
    if not land.intervals:
        return Peak(land.lift(best), value, 0.0)

    cells = [Cells.over(low, high, land.coarsest) for low, high in land.intervals]
    bound = np.inf
    for _ in range(ROUNDS):
        marginals = max_marginals(land.bounds(cells), [len(c.middles) for c in cells])
        bound = min(bound, float(marginals[0].max()))
        start = np.array([c.middles[m.argmax()] for c, m in zip(cells, marginals, strict=True)])
        z = land.climb(start)
        if land.value(z) > value:
            best, value = z, land.value(z)
        if bound - value <= TOLERANCE * value:
            break
        floor = value * (1.0 - 1e-12)  # rounding must not drop the cell of the maximiser
        cells = [c.keep(m[0] >= floor) for c, m in zip(cells, marginals, strict=True)]
        slack = land.slack(start) * np.array([c.half**2 for c in cells])  # (axes,)
        rough = slack > slack.max() / land.cuts**2
        cells = [c.cut(land.cuts) if r else c for c, r in zip(cells, rough, strict=True)]
    else:
        raise ArithmeticError(f"the bounds {value} and {bound} did not meet in {ROUNDS} rounds")
    return Peak(land.lift(best), value, max(bound - value, 0.0))

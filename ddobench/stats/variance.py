"""Analysis of variance of a full factorial design: how much of the spread each factor explains.

Every combination of levels has one value for each seed. The sum of squares around the grand mean is
then the sum of one part for each factor, each interaction of factors, the seeds, which are blocks,
and the interactions of seeds and factors.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Effect:
    """What a set of axes explains together beyond its subsets."""

    axes: tuple[int, ...]
    squares: float  # sum of squares
    freedom: int  # degrees of freedom


def decompose(values: ArrayLike) -> list[Effect]:
    """Return the effect of every non-empty set of axes, single axes first; squares add up."""
    cells = np.asarray(values, dtype=np.float64)
    if not cells.ndim or not cells.size or not np.isfinite(cells).all():
        raise ValueError("every cell must have a finite value, and there must be at least one cell")
    axes = range(cells.ndim)
    sets = [chosen for size in axes for chosen in combinations(axes, size + 1)]
    return [_effect(cells, chosen) for chosen in sets]


def _effect(cells: NDArray[np.float64], chosen: tuple[int, ...]) -> Effect:
    """Average over all other axes, then subtract the mean along every chosen axis."""
    others = tuple(axis for axis in range(cells.ndim) if axis not in chosen)
    part = cells.mean(axis=others, keepdims=True)
    for axis in chosen:
        part = part - part.mean(axis=axis, keepdims=True)
    repeats = cells.size // part.size
    freedom = int(np.prod([cells.shape[axis] - 1 for axis in chosen]))
    return Effect(chosen, repeats * float(np.square(part).sum()), freedom)


@dataclass(frozen=True)
class Component:
    """The variance that one random source adds to a value."""

    axes: tuple[int, ...]  # that are redrawn together; (0,) are the blocks
    variance: float  # unbiased, so it may be negative if the true variance is small
    freedom: int


def components(values: ArrayLike) -> list[Component]:
    """Return the variance of blocks, and within blocks of each other axis and their interactions.

    Every axis is random: blocks along the first, and all combinations of the levels of the others
    within each block. Levels differ between blocks, so two blocks have nothing in common. Expected
    mean squares are set equal to the observed ones.
    """
    cells = np.asarray(values, dtype=np.float64)
    if cells.ndim < 2 or min(cells.shape) < 2:
        raise ValueError(f"every axis must have two levels or more, got the shape {cells.shape}")
    effects = {effect.axes: effect for effect in decompose(cells)}
    inner = range(1, cells.ndim)
    sets = [chosen for size in inner for chosen in combinations(inner, size)]
    found: dict[tuple[int, ...], Component] = {}
    for chosen in reversed([(), *sets]):
        both = [effects[axes] for axes in (chosen, (0, *chosen)) if axes]
        freedom = sum(effect.freedom for effect in both)
        square = sum(effect.squares for effect in both) / freedom
        square -= sum(
            part.variance * _repeats(cells, axes) for axes, part in found.items()
            if {*chosen} < {*axes}
        )  # fmt: skip
        variance = square / _repeats(cells, chosen)
        found[chosen] = Component(chosen or (0,), variance, freedom)
    return [found[chosen] for chosen in [(), *sets]]


def _repeats(cells: NDArray[np.float64], chosen: tuple[int, ...]) -> int:
    """Return how many values of a block share one level of these axes."""
    return int(np.prod([cells.shape[axis] for axis in range(1, cells.ndim) if axis not in chosen]))

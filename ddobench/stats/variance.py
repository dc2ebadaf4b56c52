"""Analysis of variance of a complete cross: how much of the spread each factor explains.

Every combination of levels has one value for each seed. The sum of squares around the grand mean
then falls apart into one part for each factor and each set of factors that interact, for the seeds,
which are blocks, and for what is left: how seeds differ in what the factors do.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Effect:
    """What a set of axes of the cross explains together beyond its subsets."""

    axes: tuple[int, ...]
    squares: float  # sum of squares
    freedom: int  # degrees of freedom


def decompose(values: ArrayLike) -> list[Effect]:
    """Return the effect of every non-empty set of axes, single axes first; squares add up."""
    cross = np.asarray(values, dtype=np.float64)
    if not cross.ndim or not cross.size or not np.isfinite(cross).all():
        raise ValueError("a cross must have a finite value in every cell, and at least one cell")
    axes = range(cross.ndim)
    sets = [chosen for size in axes for chosen in combinations(axes, size + 1)]
    return [_effect(cross, chosen) for chosen in sets]


def _effect(cross: NDArray[np.float64], chosen: tuple[int, ...]) -> Effect:
    """Average over all other axes, then take from every chosen axis its mean."""
    others = tuple(axis for axis in range(cross.ndim) if axis not in chosen)
    part = cross.mean(axis=others, keepdims=True)
    for axis in chosen:
        part = part - part.mean(axis=axis, keepdims=True)
    repeats = cross.size // part.size
    freedom = int(np.prod([cross.shape[axis] - 1 for axis in chosen]))
    return Effect(chosen, repeats * float(np.square(part).sum()), freedom)


@dataclass(frozen=True)
class Component:
    """The variance that one source of chance adds to a value."""

    axes: tuple[int, ...]  # that are drawn anew together; (0,) are the blocks
    variance: float  # unbiased, so that it may be negative where the true one is small
    freedom: int


def components(values: ArrayLike) -> list[Component]:
    """Return the variance of blocks, of each other axis within its block, and of what they share.

    Every axis is a draw: blocks along the first, and within each block the levels of the others,
    all combinations of them. Their levels are others in every block, so that nothing is common to
    two blocks. Expected mean squares are set equal to those found.
    """
    cross = np.asarray(values, dtype=np.float64)
    if cross.ndim < 2 or min(cross.shape) < 2:
        raise ValueError(f"every axis must have two levels or more, got the shape {cross.shape}")
    effects = {effect.axes: effect for effect in decompose(cross)}
    inner = range(1, cross.ndim)
    sets = [chosen for size in inner for chosen in combinations(inner, size)]
    found: dict[tuple[int, ...], Component] = {}
    for chosen in reversed([(), *sets]):
        both = [effects[axes] for axes in (chosen, (0, *chosen)) if axes]
        freedom = sum(effect.freedom for effect in both)
        square = sum(effect.squares for effect in both) / freedom
        square -= sum(
            part.variance * _repeats(cross, axes) for axes, part in found.items()
            if {*chosen} < {*axes}
        )  # fmt: skip
        variance = square / _repeats(cross, chosen)
        found[chosen] = Component(chosen or (0,), variance, freedom)
    return [found[chosen] for chosen in [(), *sets]]


def _repeats(cross: NDArray[np.float64], chosen: tuple[int, ...]) -> int:
    """Return how many values of a block share one level of these axes."""
    return int(np.prod([cross.shape[axis] for axis in range(1, cross.ndim) if axis not in chosen]))

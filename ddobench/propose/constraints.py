"""Constraints on designs, which every proposed design satisfies: bounds, fixed, linear ones."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, isfinite, isinf, isnan
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from ddobench.errors import UsageError
from ddobench.propose.linear_constraints import LinearConstraints
from ddobench.store.checks import printable
from ddobench.tabular.encodings import Column
from ddobench.tabular.rows import EXACT, Values

_OTHER_NUMBERS = "; continuous (--continuous NAME) allows other numbers"
Bounds = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True)
class Constraints:
    """Bounds of numeric columns, and columns with the same entry in every design."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, Column] = field(default_factory=dict)  # with those within the bounds
    linear: LinearConstraints | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        bounds: Bounds | None = None,
        fixed: Mapping[str, Any] | None = None,
        inside: bool = False,
        linear: Sequence[str] = (),
    ) -> "Constraints":
        """Check a request against the columns; `inside` also bounds them to the range of the rows.

        A column with bounds of its own is kept inside both. `linear` are constraints as text.
        """
        for name, given in (("bounds", bounds), ("fixed", fixed)):
            if given is not None and not isinstance(given, Mapping):
                raise UsageError(
                    f"{name} must be a mapping with an item for each column, got {given!r}"
                )
        known = {column.name: column for column in columns}
        checked = {name: _check_bounds(known, name, pair) for name, pair in (bounds or {}).items()}
        if inside:
            numbers = [one for one in columns if one.numeric]
            checked |= {one.name: _bound_inside(one, checked.get(one.name)) for one in numbers}
        for name, entry in (fixed or {}).items():
            _check_entry(_find(known, name), entry, checked.get(name, (-inf, inf)))
        levels = {
            name: _limit_levels(known[name], pair)
            for name, pair in checked.items()
            if known[name].kind == "level"
        }
        found = cls(checked, dict(fixed or {}), levels)
        if not linear:
            return found
        sums = LinearConstraints.parse(linear, [levels.get(one.name, one) for one in columns])
        found = replace(found, linear=sums)
        sums.check_feasible(found._box(), linear)
        return found

    def __bool__(self) -> bool:
        """Whether anything is constrained."""
        return bool(self.bounds or self.fixed or self.linear)

    def apply(self, designs: pd.DataFrame) -> pd.DataFrame:
        """Return designs moved to where they are allowed, if linear constraints can be met."""
        moved = designs.copy()
        for name, (low, high) in self.bounds.items():
            if name in self.levels:
                nearest = self.levels[name].round(moved[name].to_numpy(np.float64))
                moved[name] = pd.Series(nearest, index=moved.index).astype(moved[name].dtype)
            else:
                moved[name] = moved[name].clip(low, high)
        for name, entry in self.fixed.items():
            entries = pd.Series([entry] * len(moved), index=moved.index)
            moved[name] = entries.astype(moved[name].dtype)
        if self.linear is not None:
            names = [column.name for column in self.linear.columns]
            numbers = self.linear.apply(moved[names].to_numpy(np.float64), self._box())
            for i, column in enumerate(self.linear.columns):
                whole = types.is_integer_dtype(moved[column.name].dtype)
                moved[column.name] = (
                    np.rint(numbers[:, i]).astype(np.int64) if whole else numbers[:, i]
                )
        return moved

    def allows(self, designs: pd.DataFrame) -> NDArray[np.bool_]:
        """Return which designs satisfy the linear constraints, (K,)."""
        if self.linear is None:
            return np.ones(len(designs), dtype=bool)
        names = [column.name for column in self.linear.columns]
        return self.linear.allows(designs[names].to_numpy(np.float64))

    def _box(self) -> Values:
        """Return the bounds of the columns of linear constraints, (V, 2)."""
        assert self.linear is not None
        box = []
        for column in self.linear.columns:
            low, high = self.bounds.get(column.name, (-inf, inf))
            if column.kind == "level":
                low, high = min(column.levels), max(column.levels)
            if column.name in self.fixed:
                low = high = float(self.fixed[column.name])
            box.append((low, high))
        return np.array(box, dtype=np.float64)


def _limit_levels(column: Column, bounds: tuple[float, float]) -> Column:
    """Return a column with those of its levels that are within its bounds."""
    levels = tuple(level for level in column.levels if bounds[0] <= level <= bounds[1])
    if not levels:
        listed = ", ".join(map(_format_level, column.levels))
        raise UsageError(
            f"the bounds of {column.name!r}, {bounds[0]:g} to {bounds[1]:g}, contain none of its "
            f"levels ({listed}){_OTHER_NUMBERS}"
        )
    return replace(column, levels=levels)


def _format_level(level: Any) -> str:
    return f"{level:g}" if isinstance(level, float) else str(level)


def _find(known: Mapping[str, Column], name: str) -> Column:
    if name not in known:
        some = ", ".join([*known][:20]) + (" and others" if len(known) > 20 else "")
        raise UsageError(printable(f"there is no column {name!r} to constrain; there are {some}"))
    return known[name]


def _bound_inside(column: Column, bounds: tuple[float, float] | None) -> tuple[float, float]:
    """Return the bounds of a column inside the range of the rows."""
    low, high = bounds or (-inf, inf)
    first, last = column.low, column.high
    if column.kind == "whole":
        first, last = float(ceil(first)), float(floor(last))
    if max(low, first) > min(high, last):
        raise UsageError(
            f"the bounds of {column.name!r}, {low:g} to {high:g}, are outside the range of the "
            f"rows, {column.low:g} to {column.high:g}; change the bounds or leave out inside"
        )
    return max(low, first), min(high, last)


def _check_bounds(known: Mapping[str, Column], name: str, pair: Any) -> tuple[float, float]:
    column = _find(known, name)
    if not column.numeric:
        raise UsageError(f"column {name!r} is a {column.kind} and has no bounds; use fixed instead")
    try:
        low, high = (
            end if given is None else float(given)
            for given, end in zip(pair, (-inf, inf), strict=True)
        )
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(
            f"the bounds of {name!r} must be two numbers (low, high), got {pair!r}"
        ) from error
    if isnan(low) or isnan(high) or low > high or low == inf or high == -inf:
        raise UsageError(f"the bounds of {name!r} must be low <= high, got {pair!r}")
    if column.kind == "whole" and not all(isinf(end) or end.is_integer() for end in (low, high)):
        raise UsageError(f"column {name!r} has whole numbers; give whole bounds, got {pair!r}")
    if column.kind == "whole" and any(isfinite(end) and abs(end) > EXACT for end in (low, high)):
        raise UsageError(
            f"column {name!r} has whole numbers; give bounds up to {EXACT}, got {pair!r}"
        )
    return low, high


def _check_entry(column: Column, entry: Any, bounds: tuple[float, float]) -> None:
    """Raise unless a column can be fixed at an entry."""
    if column.kind in ("category", "constant", "level"):
        if not isinstance(entry, Hashable) or entry not in column.levels:
            levels = ", ".join(map(_format_level, column.levels))
            raise UsageError(
                printable(
                    f"column {column.name!r} can only be fixed at an entry of the rows ({levels}), "
                    f"got {entry!r}"
                )
                + (_OTHER_NUMBERS if column.kind == "level" else "")
            )
        if column.kind != "level":
            return
    number = isinstance(entry, int | float | np.integer | np.floating) and not isinstance(
        entry, bool
    )
    if not number or entry in (-inf, inf) or not bounds[0] <= entry <= bounds[1]:
        within = "" if bounds == (-inf, inf) else f", {bounds[0]:g} to {bounds[1]:g}"
        raise UsageError(
            f"column {column.name!r} must be fixed at a number within its bounds{within}, "
            f"got {entry!r}"
        )
    if column.kind == "whole" and (abs(entry) > EXACT or entry != int(entry)):
        raise UsageError(
            f"column {column.name!r} must be fixed at a whole number up to {EXACT}, got {entry!r}"
        )

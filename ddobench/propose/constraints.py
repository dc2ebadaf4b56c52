"""Constraints on designs: bounds and fixed columns, which every proposed design satisfies."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, inf, isfinite, isinf, isnan
from typing import Any

import numpy as np
import pandas as pd

from ddobench.errors import UsageError
from ddobench.store.checks import printable
from ddobench.tabular.encodings import Column
from ddobench.tabular.rows import EXACT

Bounds = Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True)
class Constraints:
    """Bounds of numeric columns, and columns with the same entry in every design."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        columns: Sequence[Column],
        bounds: Bounds | None = None,
        fixed: Mapping[str, Any] | None = None,
        inside: bool = False,
    ) -> "Constraints":
        """Check a request against the columns; `inside` also bounds them to the range of the rows.

        A column with bounds of its own is kept inside both.
        """
        for name, given in (("bounds", bounds), ("fixed", fixed)):
            if given is not None and not isinstance(given, Mapping):
                raise UsageError(
                    f"{name} must be a mapping with an item for each column, got {given!r}"
                )
        known = {column.name: column for column in columns}
        checked = {name: _check_bounds(known, name, pair) for name, pair in (bounds or {}).items()}
        if inside:
            numbers = [one for one in columns if one.kind in ("number", "whole")]
            checked |= {one.name: _bound_inside(one, checked.get(one.name)) for one in numbers}
        for name, entry in (fixed or {}).items():
            _check_entry(_find(known, name), entry, checked.get(name, (-inf, inf)))
        return cls(checked, dict(fixed or {}))

    def apply(self, designs: pd.DataFrame) -> pd.DataFrame:
        """Return designs clipped to their bounds, with the fixed entries."""
        allowed = designs.copy()
        for name, (low, high) in self.bounds.items():
            allowed[name] = allowed[name].clip(low, high)
        for name, entry in self.fixed.items():
            entries = pd.Series([entry] * len(allowed), index=allowed.index)
            allowed[name] = entries.astype(allowed[name].dtype)
        return allowed


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
    if column.kind not in ("number", "whole"):
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
    if column.kind in ("category", "constant"):
        if not isinstance(entry, Hashable) or entry not in column.levels:
            levels = ", ".join(map(str, column.levels))
            raise UsageError(
                f"column {column.name!r} can only be fixed at an entry of the rows "
                f"({printable(levels)}), got {entry!r}"
            )
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

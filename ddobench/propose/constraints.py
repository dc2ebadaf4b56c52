"""Constraints on designs: bounds and fixed columns, which every proposed design satisfies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isinf, isnan
from typing import Any, Literal

import pandas as pd

from ddobench.errors import UsageError
from ddobench.tabular.encodings import Column

Bounds = Mapping[str, tuple[float | None, float | None]] | Literal["visible"] | None


@dataclass(frozen=True)
class Constraints:
    """Bounds of numeric columns, and columns with the same entry in every design."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Sequence[Column], bounds: Bounds, fixed: Mapping[str, Any] | None
    ) -> "Constraints":
        """Check a request against the columns; the bounds "visible" are the range of the rows."""
        known = {column.name: column for column in columns}
        if bounds == "visible":
            numbers = [one for one in columns if one.kind in ("number", "whole")]
            bounds = {one.name: (one.low, one.high) for one in numbers}
        elif isinstance(bounds, str):
            raise UsageError(f"bounds must be 'visible' or a mapping of columns, got {bounds!r}")
        checked = {name: _check_bounds(known, name, pair) for name, pair in (bounds or {}).items()}
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
        raise UsageError(f"there is no column {name!r} to constrain; there are {', '.join(known)}")
    return known[name]


def _check_bounds(known: Mapping[str, Column], name: str, pair: Any) -> tuple[float, float]:
    column = _find(known, name)
    if column.kind not in ("number", "whole"):
        raise UsageError(f"column {name!r} is a {column.kind} and has no bounds; use fixed instead")
    try:
        low, high = (
            end if given is None else float(given)
            for given, end in zip(pair, (-inf, inf), strict=True)
        )
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"the bounds of {name!r} must be two numbers (low, high), got {pair!r}"
        ) from error
    if isnan(low) or isnan(high) or low > high:
        raise UsageError(f"the bounds of {name!r} must be low <= high, got {pair!r}")
    if column.kind == "whole" and not all(isinf(end) or end.is_integer() for end in (low, high)):
        raise UsageError(f"column {name!r} has whole numbers; give whole bounds, got {pair!r}")
    return low, high


def _check_entry(column: Column, entry: Any, bounds: tuple[float, float]) -> None:
    """Raise unless a column can be fixed at an entry."""
    if column.kind in ("category", "constant"):
        if entry not in column.levels:
            levels = ", ".join(map(str, column.levels))
            raise UsageError(
                f"column {column.name!r} can only be fixed at an entry of the rows ({levels}), "
                f"got {entry!r}"
            )
        return
    number = isinstance(entry, int | float) and not isinstance(entry, bool)
    if not number or not bounds[0] <= entry <= bounds[1]:
        raise UsageError(
            f"column {column.name!r} must be fixed at a number within its bounds, got {entry!r}"
        )
    if column.kind == "whole" and not float(entry).is_integer():
        raise UsageError(f"column {column.name!r} has whole numbers, got {entry!r}")

"""What a design may be: bounds and fixed columns, kept by every design that is proposed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isnan
from typing import Any, Literal

import pandas as pd

from ddobench.errors import UsageError
from ddobench.tabular.encodings import Column

Bounds = Mapping[str, tuple[float | None, float | None]] | Literal["visible"] | None


@dataclass(frozen=True)
class Limits:
    """Bounds of numbers, and entries that are the same in every design."""

    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: Sequence[Column], bounds: Bounds, fixed: Mapping[str, Any] | None
    ) -> "Limits":
        """Check what was asked for against the columns; "visible" is the range of the rows."""
        known = {column.name: column for column in columns}
        if bounds == "visible":
            numbers = [one for one in columns if one.kind in ("number", "whole")]
            bounds = {one.name: (one.low, one.high) for one in numbers}
        elif isinstance(bounds, str):
            raise UsageError(f"bounds must be 'visible' or a mapping of columns, got {bounds!r}")
        found = {name: _check_bounds(known, name, pair) for name, pair in (bounds or {}).items()}
        for name, entry in (fixed or {}).items():
            _check_entry(_find(known, name), entry, found.get(name, (-inf, inf)))
        return cls(found, dict(fixed or {}))

    def apply(self, designs: pd.DataFrame) -> pd.DataFrame:
        """Pull designs back to where they may be."""
        pulled = designs.copy()
        for name, (low, high) in self.bounds.items():
            pulled[name] = pulled[name].clip(low, high)
        for name, entry in self.fixed.items():
            pulled[name] = pd.Series([entry] * len(pulled), index=pulled.index).astype(
                pulled[name].dtype
            )
        return pulled


def _find(known: Mapping[str, Column], name: str) -> Column:
    if name not in known:
        raise UsageError(f"there is no column {name!r} to limit; there are {', '.join(known)}")
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
    if column.kind == "whole" and not (_is_whole(low) and _is_whole(high)):
        raise UsageError(f"column {name!r} has whole numbers; give whole bounds, got {pair!r}")
    return low, high


def _is_whole(number: float) -> bool:
    return number in (inf, -inf) or number.is_integer()


def _check_entry(column: Column, entry: Any, bounds: tuple[float, float]) -> None:
    """Raise unless a column can be fixed at an entry."""
    if column.kind in ("category", "constant"):
        if entry not in column.levels:
            levels = ", ".join(map(str, column.levels))
            raise UsageError(
                f"column {column.name!r} can only be fixed at what the rows show ({levels}), "
                f"got {entry!r}: nothing is known of anything else"
            )
        return
    number = isinstance(entry, int | float) and not isinstance(entry, bool)
    if not number or not bounds[0] <= entry <= bounds[1]:
        raise UsageError(
            f"column {column.name!r} must be fixed at a number within its bounds, got {entry!r}"
        )
    if column.kind == "whole" and not float(entry).is_integer():
        raise UsageError(f"column {column.name!r} has whole numbers, got {entry!r}")

"""Designs of a table as numbers that methods understand, and back.

A number stays as it is, a whole number is rounded on the way back, and a category becomes one
column for each of its levels, of which the largest wins on the way back. A table of categories
alone can also be encoded as a categorical space: the number of each level.
"""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from pandas.api import types

from ddobench.tabular.rows import Rows, Values, check_column, is_text

if TYPE_CHECKING:
    from ddobench.contracts import Space  # this needs PyTorch, which takes seconds

_EXACT = 2**53  # below, every whole number is a float

Kind = Literal["number", "whole", "category", "constant"]


@dataclass(frozen=True)
class Column:
    """One column of a table, as the visible rows have it."""

    name: str
    kind: Kind
    dtype: Any
    levels: tuple[Hashable, ...] = ()  # of a category; the only one of a constant
    low: float = float("nan")  # the range of numbers
    high: float = float("nan")

    @property
    def width(self) -> int:
        """How many numbers stand for it, one-hot."""
        return {"category": len(self.levels), "constant": 0}.get(self.kind, 1)


@dataclass(frozen=True)
class Encoding:
    """How the designs of a table become numbers; `native` is by the number of each level."""

    columns: tuple[Column, ...]
    native: bool = False

    @property
    def space(self) -> "Space":
        """Where encoded designs live."""
        from ddobench.contracts import Space

        if self.native:
            return Space(
                self.width,
                tuple(len(one.levels) for one in self.columns if one.kind != "constant"),
            )
        return Space(self.width)

    @property
    def width(self) -> int:
        """How many numbers a design has."""
        return sum(min(one.width, 1) if self.native else one.width for one in self.columns)

    @property
    def categorical(self) -> bool:
        """Whether all that varies is a category."""
        return all(one.kind in ("category", "constant") for one in self.columns)

    def encode(self, designs: pd.DataFrame) -> Values:
        """Return designs as numbers, (K, e)."""
        parts = [self._encode_one(column, designs[column.name]) for column in self.columns]
        return np.concatenate([np.empty((len(designs), 0)), *parts], axis=1)

    def decode(self, codes: Values) -> pd.DataFrame:
        """Return the designs that numbers (K, e) stand for, with the columns of the table."""
        found: dict[str, Any] = {}
        place = 0
        for column in self.columns:
            width = min(column.width, 1) if self.native else column.width
            found[column.name] = self._decode_one(column, codes[:, place : place + width])
            place += width
        return pd.DataFrame(found)

    def names(self) -> list[str]:
        """Name every number of an encoded design."""
        names = []
        for column in self.columns:
            if column.kind == "category" and not self.native:
                names += [f"{column.name}={level}" for level in column.levels]
            elif column.kind != "constant":
                names.append(column.name)
        return names

    def _encode_one(self, column: Column, entries: "pd.Series[Any]") -> Values:
        """Return (K, width)."""
        if column.kind == "constant":
            return np.empty((len(entries), 0))
        if column.kind != "category":
            return entries.to_numpy(dtype=np.float64)[:, None]
        known = entries.to_numpy(dtype=object)[:, None] == np.array(column.levels, dtype=object)
        if self.native:
            known = known.argmax(axis=1)[:, None]
        codes: Values = known.astype(np.float64)
        return codes

    def _decode_one(self, column: Column, codes: Values) -> "pd.Series[Any]":
        """Return K entries from (K, width)."""
        if column.kind == "constant":
            return pd.Series([column.levels[0]] * len(codes)).astype(column.dtype)
        if column.kind == "category":
            best = codes[:, 0].astype(np.intp) if self.native else codes.argmax(axis=1)
            return pd.Series([column.levels[i] for i in best]).astype(column.dtype)
        if column.kind == "whole":
            rounded = np.rint(codes[:, 0])
            exact = np.abs(rounded).max(initial=0.0) < _EXACT
            return pd.Series(rounded.astype(np.int64) if exact else rounded)
        return pd.Series(codes[:, 0])


def find_columns(
    rows: Rows, categorical: Collection[str] = (), whole: Collection[str] | None = None
) -> tuple[Column, ...]:
    """Tell what the columns of a table are; `whole` None takes those of a whole-number type."""
    for name in whole or ():
        check_column(name, rows.designs)
    return tuple(
        _describe(rows.designs[name], str(name), str(name) in categorical, whole)
        for name in rows.designs
    )


def _describe(
    entries: "pd.Series[Any]", name: str, category: bool, whole: Collection[str] | None
) -> Column:
    levels = sorted(entries.unique().tolist(), key=lambda level: (str(type(level)), level))
    if len(levels) == 1:
        return Column(name, "constant", entries.dtype, (levels[0],))
    if category or is_text(entries):
        return Column(name, "category", entries.dtype, tuple(levels))
    rounded = types.is_integer_dtype(entries.dtype) if whole is None else name in whole
    low, high = float(entries.min()), float(entries.max())
    return Column(name, "whole" if rounded else "number", entries.dtype, low=low, high=high)

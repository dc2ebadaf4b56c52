"""Designs of a table encoded as numbers for methods, and decoded again.

A number stays as it is; an integer is rounded when decoded, and a number with levels becomes the
nearest of them; a category becomes one-hot columns, and the largest of them is the decoded level. A
table of categories alone can also be encoded as a categorical space: one column per category with
the index of its level.

At the end, a file of rows for `task=table`: encoded, with its best rows set apart.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from ddobench.errors import UsageError
from ddobench.tabular.files import content_hash, read_table
from ddobench.tabular.rows import (
    EXACT,
    Rows,
    Values,
    check_column,
    gather_rows,
    is_text,
    sort_levels,
)

if TYPE_CHECKING:
    from ddobench.contracts import Space  # imports PyTorch, which takes seconds

FEWEST_VISIBLE = 2  # rows of a split table
MOST_NUMBERS = 10**9  # of an encoded table, 8 GB

MOST_LEVELS = 12  # different numbers of a column that counts as one with levels
ROWS_PER_LEVEL = 5  # at least, on average
MOST_DIGITS = 12  # of numbers that are written with few decimals
FEWEST_STEPS = 10  # of ten, a hundred, ... in the range of a column that is rounded to these

Kind = Literal["number", "whole", "level", "category", "constant"]


@dataclass(frozen=True)
class Column:
    """One column of a table, as the visible rows have it."""

    name: str
    kind: Kind
    dtype: Any
    levels: tuple[Any, ...] = ()  # of a category or of numbers; the only one of a constant
    low: float = float("nan")  # the range of numbers
    high: float = float("nan")
    decimals: int | None = None  # that designs are rounded to; None: not rounded

    @property
    def numeric(self) -> bool:
        """Whether its entries are numbers that may vary."""
        return self.kind in ("number", "whole", "level")

    @property
    def width(self) -> int:
        """How many columns it has when encoded one-hot."""
        return {"category": len(self.levels), "constant": 0}.get(self.kind, 1)

    def round(self, numbers: Values) -> Values:
        """Return numbers (K,) as the column has them: levels, whole, or with its decimals."""
        if self.kind == "level":
            levels = np.asarray(self.levels, dtype=np.float64)
            nearest: Values = levels[np.abs(numbers[:, None] - levels).argmin(axis=1)]
            return nearest
        decimals = self.decimals
        if self.kind == "whole":
            decimals = min(0, decimals or 0)
        return numbers if decimals is None else np.round(numbers, decimals)


@dataclass(frozen=True)
class Encoding:
    """How designs become numbers: one-hot, or if `native` by the index of each level."""

    columns: tuple[Column, ...]
    native: bool = False

    @property
    def space(self) -> "Space":
        """The space of encoded designs."""
        from ddobench.contracts import Space

        if self.native:
            return Space(
                self.width,
                tuple(len(one.levels) for one in self.columns if one.kind != "constant"),
            )
        return Space(self.width)

    @property
    def width(self) -> int:
        """How many numbers an encoded design has."""
        return sum(min(one.width, 1) if self.native else one.width for one in self.columns)

    @property
    def categorical(self) -> bool:
        """Whether every column that varies is a category."""
        return all(one.kind in ("category", "constant") for one in self.columns)

    def encode(self, designs: pd.DataFrame) -> Values:
        """Return designs as numbers, (K, e)."""
        parts = [self._encode_one(column, designs[column.name]) for column in self.columns]
        return np.concatenate([np.empty((len(designs), 0)), *parts], axis=1)

    def decode(self, codes: Values) -> pd.DataFrame:
        """Return the designs of codes (K, e), with the columns of the table."""
        found: dict[str, Any] = {}
        place = 0
        for column in self.columns:
            width = min(column.width, 1) if self.native else column.width
            found[column.name] = self._decode_one(column, codes[:, place : place + width])
            place += width
        return pd.DataFrame(found)

    def names(self) -> list[str]:
        """Return a name for every number of an encoded design."""
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
        numbers = column.round(codes[:, 0])
        whole = column.kind == "whole" or types.is_integer_dtype(column.dtype)
        exact = np.abs(numbers).max(initial=0.0) < EXACT and (numbers == np.rint(numbers)).all()
        return pd.Series(numbers.astype(np.int64) if whole and exact else numbers)


def describe_columns(
    rows: Rows,
    categorical: Collection[str] = (),
    whole: Collection[str] | None = None,
    levels: Mapping[str, Sequence[float]] | None = None,
    keep_decimals: bool = False,
) -> tuple[Column, ...]:
    """Describe the columns of a table; `whole` None takes those with an integer dtype.

    `levels` are the only numbers of some columns, and `keep_decimals` rounds others as the rows
    are.
    """
    for name in whole or ():
        check_column(name, rows.designs)
        if name in categorical or is_text(rows.designs[name]):
            raise UsageError(
                f"column {name!r} is a category and cannot be whole; leave it out of whole"
            )
    columns = []
    for label, entries in rows.designs.items():
        name = str(label)
        column = _describe(entries, name, name in categorical, whole)
        if column.numeric and name in (levels or {}):
            column = replace(column, kind="level", levels=tuple((levels or {})[name]))
        elif column.numeric and keep_decimals:
            column = replace(column, decimals=count_decimals(entries.to_numpy(np.float64)))
        columns.append(column)
    width = sum(column.width for column in columns)
    if len(rows.y) * width > MOST_NUMBERS:
        raise UsageError(
            f"the table has {len(rows.y)} rows of {width} numbers when categories are encoded, "
            f"more than {MOST_NUMBERS} in all; leave out rows or columns, such as those with "
            "many categories"
        )
    return tuple(columns)


def _describe(
    entries: "pd.Series[Any]", name: str, category: bool, whole: Collection[str] | None
) -> Column:
    levels = sort_levels(entries, name)
    if len(levels) == 1:
        return Column(name, "constant", entries.dtype, (levels[0],))
    if category or is_text(entries):
        return Column(name, "category", entries.dtype, tuple(levels))
    rounded = types.is_integer_dtype(entries.dtype) if whole is None else name in whole
    low, high = float(entries.min()), float(entries.max())
    return Column(name, "whole" if rounded else "number", entries.dtype, low=low, high=high)


def find_levels(
    rows: Rows,
    declared: Mapping[str, Sequence[float] | None],
    others: Collection[str] = (),
) -> dict[str, tuple[float, ...]]:
    """Return the levels of numeric columns: as declared, or those with few different numbers.

    A column that is declared without levels (None) has those of the rows; `others` are not looked
    at.
    """
    found: dict[str, tuple[float, ...]] = {}
    for label, entries in rows.designs.items():
        name = str(label)
        if name in others or is_text(entries):
            continue
        given = declared.get(name)
        numbers = np.unique(entries.to_numpy(np.float64) if given is None else np.asarray(given))
        few = len(numbers) <= min(MOST_LEVELS, len(entries) // ROWS_PER_LEVEL)
        if name in declared or (few and len(numbers) > 1):
            found[name] = tuple(map(float, numbers))
    return found


def count_decimals(numbers: Values) -> int | None:  # (N,)
    """Return how many decimals numbers are written with, None if they have many digits.

    It is negative if all end in zeros, such as -1 for 850 and 900.
    """
    size = max(float(np.abs(numbers).max(initial=0.0)), 1e-300)
    digits = max(0, int(np.ceil(np.log10(size))))  # before the decimal point
    for decimals in range(-digits, max(0, MOST_DIGITS - digits)):
        rounded = np.round(numbers, decimals)
        few_steps = decimals < 0 and np.ptp(numbers) < FEWEST_STEPS * 10.0**-decimals
        if not few_steps and np.abs(rounded - numbers).max(initial=0.0) <= 1e-14 * size:
            return decimals
    return None


@dataclass(frozen=True)
class SplitTable:
    """Encoded designs and their values, larger is better; the best rows are marked."""

    encoding: Encoding
    codes: Values  # (N, e)
    y: Values  # (N,)
    best: NDArray[np.bool_]  # (N,) rows above the percentile, hidden from methods


def split_best(y: Values, percentile: float) -> NDArray[np.bool_]:
    """Return which values (N,) are above a percentile of all of them, (N,)."""
    best: NDArray[np.bool_] = y > np.percentile(y, percentile)
    return best


def split_table(
    file: str,
    target: str,
    minimise: bool,
    hide: float,
    categorical: Sequence[str] = (),
    drop: Sequence[str] = (),
) -> SplitTable:
    """Read a file and mark the rows above a percentile of the values."""
    return _split(file, content_hash(file), target, minimise, hide, tuple(categorical), tuple(drop))


@cache
def _split(
    file: str,
    content: str,  # noqa: ARG001 - part of the cache key: a changed file is read again
    target: str,
    minimise: bool,
    hide: float,
    categorical: tuple[str, ...],
    drop: tuple[str, ...],
) -> SplitTable:
    if not 0 < hide <= 100:
        raise UsageError(f"hide must be a percentile above 0 and up to 100, got {hide}")
    rows = gather_rows(read_table(file), target, categorical=categorical, drop=drop)
    y = -rows.y if minimise else rows.y
    plain = Encoding(describe_columns(rows, categorical))
    encoding = Encoding(plain.columns, native=plain.categorical)
    best = split_best(y, hide)
    if (~best).sum() < FEWEST_VISIBLE:
        raise UsageError(
            f"hide={hide:g} leaves {(~best).sum()} of {len(y)} rows visible; hide fewer"
        )
    return SplitTable(encoding, encoding.encode(rows.designs), y, best)


def look_up(what: str, file: str, *settings: Any) -> int | str:
    """Return what a configuration must know of a file before a task is built.

    That is `columns` (its d), `rows` (its largest n), `designs` (real or categorical) or `content`
    (a hash, for the digest); `settings` are the further arguments of `split_table`.
    """
    if what == "content":
        return content_hash(file)
    table = split_table(file, *settings)
    if what == "designs":
        return "categorical" if table.encoding.categorical else "real"
    return {"columns": table.encoding.width, "rows": int((~table.best).sum())}[what]

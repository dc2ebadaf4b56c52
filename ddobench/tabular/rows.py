"""Tables of designs and values, checked.

A table is a frame, an array or a tensor of designs, and one value for each. Rows that cannot be
used raise an error or are left out; `notes` lists what was left out or is unusual.
"""

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from ddobench.errors import UsageError
from ddobench.store.checks import printable

Values = NDArray[np.float64]

MOST_LEVELS = 50  # of a text column that counts as a category
LARGEST = 1e100  # that a number can be, as models square it
EXACT = 2**53  # every integer up to here is exact as a float


@dataclass(frozen=True)
class Rows:
    """Designs and their values, without missing or infinite entries."""

    designs: pd.DataFrame  # N rows, the column names are strings
    y: Values  # (N,) in the units of the table
    target: str  # the name of the value column
    places: NDArray[np.intp]  # (N,) of the rows in the given table
    notes: tuple[str, ...]  # sentences on what was left out or looks unusual


def gather_rows(
    x: Any, y: Any, *, categorical: Collection[str] = (), drop: Collection[str] = ()
) -> Rows:
    """Check designs x (N, d) and values y (N,), or the name of the column of x that holds them."""
    given = x if isinstance(x, pd.DataFrame) else _as_unnamed(x)
    designs, used = include_index(name_columns(given))
    target, values = _take_target(designs, y, given.index)
    if isinstance(y, str):
        designs = designs.drop(columns=y)
    for name in (*drop, *categorical):
        if isinstance(y, str) and name == y:
            raise UsageError(
                f"{name!r} is the column of values; leave it out of drop and categorical"
            )
        check_column(name, designs)
    designs = designs.drop(columns=[*drop])
    if not len(designs.columns):
        raise UsageError("a design needs at least one column besides its value, got none")
    designs = pd.DataFrame(
        {name: _as_entries(designs[name], str(name), name in categorical) for name in designs}
    )
    kept, missing = _find_complete(designs, numbers := _as_numbers(values, target), target)
    complete, numbers = designs[kept].reset_index(drop=True), numbers[kept]
    _check_numbers(complete, numbers, target, categorical)
    if len(numbers) < 2:
        raise UsageError(
            f"at least 2 complete rows are needed to learn from, got {len(numbers)}"
            + "".join(f"; {note[0].lower()}{note[1:].removesuffix('.')}" for note in missing)
        )
    if np.ptp(numbers) == 0:
        raise UsageError(
            f"all {len(numbers)} values of {printable(target)} are {numbers[0]:g}, so there is "
            "nothing to learn; give a column whose values differ"
        )
    unusual = _unusual(complete, numbers, categorical)
    notes = _note_index(given.index, [name for name in used if name in complete])
    return Rows(complete, numbers, target, np.flatnonzero(kept), (*notes, *missing, *unusual))


def check_column(name: str, designs: pd.DataFrame) -> None:
    """Raise unless a frame has this column."""
    if name not in designs:
        known = ", ".join(map(str, designs.columns[:20]))
        more = " and others" if len(designs.columns) > 20 else ""
        raise UsageError(printable(f"there is no column {name!r}; the columns are {known}{more}"))


def is_text(column: "pd.Series[Any]") -> bool:
    """Return whether a column holds categories by its dtype: strings, booleans, categoricals."""
    kind = column.dtype
    return bool(
        isinstance(kind, pd.CategoricalDtype)
        or types.is_bool_dtype(kind)
        or types.is_object_dtype(kind)
        or types.is_string_dtype(kind)
    )


def sort_levels(column: "pd.Series[Any]", name: str) -> list[Hashable]:
    """Return the different entries of a column in order, without missing ones."""
    try:
        levels = column.dropna().unique().tolist()
        return sorted(levels, key=lambda level: (str(type(level)), level))
    except TypeError:  # entries such as lists and complex numbers have no order
        raise _neither(name, _type_name(column)) from None


def name_columns(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose column names are strings; raise if two are the same."""
    named = table.set_axis([str(name) for name in table.columns], axis=1)
    _check_different(named.columns)
    return named


def _check_different(names: "pd.Index[Any]") -> None:
    repeated = names[names.duplicated()]
    if len(repeated):
        raise UsageError(
            f"columns must have different names, got {repeated[0]!r} twice; rename one"
        )


def include_index(table: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Make the named levels of an index columns, in front of the others, and return their names.

    An index without a name, or one that numbers the rows, is left out.
    """
    index = table.index
    table = table.reset_index(drop=True)
    levels = [i for i, name in enumerate(index.names) if name is not None]
    if not levels or isinstance(index, pd.RangeIndex):
        return table, []
    names = [str(index.names[i]) for i in levels]
    _check_different(pd.Index([*names, *table.columns]))
    columns = zip(names, (index.get_level_values(i).array for i in levels), strict=True)
    return pd.DataFrame(dict(columns)).join(table), names


def _note_index(index: "pd.Index[Any]", used: list[str]) -> list[str]:
    """Note which levels of an index are columns of the designs, or that it is left out."""
    if used:
        listed = _list_names(map(repr, used))
        return [f"The index is used as a column of the designs: {listed}; drop leaves it out."]
    if index.name is not None and isinstance(index, pd.RangeIndex):
        return [f"The index {str(index.name)!r} numbers the rows and is left out."]
    return []


def _as_unnamed(x: Any) -> pd.DataFrame:
    array = _as_array(x)
    if array.ndim != 2:
        raise UsageError(f"x must be a table of rows and columns, got the shape {array.shape}")
    return pd.DataFrame(array, columns=[f"x{i}" for i in range(array.shape[1])])


def _as_array(data: Any) -> NDArray[Any]:
    """Return an array, from a tensor on any device or anything that NumPy understands."""
    if hasattr(data, "detach"):
        try:
            data = data.detach().cpu().numpy()
        except TypeError as error:
            raise UsageError(f"a tensor must convert to a NumPy array: {error}") from error
    if isinstance(data, np.ma.MaskedArray):
        data = np.ma.filled(data.astype(object), np.nan)
    try:
        array = np.asarray(data)
        if array.dtype.kind == "U" and not isinstance(data, np.ndarray):
            array = np.asarray(data, dtype=object)  # keeps the numbers of rows that mix both
    except ValueError as error:
        raise UsageError(f"a table must have rows of the same length: {error}") from error
    return array


def _take_target(
    designs: pd.DataFrame, y: Any, index: "pd.Index[Any]"
) -> "tuple[str, pd.Series[Any]]":
    """Return the name of the value column, and the values; y must have the index of x."""
    if isinstance(y, str):
        check_column(y, designs)
        return y, designs[y]
    if isinstance(y, pd.DataFrame):
        y = y.squeeze(axis=1)
    if isinstance(y, pd.Series):
        values, target = y, str(y.name) if y.name is not None else "y"
        if len(y) == len(designs) and not y.index.equals(index):
            raise UsageError("x and y must have the same index, got two; align one to the other")
    else:
        array = _as_array(y)
        flat = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if flat.ndim != 1:
            raise UsageError(f"y must be one value for each row, got the shape {array.shape}")
        values, target = pd.Series(flat), "y"
    if len(values) != len(designs):
        raise UsageError(
            f"y must have one value for each of the {len(designs)} rows of x, got {len(values)}"
        )
    return target, values


def _as_entries(column: "pd.Series[Any]", name: str, category: bool) -> "pd.Series[Any]":
    """Return a column as numbers or as categories; raise if it holds neither."""
    if types.is_object_dtype(column.dtype):
        column = _infer_entries(column, name, category)
    kind = column.dtype
    if types.is_complex_dtype(kind):
        raise _neither(name, _type_name(column))
    if types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind):
        return column
    levels = sort_levels(column, name)
    if category:
        return column
    if not is_text(column):
        raise _neither(name, _type_name(column))
    most = min(MOST_LEVELS, max(2, len(column) // 2))
    if len(levels) > most:
        first = column.dropna().iloc[0]
        raise UsageError(
            f"column {name!r} has {len(levels)} different strings such as {str(first)!r} in "
            f"{len(column)} rows, too many for a category; turn it into numbers, leave it out with "
            f"drop=[{name!r}], or keep it with categorical=[{name!r}]"
        )
    return column


def _infer_entries(column: "pd.Series[Any]", name: str, category: bool) -> "pd.Series[Any]":
    """Return a column of Python objects with the dtype of its entries; raise if they are mixed."""
    entries = column.dropna()
    kinds = {_kind_of(entry) for entry in entries}
    if kinds == {"number"}:
        numbers = column.infer_objects()  # stays as it is with missing, decimal or huge numbers
        try:
            return numbers.astype(np.float64) if numbers.dtype == object else numbers
        except OverflowError:
            raise UsageError(
                f"column {name!r} has numbers beyond {LARGEST:g}; rescale it"
            ) from None
    if not kinds <= {"text", "boolean"} and (not category or "bytes" in kinds):
        odd = next(entry for entry in entries if _kind_of(entry) not in ("text", "boolean"))
        if "number" in kinds and len(kinds) > 1:
            raise UsageError(
                f"column {name!r} mixes numbers such as {odd!r} with other entries; turn all "
                f"into numbers, leave it out with drop=[{name!r}], or keep it with "
                f"categorical=[{name!r}]"
            )
        raise _neither(name, _kind_of(odd))
    return column


def _kind_of(entry: object) -> str:
    if isinstance(entry, bool | np.bool_):
        return "boolean"
    if isinstance(entry, Real | Decimal):
        return "number"
    if isinstance(entry, list | tuple | np.ndarray):
        return "lists"
    return "text" if isinstance(entry, str) else type(entry).__name__


def _type_name(column: "pd.Series[Any]") -> str:
    """Return what a column holds, for a message."""
    if types.is_object_dtype(column.dtype) and len(column.dropna()):
        return _kind_of(column.dropna().iloc[0])
    return str(column.dtype)


def _neither(name: str, kind: str) -> UsageError:
    return UsageError(
        f"column {name!r} holds {kind}, which is neither a number nor a category; "
        f"turn it into numbers or leave it out with drop=[{name!r}]"
    )


def _as_numbers(values: "pd.Series[Any]", target: str) -> Values:
    sentence = f"the values of {printable(target)} must be numbers"
    try:
        numbers = pd.to_numeric(values.infer_objects(), errors="raise")
        kind = values.dropna().infer_objects().dtype
        if types.is_complex_dtype(numbers.dtype) or not (
            types.is_numeric_dtype(kind) or is_text(values)
        ):
            raise TypeError(f"got {kind}")
        return numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    except (ValueError, TypeError, OverflowError) as error:
        raise UsageError(printable(f"{sentence}: {error}")) from error


def _find_complete(
    designs: pd.DataFrame, values: Values, target: str
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return which rows have a value and a whole design, and notes on the others."""
    notes = []
    no_value = np.isnan(values)
    if len(values) and no_value.all():
        raise UsageError(
            f"the values of {printable(target)} are all missing; give a column that has values"
        )
    gaps = designs.isna()[~no_value]
    empty = [name for name in designs if len(gaps) and gaps[name].all()]
    if empty:
        raise UsageError(
            f"column {empty[0]!r} has no entry in any row with a value of {printable(target)}; "
            f"leave it out with drop=[{empty[0]!r}]"
        )
    partial = designs.isna().any(axis=1).to_numpy() & ~no_value
    if no_value.any():
        notes.append(f"{_count(no_value, 'row')} without a value of {printable(target)} left out.")
    if partial.any():
        listed = _list_names(map(repr, designs.columns[gaps.any()]))
        notes.append(f"{_count(partial, 'row')} with missing entries left out, in column {listed}.")
    return ~(no_value | partial), notes


def _check_numbers(
    designs: pd.DataFrame, values: Values, target: str, categorical: Collection[str]
) -> None:
    """Raise for infinite numbers, and for those too large to compute with."""
    for name, column in [*designs.items(), (target, pd.Series(values))]:
        whole = types.is_integer_dtype(column.dtype) and name not in categorical
        if whole and len(column.unique()) > 1 and max(column.max(), -int(column.min())) > EXACT:
            raise UsageError(
                f"column {str(name)!r} has whole numbers beyond {EXACT}, which lose digits; "
                f"subtract an offset, or make it a category with categorical=[{str(name)!r}]"
            )
        if not types.is_float_dtype(column.dtype):
            continue
        numbers = column.to_numpy(dtype=np.float64)
        infinite = np.isinf(numbers)
        if infinite.any():
            raise UsageError(
                f"column {str(name)!r} has {_count(infinite, 'infinite value')}, the first in row "
                f"{int(infinite.argmax())} of the complete ones; replace them or leave the rows out"
            )
        if np.abs(numbers).max(initial=0.0) > LARGEST:
            raise UsageError(f"column {str(name)!r} has numbers beyond {LARGEST:g}; rescale it")


def _unusual(designs: pd.DataFrame, values: Values, categorical: Collection[str]) -> list[str]:
    """Return notes on what is usable but unusual."""
    notes = []
    constant = [str(name) for name in designs if len(designs[name].unique()) == 1]
    if len(constant) == len(designs.columns):
        raise UsageError("every column of x is constant, so nothing can vary; give other rows")
    if constant:
        notes.append(
            f"Constant columns keep their value in every proposal: {_list_names(constant)}."
        )
    for name in designs:
        if name not in categorical and is_text(designs[name]):
            notes += _note_numbers(designs[name].unique(), str(name))
    repeats = designs.duplicated().to_numpy()
    if repeats.any():
        groups = pd.Series(values).groupby(pd.util.hash_pandas_object(designs, index=False))
        spread = float((groups.max() - groups.min()).max())
        notes.append(
            f"{_count(repeats, 'row')} with the design of another row kept as repeated "
            f"measurements; values of the same design differ by up to {spread:.3g}."
        )
    varying = len(designs.columns) - len(constant)
    if len(values) < varying:
        notes.append(
            f"There are fewer rows ({len(values)}) than columns that vary ({varying}), "
            "so predictions are poorly determined."
        )
    return notes


def _note_numbers(levels: Iterable[Any], name: str) -> list[str]:
    """Note that a category has levels most of which are numbers written as strings."""
    texts = [level for level in levels if isinstance(level, str)]
    numbers = int(pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").notna().sum())
    if len(texts) < 2 or 2 * numbers <= len(texts):
        return []
    return [
        f"Column {name!r} is read as a category, but {numbers} of its {len(texts)} different "
        "entries are numbers; turn all into numbers if it should be a number."
    ]


def _list_names(names: Iterable[str]) -> str:
    """Return at most five names for a message."""
    listed = list(names)
    return printable(", ".join(listed[:5])) + (" and others" if len(listed) > 5 else "")


def _count(chosen: NDArray[np.bool_], what: str) -> str:
    number = int(chosen.sum())
    return f"{number} {what}{'' if number == 1 else 's'}"

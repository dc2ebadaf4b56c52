"""Rows that people bring, checked: what cannot be used is refused or left out with a word.

A table is a frame, an array or a tensor of designs, and one value for each. Nothing is guessed in
silence: whatever is left out or looks odd is told in `notes`.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from ddobench.errors import UsageError

Values = NDArray[np.float64]

MOST_LEVELS = 50  # different texts of a column that is still a category


@dataclass(frozen=True)
class Rows:
    """Designs and their values, complete and finite."""

    designs: pd.DataFrame  # N rows, columns with names that are texts
    y: Values  # (N,) their values as they were given
    target: str  # what the values are called
    notes: tuple[str, ...]  # what was left out or looks odd, a sentence each


def gather_rows(
    x: Any, y: Any, *, categorical: Collection[str] = (), drop: Collection[str] = ()
) -> Rows:
    """Check designs x (N, d) and values y (N,), or the name of the column of x that holds them."""
    designs = _as_frame(x)
    target, given = _take_target(designs, y)
    designs = designs.drop(columns=target, errors="ignore") if isinstance(y, str) else designs
    for name in (*drop, *categorical):
        check_column(name, designs)
    designs = designs.drop(columns=[*drop])
    if not len(designs.columns):
        raise UsageError("a design needs at least one column besides its value, got none")
    for column in designs:
        _check_kind(designs[column], str(column), column in categorical)
    designs, values, notes = _drop_missing(designs, _as_numbers(given, target), target)
    _check_finite(designs, values, target)
    if len(values) < 2:
        raise UsageError(f"at least 2 complete rows are needed to learn from, got {len(values)}")
    if np.ptp(values) == 0:
        raise UsageError(
            f"all {len(values)} values of {target} are {values[0]:g}: there is nothing to learn"
        )
    return Rows(designs, values, target, (*notes, *_describe_oddities(designs, values)))


def check_column(name: str, designs: pd.DataFrame) -> None:
    """Raise unless a frame has a column of a name."""
    if name not in designs:
        known = ", ".join(map(str, designs.columns[:20]))
        raise UsageError(f"there is no column {name!r}; the columns are {known}")


def is_text(column: "pd.Series[Any]") -> bool:
    """Tell whether a column holds categories by its kind: texts, truth values, levels."""
    kind = column.dtype
    return bool(
        isinstance(kind, pd.CategoricalDtype)
        or types.is_bool_dtype(kind)
        or types.is_object_dtype(kind)
        or types.is_string_dtype(kind)
    )


def _as_frame(x: Any) -> pd.DataFrame:
    if isinstance(x, pd.DataFrame):
        designs = x.rename(columns=str).infer_objects()
        repeated = designs.columns[designs.columns.duplicated()]
        if len(repeated):
            raise UsageError(
                f"columns must have different names, got {repeated[0]!r} twice; rename one"
            )
        return designs
    array = _as_array(x)
    if array.ndim != 2:
        raise UsageError(f"x must be a table of rows and columns, got the shape {array.shape}")
    names = [f"x{i}" for i in range(array.shape[1])]
    return pd.DataFrame(array, columns=names).infer_objects()


def _as_array(data: Any) -> NDArray[Any]:
    """Return an array, from a tensor on any device or anything that NumPy understands."""
    if hasattr(data, "detach"):
        data = data.detach().cpu().numpy()
    try:
        return np.asarray(data)
    except ValueError as error:
        raise UsageError(f"a table must have rows of the same length: {error}") from error


def _take_target(designs: pd.DataFrame, y: Any) -> "tuple[str, pd.Series[Any]]":
    """Return what the values are called, and the values."""
    if isinstance(y, str):
        check_column(y, designs)
        return y, designs[y]
    if isinstance(y, pd.DataFrame):
        y = y.squeeze(axis=1)
    if isinstance(y, pd.Series):
        values, target = y, str(y.name) if y.name is not None else "y"
        if len(y) == len(designs) and not y.index.equals(designs.index):
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


def _check_kind(column: "pd.Series[Any]", name: str, category: bool) -> None:
    """Raise for a column that can be neither a number nor a category."""
    kind = column.dtype
    if category or (types.is_numeric_dtype(kind) and not types.is_complex_dtype(kind)):
        return
    if not is_text(column):
        raise UsageError(
            f"column {name!r} holds {kind}, which is neither a number nor a category; "
            f"turn it into numbers or leave it out with drop=[{name!r}]"
        )
    levels = column.dropna().unique()
    most = min(MOST_LEVELS, max(2, len(column) // 2))
    if len(levels) > most:
        raise UsageError(
            f"column {name!r} has {len(levels)} different texts such as {str(levels[0])!r} in "
            f"{len(column)} rows, too many for a category; turn it into numbers, leave it out with "
            f"drop=[{name!r}], or insist with categorical=[{name!r}]"
        )


def _as_numbers(values: "pd.Series[Any]", target: str) -> Values:
    try:
        numbers = pd.to_numeric(values, errors="raise")
    except (ValueError, TypeError) as error:
        raise UsageError(f"the values of {target} must be numbers: {error}") from error
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _drop_missing(
    designs: pd.DataFrame, values: Values, target: str
) -> tuple[pd.DataFrame, Values, list[str]]:
    """Leave out rows that lack their value or a part of their design."""
    notes = []
    unvalued = np.isnan(values)
    partial = designs.isna().any(axis=1).to_numpy() & ~unvalued
    if unvalued.any():
        notes.append(f"{_count(unvalued, 'row')} without a value of {target} left out.")
    if partial.any():
        holes = designs.columns[designs[partial].isna().any()]
        named = ", ".join(map(repr, holes[:5])) + (" and others" if len(holes) > 5 else "")
        notes.append(f"{_count(partial, 'row')} with missing entries left out, in column {named}.")
    kept = ~(unvalued | partial)
    return designs[kept].reset_index(drop=True), values[kept], notes


def _check_finite(designs: pd.DataFrame, values: Values, target: str) -> None:
    for name, column in [*designs.items(), (target, pd.Series(values))]:
        if not types.is_float_dtype(column.dtype):
            continue
        infinite = np.isinf(column.to_numpy(dtype=np.float64))
        if infinite.any():
            raise UsageError(
                f"column {str(name)!r} has {_count(infinite, 'infinite value')}, the first in row "
                f"{int(infinite.argmax())} of the complete ones; replace them or leave the rows out"
            )


def _describe_oddities(designs: pd.DataFrame, values: Values) -> list[str]:
    """Say what does no harm but should be known."""
    notes = []
    constant = [str(name) for name in designs if len(designs[name].unique()) == 1]
    if len(constant) == len(designs.columns):
        raise UsageError("every column of x is constant: there is nothing to choose")
    if constant:
        named = ", ".join(constant[:5]) + (" and others" if len(constant) > 5 else "")
        notes.append(f"Columns that never change are kept as they are: {named}.")
    repeats = designs.duplicated().to_numpy()
    if repeats.any():
        groups = pd.Series(values).groupby([designs[name] for name in designs], observed=True)
        spread = float((groups.max() - groups.min()).max())
        notes.append(
            f"{_count(repeats, 'row')} with the design of another kept as measured again; "
            f"values of the same design differ by up to {spread:.3g}."
        )
    varying = len(designs.columns) - len(constant)
    if len(values) < varying:
        notes.append(
            f"Fewer rows ({len(values)}) than columns that vary ({varying}): "
            "a model has more freedom than there are data, so trust its predictions little."
        )
    return notes


def _count(chosen: NDArray[np.bool_], what: str) -> str:
    number = int(chosen.sum())
    return f"{number} {what}{'' if number == 1 else 's'}"

"""Tables of designs and values: read from files, and checked.

A table is a frame, an array or a tensor of designs, and one value for each. Rows that cannot be
used raise an error or are left out; `notes` lists what was left out or is unusual.
"""

import hashlib
import re
from collections.abc import Collection
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types
from pyarrow import csv

from ddobench.errors import UsageError

Values = NDArray[np.float64]

EXAMPLE = "example"  # the file name that stands for the table of the package
SUFFIXES = (".csv", ".parquet")
MOST_LEVELS = 50  # of a text column that counts as a category
# Arrow, as some versions of pandas lose the last bit of a number
_CONVERT = csv.ConvertOptions(strings_can_be_null=True)


def read_table(file: str | Path) -> pd.DataFrame:
    """Read a CSV or Parquet file without losing a digit."""
    source = find_table(file)
    try:
        with source.open("rb") as opened:
            if source.name.lower().endswith(".parquet"):
                return pd.read_parquet(opened)
            table: pd.DataFrame = csv.read_csv(opened, convert_options=_CONVERT).to_pandas()
    except (ValueError, OSError) as error:  # Arrow raises these for other kinds of file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{file} cannot be read as a table: {reason}") from error
    if len(table.columns) == 1 and re.search(r"[;\t]", str(table.columns[0])):
        raise UsageError(f"{file} has a single column, {table.columns[0]!r}; separate by commas")
    return table


def content_hash(file: str | Path) -> str:
    """Return a hash of what is in a file."""
    return hashlib.blake2b(find_table(file).read_bytes(), digest_size=8).hexdigest()


def find_table(file: str | Path) -> Traversable:
    """Return where a file is; raise a UsageError if it is not a table that can be read."""
    if str(file) == EXAMPLE:
        return resources.files("ddobench.tabular").joinpath("example.csv")
    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"a table must be a {' or '.join(SUFFIXES)} file, got {path.name!r}")
    if not path.is_file():
        raise UsageError(f"there is no file {file}; give the path of a CSV or Parquet table")
    return path


@dataclass(frozen=True)
class Rows:
    """Designs and their values, without missing or infinite entries."""

    designs: pd.DataFrame  # N rows, the column names are strings
    y: Values  # (N,) in the units of the table
    target: str  # the name of the value column
    notes: tuple[str, ...]  # sentences on what was left out or looks unusual


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
            f"all {len(values)} values of {target} are {values[0]:g}, so there is "
            "nothing to learn; give a column whose values differ"
        )
    return Rows(designs, values, target, (*notes, *_unusual(designs, values)))


def check_column(name: str, designs: pd.DataFrame) -> None:
    """Raise unless a frame has this column."""
    if name not in designs:
        known = ", ".join(map(str, designs.columns[:20]))
        raise UsageError(f"there is no column {name!r}; the columns are {known}")


def is_text(column: "pd.Series[Any]") -> bool:
    """Return whether a column holds categories by its dtype: strings, booleans, categoricals."""
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
    """Return the name of the value column, and the values."""
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
    """Raise for a column that is neither numeric nor categorical."""
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
            f"column {name!r} has {len(levels)} different strings such as {str(levels[0])!r} in "
            f"{len(column)} rows, too many for a category; turn it into numbers, leave it out with "
            f"drop=[{name!r}], or keep it with categorical=[{name!r}]"
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
    """Leave out rows whose value or design is incomplete."""
    notes = []
    no_value = np.isnan(values)
    partial = designs.isna().any(axis=1).to_numpy() & ~no_value
    if no_value.any():
        notes.append(f"{_count(no_value, 'row')} without a value of {target} left out.")
    if partial.any():
        gaps = designs.columns[designs[partial].isna().any()]
        named = ", ".join(map(repr, gaps[:5])) + (" and others" if len(gaps) > 5 else "")
        notes.append(f"{_count(partial, 'row')} with missing entries left out, in column {named}.")
    kept = ~(no_value | partial)
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


def _unusual(designs: pd.DataFrame, values: Values) -> list[str]:
    """Return notes on what is usable but unusual."""
    notes = []
    constant = [str(name) for name in designs if len(designs[name].unique()) == 1]
    if len(constant) == len(designs.columns):
        raise UsageError("every column of x is constant, so nothing can vary; give other rows")
    if constant:
        named = ", ".join(constant[:5]) + (" and others" if len(constant) > 5 else "")
        notes.append(f"Constant columns keep their value in every proposal: {named}.")
    repeats = designs.duplicated().to_numpy()
    if repeats.any():
        groups = pd.Series(values).groupby([designs[name] for name in designs], observed=True)
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


def _count(chosen: NDArray[np.bool_], what: str) -> str:
    number = int(chosen.sum())
    return f"{number} {what}{'' if number == 1 else 's'}"

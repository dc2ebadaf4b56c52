"""Files of rows: CSV and Parquet, and a small example that ships with the package."""

import hashlib
import re
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import pandas as pd
from pyarrow import csv

from ddobench.errors import UsageError

EXAMPLE = "example"  # the word that stands for the table of the package
ENDINGS = (".csv", ".parquet")
# Arrow and not pandas, some versions of which lose the last bit of a number
_CONVERT = csv.ConvertOptions(strings_can_be_null=True)


def read_table(file: str | Path) -> pd.DataFrame:
    """Read the rows of a CSV or Parquet file, every digit of its numbers."""
    place = find_table(file)
    try:
        with place.open("rb") as opened:
            if place.name.lower().endswith(".parquet"):
                return pd.read_parquet(opened)
            table: pd.DataFrame = csv.read_csv(opened, convert_options=_CONVERT).to_pandas()
    except (ValueError, OSError) as error:  # what Arrow raises for a file of another kind
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UsageError(f"{file} cannot be read as a table: {reason}") from error
    if len(table.columns) == 1 and re.search(r"[;\t]", str(table.columns[0])):
        raise UsageError(f"{file} has a single column, {table.columns[0]!r}; separate by commas")
    return table


def content_hash(file: str | Path) -> str:
    """Name the content of a file, wherever it lies."""
    return hashlib.blake2b(find_table(file).read_bytes(), digest_size=8).hexdigest()


def find_table(file: str | Path) -> Traversable:
    """Return where a file is, or raise a UsageError that says what was expected."""
    if str(file) == EXAMPLE:
        return resources.files("ddobench.tabular").joinpath("example.csv")
    path = Path(file)
    if path.suffix.lower() not in ENDINGS:
        raise UsageError(f"a table must be a {' or '.join(ENDINGS)} file, got {path.name!r}")
    if not path.is_file():
        raise UsageError(f"there is no file {file}; give the path of a CSV or Parquet table")
    return path

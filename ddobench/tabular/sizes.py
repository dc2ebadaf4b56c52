"""What a configuration must know of a file of rows before anything is built."""

from typing import Any

from ddobench.tabular.files import content_hash
from ddobench.tabular.tables import split_table


def find_columns(*table: Any) -> int:
    """Return how many numbers a design has; `table` are the arguments of `split_table`."""
    return split_table(*table).encoding.width


def find_rows(*table: Any) -> int:
    """Return how many rows stay visible."""
    return int((~split_table(*table).best).sum())


def find_content(file: str, *_: Any) -> str:
    """Return the hash of what is in the file."""
    return content_hash(file)

"""A file of rows with its best rows set apart: what a method is shown, and what it is asked of."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ddobench.errors import UsageError
from ddobench.tabular.encodings import Encoding, find_columns
from ddobench.tabular.files import content_hash, read_table
from ddobench.tabular.rows import Values, gather_rows

FEWEST = 2  # rows that must stay visible


@dataclass(frozen=True)
class SplitTable:
    """Encoded designs and their values, larger being better; the best rows are marked."""

    encoding: Encoding
    codes: Values  # (N, e)
    y: Values  # (N,)
    best: NDArray[np.bool_]  # (N,) rows above the percentile
    notes: tuple[str, ...]


def split_best(y: Values, percentile: float) -> NDArray[np.bool_]:
    """Tell which values lie above a percentile of all of them, (N,)."""
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
    """Read a file and set apart the rows above a percentile of the values."""
    return _split(file, content_hash(file), target, minimise, hide, tuple(categorical), tuple(drop))


@cache
def _split(
    file: str,
    content: str,  # noqa: ARG001 - a changed file is read again
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
    plain = Encoding(find_columns(rows, categorical))
    encoding = Encoding(plain.columns, native=plain.categorical)
    best = split_best(y, hide)
    if (~best).sum() < FEWEST:
        raise UsageError(
            f"hide={hide:g} leaves {(~best).sum()} of {len(y)} rows visible; hide fewer"
        )
    return SplitTable(encoding, encoding.encode(rows.designs), y, best, rows.notes)

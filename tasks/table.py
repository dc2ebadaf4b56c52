"""Your own rows: a CSV, Excel or Parquet file of designs and values.

The rows above a percentile of the values are hidden, and methods are fitted to the others. Without
an oracle new designs have no value, and methods are judged by how well they predict and rank the
hidden rows. With an oracle (`oracle=module:function`) proposals are evaluated as in other tasks. A
seed determines the order of the visible rows, and which of them are used if `n` is smaller.

The digest contains a hash of the file but not its path, and only the name of the oracle.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, HiddenRows, Problem, Task
from ddobench.errors import UsageError
from ddobench.rng import Streams
from ddobench.tabular.encodings import Encoding, SplitTable, split_table
from ddobench.tabular.files import content_hash

Oracle = Callable[[Any], Any]  # a frame of K designs -> K values


@dataclass(frozen=True, kw_only=True)
class TableProblem(Problem):
    """Rows of a table, with values from the table or from an oracle."""

    rows: Tensor  # (R, d) all of the table
    values: Tensor  # (R,)
    encoding: Encoding
    oracle: Oracle | None
    sign: float  # of the values in the file

    @property
    def measures(self) -> bool:
        """Whether new designs have a value: only with an oracle."""
        return self.oracle is not None

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.stack([self._ask(designs) for designs in x])

    def _ask(self, designs: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values of designs; without an oracle NaN for designs that are not rows."""
        if self.oracle is None:
            same = (designs[:, None] == self.rows).all(dim=2)  # (K, R)
            return torch.where(same.any(dim=1), self.values[same.int().argmax(dim=1)], torch.nan)
        values = np.asarray(self.oracle(self.encoding.decode(designs.numpy())), dtype=np.float64)
        if values.shape != (len(designs),):
            raise ValueError(f"the oracle must return {len(designs)} values, got {values.shape}")
        return self.sign * torch.tensor(values)


@dataclass(frozen=True, kw_only=True)
class Table(Task):
    """A file of rows, the best of them hidden."""

    name: ClassVar[str] = "Table"

    file: str
    content: str = ""  # hash of what is in the file
    target: str = "y"
    minimise: bool = False
    hide: float = 80.0
    oracle: str | None = None
    categorical: list[str] = field(default_factory=list)
    drop: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        table = self._read()
        if self.content and self.content != content_hash(self.file):
            raise UsageError(f"{self.file} has changed since this run was planned; start it again")
        columns, visible = table.encoding.width, int((~table.best).sum())
        if self.d != columns:
            raise UsageError(
                f"d must be {columns}, the columns of {self.file}, got {self.d}; leave d out"
            )
        if self.n > visible:
            raise UsageError(f"n must be at most {visible}, the rows visible, got {self.n}")
        if self.oracle is None and not table.best.any():
            raise UsageError(
                f"hide={self.hide:g} hides no row, so that methods cannot be judged; "
                "use a smaller percentile, or give an oracle"
            )
        find_oracle(self.oracle)

    def describe(self) -> Description:
        """Describe the task."""
        table = self._read()
        hidden = int(table.best.sum())
        judged = (
            f"New designs are valued by {self.oracle}."
            if self.oracle
            else "New designs have no value: methods are judged by how well they predict and rank "
            "the hidden rows, which says nothing about the designs that they propose."
        )
        return Description(
            title=f"The rows of {Path(self.file).name}",
            formula=f"{self.target} of {self.d} columns, {'smaller' if self.minimise else 'larger'}"
            " is better",
            text=f"{self.n} rows are visible; {hidden} of {len(table.y)}, those above percentile "
            f"{self.hide:g} of the values, are hidden. {judged}",
        )

    def _draw(self, rng: Streams) -> TableProblem:
        table = self._read()
        seeds = len(rng.seeds)
        visible, best = ~table.best, table.best
        picked = rng.child("rows").permutation(int(visible.sum()))[:, : self.n]  # (S, N)
        codes, y = torch.from_numpy(table.codes), torch.from_numpy(table.y)
        held_out = None
        if best.any():
            held_out = HiddenRows(
                x=codes[best].repeat(seeds, 1, 1), y=y[best].repeat(seeds, 1)
            )  # fmt: skip
        return TableProblem(
            data=Dataset(
                x=codes[visible][picked], y=y[visible][picked], space=table.encoding.space
            ),
            optimum=None,
            graphs=None,
            held_out=held_out,
            rows=codes,
            values=y,
            encoding=table.encoding,
            oracle=find_oracle(self.oracle),
            sign=-1.0 if self.minimise else 1.0,
        )

    def _read(self) -> SplitTable:
        return split_table(
            self.file, self.target, self.minimise, self.hide, self.categorical, self.drop
        )


def find_oracle(address: str | None) -> Oracle | None:
    """Import the function named by `module:function`, also from the current folder."""
    if address is None:
        return None
    module, colon, name = address.partition(":")
    if not colon or not module or not name:
        raise UsageError(f"oracle must be MODULE:FUNCTION, got {address!r}")
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.append(folder)
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"the oracle {address} cannot be imported: {error}") from error
    if not callable(found):
        raise UsageError(f"the oracle {address} must be a function, got {type(found).__name__}")
    oracle: Oracle = found
    return oracle

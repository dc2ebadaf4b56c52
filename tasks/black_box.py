"""A function of your own in a box: rows are drawn uniformly, and new designs are valued by it.

The function takes designs (K, d) as a NumPy array and returns K values, larger being better and NaN
for an invalid design. Designs outside the box are invalid. The optimum is known only if you give
it. On the command line the function is MODULE:FUNCTION, also from the current folder, and only its
name is part of the digest; from Python (`ddobench.task(function, low, high)`) its content is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_truncation
from ddobench.rng import Stream, Streams
from ddobench.tasks.table import find_oracle
from ddobench.tasks.truncation import fill_below

TRIED = 1000  # designs of which one must be valid

Function = Callable[[NDArray[np.float64]], Any]  # (K, d) -> (K,)


def bowl(x: NDArray[np.float64]) -> NDArray[np.float64]:  # (K, d) -> (K,)
    """Return minus the squared distance from 0.3, the example of this task."""
    values: NDArray[np.float64] = -np.square(x - 0.3).sum(axis=1)
    return values


@dataclass(frozen=True, kw_only=True)
class BlackBoxProblem(Problem):
    """Draws of a box, with values of a function."""

    box: "BlackBox"

    def _evaluate(self, x: Tensor) -> Tensor:
        values = torch.full(x.shape[:2], torch.nan, dtype=torch.float64)
        low, high = self.box.bounds()
        inside = ((x >= low) & (x <= high)).all(dim=-1)  # (S, K)
        if inside.any():
            values[inside] = self.box.ask(x[inside])
        return values


@dataclass(frozen=True, kw_only=True)
class BlackBox(Task):
    """A box of designs and the function that values them."""

    name: ClassVar[str] = "BlackBox"

    function: Any  # MODULE:FUNCTION, or the function itself
    content: str = ""  # digest of the function, if it is given itself
    low: Any = 0.0  # a number for each variable, or one for all
    high: Any = 1.0
    optimum: float | None = None
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.bounds()
        if not (low < high).all():
            raise UsageError(f"low must be below high, got low={self.low} and high={self.high}")
        check_truncation(self.truncate)
        self._find()

    def bounds(self) -> tuple[Tensor, Tensor]:  # (d,) each
        """Return the lower and upper bound of each variable."""
        low, high = (self._bound(name) for name in ("low", "high"))
        return low, high

    def ask(self, designs: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values of designs in the box."""
        values = np.asarray(self._find()(designs.numpy().copy()), dtype=np.float64)
        if values.shape not in ((len(designs),), (len(designs), 1)):
            raise UsageError(
                f"the function must return {len(designs)} values for designs "
                f"{tuple(designs.shape)}, got an array {values.shape}"
            )
        return torch.tensor(values.reshape(-1))

    def describe(self) -> Description:
        """Describe the task."""
        name = self.function if isinstance(self.function, str) else self._find().__name__
        hidden = "" if self.truncate is None else (
            f" Rows above percentile {self.truncate:g} of the values are hidden."
        )  # fmt: skip
        return Description(
            title=f"The function {name}",
            formula=f"f(x), {self.low} ≤ x ≤ {self.high}, {self.d} variables",
            text=f"{self.n} rows are drawn uniformly from the box.{hidden} Designs outside the box "
            "are invalid.",
        )

    def _draw(self, rng: Streams) -> BlackBoxProblem:
        seeds = len(rng.seeds)
        x = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for i, stream in enumerate(rng.rows):
            rows, pilot = (self._rows(stream.child(name)) for name in ("rows", "pilot"))
            fill_below(x[i], y[i], self.truncate, pilot=pilot, rows=rows)
        return BlackBoxProblem(
            data=Dataset(x=x, y=y, space=Space(self.d)),
            optimum=None if self.optimum is None else torch.full((seeds,), float(self.optimum)),
            graphs=None,
            lower_bound=y.amax(dim=1) if self.optimum is None else None,
            box=self,
        )

    def _rows(self, rng: Stream) -> Callable[[int], tuple[Tensor, Tensor]]:
        """Return a function that draws the next valid rows of a seed."""
        low, high = self.bounds()

        def draw(count: int) -> tuple[Tensor, Tensor]:  # -> (at most count, d), (at most count,)
            tried = max(count, TRIED)
            designs = low + (high - low) * rng.uniform(tried, self.d, dtype=torch.float64)
            values = self.ask(designs)
            valid = torch.isfinite(values)
            if not valid.any():
                raise UsageError(
                    f"the function must have finite values in its box, got none of {tried} designs"
                )
            return designs[valid][:count], values[valid][:count]

        return draw

    def _bound(self, name: str) -> Tensor:  # (d,)
        given = np.asarray(getattr(self, name), dtype=np.float64).reshape(-1)
        if len(given) not in (1, self.d) or not np.isfinite(given).all():
            raise UsageError(
                f"{name} must be a finite number, or one for each of {self.d} variables, "
                f"got {getattr(self, name)!r}"
            )
        return torch.tensor(np.broadcast_to(given, (self.d,)).copy())

    def _find(self) -> Function:
        function = find_oracle(self.function) if isinstance(self.function, str) else self.function
        if not callable(function):
            raise UsageError(f"function must be MODULE:FUNCTION, got {self.function!r}")
        found: Function = function
        return found

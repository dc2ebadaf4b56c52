"""Measured tables: a proposal is a choice among designs that somebody has measured.

The values are measurements and the optimum is the largest of them, so no model stands between a
method and its score. The rows above a percentile of the values are hidden. A seed determines the
order of the visible rows, and which of them are used if `n` is smaller.

**The rule.** A proposal gets the value of the nearest measured design. Numbers are compared by
Euclidean distance after each column is divided by its standard deviation over all measured designs,
categories by the number of variables that differ. Of several nearest designs it is the first in the
order of their columns. Runs store how far proposals were moved (`moved`) and, where a table of
categories has gaps, the share of proposals that nobody has measured (`unknown`): a gap never counts
as a bad value. A design that was measured more than once has the mean of its values.

`task=oer`: overpotential of catalysts of six metals, each plate a grid of compositions.
`task=suzuki` and `task=buchwald`: yields of all combinations of reagents. `task=gb1`: fitness of
protein variants at four sites, 93.4 % of all. `task=superconductor_exact`: critical temperatures of
15,309 compositions.
Sources, licences and how to get them: `python -m ddobench.data`.
"""

import io
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cache, cached_property
from math import prod
from typing import ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.datasets import read_data
from ddobench.errors import UsageError, check_truncation
from ddobench.rng import Streams

CHUNK = 256  # designs whose distances to all rows are computed at once
CLOSE = 8  # rows that are compared again without rounding
FARTHEST = 1e6  # standard deviations at which a proposal is cut off
MOST_CELLS = 10**7  # combinations of categories


@dataclass(frozen=True)
class Measurements:
    """Different designs with their values, in the order of their columns."""

    x: Tensor  # (R, d)
    y: Tensor  # (R,)
    sizes: tuple[int, ...] | None = None  # of the categories of each column; None: numbers
    repeated: int = 0  # designs that were measured more than once
    spread: float = 0.0  # pooled standard deviation of their values

    @classmethod
    def average(cls, x: Tensor, y: Tensor, sizes: tuple[int, ...] | None = None) -> "Measurements":
        """Return the mean value of each different design among rows (R, d)."""
        designs, place, counts = torch.unique(x, dim=0, return_inverse=True, return_counts=True)
        means = torch.zeros(len(designs), dtype=y.dtype).index_add(0, place, y) / counts
        freedom = len(y) - len(designs)
        spread = float(((y - means[place]).square().sum() / freedom).sqrt()) if freedom else 0.0
        return cls(designs, means, sizes, int((counts > 1).sum()), spread)

    def find_nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (P, d) -> (P,), (P,)
        """Return the row of the nearest design to each proposal, and its distance."""
        if self.sizes is not None:
            rows, distance = self._cells
            cells = cell_of(x, self.sizes)
            return rows[cells], distance[cells]
        z = x / self._scale
        found = [self._compare(z[start : start + CHUNK]) for start in range(0, len(z), CHUNK)]
        near, distances = zip(*found, strict=True)
        return torch.cat(near), torch.cat(distances)

    @cached_property
    def _scale(self) -> Tensor:  # (d,)
        sd = self.x.std(dim=0)
        return torch.where(sd > 0, sd, 1.0)

    def _compare(self, z: Tensor) -> tuple[Tensor, Tensor]:  # (P, d) in standard deviations
        z, rows = z.clamp(-FARTHEST, FARTHEST), self.x / self._scale
        close = torch.cdist(z, rows).topk(min(CLOSE, len(rows)), largest=False).indices
        close, _ = close.sort(dim=1)  # so that the first of equal ones is taken
        least, place = (z[:, None] - rows[close]).square().sum(dim=2).min(dim=1)
        return close.gather(1, place[:, None])[:, 0], least.sqrt()

    @cached_property
    def _cells(self) -> tuple[Tensor, Tensor]:
        """Return for every combination of categories the nearest row, and its distance.

        A gap takes the first row among those that the combinations next to it have taken.
        """
        assert self.sizes is not None
        rows = torch.full((prod(self.sizes),), len(self.y))
        rows[cell_of(self.x, self.sizes)] = torch.arange(len(self.y))
        distance = torch.zeros(len(rows), dtype=torch.float64)
        strides = [prod(self.sizes[i + 1 :]) for i in range(len(self.sizes))]
        while len(gaps := (rows == len(self.y)).nonzero()[:, 0]):
            first = torch.full((len(gaps),), len(self.y))
            for size, stride in zip(self.sizes, strides, strict=True):
                own = gaps // stride % size
                for state in range(size):
                    first = torch.minimum(first, rows[gaps + (state - own) * stride])
            distance[gaps] = distance.max() + 1
            distance[gaps[first == len(self.y)]] = 0.0  # still a gap
            rows[gaps] = first
        return rows, distance


def cell_of(x: Tensor, sizes: tuple[int, ...]) -> Tensor:  # (..., d) -> (...)
    """Return the number of each combination of categories, the first one most significant."""
    cell = torch.zeros(x.shape[:-1], dtype=torch.int64)
    for size, state in zip(sizes, x.to(torch.int64).unbind(dim=-1), strict=True):
        cell = size * cell + state
    return cell


@dataclass(frozen=True, kw_only=True)
class MeasuredProblem(Problem):
    """Measured designs, the same for all seeds."""

    measurements: Measurements
    last: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _evaluate(self, x: Tensor) -> Tensor:
        return self.measurements.y[self._nearest(x)[0]]

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        """Return how far each proposal was moved, if measured designs are not all there are."""
        sizes = self.measurements.sizes
        if sizes is not None and prod(sizes) == len(self.measurements.y):
            return {}
        inside = self.data.space.contains(x)
        _, distance = self._nearest(torch.where(inside[..., None], x, 1.0).to(torch.float64))
        moved = {"moved": torch.where(inside, distance, torch.nan)}
        if sizes is not None:
            moved["unknown"] = (distance > 0).to(torch.float64)
        return moved

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return row and distance of the nearest designs, (S, K) each; the last ones are kept."""
        if not (self.last and torch.equal(self.last["x"], x)):
            row, distance = self.measurements.find_nearest(x.flatten(0, 1))
            self.last.update(
                x=x.clone(), row=row.view(x.shape[:2]), distance=distance.view(x.shape[:2])
            )
        return self.last["row"], self.last["distance"]


@dataclass(frozen=True, kw_only=True)
class MeasuredTask(Task):
    """Measured designs, the best of them hidden."""

    regret_unit: ClassVar[Literal["sd", "raw"]] = "raw"

    truncate: float | None = 50.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_truncation(self.truncate)
        table = self._measurements()
        if self.d != table.x.shape[1]:
            raise UsageError(f"d must be {table.x.shape[1]}, the variables measured, got {self.d}")
        visible = int(self._visible().sum())
        if self.n > visible:
            raise UsageError(f"n must be at most {visible}, the rows visible, got {self.n}")

    @abstractmethod
    def _measurements(self) -> Measurements:
        """Return all rows."""

    def _visible(self) -> Tensor:
        """Return which rows are visible, (R,)."""
        values = self._measurements().y
        if self.truncate is None:
            return torch.ones(len(values), dtype=torch.bool)
        return values <= values.quantile(self.truncate / 100.0)

    def _draw(self, rng: Streams) -> Problem:
        table, data = self._measurements(), self._draw_rows(rng)
        seeds = len(rng.seeds)
        return MeasuredProblem(
            data=data,
            optimum=table.y.max().repeat(seeds),
            graphs=None,
            full_range=torch.stack(table.y.aminmax()).repeat(seeds, 1),
            measurements=table,
        )

    def _draw_rows(self, rng: Streams) -> Dataset:
        table = self._measurements()
        visible = self._visible().nonzero()[:, 0]
        picked = visible[rng.child("rows").permutation(len(visible))[:, : self.n]]  # (S, N)
        return Dataset(x=table.x[picked], y=table.y[picked], space=Space(self.d, table.sizes))

    def describe_rows(self) -> str:
        """Return how many rows are visible, and which."""
        values, visible = self._measurements().y, self._visible()
        which = (
            "all there are"
            if self.truncate is None
            else f"those up to percentile {self.truncate:g} of the {len(values)} values, the best "
            f"at {float(values[visible].max()):.4f}"
        )
        return f"{self.n} of {int(visible.sum())} visible designs, {which}."


@dataclass(frozen=True, kw_only=True)
class Measured(MeasuredTask):
    """A data set of measured designs."""

    name: ClassVar[str] = "Measured"

    data: str
    target: str
    drop: list[str] = field(default_factory=list)  # columns that are neither value nor design
    letters: bool = False  # whether each letter of the only column is a variable
    minimise: bool = False
    file: str | None = None
    verify: bool = True
    content: str = ""  # hash of a file that was not verified

    def describe(self) -> Description:
        """Describe the task."""
        table = self._measurements()
        gaps = 0 if table.sizes is None else prod(table.sizes) - len(table.y)
        sign = "-" if self.minimise else ""
        return Description(
            title=f"A choice among the {len(table.y)} measured designs of {self.data}",
            formula=f"f(x) = {sign}{self.target} of the measured design nearest to x",
            text=f"{self.describe_rows()} Every value is a measurement, and the optimum, "
            f"{float(table.y.max()):.4g}, is the largest of them; regret is in these units."
            + (f" Nobody has measured {gaps} of the combinations." if gaps else "")
            + (
                f" {table.repeated} designs were measured more than once; their values differ by a "
                f"standard deviation of {table.spread:.3g}."
                if table.repeated
                else ""
            )
            + ("" if self.verify else " The file was not verified."),
        )

    def _measurements(self) -> Measurements:
        text = read_data(self.data, self.file, self.verify)
        return _read(text, self.target, tuple(self.drop), self.letters, self.minimise)


@cache
def _read(
    text: bytes, target: str, drop: tuple[str, ...], letters: bool, minimise: bool
) -> Measurements:
    x, y, sizes = read_rows(text, target, drop, letters)
    return Measurements.average(x, -y if minimise else y, sizes)


def read_rows(
    text: bytes, target: str, drop: tuple[str, ...], letters: bool = False
) -> tuple[Tensor, Tensor, tuple[int, ...] | None]:
    """Return designs (R, d) and values (R,) of a CSV, and the sizes of categories, if any."""
    table = pd.read_csv(io.BytesIO(text), keep_default_na=False)
    for name in (target, *drop):
        if name not in table:
            raise UsageError(
                f"the data must have a column {name!r}, got {', '.join(map(str, table.columns))}"
            )
    columns = table.drop(columns=[target, *drop])
    values = pd.to_numeric(table[target], errors="coerce").to_numpy(np.float64)
    if letters:
        words = columns.iloc[:, 0].astype(str)
        columns = pd.DataFrame([list(word) for word in words])
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in columns.dtypes]
    if not len(table) or not np.isfinite(values).all() or (any(numeric) and not all(numeric)):
        raise UsageError(
            f"{target!r} must be a number in every row, and all designs numbers or all categories; "
            "take the published file"
        )
    y = torch.tensor(values)
    if all(numeric):
        return torch.tensor(columns.to_numpy(np.float64)), y, None
    codes = [pd.factorize(columns[name], sort=True) for name in columns]
    sizes = tuple(len(levels) for _, levels in codes)
    if prod(sizes) > MOST_CELLS:
        raise UsageError(f"there are {prod(sizes)} combinations, at most {MOST_CELLS} are possible")
    x = np.stack([numbers for numbers, _ in codes], axis=1).astype(np.float64)
    return torch.from_numpy(x), y, sizes

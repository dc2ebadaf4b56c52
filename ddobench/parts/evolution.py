"""Evolution: a search that needs no gradient, for real and categorical designs. Ours.

Every design has children, and a child replaces it if the model values it higher and it is near a
visible row. A child differs from its parent in some coordinates, in one of two ways:

    crossover    they are those of a random row;
    difference   the difference of two random rows is added to them (differential evolution, Storn
                 and Price 1997).

Near means no further from a row than `reach` times the typical distance between neighbouring rows,
in standardised coordinates. Children of categorical designs are snapped to whole categories before
they are valued.
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import AscentStep, Encode, Search, check_beginning, pick_beginning
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Evolution(Search):
    """Better children replace their parents as long as they are near the rows."""

    name: ClassVar[str] = "evolution"
    uses_gradient: ClassVar[bool] = False

    begin_at: str = "top"
    designs: int = 128
    steps: int = 200
    changed: float = 0.2
    crossover: float = 0.5
    difference: float = 0.5
    reach: float = 1.0
    rows: int = 2000
    record_every: int = 4

    def __post_init__(self) -> None:
        check_beginning(self.begin_at, self.designs)
        for name in ("steps", "rows", "record_every"):
            check_whole(f"search.{name}", getattr(self, name), 1)
        for name in ("changed", "crossover"):
            if not 0 <= getattr(self, name) <= 1:
                raise UsageError(f"search.{name} must be from 0 to 1, got {getattr(self, name)}")
        for name in ("difference", "reach"):
            if getattr(self, name) <= 0:
                raise UsageError(f"search.{name} must be positive, got {getattr(self, name)}")

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # (S, K, d) -> (S, at most K, d)
        """Return the rows to start from."""
        return pick_beginning(self.begin_at, self.designs, starts, data)

    def prepare(self, rows: Tensor, encode: Encode, snap: Encode) -> None:  # noqa: ARG002
        """Keep the coordinates of the rows (S, N, e)."""
        self._rows, self._snap = rows, snap

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,
        failures: MutableMapping[int, str],  # noqa: ARG002 - NaN is never better
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first generation and after every `record_every`-th."""
        known = self._rows.shape[1]
        picked = rng.child("rows").sample(known, min(self.rows, known))  # (S, R)
        pool = torch.take_along_dim(self._rows, picked[..., None], dim=1).to(start)  # (S, R, e)
        limit = self.reach * typical_distance(pool)[:, None]  # (S, 1)
        draws = rng.child("children")
        z, value = start.clone(), model.value(start)  # (S, K, e), (S, K)
        for step in range(self.steps + 1):
            if step % self.record_every == 0 or step == self.steps:
                yield AscentStep(step, z.clone(), value)
            if step == self.steps:
                break
            child = self._snap(self._vary(z, pool, draws))
            height = model.value(child).nan_to_num(nan=-torch.inf)
            better = (height > value) & (nearest_distance(child, pool) <= limit)  # (S, K)
            z, value = child.where(better[..., None], z), height.where(better, value)

    def _vary(self, z: Tensor, pool: Tensor, rng: Streams) -> Tensor:  # (S, K, e) -> (S, K, e)
        """Return one child of each design."""
        _, designs, e = z.shape
        one, two = (self._pick(pool, designs, rng) for _ in range(2))  # (S, K, e)
        chance = rng.uniform(designs, e).to(z.device)  # (S, K, e)
        taken = chance <= chance.amin(dim=2, keepdim=True).clamp(min=self.changed)  # at least one
        crossed = (rng.uniform(designs) < self.crossover).to(z.device)  # (S, K)
        moved = torch.where(crossed[..., None], one, z + self.difference * (one - two))
        return moved.where(taken, z)

    def _pick(self, pool: Tensor, designs: int, rng: Streams) -> Tensor:  # (S, R, e) -> (S, K, e)
        picked = rng.integers(pool.shape[1], designs)[..., None].to(pool.device)  # (S, K, 1)
        return torch.take_along_dim(pool, picked, dim=1)


def nearest_distance(z: Tensor, rows: Tensor) -> Tensor:  # (S, K, e), (S, R, e) -> (S, K)
    """Return the distance of each design to the nearest row."""
    return torch.stack([_distances(*pair).amin(dim=1) for pair in zip(z, rows, strict=True)])


def typical_distance(rows: Tensor) -> Tensor:  # (S, R, e) -> (S,)
    """Return the median distance of rows to their nearest other row; infinity if all are equal."""
    nearest = []
    for own in rows:
        apart = _distances(own, own)  # (R, R)
        nearest.append(apart.where(apart > 0, torch.inf).amin(dim=1).median())
    return torch.stack(nearest)


def _distances(z: Tensor, rows: Tensor) -> Tensor:  # (K, e), (R, e) -> (K, R)
    """Return distances that do not depend on what else is in the stack."""
    return torch.cdist(z, rows, compute_mode="donot_use_mm_for_euclid_dist")

"""Full quadratic: a learned function of all pairs of variables, without any graph.

The third reading of the paper's regret figure, whose text says that "the approximation is a learned
quadratic function". Ours, as the paper does not specify:
- with fewer rows than coefficients the solution of smallest norm is taken;
- the argmax of a dense quadratic over bits is NP-hard: every start design climbs by the best single
  flip until none improves it, and the best end point is proposed. It need not be the argmax;
- with more than two categories a pair has a table in place of a product, and the climb sets one
  variable after the other to its best level.

Command: python -m ddobench -m method=full_quadratic task=quadratic seed=0-49
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal
from ddobench.errors import UsageError
from ddobench.exact.table_sums import TableSum, fit_tables
from ddobench.models.least_squares import least_squares
from ddobench.rng import Streams

Values = NDArray[np.float64]

MOST_CELLS = 5000  # of the tables of all pairs together


@dataclass(frozen=True)
class Quadric:
    """constant + x . linear + x' pairs x / 2 on bits; `pairs` is symmetric with zero diagonal."""

    constant: float
    linear: Values  # (d,)
    pairs: Values  # (d, d)

    def __call__(self, x: Values) -> Values:  # (K, d) -> (K,)
        values: Values = self.constant + x @ self.linear + ((x @ self.pairs) * x).sum(axis=1) / 2
        return values

    def climb(self, starts: Values) -> Values:
        """Flip the best bit of each design until no flip improves it, (K, d) -> (K, d)."""
        x = starts.copy()
        rows = np.arange(len(x))
        field = self.linear + x @ self.pairs  # (K, d) gain of switching a bit from 0 to 1
        worthwhile = 1e-9 * max(np.abs(self.linear).max(), np.abs(self.pairs).max(), 1e-300)
        while True:
            gains = (1 - 2 * x) * field
            bit = gains.argmax(axis=1)
            better = gains[rows, bit] > worthwhile
            if not better.any():
                return x
            moved, bits = rows[better], bit[better]
            step = 1 - 2 * x[moved, bits]
            x[moved, bits] += step
            field[moved] += step[:, None] * self.pairs[bits]


@dataclass(kw_only=True)
class FullQuadratic(Method):
    """Fit all pairs of variables, then climb by changes of single variables."""

    name: ClassVar[str] = "full_quadratic"

    ridge: float = 0.0

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"method.ridge must be 0 or more, got {self.ridge}")

    def declines(self, data: Dataset) -> str | None:
        """Decline designs that are not categorical, or whose tables have too many cells."""
        sizes = data.space.sizes
        if sizes is None or len(sizes) < 2:
            return "full_quadratic works on pairs of categories only"
        cells = 0 if set(sizes) == {2} else sum(a * b for a, b in combinations(sizes, 2))
        if cells > MOST_CELLS:
            return (
                f"full_quadratic has {cells:,} cells in the tables of all pairs here, and more "
                f"than {MOST_CELLS:,} cannot be solved for; use method=quadratic_ridge"
            )
        return None

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002 - nothing is drawn
        """Solve the least-squares problem of each seed."""
        sizes = data.space.sizes
        assert sizes is not None
        fit = fit_quadric if set(sizes) == {2} else partial(fit_pairs, sizes)
        self._models = [
            fit(x.numpy(), y.numpy(), self.ridge) for x, y in zip(data.x, data.y, strict=True)
        ]

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the best end point of the climbs, for each seed."""
        ends = [model.climb(x.numpy()) for model, x in zip(self._models, starts, strict=True)]
        best = np.stack(
            [end[[model(end).argmax()]] for model, end in zip(self._models, ends, strict=True)]
        )
        yield Proposal(torch.from_numpy(best))

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the fitted quadratic at each design."""
        rows = [model(designs.numpy()) for model, designs in zip(self._models, x, strict=True)]
        return torch.from_numpy(np.stack(rows))


def fit_quadric(x: Values, y: Values, ridge: float) -> Quadric:
    """Fit the quadratic of bits x (N, d) to y (N,)."""
    d = x.shape[1]
    first, second = np.triu_indices(d, k=1)
    features = np.concatenate([np.ones((len(x), 1)), x, x[:, first] * x[:, second]], axis=1)
    weights = least_squares(features, y, ridge)
    pairs = np.zeros((d, d))
    pairs[first, second] = weights[1 + d :]
    return Quadric(float(weights[0]), weights[1 : 1 + d], pairs + pairs.T)


def fit_pairs(sizes: tuple[int, ...], x: Values, y: Values, ridge: float) -> TableSum:
    """Fit a table for every pair of the variables of x (N, d) to y (N,)."""
    return TableSum(fit_tables(x, y, [*combinations(range(len(sizes)), 2)], sizes, ridge), sizes)

"""Least squares, with a ridge or of smallest norm, and one-hot features of finite variables.

A one-hot feature is a cell of a table over the joint settings of a few variables (a scope). Every
design has a single one in each table, so that the features of many tables are sparse.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Values = NDArray[np.float64]
Scope = tuple[int, ...]  # the variables of a table


def least_squares(features: Values, y: Values, ridge: float = 0.0) -> Values:
    """Return the weights (P,) minimising |features w - y|^2 + ridge |w|^2.

    With `ridge` 0 the minimiser of smallest norm is taken: one-hot features are always dependent.
    """
    left, singular, right = np.linalg.svd(features, full_matrices=False)
    keep = singular > singular.max(initial=0.0) * max(features.shape) * np.finfo(float).eps
    left, singular, right = left[:, keep], singular[keep], right[keep]
    weights: Values = right.T @ (singular / (singular**2 + ridge) * (left.T @ y))
    return weights


@dataclass(frozen=True)
class NormalEquations:
    """The products of features with each other and with the values, to be solved for any ridge."""

    gram: Tensor  # (P, P)
    moment: Tensor  # (P,)

    @classmethod
    def of(cls, table: Tensor, y: Tensor) -> "NormalEquations":  # (N, P), (N,)
        """Compute the products."""
        return cls(table.T @ table, table.T @ y)

    def solve(self, ridge: float) -> Tensor:  # (P,)
        """Return the weights under a ridge penalty."""
        return _solve_penalised(self.gram, self.moment, ridge)


@dataclass(frozen=True)
class DualEquations:
    """The products of rows with each other, which are fewer where features outnumber rows."""

    table: Tensor  # (N, P)
    gram: Tensor  # (N, N)
    y: Tensor  # (N,)

    def solve(self, ridge: float) -> Tensor:  # (P,)
        """Return the weights under a ridge penalty."""
        return self.table.T @ _solve_penalised(self.gram, self.y, ridge)


def ridge_equations(
    table: Tensor,
) -> Callable[[Tensor | slice, Tensor], NormalEquations | DualEquations]:
    """Return the equations of some rows of a table (N, P) and their values, in the smaller form."""
    if table.shape[1] <= len(table):
        return lambda rows, y: NormalEquations.of(table[rows], y)
    gram = table @ table.T
    return lambda rows, y: DualEquations(table[rows], gram[rows][:, rows], y)


def _solve_penalised(gram: Tensor, moment: Tensor, ridge: float) -> Tensor:
    penalised = gram + ridge * torch.eye(len(gram), dtype=gram.dtype)
    factor = torch.linalg.cholesky(penalised)
    return torch.cholesky_solve(moment[:, None], factor)[:, 0]


def configuration(x: Values, scope: Scope, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the cell of each design x (N, d) in the table of a scope, in C order."""
    members = tuple(x[:, variable].astype(np.int64) for variable in scope)
    index: NDArray[np.int64] = np.ravel_multi_index(members, [sizes[v] for v in scope])
    return index


def count_cells(scope: Scope, sizes: Sequence[int]) -> int:
    """Return the number of cells of the table of a scope."""
    return prod(sizes[variable] for variable in scope)


@dataclass(frozen=True)
class OneHot:
    """The sparse one-hot features of N designs, (N, P)."""

    features: Any  # sparse (N, P)

    def take(self, rows: NDArray[np.int64]) -> "OneHot":
        """Return the features of some designs."""
        return OneHot(self.features[rows])

    def gram(self, weights: Values | None = None) -> Values:  # (N,) -> (P, P)
        """Return the (weighted) products of every two features, summed over the designs."""
        right = self.features if weights is None else self.features.multiply(weights[:, None])
        products: Values = (self.features.T @ right).toarray()
        return products

    def moment(self, y: Values) -> Values:  # (N,) -> (P,)
        """Return the products of features and values, summed over the designs."""
        sums: Values = self.features.T @ y
        return sums

    def apply(self, weights: Values) -> Values:  # (P,) -> (N,)
        """Return the weighted sum of the features of each design."""
        values: Values = self.features @ weights
        return values

    def dense(self) -> Values:  # (N, P)
        """Return the features as a dense table."""
        table: Values = self.features.toarray()
        return table


def one_hot(x: Values, scopes: Sequence[Scope], sizes: Sequence[int]) -> OneHot:
    """Return the features of designs x (N, d) for the cells of all scopes, scope after scope."""
    from scipy.sparse import csr_array  # slow to import, and a plan needs none

    widths = [count_cells(scope, sizes) for scope in scopes]
    starts = np.cumsum([0, *widths])
    cells = [start + configuration(x, scope, sizes)
             for scope, start in zip(scopes, starts[:-1], strict=True)]  # fmt: skip
    columns = np.stack(cells, axis=1)  # (N, scopes)
    ends = np.arange(0, columns.size + 1, len(scopes))
    shape = (len(x), int(starts[-1]))
    return OneHot(csr_array((np.ones(columns.size), columns.ravel(), ends), shape=shape))

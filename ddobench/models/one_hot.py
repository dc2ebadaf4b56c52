"""One-hot features of the joint settings of finite variables: one feature for each cell of a table.

Every design has a single one in each table, so the features of many tables are sparse.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Values = NDArray[np.float64]
Scope = tuple[int, ...]  # the variables of a table


def configuration(x: Values, scope: Scope, sizes: Sequence[int]) -> NDArray[np.int64]:
    """Number the joint setting of the variables of a scope in each design x (N, d), in C order."""
    members = tuple(x[:, variable].astype(np.int64) for variable in scope)
    index: NDArray[np.int64] = np.ravel_multi_index(members, [sizes[v] for v in scope])
    return index


def count_cells(scope: Scope, sizes: Sequence[int]) -> int:
    """Return how many joint settings the variables of a scope have."""
    return prod(sizes[variable] for variable in scope)


@dataclass(frozen=True)
class OneHot:
    """The features of N designs, (N, P)."""

    features: Any  # sparse

    def take(self, rows: NDArray[np.int64]) -> "OneHot":
        """Return those of some designs."""
        return OneHot(self.features[rows])

    def gram(self, weights: Values | None = None) -> Values:  # (N,) -> (P, P)
        """Return the products of any two features, summed over the designs."""
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
        """Return all of them."""
        table: Values = self.features.toarray()
        return table


def one_hot(x: Values, scopes: Sequence[Scope], sizes: Sequence[int]) -> OneHot:
    """Return the features of designs x (N, d) for the cells of all scopes, scope after scope."""
    widths = [count_cells(scope, sizes) for scope in scopes]
    starts = np.cumsum([0, *widths])
    cells = [start + configuration(x, scope, sizes)
             for scope, start in zip(scopes, starts[:-1], strict=True)]  # fmt: skip
    columns = np.stack(cells, axis=1)  # (N, scopes)
    ends = np.arange(0, columns.size + 1, len(scopes))
    shape = (len(x), int(starts[-1]))
    return OneHot(csr_array((np.ones(columns.size), columns.ravel(), ends), shape=shape))

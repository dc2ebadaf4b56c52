"""FGM on categorical designs (Grudzien, Uehara, Levine, Abbeel 2024): part of the method `fgm`.

Eq. "simple2" of the paper with the graph known, as in its regret figure: least squares on the
one-hot code of every clique, then the exact argmax.

Where the paper is silent:
- the one-hot features are dependent (on a cycle of d bits their rank is 2d + 1), so the solution of
  smallest norm is taken; `ridge` > 0 tames the interpolation peak of noisy data at N near 2d;
- the argmax is found exactly by max-sum, since enumerating the designs is impossible.

Its row: python -m ddobench -m method=fgm task=quadratic seed=0-49
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Privilege, Proposal, Space
from ddobench.errors import UsageError
from ddobench.exact.max_sum import Scope, Table, maximise
from ddobench.models.least_squares import least_squares
from ddobench.rng import Streams


@dataclass(kw_only=True)
class DiscreteFGM(Method):
    """Fit one table per clique of the graph, then take the exact maximiser of their sum."""

    ridge: float = 0.0

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"method.ridge must be 0 or more, got {self.ridge}")

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002 - in any space
        """Ask for the true graph: the paper's regret figure is about a known one."""
        return frozenset({"graph"})

    def declines(self, data: Dataset) -> str | None:
        """Decline what is not categorical or has no known graph."""
        if not data.space.categorical:
            return "fgm works on categorical designs only"
        return None if data.privileged.graphs else "fgm needs a known graph, and this task has none"

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002 - nothing is drawn
        """Solve the least-squares problem of each seed."""
        assert data.space.sizes is not None
        assert data.privileged.graphs is not None
        self._sizes = data.space.sizes
        self._cliques = [graph.cliques for graph in data.privileged.graphs]
        self._tables = [
            fit_clique_tables(x.numpy(), y.numpy(), cliques, self._sizes, self.ridge)
            for x, y, cliques in zip(data.x, data.y, self._cliques, strict=True)
        ]

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the one design that maximises the fitted sum, for each seed."""
        best = [maximise(tables, self._sizes) for tables in self._tables]
        designs = torch.from_numpy(np.stack([design for _, design in best])).to(starts.dtype)
        yield Proposal(designs, torch.from_numpy(np.stack([value for value, _ in best])))

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the sum of the fitted tables at each design."""
        rows = [
            sum(
                table.values[0].ravel()[configuration(designs, table.scope, self._sizes)]
                for table in tables
            )
            for designs, tables in zip(x.numpy(), self._tables, strict=True)
        ]
        return torch.from_numpy(np.stack(rows))


def fit_clique_tables(
    x: NDArray[np.float64],  # (N, d)
    y: NDArray[np.float64],  # (N,)
    cliques: tuple[Scope, ...],
    sizes: tuple[int, ...],
    ridge: float,
) -> list[Table]:
    """Return one fitted table per clique; together they are the least-squares fit of y."""
    shapes = [tuple(sizes[variable] for variable in clique) for clique in cliques]
    widths = [prod(shape) for shape in shapes]
    ends = np.cumsum(widths)
    features = np.zeros((len(x), ends[-1]))
    rows = np.arange(len(x))
    for clique, start in zip(cliques, ends - widths, strict=True):
        features[rows, start + configuration(x, clique, sizes)] = 1.0
    pieces = np.split(least_squares(features, y, ridge), ends[:-1])
    return [
        Table(clique, piece.reshape(1, *shape))
        for clique, shape, piece in zip(cliques, shapes, pieces, strict=True)
    ]


def configuration(
    x: NDArray[np.float64], clique: Scope, sizes: tuple[int, ...]
) -> NDArray[np.int64]:
    """Number the joint setting of the clique's variables in each design, in C order."""
    members = tuple(x[:, variable].astype(np.int64) for variable in clique)
    index: NDArray[np.int64] = np.ravel_multi_index(members, [sizes[v] for v in clique])
    return index

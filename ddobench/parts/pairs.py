"""Which pairs of categorical variables interact: a test on the designs themselves. Ours.

What the pseudo-Hessian is to normal codes, the two-way table is to categories. The value is fitted
by a function of each variable alone; what that leaves is averaged over the joint settings of a
pair, and the sum of squares of these means is compared with what is left (F-test, with as many
degrees of freedom as settings were seen beyond the two margins). Pairs that pass the corrected
level are fitted too, and the others tested again on what is left then, until no more is found: a
strong pair hides a weak one only once. Pairs whose tables have more cells together than there are
rows cannot be learned, however significant: the weakest are dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import f as f_distribution

from ddobench.contracts import Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.graphs import Graph
from ddobench.models.least_squares import least_squares
from ddobench.models.one_hot import Scope, Values, one_hot
from ddobench.parts.discovery import CORRECTIONS, Discovered, Discovery, GraphInputs, thin_out

NOISE = 1e-6  # standard deviations of the values, below which nothing is left to explain
MOST_FEATURES = 3000  # that are fitted before what is left is tested once more
MOST_CELLS = 10_000  # of the tables of all pairs together


@dataclass(kw_only=True)
class Pairs(Discovery):
    """Edges between variables whose joint setting explains more than each of the two."""

    name: ClassVar[str] = "pairs"

    alpha: float = 0.05
    correction: str = "bonferroni"
    rounds: int = 10
    most_cliques: int = 200

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"graph.alpha must be a level between 0 and 1, got {self.alpha}")
        check_one_of("graph.correction", self.correction, tuple(CORRECTIONS))
        check_whole("graph.rounds", self.rounds, 1)
        check_whole("graph.most_cliques", self.most_cliques, 1)

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - codes are no categories
        """Decline the codes of a pipeline: what is tested is designs."""
        return (
            "graph=pairs tests categories, for the tables that method=fgm fits to these; "
            "use graph=stein, bonferroni or fdr"
        )

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Test every pair of each seed; here z (S, N, d) are the categories themselves."""
        return [self.decide(x, y) for x, y in zip(inputs.z.numpy(), inputs.y.numpy(), strict=True)]

    def decide(self, x: Values, y: Values) -> Discovered:  # (N, d), (N,)
        """Return the graph of the significant pairs, thinned out if it has too many cliques."""
        rows, d = x.shape
        sizes = [int(column.max()) + 1 for column in x.T]
        found: list[tuple[int, int]] = []  # the strongest first
        cells = np.zeros(0)  # of the tables of these, added up
        for _ in range(self.rounds):
            scopes: list[Scope] = [*((i,) for i in range(d)), *found]
            left, rank = explain(x, (y - y.mean()) / (y.std() or 1.0), scopes, sizes)
            tested = [pair for pair in combinations(range(d), 2) if pair not in found]
            if not tested:
                break
            p = compare_pairs(x, left, rank, tested, sizes)
            adjusted = CORRECTIONS[self.correction](p)
            order = np.argsort(p, kind="stable")
            new = [tested[i] for i in order if adjusted[i] <= self.alpha]
            found += new
            cells = np.cumsum([sizes[i] * sizes[j] for i, j in found])
            if not new or cells[-1] > min(rows / 2, MOST_FEATURES):
                break
        fillable = [
            pair for pair, n in zip(found, cells, strict=True) if n <= min(rows, MOST_CELLS)
        ]
        kept = thin_out(d, fillable, self.most_cliques)
        return Discovered(Graph.from_edges(d, kept), None, len(found) - len(kept), rows)


def explain(
    x: Values, y: Values, scopes: Sequence[Scope], sizes: Sequence[int]
) -> tuple[Values, int]:
    """Return what tables over scopes leave of y (N,), and how many numbers they had to fit it."""
    features = one_hot(x, scopes, sizes)
    gram = features.gram()
    left = y - features.apply(least_squares(gram, features.moment(y)))
    return left, int(np.linalg.matrix_rank(gram, hermitian=True))


def compare_pairs(
    x: Values, left: Values, rank: int, pairs: Sequence[tuple[int, int]], sizes: Sequence[int]
) -> Values:
    """Return the p-value of each pair: do its joint settings explain what is `left` (N,)?"""
    alone = one_hot(x, [(i,) for i in range(len(sizes))], sizes)
    counts = alone.gram()  # (E, E) rows of each joint setting
    sums = alone.gram(left)  # (E, E)
    ends = np.cumsum([0, *sizes])[:-1]
    squares = _by_variable(sums**2 / np.maximum(counts, 1), ends)  # (d, d)
    seen = _by_variable((counts > 0).astype(float), ends)  # (d, d)
    levels = np.diagonal(seen)
    freedom = seen - levels[:, None] - levels + 1
    first, second = np.array(pairs, dtype=int).reshape(-1, 2).T
    gained, own = squares[first, second], freedom[first, second]
    rest = len(left) - rank - own
    total = float(left @ left)
    testable = (own > 0) & (rest > 0) & (total > len(left) * NOISE**2)
    own, rest = np.where(testable, own, 1), np.where(testable, rest, 1)
    unexplained = np.maximum(total - gained, np.finfo(float).tiny)
    p = f_distribution.sf((gained / own) / (unexplained / rest), own, rest)
    return np.where(testable, p, 1.0)


def _by_variable(table: Values, starts: NDArray[np.int64]) -> Values:  # (E, E) -> (d, d)
    """Sum over the levels of each two variables."""
    summed: Values = np.add.reduceat(np.add.reduceat(table, starts, axis=0), starts, axis=1)
    return summed

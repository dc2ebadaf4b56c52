"""Functional graphs: discovered from codes and values, known, or fixed.

The paper's discovery is based on Stein's identity: for standard normal z and i != j,
E[z_i z_j f(z)] is the mean mixed derivative of f, which is zero if i and j do not interact. Its
estimate from M rows, the pseudo-Hessian H, is compared with the quantile c of a standard normal:
there is an edge where |H_ij| >= c / sqrt(M). This is a valid test only for standardised values.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Privilege, Privileged, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.graphs import Graph
from ddobench.models.least_squares import Scope, Values, least_squares, one_hot
from ddobench.models.tensors import multiply
from ddobench.rng import Streams

# of `Pairs`
NOISE = 1e-6  # residuals below this many standard deviations of the values count as zero
MOST_FEATURES = 3000  # with more, there is no further round of tests
MOST_CELLS = 10_000  # of the tables of all pairs together

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class GraphInputs:
    """What a graph can be found from: standardised codes and values, and privileged knowledge."""

    z: Tensor  # (S, N, e)
    y: Tensor  # (S, N)
    known: Privileged
    rng: Streams


@dataclass(frozen=True)
class Discovered:
    """The graph of one seed, and how it was found."""

    graph: Graph
    hessian: Matrix | None = None  # (e, e) pseudo-Hessian, if it was estimated
    dropped: int = 0  # edges removed to limit the number of cliques
    rows: int | None = None  # number of rows that the test assumed

    def describe(self) -> dict[str, Any]:
        """Return the graph as stored in a record."""
        sizes = Counter(map(len, self.graph.cliques))
        return {
            "edges": [list(edge) for edge in self.graph.edges],
            "cliques": len(self.graph.cliques),
            "clique_sizes": {str(size): sizes[size] for size in sorted(sizes)},
            "dropped_edges": self.dropped,
            "pseudo_hessian": None if self.hessian is None else self.hessian.round(5).tolist(),
            "tested_rows": self.rows,
        }


@dataclass(kw_only=True)
class Discovery(ABC):
    """A way to find a graph; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    privileges: ClassVar[frozenset[Privilege]] = frozenset()

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - a default for all graphs
        """Return why no graph can be found for designs of a space, or None if one can."""
        return None

    @abstractmethod
    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return the graph of each seed."""

    def watcher(self) -> "Watcher | None":
        """Return a function that updates the graphs during a training, or None."""
        return None


# minibatch z (S, B, e), y (S, B), share of the training done -> new graphs, or None
Watcher = Callable[[Tensor, Tensor, float], list[Discovered] | None]


def pseudo_hessian(z: Tensor, y: Tensor) -> Tensor:  # (S, M, e), (S, M) -> (S, e, e)
    """Return the mean of z_i z_j y over the rows."""
    return multiply((z * y[..., None]).mT, z) / z.shape[1]


def p_values(hessian: Matrix, rows: int) -> Matrix:  # (e, e) -> (pairs,)
    """Return the two-sided p-value of each pair i < j, in the order of `combinations`."""
    from scipy.stats import norm  # slow to import, and a plan needs none

    upper = hessian[np.triu_indices(len(hessian), 1)]
    values: Matrix = 2 * norm.sf(np.abs(upper) * sqrt(rows))
    return values


def _control_false_discoveries(p: Matrix) -> Matrix:
    from scipy.stats import false_discovery_control  # slow to import, and a plan needs none

    adjusted: Matrix = false_discovery_control(p, method="bh")
    return adjusted


# p-values (pairs,) -> adjusted p-values
CORRECTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "none": lambda p: p,
    "bonferroni": lambda p: p * len(p),
    "fdr": _control_false_discoveries,
}


@dataclass(kw_only=True)
class Stein(Discovery):
    """Edges where the pseudo-Hessian differs significantly from zero."""

    name: ClassVar[str] = "stein"

    alpha: float = 0.05
    correction: str = "none"
    most_cliques: int = 200

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise UsageError(f"graph.alpha must be a level between 0 and 1, got {self.alpha}")
        check_one_of("graph.correction", self.correction, tuple(CORRECTIONS))
        check_whole("graph.most_cliques", self.most_cliques, 1)

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Test every pair of each seed."""
        hessians = pseudo_hessian(inputs.z, inputs.y).cpu().numpy()
        return [self.decide(hessian, inputs.y.shape[1]) for hessian in hessians]

    def decide(self, hessian: Matrix, rows: int) -> Discovered:
        """Return the graph of the significant pairs, with a limited number of cliques."""
        adjusted = CORRECTIONS[self.correction](p_values(hessian, rows))
        pairs = combinations(range(len(hessian)), 2)
        edges = [pair for pair, p in zip(pairs, adjusted, strict=True) if p <= self.alpha]
        strongest = sorted(edges, key=lambda pair: -abs(hessian[pair]))
        kept = limit_cliques(len(hessian), strongest, self.most_cliques)
        return Discovered(
            Graph.from_edges(len(hessian), kept), hessian, len(edges) - len(kept), rows
        )


@dataclass(kw_only=True)
class Permuted(Stein):
    """The discovered graph with its nodes shuffled: the same shape, the wrong variables."""

    name: ClassVar[str] = "permuted"

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Discover, then shuffle the nodes of each seed."""
        return [
            replace(one, graph=_relabel(one.graph, row.permutation(one.graph.d)))
            for one, row in zip(super().discover(inputs), inputs.rng.rows, strict=True)
        ]


@dataclass(kw_only=True)
class Online(Stein):
    """Tests on a running average over the minibatches of the training, as in the supplement.

    The graph is empty at first. The threshold uses M = the size of a minibatch, although the
    average is over many more rows, so edges are rare.
    """

    name: ClassVar[str] = "online"

    momentum: float = 0.99
    every: float = 0.25

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.momentum < 1:
            raise UsageError(f"graph.momentum must be in [0, 1), got {self.momentum}")
        if not 0 < self.every <= 1:
            raise UsageError(f"graph.every must be a share of the steps, got {self.every}")

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return empty graphs to start with."""
        return Empty().discover(inputs)

    def watcher(self) -> Watcher:
        """Return a running average that tests again after every share of the training."""
        return RunningAverage(self)


class RunningAverage:
    """A running average of the pseudo-Hessian during one training."""

    def __init__(self, test: Online) -> None:
        self.test = test
        self.average: Tensor | None = None  # (S, e, e)
        self.refreshes = 0

    def __call__(self, z: Tensor, y: Tensor, progress: float) -> list[Discovered] | None:
        """Add a minibatch; return new graphs if a test is due."""
        now = pseudo_hessian(z, y)
        if self.average is None:
            self.average = torch.zeros_like(now)
        self.average = self.average * self.test.momentum + now * (1 - self.test.momentum)
        due = int(progress / self.test.every + 1e-9)
        if due == self.refreshes:
            return None
        self.refreshes = due
        hessians = self.average.to("cpu", torch.float64).numpy()
        return [self.test.decide(hessian, z.shape[1]) for hessian in hessians]


@dataclass(kw_only=True)
class Empty(Discovery):
    """No edges: a sum of functions of one variable each."""

    name: ClassVar[str] = "empty"

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return isolated nodes."""
        return [Discovered(Graph.from_edges(inputs.z.shape[2], []))] * len(inputs.z)


@dataclass(kw_only=True)
class Complete(Discovery):
    """All edges: one clique, an ordinary network."""

    name: ClassVar[str] = "complete"

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return one clique of all nodes."""
        everything = range(inputs.z.shape[2])
        return [Discovered(Graph.from_cliques(len(everything), [everything]))] * len(inputs.z)


@dataclass(kw_only=True)
class Known(Discovery):
    """The true graph; it applies only if the codes are the true coordinates."""

    name: ClassVar[str] = "true"
    privileges: ClassVar[frozenset[Privilege]] = frozenset({"graph"})

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return the graphs that the harness knows."""
        if inputs.known.graphs is None:
            raise UsageError("graph=true needs a task with a known graph; use graph=stein")
        for graph in inputs.known.graphs:
            if graph.d != inputs.z.shape[2]:
                raise UsageError(
                    f"graph=true has {graph.d} nodes, got codes of {inputs.z.shape[2]} numbers; "
                    "use latent=oracle"
                )
        return [Discovered(graph) for graph in inputs.known.graphs]


def limit_cliques(
    d: int, strongest: Sequence[tuple[int, int]], most_cliques: int
) -> Sequence[tuple[int, int]]:
    """Remove the weakest (last) edges until there are at most `most_cliques` maximal cliques."""
    import networkx as nx  # slow to import, and a plan needs none

    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(d))
    graph.add_edges_from(strongest)
    kept = len(strongest)
    while kept and len(list(islice(nx.find_cliques(graph), most_cliques + 1))) > most_cliques:
        kept -= 1
        graph.remove_edge(*strongest[kept])
    return strongest[:kept]


def _relabel(graph: Graph, order: Tensor) -> Graph:  # (d,)
    """Give node i the name order[i]."""
    names = order.tolist()
    return Graph.from_edges(graph.d, [(names[i], names[j]) for i, j in graph.edges])


@dataclass(kw_only=True)
class Pairs(Discovery):
    """Edges between categorical variables whose joint setting has an effect of its own. Ours.

    The two-way table is to categories what the pseudo-Hessian is to normal codes. A function of
    each variable alone is fitted to the values. The residuals are averaged over the joint settings
    of a pair, and the sum of squares of these means is tested (F-test, with as many degrees of
    freedom as settings were seen beyond the two margins). Pairs that pass the corrected level are
    fitted too, and the others are tested again on the new residuals, until no more are found: so a
    strong pair does not hide a weak one. Tables with more cells in total than there are rows cannot
    be fitted, however significant: the weakest pairs are dropped.
    """

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

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - codes are not categories
        """Decline the codes of a pipeline: only categories can be tested."""
        return (
            "graph=pairs tests categories, for the tables that method=fgm fits to these; "
            "use graph=stein, bonferroni or fdr"
        )

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Test every pair of each seed; here z (S, N, d) are the categories themselves."""
        return [self.decide(x, y) for x, y in zip(inputs.z.numpy(), inputs.y.numpy(), strict=True)]

    def decide(self, x: Values, y: Values) -> Discovered:  # (N, d), (N,)
        """Return the graph of the significant pairs, with a limited number of cliques."""
        rows, d = x.shape
        sizes = [int(column.max()) + 1 for column in x.T]
        found: list[tuple[int, int]] = []  # the strongest first
        cells = np.zeros(0)  # cumulative number of cells of their tables
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
        kept = limit_cliques(d, fillable, self.most_cliques)
        return Discovered(Graph.from_edges(d, kept), None, len(found) - len(kept), rows)


def explain(
    x: Values, y: Values, scopes: Sequence[Scope], sizes: Sequence[int]
) -> tuple[Values, int]:
    """Return the residuals (N,) of tables over scopes fitted to y (N,), and the rank of the fit."""
    features = one_hot(x, scopes, sizes)
    gram = features.gram()
    left = y - features.apply(least_squares(gram, features.moment(y)))
    return left, int(np.linalg.matrix_rank(gram, hermitian=True))


def compare_pairs(
    x: Values, left: Values, rank: int, pairs: Sequence[tuple[int, int]], sizes: Sequence[int]
) -> Values:
    """Return the p-value of each pair: do its joint settings explain the residuals `left` (N,)?"""
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
    from scipy.stats import f as f_distribution  # slow to import, and a plan needs none

    p = f_distribution.sf((gained / own) / (unexplained / rest), own, rest)
    return np.where(testable, p, 1.0)


def _by_variable(table: Values, starts: NDArray[np.int64]) -> Values:  # (E, E) -> (d, d)
    """Sum over the levels of every two variables."""
    summed: Values = np.add.reduceat(np.add.reduceat(table, starts, axis=0), starts, axis=1)
    return summed

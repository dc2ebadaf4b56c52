"""Functional graphs for a table of codes and values: discovered, known, or decreed.

The paper's discovery rests on Stein's identity: for standard normal z and i != j,
E[z_i z_j f(z)] is the mean mixed derivative of f, zero where i and j do not interact. Its estimate
from M rows, the pseudo-Hessian H, is compared with the quantile c of a standard normal: an edge
where |H_ij| >= c / sqrt(M). That is a test only if the values are centred and scaled.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from math import sqrt
from typing import Any, ClassVar

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import false_discovery_control, norm
from torch import Tensor

from ddobench.contracts import Privilege, Privileged, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.graphs import Graph
from ddobench.models.products import multiply
from ddobench.rng import Streams

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class GraphInputs:
    """What a graph may be told from: standardised codes and values, and what was asked for."""

    z: Tensor  # (S, N, e)
    y: Tensor  # (S, N)
    known: Privileged
    rng: Streams


@dataclass(frozen=True)
class Discovered:
    """The graph of one seed, and how it came about."""

    graph: Graph
    hessian: Matrix | None = None  # (e, e) pseudo-Hessian, where one was estimated
    dropped: int = 0  # edges that the guard against too many cliques took away
    rows: int | None = None  # by which the test took the pseudo-Hessian to be estimated

    def describe(self) -> dict[str, Any]:
        """Return all of it for a record."""
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
    """A way to come by a graph; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    privileges: ClassVar[frozenset[Privilege]] = frozenset()

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - a default for all graphs
        """Return why no graph can be had for designs of a space, or None if one can."""
        return None

    @abstractmethod
    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return the graph of each seed."""

    def watcher(self) -> "Watcher | None":
        """Return what follows one training and changes its graphs, or None: they stay."""
        return None


# minibatch z (S, B, e), y (S, B), share of the training that is over -> graphs to go on with
Watcher = Callable[[Tensor, Tensor, float], list[Discovered] | None]


def pseudo_hessian(z: Tensor, y: Tensor) -> Tensor:  # (S, M, e), (S, M) -> (S, e, e)
    """Return the mean of z_i z_j y over the rows."""
    return multiply((z * y[..., None]).mT, z) / z.shape[1]


def p_values(hessian: Matrix, rows: int) -> Matrix:  # (e, e) -> (pairs,)
    """Return the two-sided p-value of each pair i < j, in the order of `combinations`."""
    upper = hessian[np.triu_indices(len(hessian), 1)]
    values: Matrix = 2 * norm.sf(np.abs(upper) * sqrt(rows))
    return values


# p-values (pairs,) -> adjusted ones, to be compared with alpha
CORRECTIONS: dict[str, Callable[[Matrix], Matrix]] = {
    "none": lambda p: p,
    "bonferroni": lambda p: p * len(p),
    "fdr": lambda p: false_discovery_control(p, method="bh"),
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
        """Return the graph of the significant pairs, thinned out if it has too many cliques."""
        adjusted = CORRECTIONS[self.correction](p_values(hessian, rows))
        pairs = combinations(range(len(hessian)), 2)
        edges = [pair for pair, p in zip(pairs, adjusted, strict=True) if p <= self.alpha]
        strongest = sorted(edges, key=lambda pair: -abs(hessian[pair]))
        kept = thin_out(len(hessian), strongest, self.most_cliques)
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

    The graph is empty at first. The threshold takes M = the size of a minibatch, although the
    average rests on many more rows: edges are rare.
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
        """Start without edges."""
        return Empty().discover(inputs)

    def watcher(self) -> Watcher:
        """Return a running average that decides anew after every share of the training."""
        return RunningAverage(self)


class RunningAverage:
    """The pseudo-Hessian of one training, and the graphs it leads to."""

    def __init__(self, test: Online) -> None:
        self.test = test
        self.average: Tensor | None = None  # (S, e, e)
        self.refreshes = 0

    def __call__(self, z: Tensor, y: Tensor, progress: float) -> list[Discovered] | None:
        """Take in a minibatch."""
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
    """The true graph, which means something only where the codes are the true coordinates."""

    name: ClassVar[str] = "true"
    privileges: ClassVar[frozenset[Privilege]] = frozenset({"graph"})

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Return what the harness knows."""
        if inputs.known.graphs is None:
            raise UsageError("graph=true needs a task with a known graph; use graph=stein")
        for graph in inputs.known.graphs:
            if graph.d != inputs.z.shape[2]:
                raise UsageError(
                    f"graph=true has {graph.d} nodes, got codes of {inputs.z.shape[2]} numbers; "
                    "use latent=oracle"
                )
        return [Discovered(graph) for graph in inputs.known.graphs]


def thin_out(
    d: int, strongest: Sequence[tuple[int, int]], most_cliques: int
) -> Sequence[tuple[int, int]]:
    """Leave out the weakest edges, those at the end, until the maximal cliques are few enough."""
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

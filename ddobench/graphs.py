"""Functional graphs: which variables of a function interact."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Graph:
    """An undirected graph of the variables 0 to d - 1, given by its maximal cliques."""

    d: int
    cliques: tuple[tuple[int, ...], ...]

    @classmethod
    def from_edges(cls, d: int, edges: Iterable[tuple[int, int]]) -> Self:
        """Build the graph with the given edges; an isolated variable is a clique of its own."""
        import networkx as nx  # slow to import, and a plan needs none

        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(d))
        for i, j in edges:
            if i == j or not (0 <= i < d and 0 <= j < d):
                raise ValueError(
                    f"an edge joins two different variables of 0 to {d - 1}, got {(i, j)}"
                )
            graph.add_edge(i, j)
        return cls(d, tuple(sorted(tuple(sorted(clique)) for clique in nx.find_cliques(graph))))

    @classmethod
    def from_cliques(cls, d: int, cliques: Iterable[Iterable[int]]) -> Self:
        """Build the graph in which each of the given sets of variables is fully connected."""
        return cls.from_edges(
            d, (edge for clique in cliques for edge in combinations(sorted(clique), 2))
        )

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges (i, j) with i < j, sorted."""
        pairs = {pair for clique in self.cliques for pair in combinations(clique, 2)}
        return tuple(sorted(pairs))

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the symmetric (d, d) matrix of edges, with a diagonal of zeros."""
        matrix = np.zeros((self.d, self.d), dtype=bool)
        for i, j in self.edges:
            matrix[i, j] = matrix[j, i] = True
        return matrix


@dataclass(frozen=True)
class Recovery:
    """Counts of correct and wrong edges; a share of zero edges is 0."""

    found: int  # edges in both
    invented: int  # edges discovered only
    missed: int  # true edges not discovered
    pairs: int  # of variables

    @classmethod
    def of(cls, discovered: Graph, truth: Graph) -> "Recovery":
        """Compare two graphs on the same variables."""
        if discovered.d != truth.d:
            raise ValueError(f"graphs on {discovered.d} and {truth.d} variables cannot be compared")
        found, true = set(discovered.edges), set(truth.edges)
        pairs = truth.d * (truth.d - 1) // 2
        return cls(len(found & true), len(found - true), len(true - found), pairs)

    @property
    def precision(self) -> float:
        """The share of discovered edges that are true."""
        return _share(self.found, self.found + self.invented)

    @property
    def recall(self) -> float:
        """The share of true edges that are discovered: the true-positive rate."""
        return _share(self.found, self.found + self.missed)

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return _share(2 * self.found, 2 * self.found + self.invented + self.missed)

    @property
    def false_positive_rate(self) -> float:
        """The share of absent edges that are discovered."""
        return _share(self.invented, self.pairs - self.found - self.missed)

    @property
    def distance(self) -> int:
        """The structural Hamming distance: edges to add or remove."""
        return self.invented + self.missed

    def describe(self) -> dict[str, float]:
        """Return all scores by name."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "false_positive_rate": self.false_positive_rate,
            "structural_distance": self.distance,
        }


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0

"""Functional graphs: which variables of a function interact."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Self

import networkx as nx
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Graph:
    """An undirected graph on the variables 0 to d - 1, held as its maximal cliques."""

    d: int
    cliques: tuple[tuple[int, ...], ...]

    @classmethod
    def from_edges(cls, d: int, edges: Iterable[tuple[int, int]]) -> Self:
        """Build the graph with the given edges; an isolated variable is a clique of its own."""
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
        """Build the graph in which every given set of variables is fully joined."""
        return cls.from_edges(
            d, (edge for clique in cliques for edge in combinations(sorted(clique), 2))
        )

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The edges (i, j) with i < j, sorted."""
        pairs = {pair for clique in self.cliques for pair in combinations(clique, 2)}
        return tuple(sorted(pairs))

    def adjacency(self) -> NDArray[np.bool_]:
        """Return the symmetric (d, d) matrix of edges; no variable is its own neighbour."""
        matrix = np.zeros((self.d, self.d), dtype=bool)
        for i, j in self.edges:
            matrix[i, j] = matrix[j, i] = True
        return matrix

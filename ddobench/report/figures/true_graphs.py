"""The true graph of a task, as far as a report knows it, and found edges compared with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import networkx as nx
import pandas as pd

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.layouts import name_shape

Edge = tuple[int, int]


@dataclass(frozen=True)
class Truth:
    """The true graph of a task."""

    d: int
    edges: frozenset[Edge]

    @classmethod
    def of(cls, d: int, edges: Iterable[Iterable[int]]) -> "Truth":
        """Take edges in any order."""
        return cls(d, _in_order(edges))

    @property
    def graph(self) -> "nx.Graph[int]":
        """The same for networkx."""
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(self.d))
        graph.add_edges_from(self.edges)
        return graph


def find_truth(stored: ReportData, run: "pd.Series[Any]") -> Truth | None:
    """Return the graph in the portrait of the task, None if that need not be the run's."""
    for portrait in stored.portraits:
        shown = (portrait.task, portrait.task_variant, portrait.d, portrait.n)
        if shown == tuple(run[["task", "task_variant", "d", "n"]]) and portrait.edges is not None:
            truth = Truth.of(portrait.d, portrait.edges)
            same = portrait.seed == run["seed"] or name_shape(truth.graph) != ""
            return truth if same else None
    return None


def mark_edges(nodes: int, edges: Iterable[Iterable[int]], truth: Truth | None) -> pd.DataFrame:
    """Return one row per pair of nodes: an edge or not, and a true one or not.

    `true_edge` is of the hidden coordinates with the same numbers, empty where it is not known.
    """
    found = _in_order(edges)
    pairs = list(combinations(range(nodes), 2))
    table = pd.DataFrame(pairs, columns=["a", "b"])
    table["edge"] = [pair in found for pair in pairs]
    known = truth is not None and truth.d == nodes
    table["true_edge"] = [pair in truth.edges for pair in pairs] if truth and known else ""
    return table


def _in_order(edges: Iterable[Iterable[int]]) -> frozenset[Edge]:
    ordered = (sorted(edge) for edge in edges)
    return frozenset((a, b) for a, b in ordered)

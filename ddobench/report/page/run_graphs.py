"""The graphs that single runs found, as small whole numbers; the same graph only once."""

import json
import logging
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from ddobench.report.data.report_data import ReportData

log = logging.getLogger(__name__)

MOST_EDGES = 1_000_000  # of all graphs together; those beyond are told by their numbers alone


def collect_graphs(
    stored: ReportData, runs: pd.DataFrame, most: int = MOST_EDGES
) -> tuple[list[dict[str, Any]], list[int | None]]:
    """Return the different graphs, and for every run which of them it found, if any.

    It costs a look at the file of every run whose method has a part for the graph. Where the
    first run of a configuration tells of no edges, no other run of it does.
    """
    graphs: dict[str, int] = {}
    graph_of: list[int | None] = [None] * len(runs)
    graphless: set[str] = set()
    room = most
    for i, path, digest, d in _candidates(runs):
        if digest in graphless:
            continue
        told = stored.diagnostics(path)  # nothing of a file that is gone or torn
        if told and "edges" not in told:
            graphless.add(digest)
        if "edges" not in told:
            continue
        graph = _graph(told, d)
        if graph is None:
            log.warning("%s has a graph that is not readable and is left out", path)
            continue
        if len(graph["edges"]) > room:
            graph["edges"] = None
        key = json.dumps(graph, sort_keys=True)
        if key not in graphs:
            graphs[key] = len(graphs)
            room -= len(graph["edges"] or ())
        graph_of[i] = graphs[key]
    return [json.loads(key) for key in graphs], graph_of


def encode_edges(edges: ArrayLike, nodes: int) -> list[int]:
    """Number the edges row by row, sorted, each as the step from the one before."""
    pairs = np.asarray(edges, dtype=int).reshape(-1, 2)
    codes = np.unique(pairs.min(axis=1) * nodes + pairs.max(axis=1))
    steps: list[int] = np.diff(codes, prepend=0).tolist()
    return steps


def _candidates(runs: pd.DataFrame) -> Iterator[tuple[int, str, str, int]]:
    """Yield the place, path, digest and d of every finished run whose method has a graph."""
    if "graph" not in runs or "path" not in runs:
        return
    has_stage = runs["graph"].notna() & (runs["graph"] != "") & (runs["status"] == "ok")
    places = np.flatnonzero(has_stage.to_numpy(bool)).tolist()
    chosen = runs.iloc[places]
    yield from zip(places, chosen["path"], chosen["digest"], chosen["d"].tolist(), strict=True)


def _graph(told: Mapping[str, Any], d: int) -> dict[str, Any] | None:
    """Spell the graph of a run, None where it is none."""
    try:
        edges = np.array(told["edges"], dtype=int).reshape(-1, 2)
    except (TypeError, ValueError):
        return None
    nodes = max(int(told.get("latent_dimensions") or d), int(edges.max(initial=0)) + 1)
    sizes = told.get("clique_sizes")
    recovery = told.get("graph_recovery")
    return {
        "nodes": nodes,
        "count": len(edges),
        "edges": encode_edges(edges, nodes),
        "cliques": told.get("cliques"),
        "sizes": sizes if isinstance(sizes, Mapping) else None,
        "recovery": recovery if isinstance(recovery, Mapping) else None,
    }

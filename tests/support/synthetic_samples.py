"""Synthetic task samples, for the tests of figures."""

import numpy as np

from ddobench.graphs import Graph
from ddobench.store.records import TaskSample

Edges = list[tuple[int, int]]


def chain(d: int) -> Edges:
    """Return the edges of a chain of triangles."""
    return list(Graph.from_cliques(d, [(i, i + 1, i + 2) for i in range(0, d - 2, 2)]).edges)


def task_sample(
    d: int = 7, task: str = "chain", variant: str = "", n: int = 100, edges: Edges | None = None
) -> TaskSample:
    """Return the sample of a task with normal designs behind a map."""
    hidden = np.random.default_rng(0).normal(size=(n, 3))
    return TaskSample(
        task=task,
        task_variant=variant,
        d=d,
        n=n,
        seed=0,
        title=f"Bumps, d={d}",
        formula="f(x) = Σ_C w_C, x ∈ R^7",
        text="One bump per clique.",
        edges=chain(d) if edges is None else edges,
        observed=np.logaddexp(0, hidden).tolist(),
        hidden=hidden.tolist(),
        y=hidden.sum(axis=1).tolist(),
    )

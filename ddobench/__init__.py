"""ddobench: given only a table of designs and values, which method proposes the best new designs?

The Python interface. `evaluate` runs a function or a regressor of yours as a method, `task` shows a
task or makes one of a function, and `published` has the published scores. `run` runs (or finds
stored), `load` gives one row per stored run and `load_curves` one row per run and iteration.
`propose` gives new designs for rows of your own; `example_table` gives the rows of a task to try it
with, and `example_values` what designs of it are truly worth. `ddobench.design_bench` has tasks in
the shape of Design-Bench.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ddobench.determinism import limit_threads, request_stable_products

if TYPE_CHECKING:
    from ddobench.api import load, load_curves, run
    from ddobench.evaluation import evaluate
    from ddobench.propose.example_data import example_table, example_values
    from ddobench.propose.proposals import propose
    from ddobench.store.published import published
    from ddobench.task_view import task

__all__ = [
    "evaluate", "example_table", "example_values", "load", "load_curves", "propose", "published",
    "run", "task",
]  # fmt: skip

_HOMES = {
    "evaluate": "ddobench.evaluation",
    "example_table": "ddobench.propose.example_data",
    "example_values": "ddobench.propose.example_data",
    "load": "ddobench.api",
    "load_curves": "ddobench.api",
    "propose": "ddobench.propose.proposals",
    "published": "ddobench.store.published",
    "run": "ddobench.api",
    "task": "ddobench.task_view",
}

limit_threads()
request_stable_products()


def __getattr__(name: str) -> Any:
    """Import the interface on first use: the command line must start without pandas and torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'ddobench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

"""Every registered task and method, composed small: the conformance tests run over all of them.

Every method is examined on one task of each kind, and every task with one method with a model.
`make smoke` runs every method on every task.
"""

from functools import cache

import pytest
from hydra import compose, initialize_config_module

from ddobench import registry
from ddobench.cli import hooks
from ddobench.contracts import Method, Problem, Task
from ddobench.runner.spec import Specification, specify

TASKS = [entry.name for entry in registry.entries("task") if not entry.missing_dependency]
ABSENT = [
    entry.name for entry in registry.entries("task") if entry.missing_dependency
]  # not installed here
SKIPPED = [
    pytest.param(entry.name, marks=pytest.mark.skip(reason=entry.missing_dependency))
    for entry in registry.entries("task")
    if entry.missing_dependency
]
OF_OTHERS = [  # tasks of data that this repository must not contain, known by its hash
    entry.name for entry in registry.entries("task")
    if "data" in registry.read_choice("task", entry.name)["card"]
]  # fmt: skip
METHODS = [entry.name for entry in registry.entries("method") if not entry.missing_dependency]
ALL_METHODS = [entry.name for entry in registry.entries("method")]  # also those not installed
SMALL_D = {
    "toy3d": 3,
    "coverage": 6,
    "tfbind8": 8,
    "ehrlich": 16,
    "rna": 14,
    "surface": 11,
    "oer": 6,
    "suzuki": 5,
    "buchwald": 4,
    "gb1": 4,
    "superconductor": 86,
    "superconductor_exact": 86,
}  # fmt: skip - others take 7
ROWS = 60
KINDS = {
    "chain": "real designs, with a graph and hidden coordinates",
    "nk": "categorical designs, with a graph",
    "table": "rows of a file with numbers and categories, without an oracle",
}


@cache
def specification(task: str, method: str, *settings: str) -> Specification:
    """Return a task with few rows and a method with a tiny budget; settings win over both."""
    hooks.register()
    overrides = [f"task={task}", f"method={method}", "budget=tiny", "device=cpu", f"n={ROWS}"]
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose(
            "run",
            overrides=[*overrides, f"d={SMALL_D.get(task, 7)}", *settings],
            return_hydra_config=True,
        )
    return specify(cfg, cfg.hydra.runtime.choices)


def build(task: str, method: str) -> tuple[Task, Method]:
    """Build a task and a method."""
    return specification(task, method).build()


@cache
def problem(task: str, seeds: tuple[int, ...]) -> Problem:
    """Return small instances of some seeds."""
    return build(task, "naive")[0].problem(seeds)


@cache
def refusal(task: str, method: str) -> str | None:
    """Return why the method declines the task, None if it does not."""
    built, drawn = build(task, method)[1], problem(task, (0, 1))
    return built.declines(drawn.visible_to(built.privileges(drawn.data.space)))

"""Every registered task and method, composed small: the conformance tests run over all of them.

Promises about seeds, data and bits are examined for every method on one task of each kind of
designs, and on every task with a method of each kind of model. `make smoke` runs every method on
every task.
"""

from functools import cache

import pytest
from hydra import compose, initialize_config_module

from ddobench import registry
from ddobench.cli import hydra_hooks
from ddobench.contracts import Method, Problem, Task
from ddobench.runner.spec import Specification, specify

TASKS = [entry.name for entry in registry.entries("task") if not entry.lack]
ABSENT = [entry.name for entry in registry.entries("task") if entry.lack]  # not installed here
SKIPPED = [
    pytest.param(entry.name, marks=pytest.mark.skip(reason=entry.lack))
    for entry in registry.entries("task")
    if entry.lack
]
METHODS = [entry.name for entry in registry.entries("method")]
SMALL_D = {"toy3d": 3, "tfbind8": 8, "ehrlich": 16, "rna": 14}  # tasks that 7 does not suit
ROWS = 60
KINDS = ("chain", "nk")  # real designs, and categories
GUESTS = ("naive", "ga", "fgm")  # on every task: no model, a plain one, one with a graph


@cache
def specification(task: str, method: str, *settings: str) -> Specification:
    """Return a task with few rows and a method with a tiny budget; settings win over both."""
    hydra_hooks.register()
    overrides = [f"task={task}", f"method={method}", "budget=tiny", "device=cpu", f"n={ROWS}"]
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose(
            "run",
            overrides=[*overrides, f"d={SMALL_D.get(task, 7)}", *settings],
            return_hydra_config=True,
        )
    return specify(cfg, cfg.hydra.runtime.choices)


def build(task: str, method: str) -> tuple[Task, Method]:
    """Build a fresh pair."""
    return specification(task, method).build()


@cache
def problem(task: str, seeds: tuple[int, ...]) -> Problem:
    """Return the small instances of some seeds."""
    return build(task, "naive")[0].problem(seeds)


def accepts(task: str, method: str) -> bool:
    """Tell whether the method takes on the task, as it is composed elsewhere.

    What a method declines depends on the data, not on the task it was composed with: one
    configuration of each method and of each task decide all pairs, as composing every pair would
    take seconds in every process that collects the tests. `test_catalogue` composes them all.
    """
    return _declines(_anywhere(method), task) is None


def refusal(task: str, method: str) -> str | None:
    """Return why the method does not take on the task it is composed with, None if it does."""
    return _declines(build(task, method)[1], task)


def build_anywhere(method: str) -> Method:
    """Build a fresh method, whatever the task."""
    return specification(TASKS[0], method).build_method()


_anywhere = cache(build_anywhere)


def _declines(built: Method, task: str) -> str | None:
    drawn = problem(task, (0, 1))
    return built.declines(drawn.visible_to(built.privileges(drawn.data.space)))


_ACCEPTED = {(task, method): accepts(task, method) for task in TASKS for method in METHODS}
PAIRS = [pair for pair, accepted in _ACCEPTED.items() if accepted]
REFUSED = [pair for pair, accepted in _ACCEPTED.items() if not accepted]
EXAMINED = [(task, method) for task, method in PAIRS if task in KINDS or method in GUESTS]

"""The identity of every configuration, pinned: digests, and the first numbers that tasks draw.

A change here retires stored runs or draws other data. If that is meant, bump the `version` of what
changed and write the pins again: python -m tests.runner.test_pins
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ddobench.runner.spec import digest
from tests.support.catalogue import (
    ABSENT,
    ALL_METHODS,
    OF_OTHERS,
    SKIPPED,
    TASKS,
    problem,
    specification,
)

PINS = Path(__file__).with_name("pins.json")


def first_draws(task: str) -> dict[str, list[float]]:
    """Return the first numbers of the table of seed 0, none of those that are not ours."""
    if task in OF_OTHERS:
        return {}
    data = problem(task, (0, 1)).data
    return {"x": data.x[0, 0, :3].tolist(), "y": data.y[0, :3].tolist()}


def pinned_draws(task: str) -> dict[str, list[float]]:
    """Return the first numbers as they are pinned, of a task that cannot be built here."""
    pinned = json.loads(PINS.read_text())["tasks"][task]
    return {name: pinned[name] for name in ("x", "y") if name in pinned}


def digests(method: str) -> dict[str, str]:
    """Return the digest of a method on a task of each kind of designs."""
    return {task: specification(task, method).digest for task in ("chain", "nk")}


def pins() -> dict[str, Any]:
    """Return what is pinned, as it is now."""
    return {
        "methods": {name: digests(name) for name in ALL_METHODS},
        "tasks": {
            name: {
                "digest": digest({"task": specification(name, "naive").config["task"]}),
                **(first_draws(name) if name in [*TASKS, *OF_OTHERS] else pinned_draws(name)),
            }
            for name in sorted([*TASKS, *ABSENT])
        },
    }


def test_everything_is_pinned() -> None:
    pinned = json.loads(PINS.read_text())
    assert sorted(pinned["methods"]) == sorted(ALL_METHODS)
    assert sorted(pinned["tasks"]) == sorted([*TASKS, *ABSENT])


@pytest.mark.parametrize("method", ALL_METHODS)
def test_a_method_keeps_its_digests(method: str) -> None:
    assert digests(method) == json.loads(PINS.read_text())["methods"][method]


@pytest.mark.parametrize("task", [*TASKS, *ABSENT])
def test_a_task_keeps_its_digest(task: str) -> None:
    pinned = json.loads(PINS.read_text())["tasks"][task]
    assert digest({"task": specification(task, "naive").config["task"]}) == pinned["digest"]


@pytest.mark.parametrize("task", [*TASKS, *SKIPPED])
def test_a_task_keeps_its_data(task: str) -> None:
    pinned = json.loads(PINS.read_text())["tasks"][task]
    for name, numbers in first_draws(task).items():
        assert numbers == pytest.approx(pinned[name], rel=1e-9)


if __name__ == "__main__":
    PINS.write_text(json.dumps(pins(), indent=2) + "\n")

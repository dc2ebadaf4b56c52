"""The catalogue of the conformance tests: nobody is left out, and the sorting is right."""

import pytest

from ddobench import registry
from tests.support.catalogue import (
    ABSENT,
    EXAMINED,
    KINDS,
    METHODS,
    PAIRS,
    REFUSED,
    TASKS,
    refusal,
)


def test_every_registered_task_that_can_be_built_meets_every_registered_method_once() -> None:
    tasks = [entry.name for entry in registry.entries("task") if entry.name not in ABSENT]
    methods = [entry.name for entry in registry.entries("method")]
    assert sorted(PAIRS + REFUSED) == sorted((task, method) for task in tasks for method in methods)


def test_every_method_and_every_task_is_examined() -> None:
    for method in METHODS:
        taken = [task for task in KINDS if (task, method) in PAIRS]
        assert [task for task, other in EXAMINED if other == method and task in KINDS] == taken
        assert taken
    assert {task for task, _ in EXAMINED} == set(TASKS)


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_a_pair_composed_as_a_whole_agrees_with_the_shortcut(task: str) -> None:
    taken = [method for method in METHODS if refusal(task, method) is None]
    assert taken == [method for other, method in PAIRS if other == task]
    assert taken

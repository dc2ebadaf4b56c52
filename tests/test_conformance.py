"""What every registered task and method promises, found by discovery: nobody is left out.

The promises are those of `ddobench.check`, by which authors of plug-ins examine their own.
"""

import json
from functools import cache
from typing import Any

import pytest
import torch

from ddobench.check.method_promises import METHOD_PROMISES, REFUSAL_PROMISES, companions
from ddobench.check.promises import Promise, Subject
from ddobench.check.task_promises import SEEDS, TASK_PROMISES
from ddobench.contracts import Dataset, Space
from ddobench.report.diagnostics import keep_usable
from ddobench.runner.build import build_task
from ddobench.runner.execute import run_seeds
from tests.support import rounding
from tests.support.catalogue import (
    EXAMINED,
    METHODS,
    PAIRS,
    REFUSED,
    SKIPPED,
    TASKS,
    build_anywhere,
    problem,
    specification,
)

# A tenth of a second of each method: what is promised here shows in the first steps or never.
SHORT = ("budget.training=0.004", "budget.ascent=0.04", "budget.designs=16")

each_task = pytest.mark.parametrize("task", [*TASKS, *SKIPPED])
each_method = pytest.mark.parametrize("method", METHODS)
each_pair = pytest.mark.parametrize(("task", "method"), EXAMINED)


def each_of(promises: tuple[Promise, ...]) -> pytest.MarkDecorator:
    """Parametrise a test by promises; those about bits are marked.

    First of its decorators, so that the promises of a subject, which share runs, are neighbours.
    """
    return pytest.mark.parametrize(
        "promise",
        [
            pytest.param(promise, id=promise.text, marks=[pytest.mark.bits] * promise.bits)
            for promise in promises
        ],
    )


@cache
def subject(task: str, method: str) -> Subject:
    """Return a task and a method, both small."""
    return Subject(specification(task, method, *SHORT))


@each_of(TASK_PROMISES)
@each_task
def test_a_task_keeps_its_promises(task: str, promise: Promise) -> None:
    assert promise.check(subject(task, "naive")) is None


@each_of(METHOD_PROMISES)
@each_pair
def test_a_method_keeps_its_promises(task: str, method: str, promise: Promise) -> None:
    assert promise.check(subject(task, method)) is None


@pytest.mark.parametrize(("task", "method"), [pair for pair in EXAMINED if pair[0] == "chain"])
def test_what_a_method_of_ours_tells_can_be_used_by_a_report(task: str, method: str) -> None:
    for record in subject(task, method).records:
        _, odd = keep_usable(json.loads(json.dumps(record.diagnostics)))
        assert odd == []


@pytest.mark.parametrize(("task", "method"), REFUSED)
@each_of(REFUSAL_PROMISES)
def test_a_refusal_keeps_its_promises(task: str, method: str, promise: Promise) -> None:
    assert promise.check(subject(task, method)) is None


@each_task
def test_the_optimum_of_a_task_of_ours_with_an_oracle_is_known_or_bounded(task: str) -> None:
    drawn = problem(task, SEEDS)
    assert (drawn.optimum is not None or drawn.lower_bound is not None) == drawn.measures


@pytest.mark.bits
@each_pair
def test_a_lone_seed_takes_no_product_that_libraries_treat_differently(
    task: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.lone_column)
    assert companions(subject(task, method), (7, 3), [(3,)]) is None


def test_products_that_look_at_addresses_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.by_address)
    found = companions(subject("chain", "vae_ga"), (7, 3, 5), [(3, 8)])
    assert found is not None
    assert found.endswith("in stacks of 3 and 2 seeds")


@each_task
def test_all_methods_of_a_seed_start_from_the_same_data_and_designs(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    import ddobench.runner.execute as execution

    class SeenError(Exception):
        """Nothing that follows would change what a method was handed."""

    def spy(method: Any, starts: torch.Tensor, *_: object) -> Any:
        seen.append((method.seen.x, method.seen.y, starts))
        raise SeenError("seen")

    monkeypatch.setattr(execution, "collect", spy)
    for name in [method for other, method in PAIRS if other == task]:
        built = build_anywhere(name)
        if built.seeds_at_once == 1:
            continue

        def remember(data: Dataset, rng: Any, built: Any = built) -> None:  # noqa: ARG001
            built.seen = data

        built.fit = remember  # type: ignore[method-assign]
        spec = specification(task, "naive")
        with pytest.raises(SeenError, match="seen"):
            run_seeds(spec, build_task(spec.config["task"]), built, (0, 1), base={})
    assert len(seen) >= 2
    for x, y, starts in seen[1:]:
        assert torch.equal(x, seen[0][0])
        assert torch.equal(y, seen[0][1])
        assert torch.equal(starts, seen[0][2])


@each_method
def test_a_method_sees_nothing_privileged_that_it_did_not_ask_for(method: str) -> None:
    built = build_anywhere(method)
    for task in TASKS:
        drawn = problem(task, (0, 1))
        asked = built.privileges(drawn.data.space)
        data = drawn.visible_to(asked)
        if "graph" not in asked:
            assert data.privileged.graphs is None
        if "hidden" not in asked:
            assert data.privileged.hidden is None


@each_method
def test_every_method_takes_on_some_task(method: str) -> None:
    assert any(method == name for _, name in PAIRS)


def test_a_categorical_space_knows_its_own() -> None:
    space = Space(2, (2, 3))
    x = torch.tensor([[0.0, 2.0], [1.0, 3.0], [0.5, 1.0], [-1.0, 0.0]])
    assert space.contains(x).tolist() == [True, False, False, False]

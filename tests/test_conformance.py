"""What every registered task and method promises; both are found by discovery.

The promises are those of `ddobench.check`, by which authors of plug-ins examine their own. Every
method is examined on one task of each kind, and every task with one method with a model.
"""

import json
from functools import cache
from typing import Any

import pytest
import torch

from ddobench.check.method_promises import (
    METHOD_PROMISES,
    REFUSAL_PROMISES,
    RUN_PROMISES,
    companions,
)
from ddobench.check.promises import Promise, Subject, examine_all
from ddobench.check.task_promises import SEEDS, TASK_PROMISES
from ddobench.contracts import Dataset, Space
from ddobench.report.diagnostic_checks import keep_usable
from ddobench.runner.build import build_task
from ddobench.runner.run import run_seeds
from tests.support import rounding
from tests.support.catalogue import (
    KINDS,
    METHODS,
    SKIPPED,
    TASKS,
    build,
    problem,
    refusal,
    specification,
)

# A tenth of a second for each method: a broken promise shows in the first steps.
SHORT = ("budget.training=0.004", "budget.ascent=0.02", "budget.designs=16")
SMALL = {  # also where the networks themselves take seconds
    "bonet": ("method.trajectories=20", "method.length=24", "method.context=8", "method.prefix=16")
}

each_task = pytest.mark.parametrize("task", [*TASKS, *SKIPPED])
each_kind = pytest.mark.parametrize("task", KINDS)
each_with_oracle = pytest.mark.parametrize("task", ["chain", "nk"])  # real and categorical designs
each_method = pytest.mark.parametrize("method", METHODS)


@cache
def subject(task: str, method: str) -> Subject:
    """Return a small task with a small method."""
    return Subject(specification(task, method, *SHORT, *SMALL.get(method, ())))


def accepted(task: str, method: str) -> Subject:
    """Return a task and a method that takes it, or skip the test."""
    if reason := refusal(task, method):
        pytest.skip(f"declined: {reason}")
    return subject(task, method)


def broken(examined: Subject, promises: tuple[Promise, ...]) -> list[str]:
    """Return the promises that are not kept, each with what was seen and a remedy."""
    return [str(one) for one in examine_all(examined, promises) if one.state != "kept"]


@each_task
def test_a_task_keeps_its_promises(task: str) -> None:
    assert broken(subject(task, "naive"), TASK_PROMISES) == []


@each_task
def test_a_method_with_a_model_runs_on_every_task(task: str) -> None:
    assert broken(subject(task, "ga"), RUN_PROMISES) == []


@each_method
@each_kind
def test_a_method_keeps_its_promises(task: str, method: str) -> None:
    promises = METHOD_PROMISES if refusal(task, method) is None else REFUSAL_PROMISES
    assert broken(subject(task, method), tuple(one for one in promises if not one.bits)) == []


@pytest.mark.bits
@each_method
@each_with_oracle
def test_the_result_of_a_seed_does_not_depend_on_the_seeds_beside_it(
    task: str, method: str
) -> None:
    assert companions(accepted(task, method), (7, 3, 5), [(3,), (8, 3)]) is None


@pytest.mark.bits
@each_method
@each_with_oracle
def test_a_single_seed_needs_no_product_that_libraries_compute_differently(
    task: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.lone_column)
    assert companions(accepted(task, method), (7, 3), [(3,)]) is None


@pytest.mark.bits
@pytest.mark.parametrize(("task", "method"), [("chain", "fgm"), ("chain", "coms"), ("nk", "auto")])
def test_the_result_of_a_seed_is_the_same_in_a_stack_of_ten(task: str, method: str) -> None:
    assert companions(subject(task, method)) is None


def test_products_that_depend_on_addresses_would_be_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.by_address)
    found = companions(subject("chain", "vae_ga"), (7, 3, 5), [(3, 8)])
    assert found is not None
    assert found.endswith("in stacks of 3 and 2 seeds")


@each_method
def test_a_report_can_use_the_diagnostics_of_every_method(method: str) -> None:
    for record in accepted("chain", method).records:
        _, odd = keep_usable(json.loads(json.dumps(record.diagnostics)))
        assert odd == []


@each_task
def test_the_optimum_of_a_task_with_an_oracle_is_known_or_bounded(task: str) -> None:
    drawn = problem(task, SEEDS)
    assert (drawn.optimum is not None or drawn.lower_bound is not None) == drawn.measures


@each_kind
def test_all_methods_of_a_seed_get_the_same_data_and_starts(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    import ddobench.runner.run as execution

    class SeenError(Exception):
        """Ends a run once its method has been given everything."""

    def spy(method: Any, starts: torch.Tensor, *_: object) -> Any:
        seen.append((method.seen.x, method.seen.y, starts))
        raise SeenError("seen")

    monkeypatch.setattr(execution, "collect", spy)
    for name in METHODS:
        _, built = build(task, name)
        if built.seeds_at_once == 1 or refusal(task, name):
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
@each_kind
def test_a_method_sees_nothing_privileged_that_it_did_not_ask_for(task: str, method: str) -> None:
    built, drawn = build(task, method)[1], problem(task, (0, 1))
    asked = built.privileges(drawn.data.space)
    data = drawn.visible_to(asked)
    assert (data.privileged.graphs is None) or "graph" in asked
    assert (data.privileged.hidden is None) or "hidden" in asked


@each_method
def test_every_method_takes_a_task_of_some_kind(method: str) -> None:
    assert any(refusal(task, method) is None for task in KINDS)


def test_a_categorical_space_knows_which_designs_it_contains() -> None:
    space = Space(2, (2, 3))
    x = torch.tensor([[0.0, 2.0], [1.0, 3.0], [0.5, 1.0], [-1.0, 0.0]])
    assert space.contains(x).tolist() == [True, False, False, False]

"""A promise that is broken is told, each in its own words; what keeps all of them is told so."""

import re

import pytest

from ddobench.check.methods import METHOD_PROMISES, REFUSAL_PROMISES
from ddobench.check.promises import Promise, examine_all
from ddobench.check.subject import Subject
from ddobench.check.tasks import TASK_PROMISES
from ddobench.contracts import Method, Task
from tests.support import broken
from tests.support.fakes import Climb, Sum, specify_fake

BROKEN_TASKS: dict[type[Task], tuple[str, str]] = {
    broken.Single: ("x is (S, N, d)", r"x is torch.float32 and y is torch.float64"),
    broken.FewRows: ("x is (S, N, d)", r"x \(3, 59, 3\) and y \(3, 59\) for S=3 and N=60"),
    broken.KeepsAnAxisTask: ("the value of designs", r"\(3, [13], 1\)"),
    broken.ShiftedTask: (
        "every visible design is valid",
        r"row 0 of seed 0 is visible as .*, and the oracle says",
    ),
    broken.StrictTask: ("every visible design is valid", r"\d+ of 180 visible designs are invalid"),
    broken.LowOptimum: ("no visible value exceeds", r"seed 0 has a visible value of .* -1"),
    broken.LargeGraph: ("the graph is on the variables", r"graphs on \{4\} variables"),
    broken.WrongGraph: (
        "variables that no edge",
        r"variables 0 and 1 of place 0 interact \(.*\), but no edge joins them",
    ),
    broken.LostHidden: ("observe and recover", r"observe\(hidden\) is not the visible designs"),
    broken.CarelessTask: ("a design that is no number", r"begins with nan has the value"),
    broken.ContagiousTask: ("a design that is no number", r"changes the values of others"),
    broken.RelativeTask: ("the value of a design does not depend", r"among others and .* alone"),
    broken.OddMeasureTask: ("every further measurement", r"length is \(3, 4, 3\)"),
    broken.Crowded: ("an instance does not depend", r"x is \[.*\] and \[.*\]"),
    broken.Moody: ("the same seed gives the same instance", r"x is \[.*\] and \[.*\]"),
    broken.Impressed: ("all methods of a seed get the same data", r"x is \[.*\] and \[.*\]"),
    broken.Constant: ("seeds differ", "seeds 0 and 1 have the same designs"),
    broken.Global: ("no global generator", "torch was used"),
    broken.Silent: ("a task describes itself", "an empty formula"),
    broken.Soft: ("a task cannot be changed", "task.n = 3 was accepted"),
    broken.Anything: ("sizes that make no sense", "d=0 was accepted"),
}
BROKEN_METHODS: dict[type[Method], tuple[str, str]] = {
    broken.Wide: ("a run gives a complete record", r"a proposal must be .* got \(2, 5, 6\)"),
    broken.Mute: ("a run gives a complete record", "the method proposed nothing"),
    broken.Quits: ("a run gives a complete record", r"SystemExit: 0 \(at .*broken.py:\d+\)"),
    broken.Endless: ("a run can be stored", r"[Cc]ircular reference"),
    broken.Drifting: ("the same seed gives the same result", r"is .* and "),
    broken.Mixing: ("a seed's result does not depend", r"in stacks of 10 and 1 seeds"),
    broken.Random: ("no global generator", "torch was used"),
    broken.Peeking: ("the oracle is not asked", "the oracle was asked 1 times"),
    broken.Scribbling: ("the visible table and the starts", "y changed"),
}


def subject_of(method: type[Method] = Climb, task: type[Task] = Sum) -> Subject:
    """Return a fake method on a fake task."""
    return Subject(specify_fake(method, task=task, n=60))


def broken_promises(subject: Subject, promises: tuple[Promise, ...]) -> dict[str, str]:
    """Return what was seen of each broken promise."""
    return {
        finding.promise.says: str(finding)
        for finding in examine_all(subject, promises)
        if finding.state == "broken"
    }


def check_told(found: dict[str, str], begins: str, seen: str) -> None:
    """Check that a promise is among the broken ones, with what was seen and what to do."""
    (says,) = [says for says in found if says.startswith(begins)]
    assert re.fullmatch(
        rf"broken: {re.escape(says)}; seen: .*{seen}.*; do: \w.+", found[says]
    ), found[says]  # fmt: skip


@pytest.mark.parametrize("task", BROKEN_TASKS, ids=lambda task: task.__qualname__)
def test_a_task_that_breaks_a_promise_is_told_which(task: type[Task]) -> None:
    check_told(broken_promises(subject_of(task=task), TASK_PROMISES), *BROKEN_TASKS[task])


@pytest.mark.parametrize("method", BROKEN_METHODS, ids=lambda method: method.__qualname__)
def test_a_method_that_breaks_a_promise_is_told_which(method: type[Method]) -> None:
    check_told(broken_promises(subject_of(method), METHOD_PROMISES), *BROKEN_METHODS[method])


def test_every_promise_is_broken_by_someone() -> None:
    told = {begins for begins, _ in (*BROKEN_TASKS.values(), *BROKEN_METHODS.values())}
    spared = [
        promise.says
        for promise in (*TASK_PROMISES, *METHOD_PROMISES)
        if not promise.says.startswith(tuple(told))
    ]
    assert spared == [
        "designs of a wrong shape are refused", "no run is better than the optimum of its task",
    ]  # fmt: skip


def test_designs_of_a_wrong_shape_that_are_valued_are_told() -> None:
    found = broken_promises(subject_of(task=broken.CarelessTask), TASK_PROMISES)
    check_told(found, "designs of a wrong shape", r"designs \(3, 60, 2\) are valued")


def test_a_run_that_is_better_than_the_optimum_of_its_task_is_told() -> None:
    found = broken_promises(subject_of(broken.Leaping), METHOD_PROMISES)
    check_told(found, "no run is better", r"a regret of -\d")


def test_a_refusal_without_a_reason_is_told() -> None:
    found = broken_promises(subject_of(broken.Curt), REFUSAL_PROMISES)
    check_told(found, "a method that declines", "the reason is 'no'")


def test_what_keeps_every_promise_is_told_so() -> None:
    for promises in (TASK_PROMISES, METHOD_PROMISES):
        assert broken_promises(subject_of(), promises) == {}


def test_nothing_is_looked_at_once_the_data_cannot_be_drawn() -> None:
    states = [finding.state for finding in examine_all(subject_of(task=broken.Single),
                                                       TASK_PROMISES)]  # fmt: skip
    assert states == ["broken"] + ["not looked at"] * (len(TASK_PROMISES) - 1)

"""Every promise is broken by a task or method made for it, and the finding says which and how."""

import re

import pytest

from ddobench.check.method_promises import METHOD_PROMISES, REFUSAL_PROMISES
from ddobench.check.promises import Promise, Subject, examine_all
from ddobench.check.task_promises import TASK_PROMISES
from ddobench.contracts import Method, Task
from tests.support import broken
from tests.support.fakes import Climb, Sum, specify_fake

BROKEN_TASKS: dict[type[Task], tuple[str, str]] = {
    broken.Float32: ("x is (S, N, d)", r"x is torch.float32 and y is torch.float64"),
    broken.FewRows: ("x is (S, N, d)", r"x \(3, 59, 3\) and y \(3, 59\) for S=3 and N=60"),
    broken.KeepsAnAxisTask: ("the value of designs", r"\(3, [13], 1\)"),
    broken.WrongValuesTask: (
        "every visible design is valid",
        r"row 0 of seed 0 has the visible value .*, and the oracle returns",
    ),
    broken.InvalidRowsTask: (
        "every visible design is valid",
        r"\d+ of 180 visible designs are invalid",
    ),
    broken.LowOptimum: ("no visible value exceeds", r"seed 0 has a visible value of .* -1"),
    broken.LargeGraph: ("the graph is on the variables", r"graphs on \{4\} variables"),
    broken.WrongGraph: (
        "variables that no edge",
        r"variables 0 and 1 of instance 0 interact \(.*\), but no edge joins them",
    ),
    broken.WrongHidden: ("observe and recover", r"observe\(hidden\) is not the visible designs"),
    broken.AcceptsNanTask: ("a design that is not finite", r"begins with nan has the value"),
    broken.SpreadsNanTask: ("a design that is not finite", r"changes the values of others"),
    broken.DependsOnOthersTask: (
        "the value of a design does not depend",
        r"with others and .* alone",
    ),
    broken.WrongMeasureShapeTask: ("every further measurement", r"length is \(3, 4, 3\)"),
    broken.DependsOnStack: ("an instance does not depend", r"x is \[.*\] and \[.*\]"),
    broken.ChangesEveryDraw: ("the same seed gives the same instance", r"x is \[.*\] and \[.*\]"),
    broken.ChangesAfterRun: ("all methods of a seed get the same data", r"x is \[.*\] and \[.*\]"),
    broken.SameForAllSeeds: ("seeds differ", "seeds 0 and 1 have the same designs"),
    broken.UsesGlobalGenerator: ("no global generator", "torch was used"),
    broken.EmptyFormula: ("a task describes itself", "an empty formula"),
    broken.NotFrozen: ("a task cannot be changed", "task.n = 3 was accepted"),
    broken.AcceptsAnySize: ("invalid sizes", "d=0 was accepted"),
}
BROKEN_METHODS: dict[type[Method], tuple[str, str]] = {
    broken.WrongShape: ("a run gives a complete record", r"a proposal must be .* got \(2, 5, 6\)"),
    broken.ProposesNothing: ("a run gives a complete record", "the method proposed nothing"),
    broken.Exits: ("a run gives a complete record", r"SystemExit: 0 \(at .*broken.py:\d+\)"),
    broken.EndsProcess: ("a run gives a complete record", r"SystemExit: os._exit\(0\) was called"),
    broken.Cancelled: ("a run gives a complete record", r"CancelledError: stopped \(at .*broken"),
    broken.CircularDiagnostics: ("a run can be stored", r"[Cc]ircular reference"),
    broken.ChangesEveryRun: ("the same seed gives the same result", r"is .* and "),
    broken.MixesSeeds: ("a seed's result does not depend", r"in stacks of 10 and 1 seeds"),
    broken.SeedsGlobalGenerator: ("no global generator", "torch was used"),
    broken.CallsOracle: ("Problem.evaluate is not called", "it was called 1 times"),
    broken.ChangesValues: ("the visible table and the starts", "y changed"),
}


def subject_of(method: type[Method] = Climb, task: type[Task] = Sum) -> Subject:
    """Return a fake method on a fake task."""
    return Subject(specify_fake(method, task=task, n=60))


def broken_promises(subject: Subject, promises: tuple[Promise, ...]) -> dict[str, str]:
    """Return the finding of each broken promise, by the text of the promise."""
    return {
        finding.promise.text: str(finding)
        for finding in examine_all(subject, promises)
        if finding.state == "broken"
    }


def assert_broken(findings: dict[str, str], beginning: str, found: str) -> None:
    """Assert that a promise is broken, with what was found and how to fix it."""
    (text,) = [text for text in findings if text.startswith(beginning)]
    assert re.fullmatch(
        rf"broken: {re.escape(text)}; found: .*{found}.*; fix: \w.+", findings[text]
    ), findings[text]  # fmt: skip


@pytest.mark.parametrize("task", BROKEN_TASKS, ids=lambda task: task.__qualname__)
def test_a_task_that_breaks_a_promise_is_found(task: type[Task]) -> None:
    assert_broken(broken_promises(subject_of(task=task), TASK_PROMISES), *BROKEN_TASKS[task])


@pytest.mark.parametrize("method", BROKEN_METHODS, ids=lambda method: method.__qualname__)
def test_a_method_that_breaks_a_promise_is_found(method: type[Method]) -> None:
    assert_broken(broken_promises(subject_of(method), METHOD_PROMISES), *BROKEN_METHODS[method])


def test_every_promise_is_broken_by_a_fake() -> None:
    broken_ones = {text for text, _ in (*BROKEN_TASKS.values(), *BROKEN_METHODS.values())}
    others = [
        promise.text
        for promise in (*TASK_PROMISES, *METHOD_PROMISES)
        if not promise.text.startswith(tuple(broken_ones))
    ]
    assert others == [
        "designs of a wrong shape are refused", "no run is better than the optimum of its task",
    ]  # fmt: skip


def test_evaluating_designs_of_a_wrong_shape_is_found() -> None:
    found = broken_promises(subject_of(task=broken.AcceptsNanTask), TASK_PROMISES)
    assert_broken(found, "designs of a wrong shape", r"designs \(3, 60, 2\) are evaluated")


def test_a_run_that_is_better_than_the_optimum_of_its_task_is_found() -> None:
    found = broken_promises(subject_of(broken.ExceedsOptimum), METHOD_PROMISES)
    assert_broken(found, "no run is better", r"a regret of -\d")


def test_declining_without_a_reason_is_found() -> None:
    found = broken_promises(subject_of(broken.DeclinesWithoutReason), REFUSAL_PROMISES)
    assert_broken(found, "a method that declines", "the reason is 'no'")


def test_a_task_and_a_method_that_keep_every_promise_have_no_findings() -> None:
    for promises in (TASK_PROMISES, METHOD_PROMISES):
        assert broken_promises(subject_of(), promises) == {}


def test_nothing_else_is_checked_if_the_first_promise_is_broken() -> None:
    states = [finding.state for finding in examine_all(subject_of(task=broken.Float32),
                                                       TASK_PROMISES)]  # fmt: skip
    assert states == ["broken"] + ["not checked"] * (len(TASK_PROMISES) - 1)

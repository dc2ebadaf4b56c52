"""What is checked for a request: a task by itself and with methods, or a method on tasks."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from ddobench import registry
from ddobench.check.method_promises import METHOD_PROMISES, REFUSAL_PROMISES, RUN_PROMISES
from ddobench.check.promises import Finding, Promise, Subject, examine_all
from ddobench.check.task_promises import TASK_PROMISES
from ddobench.cli.hooks import specify_points
from ddobench.errors import UsageError
from ddobench.runner.process_state import exit_as_error, restored_process

Section = tuple[str, Iterable[Finding]]  # a title, and the findings below it

_SMALL = ("d=7", "n=60")  # a task that refuses them is checked at the sizes of its own file
_QUICK = ("budget=tiny", "device=cpu")
_WITH_TASK = ("random", "ga")  # the methods a task is checked with: one draws, one learns
_DECLINED = ", which it declines"
_SOME_TASK = Promise(
    "every method accepts some task",
    "let declines() return None for data that the method can work on",
    lambda _: None,
)


def examine(words: Sequence[str]) -> Iterator[Section]:
    """Check what these overrides choose: a method or a part if they name one, else a task."""
    keys = {word.partition("=")[0] for word in words}
    if keys & {"method", *registry.PARTS}:
        yield from _examine_method(words, every_task="task" not in keys)
    else:
        yield from _examine_task(words)


def _examine_task(words: Sequence[str]) -> Iterator[Section]:
    subject = compose_small([*words, f"method={_WITH_TASK[0]}"])
    spec = subject.spec
    findings = list(examine_all(subject, TASK_PROMISES))
    yield f"task {spec.task} d={spec.d} n={spec.n} {spec.task_variant}".strip(), findings
    if all(finding.state != "not checked" for finding in findings):
        for method in _WITH_TASK:
            yield _examine_pair(compose_small([*words, f"method={method}"]), RUN_PROMISES)


def _examine_method(words: Sequence[str], *, every_task: bool) -> Iterator[Section]:
    tasks = [[f"task={entry.name}"] for entry in registry.entries("task")] if every_task else [[]]
    subjects, refusals = [], []
    for task in tasks:
        try:
            subjects.append(compose_small([*words, *task]))
        except UsageError as error:  # such as d=11 on a task of three variables
            refusals.append(error)
    if not subjects:
        raise refusals[-1]
    declined = 0
    for subject in subjects:
        title, findings = _examine_pair(subject, METHOD_PROMISES)
        declined += title.endswith(_DECLINED)
        yield title, findings
    if declined == len(subjects) and every_task:
        yield subjects[0].spec.method, [Finding(_SOME_TASK, "broken", "it declines all of them")]


def _examine_pair(subject: Subject, promises: Sequence[Promise]) -> Section:
    """Check a method on a task, or how it declines the task."""
    title = subject.spec.title
    try:
        with restored_process(), exit_as_error():
            reason = subject.refusal()
    except KeyboardInterrupt:
        raise
    except BaseException:  # the first promise fails on it too, and reports it
        reason = None
    if reason is None:
        return title, examine_all(subject, promises)
    return f"{title}{_DECLINED}", examine_all(subject, REFUSAL_PROMISES)


def compose_small(words: Sequence[str]) -> Subject:
    """Return a small subject of these overrides that can be built; given sizes are kept."""
    given = {word.partition("=")[0] for word in words}
    small, quick = (
        [word for word in defaults if word.partition("=")[0] not in given]
        for defaults in (_SMALL, _QUICK)
    )
    refusals: list[UsageError] = []
    for sizes in product(*([word, ""] for word in small)):
        try:
            (spec,) = specify_points([[*words, *quick, *filter(None, sizes)]])
            spec.build()
        except UsageError as error:
            refusals.append(error)
        else:
            return Subject(spec)
    raise refusals[-1]

"""What is examined for a request: a task by itself and with methods, or a method on tasks."""

from collections.abc import Iterable, Iterator, Sequence

from ddobench import registry
from ddobench.check.methods import METHOD_PROMISES, REFUSAL_PROMISES, RUN_PROMISES
from ddobench.check.promises import Finding, Promise, examine_all
from ddobench.check.sizes import compose_small
from ddobench.check.subject import Subject
from ddobench.check.tasks import TASK_PROMISES
from ddobench.errors import UsageError

Section = tuple[str, Iterable[Finding]]  # what was examined, and what was found


def examine(words: Sequence[str], companions: Sequence[str]) -> Iterator[Section]:
    """Examine what these overrides choose: a method or a part if they name one, else a task.

    Companions are methods that a task meets.
    """
    keys = {word.partition("=")[0] for word in words}
    if keys & {"method", *registry.PARTS}:
        yield from _examine_method(words, anywhere="task" not in keys)
    else:
        yield from _examine_task(words, companions)


def _examine_task(words: Sequence[str], companions: Sequence[str]) -> Iterator[Section]:
    """Examine a task by itself, and whether methods can be run on it."""
    subject = compose_small([*words, f"method={companions[0]}"])
    spec = subject.spec
    findings = list(examine_all(subject, TASK_PROMISES))
    yield f"task {spec.task} d={spec.d} n={spec.n} {spec.task_variant}".strip(), findings
    if all(finding.state != "not looked at" for finding in findings):
        for method in companions:
            yield _examine_pair(compose_small([*words, f"method={method}"]), RUN_PROMISES)


def _examine_method(words: Sequence[str], *, anywhere: bool) -> Iterator[Section]:
    """Examine a method on the task that was named, or on every task that it takes on."""
    tasks = [f"task={entry.name}" for entry in registry.entries("task")] if anywhere else [""]
    subjects, refusals = [], []
    for task in tasks:
        try:
            subjects.append(compose_small([*words, *filter(None, [task])]))
        except UsageError as error:  # such as d=11 on a task of three variables
            refusals.append(error)
    if not subjects:
        raise refusals[-1]
    declined = 0
    for subject in subjects:
        title, findings = _examine_pair(subject, METHOD_PROMISES)
        declined += title.endswith(_DECLINED)
        yield title, findings
    if declined == len(subjects) and anywhere:
        yield subjects[0].spec.method, [Finding(_SOME_TASK, "broken", "it declines all of them")]


def _examine_pair(subject: Subject, promises: Sequence[Promise]) -> Section:
    """Examine a method on a task, or the way it declines it."""
    title = subject.spec.title
    try:
        reason = subject.refusal()
    except (Exception, SystemExit):  # seen again, and told, by the first promise
        reason = None
    if reason is None:
        return title, examine_all(subject, promises)
    return f"{title}{_DECLINED}", examine_all(subject, REFUSAL_PROMISES)


_DECLINED = ", which it declines"
_SOME_TASK = Promise(
    "every method takes on some task",
    "let declines() return None for data that the method can work on",
    lambda _: None,
)

"""A promise that a task or a method makes, and what was found of it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ddobench.check.subject import Subject
from ddobench.runner.failures import locate

State = Literal["kept", "broken", "not looked at"]


@dataclass(frozen=True)
class Promise:
    """What is promised, how to see whether it is kept, and what to do if not."""

    says: str
    remedy: str
    look: Callable[[Subject], str | None]  # what was seen instead, None where it is kept
    first: bool = False  # nothing else can be looked at if it is broken
    bits: bool = False  # it is about the last bit

    def __str__(self) -> str:
        return self.says

    def examine(self, subject: Subject) -> "Finding":
        """Look whether a subject keeps the promise; an error in it is a thing that was seen."""
        try:
            seen = self.look(subject)
        except (Exception, SystemExit) as error:
            told = " ".join(f"{type(error).__name__}: {error}".split())
            seen = f"{told} (at {locate(error)})"
        return Finding(self, "kept" if seen is None else "broken", seen or "")


@dataclass(frozen=True)
class Finding:
    """What became of a promise."""

    promise: Promise
    state: State
    seen: str = ""

    def __str__(self) -> str:
        if self.state != "broken":
            return f"{self.state}: {self.promise.says}"
        return f"broken: {self.promise.says}; seen: {self.seen}; do: {self.promise.remedy}"


def examine_all(subject: Subject, promises: Sequence[Promise]) -> Iterator[Finding]:
    """Examine one promise after the other, until one breaks that the others rest on."""
    ended = False
    for promise in promises:
        finding = Finding(promise, "not looked at") if ended else promise.examine(subject)
        ended = ended or (promise.first and finding.state == "broken")
        yield finding

"""Progress of a sweep and of the steps inside a job: bars on a terminal, plain lines in a pipe."""

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import Protocol, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

Item = TypeVar("Item")
console = Console(stderr=True)
REFRESH_SECONDS = 0.1
LINE_SECONDS = 1.0


class Reporter(Protocol):
    """Receives the progress of a sweep; `work` names the current job."""

    def begin(self, work: str) -> None:
        """Start a job."""

    def step(self, what: str, done: int, total: int | None) -> None:
        """Report that `done` of `total` steps of a part of the job are done."""

    def finish(self, runs: int) -> None:
        """Report that `runs` more runs of the sweep are stored, declined or failed."""


class Silent:
    """Prints nothing, for tests and worker processes."""

    def begin(self, work: str) -> None:
        """Do nothing."""

    def step(self, what: str, done: int, total: int | None) -> None:
        """Do nothing."""

    def finish(self, runs: int) -> None:
        """Do nothing."""


class Lines:
    """Plain lines: at most one a second while runs finish, one every `every` seconds if none do."""

    def __init__(self, total: int, every: float = 10.0) -> None:
        self.total, self.every = total, every
        self.done = 0
        self.start = self.printed = time.monotonic()
        self.work = ""

    def begin(self, work: str) -> None:
        """Remember the name of the job."""
        self.work = work

    def step(self, what: str, done: int, total: int | None) -> None:
        """Print at most every `every` seconds."""
        if time.monotonic() - self.printed > self.every:
            self._print(f"{self.work}: {what} {done}" + (f" of {total}" if total else ""))

    def finish(self, runs: int) -> None:
        """Print how far the sweep is and how long the rest may take."""
        self.done += runs
        spent = time.monotonic() - self.start
        left = spent / self.done * (self.total - self.done) if self.done else 0.0
        rest = f", about {left:.0f} s left" if self.done < self.total else ""
        if time.monotonic() - self.printed > LINE_SECONDS or self.done >= self.total:
            work = f" ({self.work})" if self.work else ""
            self._print(f"{self.done} of {self.total} runs, {spent:.1f} s{rest}{work}")

    def _print(self, line: str) -> None:
        self.printed = time.monotonic()
        print(line, file=sys.stderr, flush=True)


class Bars:
    """One bar for the sweep, one for the steps of the current job."""

    def __init__(self, progress: Progress, total: int) -> None:
        self.progress = progress
        self.sweep = progress.add_task("sweep", total=total)
        self.inner: TaskID | None = None
        self.what = ""

    def begin(self, work: str) -> None:
        """Name the job on the sweep's bar."""
        self.progress.update(self.sweep, description=work)

    def step(self, what: str, done: int, total: int | None) -> None:
        """Move the lower bar, a new one for every new part."""
        if self.inner is None or what != self.what:
            self._drop()
            self.inner, self.what = self.progress.add_task(what, total=total), what
        self.progress.update(self.inner, completed=done)

    def finish(self, runs: int) -> None:
        """Move the sweep's bar."""
        self._drop()
        self.progress.advance(self.sweep, runs)

    def _drop(self) -> None:
        if self.inner is not None:
            self.progress.remove_task(self.inner)
            self.inner = None


class Late:
    """One bar for the current part, shown once the work takes longer than `after` seconds."""

    def __init__(self, progress: Progress, after: float = 2.0) -> None:
        self.progress = progress
        self.begun, self.after = time.monotonic(), after
        self.parts: dict[str, TaskID] = {}

    def begin(self, work: str) -> None:
        """Do nothing: the parts have names."""

    def step(self, what: str, done: int, total: int | None) -> None:
        """Move the bar of a part and hide the others."""
        if what not in self.parts:
            for part in self.parts.values():
                self.progress.update(part, visible=False)
            self.parts[what] = self.progress.add_task(what, total=total)
        self.progress.update(self.parts[what], completed=done)
        if time.monotonic() - self.begun > self.after:
            self.progress.start()

    def finish(self, runs: int) -> None:
        """Do nothing: there are no runs."""


_active: Reporter = Silent()
_stages: list[str] = []


def active() -> Reporter:
    """Return the reporter of the current sweep, a silent one without a sweep."""
    return _active


def bars() -> Progress:
    """Return a display of bars with elapsed and remaining time, removed at the end."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    return Progress(*columns, console=console, transient=True)


@contextmanager
def reporting(total: int) -> Iterator[Reporter]:
    """Report the runs inside the block on stderr: bars on a terminal, lines elsewhere."""
    global _active
    before = _active
    try:
        if console.is_terminal:
            with bars() as progress:
                _active = Bars(progress, total)
                yield _active
        else:
            _active = Lines(total)
            yield _active
    finally:
        _active = before


@contextmanager
def following(count: Callable[[], int], reporter: Reporter) -> Iterator[None]:
    """Report the runs that worker processes finish while the block waits, by counting them.

    Counting takes at most a twentieth of the time.
    """
    over = threading.Event()

    def follow() -> None:
        done, pause = 0, LINE_SECONDS
        while not over.wait(pause):
            began = time.monotonic()
            done = _report_more(count(), done, reporter)
            pause = max(LINE_SECONDS, 20 * (time.monotonic() - began))
        _report_more(count(), done, reporter)

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _report_more(found: int, done: int, reporter: Reporter) -> int:
    if found > done:
        reporter.finish(found - done)
    return max(found, done)


@contextmanager
def reporting_late() -> Iterator[None]:
    """Report the steps inside the block on a terminal if they take long, and nothing in a pipe."""
    global _active
    if not console.is_terminal:
        yield
        return
    before = _active
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    progress = Progress(*columns, console=console, transient=True)
    _active = Late(progress)
    try:
        yield
    finally:
        progress.stop()
        _active = before


class _Relay(Silent):
    """Hands the steps on."""

    def __init__(self, send: Callable[[str, int, int | None], None]) -> None:
        self.send = send

    def step(self, what: str, done: int, total: int | None) -> None:
        """Hand one on."""
        self.send(what, done, total)


def report_to(send: Callable[[str, int, int | None], None]) -> None:
    """Hand the steps of this process on to another, which reports them."""
    global _active
    _active = _Relay(send)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Prefix the steps inside the block with a name, for work that repeats the same steps."""
    _stages.append(name)
    try:
        yield
    finally:
        _stages.pop()


def track(items: Iterable[Item], what: str, total: int | None = None) -> Iterator[Item]:
    """Yield the items, reporting each finished one as a step named `what`."""
    what = ", ".join([*_stages, what])
    if total is None and isinstance(items, Sized):
        total = len(items)
    reporter, reported = _active, 0.0
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - reported > REFRESH_SECONDS or done == total:
            reported = now
            reporter.step(what, done, total)


def format_seconds(seconds: float) -> str:
    """Format a time in a suitable unit."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def format_bytes(size: float) -> str:
    """Format a number of bytes in a suitable unit."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"

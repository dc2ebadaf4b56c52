"""A limit on the time that a run takes.

In the main thread of a process an alarm breaks off whatever Python code is under way, and again
every second for code that goes on regardless. One long call into a library, such as a matrix
product, is broken off when it returns. Where there is no alarm (other threads, other systems) the
time is looked at only between the steps of a method.
"""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

AGAIN = 1.0  # seconds between alarms


class TimeLimitError(BaseException):
    """A run takes too long; no Exception, so that a method does not take it for one of its own."""


class Deadline:
    """When a batch of runs must be over."""

    def __init__(self, seconds: float | None, runs: int = 1) -> None:
        self.seconds, self.runs = seconds, runs
        self.at = None if seconds is None else time.monotonic() + seconds * runs

    def check(self) -> None:
        """Raise if it is past."""
        if self.at is not None and time.monotonic() >= self.at:
            raise self.error()

    def error(self) -> TimeLimitError:
        """Return what to raise."""
        limit = f"timeout={self.seconds:g} s"
        many = f" for each of its {self.runs} seeds" if self.runs > 1 else ""
        return TimeLimitError(f"took longer than {limit}{many}")


NEVER = Deadline(None)


@contextmanager
def time_limit(seconds: float | None, runs: int) -> Iterator[Deadline]:
    """Raise a TimeLimitError inside the block if it takes longer than `runs` runs may take."""
    deadline = Deadline(seconds, runs)
    if seconds is None or not _has_alarm():
        yield deadline
        return
    under_way = True

    def ring(_: int, __: FrameType | None) -> None:
        if under_way:
            raise deadline.error()

    handler = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds * runs, AGAIN)
    try:
        yield deadline
    finally:
        under_way = False
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)


def _has_alarm() -> bool:
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")

"""Limits on a batch of runs: the memory that its seeds may take, and the time.

Memory: the size of a seed's table gives a rough estimate, and a method declares what its fit
takes once per batch (`working_bytes`). The estimate is coarse, so a batch that still runs out of
memory is halved until it fits (`batches`).

Time: in the main thread an alarm interrupts Python code, and again every second if the code goes
on. A long call into a library, such as a matrix product, is interrupted when it returns. Where
there is no alarm (other threads, other systems) time is checked between the steps of a method.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from ddobench.errors import UsageError, read_message

# The environment variable that tells the worker processes of a launcher how many of them
# share this machine; it is set while jobs are launched (`cli/workers.py`).
WORKERS = "DDOBENCH_WORKERS"
SHARE = 0.5  # of the free memory that a batch may take
PROGRAM_BYTES = 0.5e9  # taken by Python and PyTorch before they do anything
ALARM_SECONDS = 1.0  # between alarms
_FLOAT_BYTES = 8
# Copies of its table that a seed holds at once: one that the harness keeps, and what was measured
# of methods (linear, ga 6, fgm, units 10), with some room.
_COPIES = 13
_OUT_OF_MEMORY = ("can't allocate memory", "not enough memory", "out of memory", "alloc_cpu")
_SLURM = "SLURM_MEM_PER_NODE"  # megabytes that a job asked for
_CGROUP = Path("/sys/fs/cgroup")


def check_memory(value: object) -> None:
    """Raise unless `memory_gb` is a positive number or None."""
    if value is not None and not _is_positive(value):
        raise UsageError(
            f"memory_gb must be a number above 0, or null for half of what is free, got {value!r}"
        )


def check_timeout(value: object) -> None:
    """Raise unless `timeout` is a positive number of seconds or None."""
    if value is not None and not _is_positive(value):
        raise UsageError(f"timeout must be a number of seconds above 0, or null, got {value!r}")


def _is_positive(value: object) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 < value < float("inf")  # type: ignore[operator]


def fit_seeds(n: int, d: int, memory_gb: float | None, once: float = 0.0) -> int | None:
    """Return how many seeds fit into memory at once, at least one; None if that is unknown.

    `once` are the bytes that a batch takes beside its seeds.
    """
    if memory_gb is not None:
        available = max(0.0, memory_gb * 1e9 - PROGRAM_BYTES)
    else:
        free = free_memory()
        if free is None:
            return None
        available = SHARE * free / max(1, int(os.environ.get(WORKERS) or 1))
    return max(1, int((available - once) / seed_bytes(n, d)))


def seed_bytes(n: int, d: int) -> float:
    """Return the bytes that a seed takes at most."""
    return _COPIES * _FLOAT_BYTES * n * (d + 1)


def free_memory() -> float | None:
    """Return the bytes of memory that this process may still take, None if that is unknown."""
    found = []
    with suppress(OSError, ValueError, KeyError):
        found.append(_read_numbers(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    with suppress(OSError, ValueError, KeyError):  # "max" if there is no limit
        most, used = (
            float((_CGROUP / name).read_text()) for name in ("memory.max", "memory.current")
        )
        found.append(most - used + _read_numbers(_CGROUP / "memory.stat")["file"])
    with suppress(ValueError, KeyError):
        found.append(float(os.environ[_SLURM]) * 1024**2)
    return max(0.0, min(found)) if found else None


def _read_numbers(path: Path) -> dict[str, float]:
    """Read a file with a name and a number in each line."""
    words = [line.split() for line in path.read_text().splitlines()]
    return {pair[0]: float(pair[1]) for pair in words if len(pair) > 1}


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that memory ran out; PyTorch has several messages for it."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in read_message(error).lower() for words in _OUT_OF_MEMORY
    )


class TimeLimitError(BaseException):
    """A run takes too long. Not an Exception, so that a method does not catch it as its own."""


class Deadline:
    """When a batch of runs must be over."""

    def __init__(self, seconds: float | None, runs: int = 1) -> None:
        self.seconds, self.runs = seconds, runs
        self.at = None if seconds is None else time.monotonic() + seconds * runs

    def check(self) -> None:
        """Raise if the deadline has passed."""
        if self.at is not None and time.monotonic() >= self.at:
            raise self.error()

    def error(self) -> TimeLimitError:
        """Return the error to raise."""
        limit = f"timeout={self.seconds:g} s"
        many = f" for each of its {self.runs} seeds" if self.runs > 1 else ""
        return TimeLimitError(f"took longer than {limit}{many}")


NO_DEADLINE = Deadline(None)


@contextmanager
def time_limit(seconds: float | None, runs: int) -> Iterator[Deadline]:
    """Raise a TimeLimitError inside the block if it takes longer than `runs` runs may take."""
    deadline = Deadline(seconds, runs)
    main = threading.current_thread() is threading.main_thread()
    if seconds is None or not (main and hasattr(signal, "setitimer")):
        yield deadline
        return
    active = True

    def ring(_: int, __: FrameType | None) -> None:
        if active:
            raise deadline.error()

    handler = signal.signal(signal.SIGALRM, ring)
    timer = signal.setitimer(signal.ITIMER_REAL, seconds * runs, ALARM_SECONDS)
    try:
        yield deadline
    finally:
        active = False
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)

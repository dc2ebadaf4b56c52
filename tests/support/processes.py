"""Processes that tests start: none outlives its test, and none is hurried.

A test waits for what it is waiting for, however busy the machine is; only what never comes ends.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

PATIENCE = 600.0  # seconds, after which nothing more is expected to happen

Spawn = Callable[..., "subprocess.Popen[str]"]


@contextmanager
def nursery() -> Iterator[Spawn]:
    """Give a function that starts `python` with some words; end what it started afterwards."""
    with ExitStack() as started:

        def spawn(*words: str) -> "subprocess.Popen[str]":
            with interruptible():
                process = subprocess.Popen(
                    [sys.executable, *words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            started.enter_context(process)  # which closes its pipes and waits for its end
            started.callback(process.kill)  # before that
            return process

        yield spawn


@contextmanager
def interruptible() -> Iterator[None]:
    """Let processes that are started here heed Ctrl-C and a lost terminal.

    A shell starts what it runs in the background with its ears closed to the first, nohup closes
    them to the second, and processes inherit that.
    """
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
        signal.SIGHUP: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def wait_until(happened: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait for something that a process is to do; fail at once if the process ends without."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if process.poll() is not None and not happened():
            raise AssertionError(f"the process ended without it: {process.communicate()[1]}")
        assert time.monotonic() < deadline, "the process does not get there"
        time.sleep(0.02)

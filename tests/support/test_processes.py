"""What tests may rely on when they start processes."""

import gc
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.processes import PATIENCE, nursery, wait_until


def give_up(started: "list[subprocess.Popen[str]]") -> None:
    with nursery() as spawn:
        started.append(spawn("-c", "import time; time.sleep(1000)"))
        raise RuntimeError("given up")


def test_a_process_that_a_test_gives_up_on_is_ended_and_leaves_no_pipe() -> None:
    started: list[subprocess.Popen[str]] = []
    with pytest.raises(RuntimeError, match="given up"):
        give_up(started)
    process = started.pop()
    assert process.returncode not in (None, 0)
    assert process.stdout is not None
    assert process.stdout.closed
    assert process.stderr is not None
    assert process.stderr.closed
    del process
    gc.collect()  # a process left behind would warn here


def test_a_process_that_ended_is_let_go() -> None:
    with nursery() as spawn:
        process = spawn("-c", "print('done')")
        assert process.communicate()[0].split() == ["done"]
    assert process.returncode == 0


def test_a_process_can_be_interrupted_even_if_the_tests_run_in_the_background() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with nursery() as spawn:
            process = spawn("-c", "import time; print('up', flush=True); time.sleep(1000)")
            assert process.stdout is not None
            assert process.stdout.readline() == "up\n"
            process.send_signal(signal.SIGINT)
            assert "KeyboardInterrupt" in process.communicate(timeout=PATIENCE)[1]
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_waiting_ends_when_it_happened(tmp_path: Path) -> None:
    script = f"from pathlib import Path; Path({os.fspath(tmp_path / 'sign')!r}).touch()"
    with nursery() as spawn:
        wait_until((tmp_path / "sign").exists, spawn("-c", script))


def test_waiting_for_a_process_that_ends_without_fails_with_its_words() -> None:
    with (
        pytest.raises(AssertionError, match="ended without it: no such luck"),
        nursery() as spawn,
    ):
        wait_until(lambda: False, spawn("-c", "import sys; sys.exit('no such luck')"))

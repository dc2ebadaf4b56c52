"""A run that takes too long is a failed run, and takes no other with it."""

import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
from torch import Tensor

from ddobench.contracts import Dataset, Proposal
from ddobench.rng import Streams
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.limits import Deadline, TimeLimitError, time_limit
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, specify_fake

SHORT = 0.2  # seconds, of a limit that is meant to be passed
LONG = 600.0  # of one that is not


def spin() -> None:
    """Take for ever, and do not heed errors."""
    while True:
        try:
            time.sleep(0.01)
        except Exception:
            continue


class Stuck(Climb):
    """Never ends for one seed."""

    name: ClassVar[str] = "stuck"
    on: ClassVar[int] = 1

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Hang if that seed is there."""
        if self.on in rng.seeds:
            spin()
        super().fit(data, rng)


class Endless(Climb):
    """Never comes to its last proposal."""

    name: ClassVar[str] = "endless"

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Propose the same again and again."""
        while True:
            yield Proposal(starts.float())


def test_a_run_beyond_its_limit_fails_with_its_reason_and_the_others_are_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = replace(specify_fake(Stuck), timeout=SHORT)
    outcome = execute(spec, [0, 1, 2], Store(tmp_path))
    runs = load(tmp_path).set_index("seed")
    assert outcome.failed >= 1
    assert runs["status"][1] == "failed"
    assert runs["reason"][1] == "took longer than timeout=0.2 s"
    assert "failed together, retrying each alone: took longer than timeout=0.2 s for each of its " \
        "3 seeds" in caplog.text  # fmt: skip


def test_a_limit_that_is_kept_changes_nothing(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGALRM)
    spec = replace(specify_fake(Climb), timeout=LONG)
    assert spec.digest == specify_fake(Climb).digest
    assert execute(spec, [0, 1], Store(tmp_path)) == Outcome(ok=2)
    assert signal.getsignal(signal.SIGALRM) == before
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_without_a_limit_there_is_no_alarm() -> None:
    with time_limit(None, 3) as deadline:
        assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
        deadline.check()


def test_a_stack_of_seeds_has_the_time_of_all_of_them() -> None:
    with time_limit(LONG, 3):
        left, again = signal.getitimer(signal.ITIMER_REAL)
        assert LONG < left <= 3 * LONG
        assert again > 0


def test_code_that_goes_on_regardless_is_broken_off_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddobench.runner.limits.ALARM_SECONDS", 0.05)
    heard: list[BaseException] = []

    def go_on_twice() -> None:
        with time_limit(0.05, 1):
            while len(heard) < 2:
                try:
                    spin()
                except BaseException as error:
                    heard.append(error)
            spin()

    with pytest.raises(TimeLimitError, match=r"took longer than timeout=0\.05 s"):
        go_on_twice()
    assert len(heard) == 2


def test_an_alarm_of_someone_else_is_given_back() -> None:
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append("alarm"))
    signal.setitimer(signal.ITIMER_REAL, LONG)
    try:
        with time_limit(LONG, 1):
            pass
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
        signal.raise_signal(signal.SIGALRM)
        assert heard == ["alarm"]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_in_another_thread_the_limit_is_looked_at_between_proposals(tmp_path: Path) -> None:
    found: list[Outcome] = []
    spec = replace(specify_fake(Endless), timeout=SHORT)
    thread = threading.Thread(target=lambda: found.append(execute(spec, [0], Store(tmp_path))))
    thread.start()
    thread.join()
    assert found == [Outcome(failed=1)]
    assert load(tmp_path)["reason"].tolist() == ["took longer than timeout=0.2 s"]


def test_a_deadline_in_the_future_is_no_error() -> None:
    Deadline(LONG, 2).check()
    with pytest.raises(TimeLimitError, match="took longer than timeout=0 s"):
        Deadline(0.0).check()

"""Promises of progress reports."""

import io
import itertools
import re
import threading
from collections.abc import Iterator

import pytest
from rich.console import Console
from rich.progress import Progress

from ddobench import progress
from ddobench.progress import (
    Bars,
    Lines,
    Silent,
    active,
    following,
    reporting,
    reporting_late,
    stage,
    track,
)


class Ear(Silent):
    """Remember the steps."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, int, int | None]] = []

    def step(self, what: str, done: int, total: int | None) -> None:
        """Remember one."""
        self.steps.append((what, done, total))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return a clock that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr("ddobench.progress.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Ear:
    """Return what hears the steps of `track`."""
    listener = Ear()
    monkeypatch.setattr(progress, "_active", listener)
    return listener


def terminal() -> Console:
    """Return a terminal that remembers what was written."""
    return Console(file=io.StringIO(), force_terminal=True, width=100, color_system=None)


def test_a_pipe_gets_plain_lines_on_stderr(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    with reporting(4) as reporter:
        reporter.begin("fgm on toy seed 0-1")
        clock[0] = 5.0
        reporter.finish(2)
        clock[0] = 9.0
        reporter.finish(2)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "2 of 4 runs, 5.0 s, about 5 s left (fgm on toy seed 0-1)",
        "4 of 4 runs, 9.0 s (fgm on toy seed 0-1)",
    ]


def test_a_pipe_never_gets_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with reporting(2) as reporter:
        reporter.begin("[bold]work[/]")
        for _ in track(range(50), "iteration"):
            pass
        reporter.finish(2)
    err = capsys.readouterr().err
    assert "2 of 2 runs" in err
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", err)


def test_many_quick_runs_do_not_flood_a_pipe_but_the_last_is_said(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    lines = Lines(total=1000)
    for done in range(1000):
        clock[0] = done / 100
        lines.finish(1)
    said = capsys.readouterr().err.splitlines()
    assert 2 <= len(said) <= 11
    assert said[-1].startswith("1000 of 1000 runs")


def test_a_long_job_speaks_up_now_and_then(
    capsys: pytest.CaptureFixture[str], clock: list[float]
) -> None:
    lines = Lines(total=2, every=10)
    lines.begin("work")
    for second in range(25):
        clock[0] = float(second)
        lines.step("training", second, 25)
    lines.step("thinking", 3, None)
    assert capsys.readouterr().err.splitlines() == [
        "work: training 11 of 25",
        "work: training 22 of 25",
    ]
    clock[0] = 40.0
    lines.step("thinking", 3, None)
    assert capsys.readouterr().err == "work: thinking 3\n"


def test_a_terminal_gets_bars_that_are_gone_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    console = terminal()
    monkeypatch.setattr(progress, "console", console)
    with reporting(2) as reporter:
        assert isinstance(reporter, Bars)
        reporter.begin("fgm on toy")
        for _ in track(range(3), "iteration"):
            reporter.progress.refresh()
        reporter.finish(2)
        assert len(reporter.progress.tasks) == 1
        assert reporter.progress.tasks[0].completed == 2
    assert isinstance(console.file, io.StringIO)
    written = console.file.getvalue()
    assert "fgm on toy" in written
    assert "iteration" in written
    erase_line = "\x1b[2K"
    assert erase_line in written.rpartition("fgm on toy")[2]


def test_each_part_of_a_job_has_its_own_bar_below_the_sweep() -> None:
    with Progress(console=terminal(), auto_refresh=False) as shown:
        bars = Bars(shown, total=5)
        bars.step("training", 3, 10)
        bars.step("training", 4, 10)
        assert [(t.description, t.completed, t.total) for t in shown.tasks[1:]] == [
            ("training", 4, 10)
        ]
        bars.step("iteration", 1, None)
        assert [(t.description, t.completed, t.total) for t in shown.tasks[1:]] == [
            ("iteration", 1, None)
        ]
        bars.finish(2)
        assert [t.completed for t in shown.tasks] == [2]


def test_outside_a_report_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    before = active()
    with reporting(1):
        assert active() is not before
    assert active() is before
    for _ in track(range(3), "iteration"):
        pass
    assert capsys.readouterr().err == ""


def test_a_report_ends_even_when_its_block_fails() -> None:
    before = active()
    with pytest.raises(RuntimeError, match="broken"), reporting(1):
        raise RuntimeError("broken")
    assert active() is before


def test_tracking_yields_every_item_in_order(ear: Ear) -> None:
    assert list(track(iter("abc"), "letter")) == ["a", "b", "c"]
    assert list(track([], "nothing")) == []
    assert {step[0] for step in ear.steps} == {"letter"}


@pytest.mark.usefixtures("clock")
def test_tracking_reports_seldom_but_always_the_last(ear: Ear) -> None:
    for _ in track(range(1000), "step"):
        pass
    assert ear.steps == [("step", 1000, 1000)]


def test_tracking_reports_an_item_only_when_it_is_finished(ear: Ear, clock: list[float]) -> None:
    for done in track(range(3), "step"):
        assert len(ear.steps) == done
        clock[0] += 1.0
    assert [step[1] for step in ear.steps] == [1, 2, 3]


def test_a_generator_is_not_drawn_ahead() -> None:
    drawn: list[int] = []

    def draw() -> Iterator[int]:
        for item in itertools.count():
            drawn.append(item)
            yield item

    assert list(itertools.islice(track(draw(), "item", total=9), 2)) == [0, 1]
    assert drawn == [0, 1]


def test_steps_inside_a_stage_are_told_apart(ear: Ear) -> None:
    for name in ("units", "additive"):
        with stage(f"judging {name}"):
            list(track(range(1), "round"))
    list(track(range(1), "round"))
    assert [what for what, _, _ in ear.steps] == [
        "judging units, round", "judging additive, round", "round",
    ]  # fmt: skip


def test_what_others_finish_is_reported_while_one_waits_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    counts = iter([0, 2, 2, 5])
    finished: list[int] = []
    last = threading.Event()

    def count() -> int:
        found = next(counts, None)
        if found is None:
            last.set()
        return 5 if found is None else found

    class Counter(Silent):
        def finish(self, runs: int) -> None:
            finished.append(runs)

    with following(count, Counter()):
        assert last.wait(60)
    assert finished == [2, 3]


@pytest.mark.parametrize("terminal", [True, False])
def test_steps_that_take_long_are_named_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    console = Console(stderr=True, force_terminal=terminal, width=80)
    monkeypatch.setattr(progress, "console", console)
    for after, speaks in ((60.0, False), (-1.0, terminal)):
        monkeypatch.setattr(progress.Late.__init__, "__defaults__", (after,))
        with reporting_late():
            assert list(track(range(3), "reading runs")) == [0, 1, 2]
            assert list(track(range(2), "drawing figures")) == [0, 1]
        said = capsys.readouterr().err
        assert ("reading runs" in said) == ("drawing figures" in said) == speaks

"""Promises of rendering: the same bytes on one core or on several, and errors that are seen."""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd
import pytest
from matplotlib.lines import Line2D

from ddobench import progress
from ddobench.progress import reporting_late, track
from ddobench.report.figures.drawing import blank_drawing
from ddobench.report.figures.figure import FORMATS, Absence, Figure
from ddobench.report.output import rendering
from ddobench.report.output.rendering import Rendered, render_all
from tests.support.processes import PATIENCE

pytestmark = pytest.mark.slow  # processes that import much

Items = list[Figure | Absence]


class Broken(Line2D):
    """A line that cannot be drawn."""

    def draw(self, renderer: Any) -> None:  # noqa: ARG002 - the name is matplotlib's
        """Fail."""
        raise ValueError("this line cannot be drawn")


class Local(Line2D):
    """A line that cannot be sent."""

    def __reduce__(self) -> str:
        """Refuse."""
        raise TypeError("not to be sent")


def figure_of(number: int, line: type[Line2D] = Line2D) -> Figure:
    """Return a figure of one line, with a formula."""
    drawing = blank_drawing(2, 1)
    axes = drawing.add_subplot()
    axes.add_line(line([0, 1], [0, number / 10]))
    axes.set_xlabel(f"$x_{number}$ against time")
    return Figure(
        name=f"line-{number}", title="", caption="", task="toy", data=pd.DataFrame(),
        commands=(), drawing=drawing, subject="methods",
    )  # fmt: skip


@pytest.fixture(scope="module")
def here() -> Rendered:
    """Return seven figures as this process renders them alone."""
    return render_all([figure_of(number) for number in range(7)], painters=0)[1]


def slowly(items: Iterable[Figure | Absence]) -> Iterator[Figure | Absence]:
    """Yield items, and once other processes are called wait until one has rendered something."""
    for item in items:
        yield item
        if STUDIOS[-1].processes:
            wait_for_painters()


def wait_for_painters() -> None:
    """Wait until another process has rendered something; this one starts when all is drawn."""
    deadline = time.monotonic() + PATIENCE  # a busy machine is not a bug
    while not STUDIOS[-1].done:
        assert any(process.poll() is None for process in STUDIOS[-1].processes)
        assert time.monotonic() < deadline
        time.sleep(0.05)


STUDIOS: list[Any] = []


@pytest.fixture(autouse=True)
def leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Note who is at work, and check after each test that no process is left."""

    class Watched(rendering._Studio):
        def __init__(self, painters: int, formats: Sequence[str]) -> None:
            super().__init__(painters, formats)
            STUDIOS.append(self)

    monkeypatch.setattr(rendering, "_Studio", Watched)
    yield
    for studio in STUDIOS:
        assert all(process.poll() is not None for process in studio.processes)
        assert not any(thread.is_alive() for thread in studio.threads)
    STUDIOS.clear()


def test_other_processes_render_the_same_bytes_in_the_same_order(here: Rendered) -> None:
    items: Items = [*map(figure_of, range(7)), Absence("none", "toy", "no", "yes")]
    drawn, elsewhere = render_all(slowly(items), painters=2)
    assert len(STUDIOS[-1].processes) == 2
    assert drawn == items
    assert elsewhere == here
    assert list(elsewhere) == [(f"line-{i}", ending) for i in range(7) for ending in FORMATS]


def test_few_figures_need_no_other_process() -> None:
    items: Items = [figure_of(0), Absence("none", "toy", "no", "yes"), figure_of(1)]
    assert render_all(items, painters=2)[0] == items
    assert STUDIOS[-1].processes == []


@pytest.mark.parametrize("painters", [0, 1])
def test_an_error_of_a_figure_is_raised_here(painters: int) -> None:
    figures = [*map(figure_of, range(5)), figure_of(5, Broken)]
    with pytest.raises(ValueError, match="this line cannot be drawn"):
        render_all(slowly(figures) if painters else figures, painters)


def test_what_cannot_be_sent_is_rendered_here(here: Rendered) -> None:
    figures = [figure_of(0, Local), *map(figure_of, range(1, 7))]
    _, rendered = render_all(slowly(figures), painters=1)
    assert rendered == here


def test_a_process_that_dies_costs_only_time(here: Rendered) -> None:
    def items() -> Iterator[Figure | Absence]:
        yield from slowly(map(figure_of, range(7)))
        for process in STUDIOS[-1].processes:
            process.kill()

    assert render_all(items(), painters=1)[1] == here


def test_without_a_working_interpreter_all_is_rendered_here(
    here: Rendered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false" if os.name == "posix" else sys.executable)
    assert render_all(map(figure_of, range(7)), painters=2)[1] == here


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interruption_ends_the_other_processes(error: type[BaseException]) -> None:
    def items() -> Iterator[Figure]:
        yield from (figure_of(number) for number in range(7))
        raise error("that is enough")

    with pytest.raises(error, match=r"^that is enough$"):
        render_all(items(), painters=2)
    assert len(STUDIOS[-1].processes) == 2


def test_a_painter_leaves_when_nobody_asks_any_more() -> None:
    command = [sys.executable, "-m", "ddobench.report.output.painter"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=PATIENCE
    )
    assert done.stderr == b""


def test_steps_that_take_long_are_told_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    for terminal in (True, False):
        console = Console(stderr=True, force_terminal=terminal, width=80)
        monkeypatch.setattr(progress, "console", console)
        for after, speaks in ((60.0, False), (-1.0, terminal)):
            monkeypatch.setattr(progress.Late.__init__, "__defaults__", (after,))
            with reporting_late():
                assert list(track(range(3), "reading runs")) == [0, 1, 2]
                assert list(track(range(2), "drawing figures")) == [0, 1]
            said = capsys.readouterr().err
            assert ("reading runs" in said) == speaks
            assert ("drawing figures" in said) == speaks

"""Promises of rendering: the same bytes in one process or in several, and visible errors."""

import logging
import os
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing

from ddobench.report.figures.draw import Axis, LinePlot
from ddobench.report.figures.figure import FORMATS, Figure, render_all
from ddobench.report.tables.styles import Style
from tests.support.processes import PATIENCE

DATA = pd.DataFrame({"panel": "", "series": "a", "x": [1, 2], "mean": [0.0, 1.0], "low": [0.0, 0.5],
                     "high": [0.5, 1.5], "lacking": False})  # fmt: skip
PLOT = LinePlot(
    "A line", Axis("$x_1$"), Axis("y"), {"a": Style("a", "#000000", "o", (), ())}, {"": ""}
)
FIGURES = [Figure("line", f"line-{i}", f"Line {i}", "", "toy", DATA.assign(mean=[0, i]), (),
                  replace(PLOT, title=f"Line {i}")) for i in range(9)]  # fmt: skip


@dataclass(frozen=True)
class Broken:
    """A plot that cannot be drawn."""

    def draw(self, data: pd.DataFrame) -> Drawing:  # noqa: ARG002
        """Fail."""
        raise ValueError("this line cannot be drawn")


@pytest.fixture(scope="module")
def here() -> dict[tuple[str, str], bytes]:
    """Return nine figures as this process renders them."""
    return render_all(FIGURES, ["svg"], workers=1)


def test_figures_are_rendered_here_if_a_worker_dies(
    here: dict[Any, bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(*_: Any, **__: Any) -> None:
        raise BrokenProcessPool("a worker was killed")

    monkeypatch.setattr(ProcessPoolExecutor, "map", lose)
    caplog.set_level(logging.WARNING, "ddobench")
    assert render_all(FIGURES, ["svg"], workers=2) == here
    assert "a rendering process died" in caplog.text


def test_few_figures_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessPoolExecutor, "map", None)  # not to be called
    rendered = render_all(FIGURES[:1], workers=2)
    assert [name for _, name in rendered] == list(FORMATS)
    starts = [rendered["line-0", end][:4] for end in FORMATS]
    assert starts == [b"<?xm", b"\x89PNG", b"%PDF"]


def test_an_error_of_a_figure_is_raised() -> None:
    broken = replace(FIGURES[0], plot=Broken())
    with pytest.raises(ValueError, match="this line cannot be drawn"):
        render_all([broken], ["svg"], workers=1)


@pytest.mark.parametrize("ending", FORMATS)
def test_a_label_in_characters_that_the_font_lacks_is_drawn_without_a_warning(ending: str) -> None:
    style = Style("\u65b9\u6cd5 \u05d0 \x1b", "#000000", "o", (), ())
    figure = replace(FIGURES[0], plot=replace(PLOT, title="\u65b9\u6cd5", styles={"a": style}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert figure.render(ending)


@dataclass(frozen=True)
class PressingCtrlC:
    """A plot that sends what Ctrl-C sends, to all processes, while it is drawn."""

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Interrupt, then draw."""
        os.killpg(os.getpgrp(), signal.SIGINT)
        time.sleep(0.2)
        return PLOT.draw(data)


INTERRUPTED = """
import os, signal, sys
from dataclasses import replace
from multiprocessing import util
from tests.report.test_rendering import FIGURES, PLOT, PressingCtrlC
from ddobench.report.figures.figure import render_all
for number in (signal.SIGTERM, signal.SIGINT):  # which may be ignored where tests run
    signal.signal(number, signal.default_int_handler)
start = util.spawnv_passfds
def start_and_terminate(path, words, *rest):
    number = start(path, words, *rest)
    if "--multiprocessing-fork" in map(os.fsdecode, words):
        os.kill(os.getpid(), signal.SIGTERM)
    return number
if {terminated}:
    util.spawnv_passfds = start_and_terminate
first = replace(FIGURES[0], plot=PLOT if {terminated} else PressingCtrlC())
try:
    render_all([first, *20 * FIGURES], ["svg"], workers=2)
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.slow
@pytest.mark.parametrize("terminated", [True, False], ids=["while-workers-start", "ctrl-c"])
def test_workers_print_nothing_when_rendering_is_interrupted(
    tmp_path: Path, terminated: bool
) -> None:
    (tmp_path / "script.py").write_text(INTERRUPTED.format(terminated=terminated))
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}, timeout=PATIENCE,
        start_new_session=True,
    )  # fmt: skip
    assert (done.stderr, done.returncode) == ("", 130)


SCRIPT = """
print("begins")
from hashlib import sha256
from tests.report.test_rendering import FIGURES
from ddobench.report.figures.figure import render_all
for (name, _), content in render_all(FIGURES, ["svg"], workers=2).items():
    print(name, sha256(content).hexdigest())
"""


@pytest.mark.slow
def test_workers_render_the_same_bytes_in_order_and_do_not_run_the_main_script(
    here: dict[Any, bytes], tmp_path: Path
) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}, timeout=PATIENCE,
    )  # fmt: skip
    expected = [f"{name} {sha256(content).hexdigest()}" for (name, _), content in here.items()]
    assert done.stdout.splitlines() == ["begins", *expected]
    assert done.stderr == ""

"""Promises of rendering: the same bytes on one core or on several, and errors that are seen."""

import logging
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
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

    def draw(self, data: pd.DataFrame) -> Drawing:  # noqa: ARG002 - it never looks
        """Fail."""
        raise ValueError("this line cannot be drawn")


@pytest.fixture(scope="module")
def here() -> dict[tuple[str, str], bytes]:
    """Return nine figures as this process renders them alone."""
    return render_all(FIGURES, ["svg"], workers=1)


@pytest.mark.slow
def test_workers_render_the_same_bytes_in_the_same_order(here: dict[Any, bytes]) -> None:
    there = render_all(FIGURES, ["svg"], workers=2)
    assert there == here
    assert list(there) == [(f"line-{i}", "svg") for i in range(9)]


def test_a_lost_worker_costs_only_time(
    here: dict[Any, bytes], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lose(*_: Any, **__: Any) -> None:
        raise BrokenProcessPool("a worker was killed")

    monkeypatch.setattr(ProcessPoolExecutor, "map", lose)
    caplog.set_level(logging.WARNING, "ddobench")
    assert render_all(FIGURES, ["svg"], workers=2) == here
    assert "was lost" in caplog.text


def test_few_figures_start_no_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProcessPoolExecutor, "map", None)  # not to be called
    rendered = render_all(FIGURES[:1], workers=2)
    assert [name for _, name in rendered] == list(FORMATS)
    starts = [rendered["line-0", end][:4] for end in FORMATS]
    assert starts == [b"<?xm", b"\x89PNG", b"%PDF"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_of_a_figure_is_raised_here(workers: int) -> None:
    broken = replace(FIGURES[0], plot=Broken())
    with pytest.raises(ValueError, match="this line cannot be drawn"):
        render_all([*FIGURES, broken], ["svg"], workers)


SCRIPT = """
print("begins")
from tests.report.test_rendering import FIGURES

assert len(render_all(FIGURES, ["svg"], workers=2)) == 9
"""


@pytest.mark.slow
def test_workers_do_not_run_the_script_again_that_writes_a_report(tmp_path: Any) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], capture_output=True, text=True, check=True,
        env={"PYTHONPATH": ":".join(filter(None, sys.path)), "PATH": ""}, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("begins\n", "")

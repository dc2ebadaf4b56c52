"""The type of every figure, and rendering to files, in several processes if there are many.

A figure function takes the data of a report and yields a Figure for everything it applies to. The
plot of a figure is a description that can be pickled; it is drawn when the figure is rendered.
"""

import io
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from types import ModuleType
from typing import Protocol

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure as Drawing

from ddobench.progress import track
from ddobench.report.data import ReportData
from ddobench.report.figures.draw import LOOK
from ddobench.report.tables.formatting import escape_controls

log = logging.getLogger(__name__)

FORMATS = ("svg", "png", "pdf")
_FEW = 8  # figures that are rendered before another process has started
_MOST_WORKERS = 8
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
_UNDATED = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}


class Plot(Protocol):
    """A description of a drawing; it can be pickled."""

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the numbers of a figure."""


@dataclass(frozen=True)
class Figure:
    """A plot, its caption, and the exact numbers in it."""

    kind: str  # figures of one kind show the same for different tasks
    name: str  # the stem of its files
    title: str
    caption: str
    task: str  # "": several
    data: pd.DataFrame
    commands: tuple[str, ...]  # that made the drawn runs, as far as recorded
    plot: Plot
    about_task: bool = False  # whether it shows the task and no method
    table: str = ""  # the name of a related table

    def render(self, ending: str) -> bytes:
        """Return the bytes of an SVG, PNG or PDF file, the same for the same numbers."""
        with mpl.rc_context(LOOK), _any_glyph():
            return render_drawing(self.plot.draw(self.data), ending)


FigureFunction = Callable[[ReportData], Iterator[Figure]]


def render_drawing(drawing: Drawing, ending: str) -> bytes:
    """Return the bytes of a file, the same for the same drawing."""
    buffer = io.BytesIO()
    with mpl.rc_context(LOOK), _any_glyph():
        drawing.savefig(buffer, format=ending, dpi=300, metadata=_UNDATED[ending])
    content = buffer.getvalue()
    if ending == "svg":  # whose comments contain the texts; XML allows no control characters
        return escape_controls(content.decode()).encode()
    return content


@contextmanager
def _any_glyph() -> Iterator[None]:
    """Draw a box for a character that the font lacks, such as a Chinese one, without a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def render_all(
    figures: Iterable[Figure], formats: Sequence[str] = FORMATS, workers: int | None = None
) -> dict[tuple[str, str], bytes]:
    """Return the bytes of every figure in every format, by name and format."""
    items = list(figures)
    count = _count_cores() if workers is None else workers
    draw = partial(_render, formats=formats)
    if count < 2 or len(items) <= _FEW:
        files = [draw(figure) for figure in track(items, "drawing figures")]
    else:
        files = _render_in_workers(items, draw, count)
    return {(figure.name, end): content for figure, own in zip(items, files, strict=True)
            for end, content in own.items()}  # fmt: skip


def _render(figure: Figure, formats: Sequence[str]) -> dict[str, bytes]:
    """Return the bytes of one figure by format."""
    return {ending: figure.render(ending) for ending in formats}


def _render_in_workers(
    items: Sequence[Figure], draw: "partial[dict[str, bytes]]", count: int
) -> list[dict[str, bytes]]:
    """Render in spawned processes; forked ones would share open font files."""
    try:
        spawn = get_context("spawn")
        with ProcessPoolExecutor(min(count, _MOST_WORKERS), mp_context=spawn) as pool:
            try:
                with _without_script(), _signals_held():
                    found = pool.map(draw, items, chunksize=2)
                return list(track(found, "drawing figures", total=len(items)))
            except KeyboardInterrupt:
                pool.shutdown(cancel_futures=True)
                raise
    except BrokenProcessPool:
        log.warning("a rendering process died; rendering all figures in this process instead")
        return [draw(figure) for figure in track(items, "drawing figures")]


@contextmanager
def _without_script() -> Iterator[None]:
    """Keep processes that start meanwhile from importing the script of this one again."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


@contextmanager
def _signals_held() -> Iterator[None]:
    """Delay signals while processes start: a half-started one would print a traceback.

    Ctrl-C reaches every process of a terminal. The workers never notice it, as they inherit that it
    is blocked, and this process ends them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    caught = {number: old for number, old in before.items() if old not in (None, signal.SIG_IGN)}
    for number in caught:
        signal.signal(number, lambda number, _: came.append(number))
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        for number, old in caught.items():
            signal.signal(number, old)
        for number in came:
            signal.raise_signal(number)


def _count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

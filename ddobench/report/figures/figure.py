"""What a figure of a report is: its numbers, what it says, and a plot that can be drawn from them.

A figure function takes the report's data and yields a Figure for all it applies to. The plot is a
description that travels to another process, where it is drawn and rendered.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure as Drawing

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import LOOK

FORMATS = ("svg", "png", "pdf")
_UNDATED = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}


class Plot(Protocol):
    """A description of a drawing; it can be pickled."""

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the numbers of a figure."""


@dataclass(frozen=True)
class Figure:
    """A plot, what it says, and the exact numbers in it."""

    kind: str  # figures of one kind show the same of different tasks
    name: str  # the stem of its files
    title: str
    caption: str
    task: str  # "": of several
    data: pd.DataFrame
    commands: tuple[str, ...]  # whose runs are drawn, none if they do not say
    plot: Plot
    about_task: bool = False  # whether it shows the task itself, no method
    table: str = ""  # the file in `tables` with more about the same, without its ending

    def render(self, ending: str) -> bytes:
        """Return the bytes of an SVG, PNG or PDF file, the same for the same numbers."""
        with mpl.rc_context(LOOK):
            return render_drawing(self.plot.draw(self.data), ending)


FigureFunction = Callable[[ReportData], Iterator[Figure]]


def render_drawing(drawing: Drawing, ending: str) -> bytes:
    """Return the bytes of a file, the same for the same drawing; the ground is white."""
    buffer = io.BytesIO()
    with mpl.rc_context(LOOK):
        drawing.savefig(buffer, format=ending, dpi=300, metadata=_UNDATED[ending])
    return buffer.getvalue()

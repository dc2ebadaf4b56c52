"""What a figure of a report is: a drawing with the numbers in it, or the reason why there is none.

A figure function takes what is stored and yields a Figure for all it applies to, or an Absence
that says why there is nothing to draw and what would help. `gallery` lists them all.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure as Drawing

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.dark_mode import add_dark_mode
from ddobench.report.figures.drawing import LOOK

FORMATS = ("svg", "png", "pdf")
_PLACE = re.compile(r'(?<=[ \n])(x|y|width|height)="([^"]*)"')
_PATH = re.compile(r'(?<=[ \n])d="([^"]*)"')
_COMMAND = re.compile(r"\s*([MLQCz])\s*")
_LONG = re.compile(r"-?\d+\.\d{3,}")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_INDENT = re.compile(r">\s+<")
_UNDATED = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}


def render_drawing(drawing: Drawing, ending: str) -> bytes:
    """Return the bytes of an SVG, PNG or PDF file, the same for the same drawing.

    An SVG has no ground of its own and adapts to a dark page; the others are white.
    """
    buffer = io.BytesIO()
    with mpl.rc_context(LOOK):
        drawing.savefig(
            buffer, format=ending, dpi=300, metadata=_UNDATED[ending], transparent=ending == "svg"
        )
    if ending == "svg":
        return tighten(add_dark_mode(buffer.getvalue().decode())).encode()
    return buffer.getvalue()


def tighten(svg: str) -> str:
    """Return the same drawing in four fifths of its letters: hundredths of a point, no indents."""
    svg = _PLACE.sub(lambda match: f'{match[1]}="{_round(match[2])}"', svg)
    svg = _PATH.sub(lambda match: f'd="{_join(_round(match[1]))}"', svg)
    return _INDENT.sub(">\n<", _COMMENT.sub("", svg))


def _join(path: str) -> str:
    return _COMMAND.sub(r"\1", path).strip()


def _round(numbers: str) -> str:
    return _LONG.sub(lambda match: f"{float(match[0]):.2f}".rstrip("0").rstrip("."), numbers)


@dataclass(frozen=True)
class Figure:
    """A drawing, what it says, and the exact numbers in it."""

    name: str  # the stem of its files
    title: str
    caption: str
    task: str
    data: pd.DataFrame
    commands: tuple[str, ...]  # the one whose runs are drawn, none if they do not say
    drawing: Drawing
    subject: Literal["task", "methods"]  # what it is about
    table: str = ""  # the file in `tables` with more about the same, without its ending

    def render(self, ending: str) -> bytes:
        """Return the bytes of an SVG, PNG or PDF file, the same for the same numbers."""
        return render_drawing(self.drawing, ending)


@dataclass(frozen=True)
class Absence:
    """A figure that cannot be drawn yet."""

    title: str
    task: str
    reason: str
    remedy: str


FigureFunction = Callable[[ReportData], Iterator[Figure | Absence]]

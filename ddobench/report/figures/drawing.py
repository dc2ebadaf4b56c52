"""How every figure of a report is drawn: fonts, sizes, margins and limits."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter
from numpy.typing import ArrayLike, NDArray

from ddobench.report.figures.labels import wrap_text

INK = "#1f2933"
FAINT = "#7b8794"
PALE = "#e4e7eb"
MUTED = "#c3cad1"
TINT = "#cfe0ec"
WIDTH, HEIGHT = 4.9, 3.2  # inches
_MARGIN = 0.06  # inches
_WIDEST_TITLE = 44  # characters
_WIDE_SPAN = 20  # the ratio of sizes from which their axis is logarithmic

LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same everywhere
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.unicode_minus": True,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,  # embed whole TrueType outlines
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ddobench",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}

Values = NDArray[np.float64]

_LEAST_SPAN = 0.01  # of an axis, and of its largest number: below that, ticks would be hard to read


def blank_drawing(width: float = WIDTH, height: float = HEIGHT) -> Drawing:
    """Return an empty drawing of so many inches that can measure itself."""
    drawing = Drawing(figsize=(width, height), dpi=300)
    FigureCanvasAgg(drawing)
    return drawing


def blank_axes(drawing: Drawing) -> Axes:
    """Add axes with faint horizontal lines to read values by."""
    axes = drawing.add_subplot()
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))  # whatever the margins
    return axes


def set_title(axes: Axes, title: str) -> None:
    """Write what is drawn above the axes, dollar signs and all."""
    axes.set_title(wrap_text(title, _WIDEST_TITLE), loc="left", pad=10, parse_math=False)


def fit_margins(drawing: Drawing, axes: Axes) -> None:
    """Let what hangs out of the only axes, labels included, just fit onto the page."""
    width, height = drawing.get_size_inches()
    for _ in range(2):  # the second time with the ticks that the first left room for
        inner = axes.get_window_extent().transformed(drawing.dpi_scale_trans.inverted())
        outer = drawing.get_tightbbox()
        drawing.subplots_adjust(
            left=(inner.x0 - outer.x0 + _MARGIN) / width,
            right=1 - (outer.x1 - inner.x1 + _MARGIN) / width,
            bottom=(inner.y0 - outer.y0 + _MARGIN) / height,
            top=1 - (outer.y1 - inner.y1 + _MARGIN) / height,
        )


def limits_around(values: ArrayLike, room: float = 0.05) -> tuple[float, float]:
    """Return limits that leave some room around the finite values, as a share of their range.

    They are never guessed by matplotlib: values that are all the same, or nearly, get a range of
    their own, in which they look the same.
    """
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)] if np.isfinite(numbers).any() else np.zeros(1)
    low, high = float(finite.min()), float(finite.max())
    least = _LEAST_SPAN * max(1.0, abs(low), abs(high))
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2
    return low - room * (high - low), high + room * (high - low)


def set_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Set the horizontal axis to ascending sizes, each with its tick where there is room."""
    if sizes[-1] >= _WIDE_SPAN * sizes[0]:
        axes.set_xscale("log")
        margin = (sizes[-1] / sizes[0]) ** 0.05
        axes.set_xlim(sizes[0] / margin, sizes[-1] * margin)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_locator(NullLocator())
        places = np.log(sizes)
    else:
        width = max(sizes[-1] - sizes[0], 1)
        axes.set_xlim(sizes[0] - 0.05 * width, sizes[-1] + 0.05 * width)
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10], integer=True))
        places = np.asarray(sizes, dtype=float)
    room = 0.018 * max(len(str(size)) for size in sizes) + 0.025
    gaps = [b - a for a, b in pairwise(places)]
    if min(gaps, default=np.inf) >= room * (places[-1] - places[0]):
        axes.set_xticks(sizes)


def set_values(axes: Axes, values: Values, floor: float = np.inf) -> None:
    """Set the vertical axis to the finite values and the floor, with some room on both sides.

    The room below a floor shows a curve that stays there on its line.
    """
    axes.set_ylim(*limits_around([*values.ravel(), floor], room=0.06))

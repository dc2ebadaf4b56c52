"""The axis of iterations, which bends where some methods climb much longer than others."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ddobench.report.tables.columns import SERIES

_UNEQUAL = 8  # times as long as the shortest climb is too long for a linear axis


def set_iterations(axes: Axes, points: pd.DataFrame, room: float = 0.0, ticks: int = 5) -> None:
    """Set the axis to the iterations of all points, with so many points of room at its end."""
    last = max(int(points["iteration"].max()), 1)  # some methods propose once
    drawing = axes.get_figure()
    assert isinstance(drawing, Drawing)
    share = 0.02 + room / 72 / (axes.get_position().width * drawing.get_figwidth())
    if not _is_bent(points):
        axes.set_xlim(-0.02 * last, last / (1 - share))
        axes.xaxis.set_major_locator(MaxNLocator(ticks, steps=[1, 2, 5, 10], integer=True))
        return
    linear = _shortest(points)
    unit = linear / 3  # within which an axis of inverse hyperbolic sines is about linear
    axes.set_xscale("asinh", linear_width=unit)
    axes.set_xlim(-0.03 * linear, unit * np.sinh(np.arcsinh(last / unit) / (1 - share)))
    tens = [10.0**power for power in range(1, 9) if 3 * linear < 10.0**power <= 1.2 * last]
    axes.xaxis.set_major_locator(FixedLocator([0.0, float(linear), *tens]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def describe_iterations(points: pd.DataFrame) -> list[str]:
    """Say how the axis is bent, if it is."""
    if not _is_bent(points):
        return []
    return [f"The axis of iterations is about linear to {_shortest(points)}, logarithmic beyond."]


def _shortest(points: pd.DataFrame) -> int:
    """Return after how many iterations the first of the methods that climb is done."""
    lengths = points.groupby(SERIES)["iteration"].max()
    return int(lengths[lengths > 0].min()) if (lengths > 0).any() else 1


def _is_bent(points: pd.DataFrame) -> bool:
    return bool(points["iteration"].max() > _UNEQUAL * _shortest(points))

"""How one series is drawn among others: its line, markers, intervals and where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray

from ddobench.report.tables.styles import Style
from ddobench.stats.samples import Sample

MOST_BANDS = 2  # in one panel before they are mud
_WIDEST_STEP, _WIDEST_SHIFT = 2.6, 10.0  # points between two series, and between first and last
_SIZES = {"*": 1.45, "d": 1.15, "D": 0.85, "s": 0.9, "P": 1.1, "X": 1.1}  # to look equally large
_MARK_EVERY, _STARTS = 0.24, 5  # of a panel's diagonal, and how many series before one starts alike
_LEAST_SPAN = 1e-6  # below which all intervals are narrow
_END_GAP, _END_STEP = 6.0, 3.4  # points between a long curve, its last interval and the next one's


@dataclass(frozen=True)
class Place:
    """The place of a series among those drawn in the same axes."""

    index: int
    count: int

    @property
    def has_band(self) -> bool:
        """Whether so few series are drawn that their bands can be told apart."""
        return self.count <= MOST_BANDS

    @property
    def shift(self) -> float:
        """By how many points it is moved sideways, lest equal series hide each other."""
        step = min(_WIDEST_STEP, _WIDEST_SHIFT / max(self.count - 1, 1))
        return (self.index - (self.count - 1) / 2) * step

    @property
    def end_shift(self) -> float:
        """How many points beyond the end of a long curve its last interval is drawn."""
        return _END_GAP + _END_STEP * self.index

    @classmethod
    def room_at_the_end(cls, count: int) -> float:
        """Return how many points the last intervals of so many long curves take."""
        return 0.0 if count <= MOST_BANDS else cls(count, count).end_shift


def draw_curve(
    axes: Axes,
    x: Sample,
    mean: Sample,
    interval: tuple[Sample, Sample],
    style: Style,
    hollow: NDArray[np.bool_],
    place: Place,
) -> None:
    """Draw means with their intervals; the curve breaks where a mean is NaN."""
    inches = axes.figure.dpi_scale_trans
    moved = axes.transData + ScaledTranslation(place.shift / 72, 0, inches)
    if place.has_band:
        axes.fill_between(x, *interval, color=style.color, alpha=0.16, linewidth=0, zorder=2,
                          transform=moved)  # fmt: skip
    if style.marker:  # one without is muted, and says only where others lie
        known = np.isfinite(interval[0])
        axes.vlines(x[known], interval[0][known], interval[1][known], color=style.color,
                    linewidth=1.1, zorder=3, transform=moved)  # fmt: skip
    axes.plot(x, mean, color=style.color, linewidth=1.5, dashes=style.dashes or (None, None),
              zorder=3 if style.marker else 2, transform=moved)  # fmt: skip
    for empty, chosen in ((False, ~hollow), (True, hollow)):
        picked = chosen & np.isfinite(mean)
        if picked.any():
            axes.plot(
                x[picked],
                mean[picked],
                linestyle="none",
                transform=moved,
                clip_on=False,
                zorder=4,
                **marker_look(style, hollow=empty),
            )


def marker_look(style: Style, size: float = 5.8, *, hollow: bool = False) -> dict[str, Any]:
    """Return how a series' marker is drawn; a hollow one lacks seeds."""
    return {
        "marker": style.marker,
        "markersize": size * _SIZES.get(style.marker, 1.0),
        "markerfacecolor": "white" if hollow else style.color,
        "markeredgecolor": style.color if hollow else "white",
        "markeredgewidth": 1.1 if hollow else 0.6,
    }


def sample_line(style: Style, x: Sequence[float] = (), y: Sequence[float] = ()) -> Line2D:
    """Return a piece of a curve, as it stands beside its label."""
    return Line2D(x, y, color=style.color, linewidth=1.5, dashes=style.dashes or (None, None))


def draw_long_curve(
    axes: Axes, x: Sample, mean: Sample, interval: tuple[Sample, Sample] | None, style: Style,
    place: Place, *, hollow: bool = False,
) -> None:  # fmt: skip
    """Draw a curve of many points: its band where there is room for one, else its last interval.

    It has markers here and there, shifted by its place, and one at its end.
    """
    if interval and place.has_band:
        axes.fill_between(x, *interval, color=style.color, alpha=0.16, linewidth=0, zorder=2)
    elif interval and style.marker:
        aside = ScaledTranslation(place.end_shift / 72, 0, axes.figure.dpi_scale_trans)
        axes.vlines(x[-1], interval[0][-1], interval[1][-1], color=style.color, linewidth=1.5,
                    zorder=3, transform=axes.transData + aside)  # fmt: skip
    look = marker_look(style, 5, hollow=hollow)
    start = _MARK_EVERY * (place.index % _STARTS) / _STARTS
    axes.plot(x, mean, color=style.color, linewidth=1.4, dashes=style.dashes or (None, None),
              zorder=3 if style.marker else 2, markevery=(start, _MARK_EVERY), **look)  # fmt: skip
    axes.plot(x[-1:], mean[-1:], linestyle="none", zorder=4, **look)


def mark_end(axes: Axes, x: float, y: float, style: Style) -> None:
    """Bar the way of a curve that stops before the others: no marker of a method is a line."""
    axes.plot([x], [y], linestyle="none", marker="|", markersize=13, markeredgewidth=2.4,
              markeredgecolor=style.color, clip_on=False, zorder=5)  # fmt: skip


def drop_wide_intervals(
    points: pd.DataFrame, shown: ArrayLike, suffix: str = ""
) -> pd.DataFrame:  # fmt: skip
    """Return points without the intervals that would dwarf what else is shown.

    An interval of two or three seeds may be many times as wide as all curves together.
    """
    heights = np.asarray(shown, dtype=np.float64)
    span = np.ptp(heights[np.isfinite(heights)]) if np.isfinite(heights).any() else 0.0
    low, high = f"low{suffix}", f"high{suffix}"
    narrow = (points[high] - points[low]) <= max(float(span), _LEAST_SPAN)
    return points.assign(**{name: points[name].where(narrow) for name in (low, high)})


def describe_wide_intervals(points: pd.DataFrame, kept: pd.DataFrame) -> list[str]:
    """Say that intervals were dropped, if any were."""
    if points["low"].notna().sum() == kept["low"].notna().sum():
        return []
    return ["Intervals wider than all that is drawn are left out."]


def describe_intervals(count: int) -> str:
    """Say what the bands and bars of so many series are, and that series are set apart."""
    what = "bands and bars" if count <= MOST_BANDS else "bars"
    apart = "; series are set apart a little, lest one hide another" if count > 1 else ""
    return f"The {what} are 95\u00a0% intervals of the mean{apart}."

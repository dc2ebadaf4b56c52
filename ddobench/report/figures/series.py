"""How one series is drawn among others: its line, markers, intervals and where it ends."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.transforms import ScaledTranslation
from numpy.typing import NDArray

from ddobench.report.tables.styles import Style
from ddobench.stats.samples import Sample

MOST_BANDS = 2  # in one panel before they are mud
_WIDEST_STEP, _WIDEST_SHIFT = 3.0, 14.0  # points between two series, and between first and last
_SIZES = {"*": 1.45, "d": 1.15, "D": 0.85, "s": 0.9, "P": 1.1, "X": 1.1}  # to look equally large
_MARKS = 6  # markers along a long curve
_END_ROOM = 0.028  # of a long curve, for the interval at the end of each


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
        axes.vlines(x, *interval, color=style.color, linewidth=1.1, zorder=3, transform=moved)
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
    place: Place, *, last: float, hollow: bool = False,
) -> None:  # fmt: skip
    """Draw a curve of many points: its band where there is room for one, else its last interval.

    Its markers, shifted by its place, are as far apart as on a curve that reaches `last`.
    """
    if interval and place.has_band:
        axes.fill_between(x, *interval, color=style.color, alpha=0.16, linewidth=0, zorder=2)
    elif interval and style.marker:
        aside = _END_ROOM * last * (place.index + 1) if x[-1] >= last else 0.0
        axes.vlines(x[-1] + aside, interval[0][-1], interval[1][-1], color=style.color,
                    linewidth=1.5, zorder=3)  # fmt: skip
    spacing = x[1] - x[0] if len(x) > 1 else 1.0
    step = max(round(last / _MARKS / spacing), 1)
    axes.plot(
        x, mean, color=style.color, linewidth=1.4, dashes=style.dashes or (None, None),
        zorder=3 if style.marker else 2, markevery=((place.index * step) // 5 % step, step),
        **marker_look(style, 5, hollow=hollow),
    )  # fmt: skip


def room_for_ends(last: float, count: int) -> float:
    """Return where an axis must end for the last intervals of so many long curves to be on it."""
    return last * (1.02 + (0 if count <= MOST_BANDS else _END_ROOM * count))


def mark_end(axes: Axes, x: float, y: float, style: Style) -> None:
    """Bar the way of a curve that stops before the others: no marker of a method is a line."""
    axes.plot([x], [y], linestyle="none", marker="|", markersize=13, markeredgewidth=2.4,
              markeredgecolor=style.color, clip_on=False, zorder=5)  # fmt: skip


def describe_intervals(count: int) -> str:
    """Say what the bands and bars of so many series are, and that series are set apart."""
    what = "bands and bars" if count <= MOST_BANDS else "bars"
    apart = "; series are set apart a little, lest one hide another" if count > 1 else ""
    return f"The {what} are 95\u00a0% intervals of the mean{apart}."

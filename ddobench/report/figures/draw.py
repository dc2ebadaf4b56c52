"""Draws line and row plots from tidy frames: fonts, panels, lines, intervals, landmarks, legends.

A tidy frame has one row per point: the `panel` and the `series` it belongs to, `x`, the `mean` with
the `low` and `high` end of its interval, and whether the mean is `lacking` seeds (a hollow marker).
`best_visible` and `optimum`, where a frame has them, are landmarks of its panels.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil
from textwrap import fill
from typing import Any, Literal

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    PercentFormatter,
    ScalarFormatter,
)
from matplotlib.transforms import ScaledTranslation
from numpy.typing import ArrayLike, NDArray

from ddobench.report.tables.formatting import MINUS, format_number
from ddobench.report.tables.styles import Style

INK, FAINT, PALE, MUTED, TINT = "#1f2933", "#7b8794", "#e4e7eb", "#c3cad1", "#cfe0ec"
BEST_VISIBLE = Style("best visible design", FAINT, "", (1.5, 1.5), (), "best visible design")
WIDTH = 7.0  # inches, the text width of a journal page
MOST_BANDS = 2  # series whose bands are distinguishable in one panel
LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same everywhere
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
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

_PANEL, _WIDE_PANEL, _LINE, _ROW = 2.15, 2.9, 0.17, 0.27  # inches: panels, a text line, a row
_LEAST_SPAN = 0.01  # of an axis, and relative to its largest number, for legible ticks
_WIDE_SPAN = 20  # the ratio of sizes from which their axis is logarithmic
_LONG = 30  # points of a line that has only some markers
_TALLEST, _BEND = 50, 10  # sd on a linear axis, and where the axis beyond becomes logarithmic
_SIZES = {"*": 1.45, "d": 1.15, "D": 0.85, "s": 0.9, "P": 1.1, "X": 1.1}  # of equal area
_ENDS = ["low", "high"]


@dataclass(frozen=True)
class Axis:
    """The label and scale of an axis."""

    label: str
    kind: Literal["linear", "sizes", "log", "iterations", "levels", "percent", "asinh"] = "linear"
    levels: tuple[str, ...] = ()  # the names of evenly spaced levels
    limits: tuple[float, float] | None = None  # values beyond are drawn at the limit


@dataclass(frozen=True)
class LinePlot:
    """Lines of means with intervals over x, by series, in panels that share their axes."""

    title: str
    x: Axis
    y: Axis
    styles: Mapping[str, Style]  # of each series, in the order of the legend
    panels: Mapping[str, str]  # the title of each panel
    columns: int = 0  # panels per row; 0: automatic
    zero: bool = True  # whether the vertical axis includes 0
    connected: bool = True  # whether points are joined
    free_x: bool = False  # whether panels have different x axes
    own_landmarks: bool = False  # whether series have different landmarks

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the points of a tidy frame."""
        looks = list(dict.fromkeys(self.styles.values()))
        if "best_visible" in data and data["best_visible"].notna().any():
            looks.append(BEST_VISIBLE)
        drawing, grid = panel_grid(
            len(self.panels), self.title, looks, columns=self.columns, sharex=not self.free_x
        )
        if self.y.limits:
            cut = {name: data[name].clip(*self.y.limits) for name in ("mean", *_ENDS)}
            data = data.assign(**cut)
        shown = _drop_wide(data)
        _set_y(grid[0], self.y, shown, zero=self.zero)
        for place, (axes, (panel, title)) in enumerate(zip(grid, self.panels.items(), strict=True)):
            own = shown[shown["panel"] == panel]
            if place == 0 or self.free_x:
                _set_x(axes, self.x, own if self.free_x else shown, len(self.styles))
            self._draw_panel(axes, own)
            axes.set_title(wrap(title, 72 // _across(len(grid), self.columns)), loc="left",
                           parse_math=False)  # fmt: skip
        _name_axes(grid, self.x.label, self.y.label, _across(len(grid), self.columns))
        freeze(drawing)
        return drawing

    def _draw_panel(self, axes: Axes, points: pd.DataFrame) -> None:
        if self.zero:
            axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
        if not self.own_landmarks:
            _draw_landmarks(axes, points, along=self.x.kind != "iterations")
        for place, (key, style) in enumerate(self.styles.items()):
            own = points[points["series"] == key].sort_values("x")
            known = own[own["mean"].notna()]
            if len(known) and self.own_landmarks:
                _draw_landmarks(axes, known, along=True, color=style.color)
            if len(known):
                _draw_line(axes, known, style, place, len(self.styles), self.connected)
                if len(known) < len(own) and self.x.kind == "iterations":
                    _mark_end(axes, known, style)


@dataclass(frozen=True)
class RowPlot:
    """Means with intervals in rows, in panels side by side; `place` is the position of a row."""

    title: str
    labels: Mapping[float, str]  # by place
    panels: Mapping[str, str]  # the label below each panel
    percent: frozenset[str] = frozenset()  # panels of percentages

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw a tidy frame with `place`, `color`, `marker` and `by_seed` for each row."""
        drawing, grid = row_grid(len(self.panels), self.title, self.labels)
        for axes, (panel, label) in zip(grid, self.panels.items(), strict=True):
            self._draw_panel(axes, data[data["panel"] == panel], panel in self.percent)
            axes.set_xlabel(label, fontsize=min(8.5, 22 / len(self.panels)))
        freeze(drawing)
        return drawing

    def _draw_panel(self, axes: Axes, rows: pd.DataFrame, percent: bool) -> None:
        scale = 100 if percent else 1
        seeds = rows.assign(value=rows["by_seed"].str.split()).explode("value")
        seeds = seeds.astype({"value": float})
        if percent:
            axes.set_xlim(-4, 104)
        else:
            numbers = [*seeds["value"], *rows[["mean", *_ENDS, "best_visible"]].to_numpy().ravel()]
            axes.set_xlim(*limits_around(numbers))
            axes.axvline(rows["best_visible"].iloc[0], color=BEST_VISIBLE.color, linewidth=1.1,
                         dashes=BEST_VISIBLE.dashes, zorder=1)  # fmt: skip
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        sns.stripplot(x=scale * seeds["value"], y=seeds["place"] + 0.24, hue=seeds["color"],
                      palette={color: color for color in set(seeds["color"])}, orient="y",
                      native_scale=True, jitter=False, size=2.8, alpha=0.4, linewidth=0, zorder=2,
                      legend=False, ax=axes)  # fmt: skip
        axes.set(xlabel="", ylabel="")
        for row in rows.to_dict("records"):
            style = Style("", row["color"], row["marker"], (), ())
            axes.hlines(row["place"], scale * row["low"], scale * row["high"], color=style.color,
                        linewidth=1.6, zorder=3)  # fmt: skip
            axes.plot([scale * row["mean"]], [row["place"]], linestyle="none", zorder=4,
                      **marker_look(style, 6.5))  # fmt: skip


def blank_drawing(width: float, height: float) -> Drawing:
    """Return an empty drawing, sized in inches, that can measure text."""
    drawing = Drawing(figsize=(width, height), dpi=300)
    FigureCanvasAgg(drawing)
    return drawing


def _titled(width: float, height: float, title: str) -> Drawing:
    title = wrap(title, round(13 * width))
    drawing = blank_drawing(width, height + _LINE * title.count("\n"))
    drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
    return drawing


def _across(count: int, columns: int) -> int:
    return columns or (count if count < 4 else 2 if count == 4 else 3)


def panel_grid(
    count: int, title: str, looks: Sequence[Style], *, columns: int = 0, sharex: bool = True
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with `count` panels, a title, and a legend below them."""
    across = _across(count, columns)
    rows = ceil(count / across)
    handles = [_sample(style) for style in looks]
    short, shared = split_shared([style.label for style in looks])
    if shared:
        short, handles = [*short, f"all variants: {shared}"], [*handles, Line2D([], [], alpha=0)]
    labels = [wrap(label, 46) for label in short]
    widest = max((len(line) for label in labels for line in label.split("\n")), default=1)
    legend = int(np.clip(WIDTH // (0.65 + 0.068 * widest), 1, max(len(labels), 1)))
    lines = ceil(len(labels) / legend) * max((1 + label.count("\n") for label in labels), default=1)
    height = _WIDE_PANEL if count == 1 else _PANEL if across < 4 else 1.5
    drawing = _titled(WIDTH, 0.5 + height * rows + _LINE * lines, title)
    grid = list(drawing.subplots(rows, across, squeeze=False, sharex=sharex, sharey=True).flat)
    for spare in grid[count:]:
        spare.set_visible(False)
    for axes in grid[:count]:
        axes.grid(axis="y", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8, labelbottom=True, labelleft=True)
    if labels:
        add_legend(drawing, handles, labels, legend)
    return drawing, grid[:count]


def split_shared(labels: Sequence[str]) -> tuple[list[str], str]:
    """Return the labels without the settings that all variants share, and these settings."""
    settings = [[word for word in label.split() if "=" in word] for label in labels]
    variants = [own for own in settings if own]
    first = variants[0] if len(variants) > 1 else []
    shared = [word for word in first if all(word in own for own in variants)]
    short = [" ".join(word for word in label.split() if word not in shared) for label in labels]
    return [label.removesuffix(",") for label in short], " ".join(shared)


def add_legend(drawing: Drawing, handles: Any, labels: Any, columns: int, **look: Any) -> None:
    """Add a legend below all panels."""
    legend = drawing.legend(
        handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize=8,
        borderaxespad=0.2, **{"handlelength": 3.2, "columnspacing": 1.6, **look},
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def _sample(style: Style) -> Line2D:
    line = Line2D([], [], color=style.color, linewidth=1.5, dashes=style.dashes or (None, None))
    line.set(**marker_look(style, 5))
    return line


def _name_axes(grid: Sequence[Axes], x: str, y: str, across: int) -> None:
    for place, axes in enumerate(grid):
        if place % across == 0:
            axes.set_ylabel(y, fontsize=8.5)
        if place + across >= len(grid):
            axes.set_xlabel(x, fontsize=8.5)


def row_grid(
    count: int, title: str, labels: Mapping[float, str], *, more: float = 0.0
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with panels side by side that share the labels of their rows."""
    last = max(labels)
    texts = [wrap(text, 38) for text in labels.values()]
    row = max(_ROW, 0.13 * max(1 + text.count("\n") for text in texts) + 0.05)
    drawing = _titled(WIDTH, 0.95 + row * (last + 1) + more, title)
    grid: list[Axes] = list(drawing.subplots(1, count, sharey=True, squeeze=False)[0])
    for axes in grid:
        axes.grid(axis="x", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=8)
    grid[0].set_yticks([*labels], texts, fontsize=7.5)
    for text in grid[0].get_yticklabels():
        text.set_parse_math(False)
    grid[0].set_ylim(last + 0.6, -0.6)
    return drawing, grid


def freeze(drawing: Drawing) -> None:
    """Compute the layout once, for all formats, without drawing anything.

    A drawing without a layout engine is also saved without a trial run.
    """
    for axes in drawing.axes:
        axes.apply_aspect()
    engine = drawing.get_layout_engine()
    assert engine is not None
    engine.execute(drawing)
    drawing.set_layout_engine(None)


def marker_look(style: Style, size: float = 5.8, *, hollow: bool = False) -> dict[str, Any]:
    """Return the look of a marker; a hollow one lacks seeds."""
    return {
        "marker": style.marker,
        "markersize": size * _SIZES.get(style.marker, 1.0),
        "markerfacecolor": "white" if hollow else style.color,
        "markeredgecolor": style.color if hollow else "white",
        "markeredgewidth": 1.1 if hollow else 0.6,
    }


def _draw_line(
    axes: Axes, points: pd.DataFrame, style: Style, place: int, count: int, connected: bool
) -> None:
    """Draw means with their intervals: bands for few series, bars for more."""
    x, mean, low, high = (points[name].to_numpy(dtype=float) for name in ("x", "mean", *_ENDS))
    long = len(x) >= _LONG
    shift = 0.0 if long else (place - (count - 1) / 2) * min(2.6, 10.0 / max(count - 1, 1))
    inches = axes.figure.dpi_scale_trans
    moved = axes.transData + ScaledTranslation(shift / 72, 0, inches)
    if count <= MOST_BANDS and connected:
        axes.fill_between(x, low, high, color=style.color, alpha=0.16, linewidth=0, zorder=2,
                          transform=moved)  # fmt: skip
    elif style.marker:  # muted series have none
        last = slice(-1, None) if long else slice(None)
        aside = ScaledTranslation((6.0 + 3.4 * place) / 72, 0, inches) if long else None
        bars = axes.transData + aside if aside else moved
        axes.vlines(x[last], low[last], high[last], color=style.color, linewidth=1.2, zorder=3,
                    transform=bars)  # fmt: skip
    if connected:
        axes.plot(x, mean, color=style.color, linewidth=1.4, dashes=style.dashes or (None, None),
                  zorder=3 if style.marker else 2, transform=moved)  # fmt: skip
    for hollow, own in points.groupby("lacking"):
        chosen = own[["x", "mean"]].to_numpy(dtype=float)
        every = (0.24 * (place % 5) / 5, 0.24) if long else None
        axes.plot(*chosen.T, linestyle="none", transform=moved, zorder=4, markevery=every,
                  clip_on=long, **marker_look(style, 5, hollow=bool(hollow)))  # fmt: skip
    if long:
        axes.plot(x[-1:], mean[-1:], linestyle="none", zorder=4, **marker_look(style, 5))


def _mark_end(axes: Axes, points: pd.DataFrame, style: Style) -> None:
    """Draw a bar across a line that stops before the others."""
    axes.plot(points["x"].iloc[-1:], points["mean"].iloc[-1:], linestyle="none", marker="|",
              markersize=13, markeredgewidth=2.4, markeredgecolor=style.color, clip_on=False,
              zorder=5)  # fmt: skip


def _draw_landmarks(
    axes: Axes, points: pd.DataFrame, *, along: bool, color: str = BEST_VISIBLE.color
) -> None:
    """Draw the best visible design and the optimum: along x, or as levels with their numbers."""
    marks = [name for name in ("best_visible", "optimum") if name in points]
    for name in marks:
        look: dict[str, Any] = {"color": INK, "linewidth": 0.8, "zorder": 1}
        if name == "best_visible":
            look = {"color": color, "linewidth": 1.2, "dashes": BEST_VISIBLE.dashes, "zorder": 1}
        known = points.dropna(subset=name).groupby("x")[name].first()
        if along and len(known) > 1:
            axes.plot(known.index, known, **look)
        elif len(known):
            axes.axhline(float(known.iloc[0]), **look)
    if not along and len(points):
        _number_landmarks(axes, points[marks].iloc[0])


def _number_landmarks(axes: Axes, values: "pd.Series[float]") -> None:
    """Write the numbers of both landmarks in the margin, apart where they are close."""
    low, high = axes.get_ylim()
    ordered = values.dropna().sort_values()
    close = len(ordered) > 1 and np.ptp(ordered.to_numpy()) < 0.12 * (high - low)
    for place, (name, value) in enumerate(ordered.items()):
        side = 1 if place == len(ordered) - 1 else -1
        words = str(name).replace("_", " ")
        axes.annotate(
            f"{words}\n{format_number(value)}", (1, value), (3, (1 if close else -4) * side),
            xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=7,
            va="bottom" if side > 0 else "top", color=INK, linespacing=1.05,
            annotation_clip=False,
        )  # fmt: skip


def _drop_wide(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out intervals much wider than the data, which two or three seeds may have."""
    marks = [name for name in ("mean", "best_visible", "optimum") if name in points]
    heights = points[marks].to_numpy(dtype=float)
    span = np.ptp(heights[np.isfinite(heights)]) if np.isfinite(heights).any() else 0.0
    narrow = (points["high"] - points["low"]) <= max(2 * float(span), 1e-6)
    return points.assign(**{name: points[name].where(narrow) for name in _ENDS})


def _set_x(axes: Axes, axis: Axis, points: pd.DataFrame, count: int) -> None:
    values = points["x"].to_numpy(dtype=float)
    values = values[np.isfinite(values)]
    if axis.kind == "levels":
        axes.set_xticks(range(len(axis.levels)), axis.levels, parse_math=False)
        axes.set_xlim(-0.3, len(axis.levels) - 0.7)
    elif axis.kind == "sizes":
        _set_sizes(axes, sorted({int(value) for value in values}))
    elif axis.kind == "iterations":
        _set_iterations(axes, points, count)
    elif axis.kind == "log":
        _set_log(axes, float(values.min()), float(values.max()))
    else:
        axes.set_xlim(*limits_around(values, room=0.02))
        if axis.kind == "percent":
            axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol="\u00a0%"))


def _set_sizes(axes: Axes, sizes: Sequence[int]) -> None:
    """Set the axis to ascending sizes, with a tick at each if there is room."""
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
    room = 0.018 * max(len(str(size)) for size in sizes) + 0.045
    if min((b - a for a, b in pairwise(places)), default=np.inf) >= room * np.ptp(places):
        axes.set_xticks(sizes)


def _set_iterations(axes: Axes, points: pd.DataFrame, count: int) -> None:
    """Set the axis to all iterations, nonlinear where some methods take many more than others."""
    lengths = points.groupby(["panel", "series"])["x"].max()
    shortest = float(lengths[lengths > 0].min()) if (lengths > 0).any() else 1.0
    last = max(float(points["x"].max()), 1.0)
    room = 0.02 + (0 if count <= MOST_BANDS else 0.012 * (count + 2))
    if last <= 8 * shortest:
        axes.set_xlim(-0.02 * last, last / (1 - room))
        axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
        return
    unit = shortest / 3  # the scale is about linear up to here
    axes.set_xscale("asinh", linear_width=unit)
    axes.set_xlim(-0.03 * shortest, unit * np.sinh(np.arcsinh(last / unit) / (1 - room)))
    tens = [10.0**power for power in range(1, 9) if 3 * shortest < 10.0**power <= 1.2 * last]
    axes.xaxis.set_major_locator(FixedLocator([0.0, shortest, *tens]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _set_log(axes: Axes, low: float, high: float) -> None:
    room = max(high / low, 1.5) ** 0.06
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    decades = np.log10(high / low)
    marks = (1.0, 2.0, 5.0) if decades < 1.6 else (1.0, 3.0) if decades < 2.2 else (1.0,)
    narrow = high < 6 * low  # too narrow for two of 1, 2, 5, 10
    axes.xaxis.set_major_locator(MaxNLocator(3) if narrow else LogLocator(10, subs=marks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _set_y(axes: Axes, axis: Axis, points: pd.DataFrame, *, zero: bool) -> None:
    """Set the vertical axis, which all panels share, so that nothing is cut off."""
    marks = [name for name in ("mean", *_ENDS, "best_visible", "optimum") if name in points]
    heights = points[marks].to_numpy(dtype=float).ravel()
    if axis.kind == "log":
        finite = heights[np.isfinite(heights) & (heights > 0)]
        low, high = np.log10([finite.min(), finite.max()]) if len(finite) else (-1.0, 0.0)
        short = max(0.8 - (high - low), 0) / 2
        room = 0.05 * (high - low) + 0.05
        axes.set_yscale("log")
        axes.set_ylim(10 ** (low - short - room), 10 ** (high + short + room))
        axes.yaxis.set_minor_locator(NullLocator())
        return
    if axis.kind == "asinh" and np.nanmax(np.abs(heights), initial=0.0) > _TALLEST:
        axes.set_yscale("asinh", linear_width=_BEND)
        axes.set_ylim(1.4 * np.nanmin([-2.0, *heights]), 1.4 * np.nanmax([2.0, *heights]))
        powers = [10.0**power for power in range(1, 16)]
        axes.yaxis.set_major_locator(FixedLocator([*(-p for p in powers), 0.0, *powers]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".replace("-", MINUS)))
        axes.yaxis.set_minor_locator(NullLocator())
        return
    axes.set_ylim(*limits_around([*heights, *([0.0] if zero else [])], room=0.06))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    if axis.kind == "percent":
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=""))


def limits_around(values: ArrayLike, room: float = 0.05) -> tuple[float, float]:
    """Return limits around the finite values with a margin, as a share of their range.

    Values that are nearly equal get a range in which they look equal.
    """
    numbers = np.asarray(values, dtype=np.float64).ravel()
    finite = numbers[np.isfinite(numbers)] if np.isfinite(numbers).any() else np.zeros(1)
    low, high = float(finite.min()), float(finite.max())
    least = _LEAST_SPAN * max(1.0, abs(low), abs(high))
    if high - low < least:
        low, high = (low + high - least) / 2, (low + high + least) / 2
    return low - room * (high - low), high + room * (high - low)


def wrap(text: str, width: int) -> str:
    """Break a text into at most three lines of `width`, long words after _ and =."""
    if any(len(word) > width for word in text.split()):
        for sign in "_=":
            text = text.replace(sign, f"{sign}{_JOINT} ")
    broken = fill(text, width, max_lines=3, placeholder=" \u2026")
    return broken.replace(f"{_JOINT} ", "").replace(_JOINT, "")


_JOINT = "\u2060"  # marks where a long word may be broken; not printed

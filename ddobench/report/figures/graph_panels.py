"""Graphs on circles beside the matrix they were read off."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import cos, pi, sin

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.path import Path

from ddobench.report.figures.dark_mode import HEAT_MAP
from ddobench.report.figures.drawing import FAINT, INK, LOOK, Values, blank_drawing
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.true_graphs import Edge, Truth

_LARGEST = 41  # nodes of a graph that can still be looked at
_CIRCLE = 2.05  # inches of a graph
_MATRIX = 1.62  # inches of the matrix
_GAP, _BAR, _TICKS = 0.14, 0.1, 0.41  # inches
_HEAD, _FOOT = 0.3, 0.36
_NUMBERED = 24  # nodes that can all have their number
_BEND = 0.75  # how near the rim an edge stays, so that it does not hide behind its neighbours
_RIGHT, _WRONG = "#0072b2", "#d55e00"
_COLORS = "PuOr"  # diverging, and safe for colour-blind readers
_SHADES = "Blues"


DrawBeside = Callable[[Axes, Axes], None]  # on the axes of a matrix and of its colour bar


@dataclass(frozen=True)
class _Lines:
    """Some edges and how they look."""

    edges: list[Edge]
    color: str
    dashes: tuple[float, ...] = ()
    width: float = 1.0
    label: str = ""


def choose_size(sizes: "pd.Series[int]") -> int:
    """Return the largest that can be looked at, the smallest if none can."""
    small = sizes[sizes <= _LARGEST]
    return int(small.max() if len(small) else sizes.min())


def draw_graphs(
    title: str, pairs: pd.DataFrame, truth: Truth | None, draw_beside: DrawBeside, *, judged: bool,
    found: str = "discovered graph",
) -> Drawing:  # fmt: skip
    """Draw the true graph if there is one, the found graph of `mark_edges`, and a matrix beside.

    A judged graph has right and wrong edges.
    """
    circles = 1 if truth is None else 2
    width = circles * (_CIRCLE + _GAP) + 0.35 + _MATRIX + _GAP + _BAR + _TICKS
    title = wrap_text(title, round(13.5 * width))
    height = _HEAD + _CIRCLE + _FOOT + 0.17 * title.count("\n")
    codes = int(pairs["b"].max()) + 1
    with mpl.rc_context(LOOK):
        drawing = blank_drawing(width, height)
        drawing.text(0.08 / width, 1 - 0.06 / height, title, va="top", fontsize=9.5,
                     parse_math=False)  # fmt: skip
        left = 0.0
        if truth is not None:
            axes = _place(drawing, left, _FOOT, _CIRCLE, _CIRCLE)
            _draw_circle(axes, truth.d, [_Lines(sorted(truth.edges), _RIGHT if judged else INK)])
            _say_below(drawing, left, f"true graph, {len(truth.edges)} edges")
            left += _CIRCLE + _GAP
        axes = _place(drawing, left, _FOOT, _CIRCLE, _CIRCLE)
        lines = _judge(pairs) if judged else [_Lines(_edges(pairs, pairs["edge"]), INK)]
        _draw_circle(axes, codes, lines)
        _say_below(drawing, left, f"{found}, {int(pairs['edge'].sum())} edges", lines)
        left += _CIRCLE + 0.35 + _GAP
        bottom = _FOOT + (_CIRCLE - _MATRIX) / 2
        matrix = _place(drawing, left, bottom, _MATRIX, _MATRIX)
        bar = _place(drawing, left + _MATRIX + 0.08, bottom, _BAR, _MATRIX)
        draw_beside(matrix, bar)
    return drawing


def _place(drawing: Drawing, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    across, up = drawing.get_size_inches()
    return drawing.add_axes((left / across, bottom / up, width / across, height / up))


def _edges(pairs: pd.DataFrame, chosen: "pd.Series[bool]") -> list[Edge]:
    return list(pairs.loc[chosen, ["a", "b"]].itertuples(index=False, name=None))


def _judge(pairs: pd.DataFrame) -> list[_Lines]:
    edge, true = pairs["edge"], pairs["true_edge"]
    return [
        _Lines(_edges(pairs, ~edge & true), FAINT, (1.2, 1.6), 0.8, "missed"),
        _Lines(_edges(pairs, edge & ~true), _WRONG, (4, 1.4), 1.0, "wrong"),
        _Lines(_edges(pairs, edge & true), _RIGHT, (), 1.3, "right"),
    ]


def _draw_circle(axes: Axes, d: int, lines: list[_Lines]) -> None:
    """Draw nodes around a circle, clockwise from the top, and the edges between them."""
    angles = [2 * pi * i / d for i in range(d)]
    places: Values = np.array([(sin(angle), cos(angle)) for angle in angles])
    for group in lines:
        thin = 1.0 if len(group.edges) < 100 else 0.6
        axes.add_collection(
            PathCollection([_arch(places, edge) for edge in group.edges], facecolors="none",
                           edgecolors=group.color, linewidths=thin * group.width, alpha=0.85,
                           linestyles=(0, group.dashes) if group.dashes else "solid", zorder=2)
        )  # fmt: skip
    axes.plot(*places.T, linestyle="none", marker="o", markersize=max(2.6, 7 - d / 8), zorder=3,
              markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.8)  # fmt: skip
    for i in range(0, d, 1 if d <= _NUMBERED else 5):
        x, y = 1.13 * places[i]
        axes.text(x, y, str(i), ha="center", va="center_baseline", fontsize=7)
    axes.set(xlim=(-1.22, 1.22), ylim=(-1.22, 1.22), aspect="equal")
    axes.axis("off")


def _arch(places: Values, edge: Edge) -> Path:
    """Return the line between two nodes, bent inwards unless they are next to each other."""
    first, last = places[list(edge)]
    apart = abs(edge[0] - edge[1])
    bend = 1.0 if apart in (1, len(places) - 1) else _BEND
    return Path([first, bend * (first + last) / 2, last], [Path.MOVETO, Path.CURVE3, Path.CURVE3])


def _say_below(drawing: Drawing, left: float, text: str, lines: Iterable[_Lines] = ()) -> None:
    """Write what a circle shows, and what its kinds of edges mean."""
    width, height = drawing.get_size_inches()
    centre = (left + _CIRCLE / 2) / width
    drawing.text(centre, 0.2 / height, text, ha="center", fontsize=8.5)
    named = [group for group in lines if group.label]
    if named:
        drawing.legend(
            [Line2D([], [], color=one.color, linewidth=one.width, dashes=one.dashes or (None, None))
             for one in named],
            [f"{len(one.edges)} {one.label}" for one in named],
            loc="lower center", bbox_to_anchor=(centre, 0.0), ncols=len(named), frameon=False,
            fontsize=7, handlelength=1.8, columnspacing=1.0, borderaxespad=0.1, borderpad=0.1,
        )  # fmt: skip


def draw_pairs(axes: Axes, bar: Axes, pairs: pd.DataFrame, threshold: float | None) -> None:
    """Colour every pair by its scaled entry, the diagonal left out, and dot the edges."""
    codes = int(pairs["b"].max()) + 1
    table = np.full((codes, codes), np.nan)
    table[pairs["a"], pairs["b"]] = table[pairs["b"], pairs["a"]] = pairs["scaled"]
    most = max(float(pairs["scaled"].abs().max()), threshold or 0.0, 1e-6)
    marks = _space_marks(codes)
    sns.heatmap(table, mask=np.isnan(table), cmap=_COLORS, vmin=-most, vmax=most, ax=axes,
                cbar_ax=bar, square=True, xticklabels=marks, yticklabels=marks,
                rasterized=True)  # fmt: skip
    _name_heat_map(axes, bar)
    edges = pairs[pairs["edge"]]
    axes.plot(edges["b"] + 0.5, edges["a"] + 0.5, linestyle="none", marker="o", color=INK,
              markersize=min(3.0, 40 / codes), markeredgewidth=0)  # fmt: skip
    axes.set_facecolor("#c9ced4")
    axes.tick_params(labelsize=7.5, length=2, rotation=0)
    axes.set_xlabel("code $j$", fontsize=8.5, labelpad=2)
    axes.set_ylabel("code $i$", fontsize=8.5, labelpad=1)
    axes.set_title(r"pseudo-Hessian $\times \sqrt{M}$", loc="left", fontsize=8.5, pad=5)
    bar.tick_params(labelsize=7.5, length=2)
    if threshold is not None:
        for level in (-threshold, threshold):
            bar.plot([0], [level], marker=">", color=INK, markersize=4.5, clip_on=False,
                     transform=bar.get_yaxis_transform(), zorder=5)  # fmt: skip
            bar.axhline(level, color=INK, linewidth=0.8)


def draw_energy(axes: Axes, bar: Axes, energy: Values) -> None:  # (U, d)
    """Colour how much of each unit's energy, row by row, lies on each hidden coordinate."""
    units, d = energy.shape
    sns.heatmap(energy, cmap=_SHADES, vmin=0, vmax=max(energy.max(), 0.1), ax=axes, cbar_ax=bar,
                xticklabels=_space_marks(d), yticklabels=_space_marks(units),
                rasterized=True)  # fmt: skip
    _name_heat_map(axes, bar)
    bar.tick_params(labelsize=7.5, length=2)
    for side in axes.spines.values():
        side.set_visible(True)
    axes.tick_params(labelsize=7.5, length=2, rotation=0)
    axes.set_xlabel("hidden coordinate", fontsize=8.5, labelpad=2)
    axes.set_ylabel("unit", fontsize=8.5, labelpad=1)
    axes.set_title("share of a unit's energy", loc="left", fontsize=8.5, pad=5)


def _name_heat_map(axes: Axes, bar: Axes) -> None:
    axes.set_gid(HEAT_MAP)
    bar.set_gid(f"{HEAT_MAP}-scale")


def _space_marks(count: int) -> int:
    """Return how far apart the numbers along a side of a matrix stand."""
    return next((step for step in (1, 2, 5, 10, 20) if count <= 5 * step), count)

"""Plots of graphs: one laid out in the plane, or two as circles beside a matrix.

A layout is deterministic. Shapes that a reader knows are drawn as such: a path or a chain of
triangles as a ribbon that turns back where it is long, a ring as a circle, a ladder with upright
rungs. Other graphs are relaxed after Kamada and Kawai. Separate components stand side by side.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, cos, pi, sin, sqrt

import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.patches import Circle, Polygon
from matplotlib.path import Path

from ddobench.report.figures.draw import FAINT, INK, TINT, Values, blank_drawing, wrap

Edge = tuple[int, int]
Position = tuple[float, float]
Layout = dict[int, Position]  # neighbours are about 1 apart
Sides = Callable[[int], tuple[float, float]]  # how far along the ribbon, how far to its left

_ROW = 10.0  # length of the straight parts of a ribbon
_TURN = 1.5  # radius of its turns
_APART = 1.4  # between components
_SHELF = 12.0  # width after which components begin another row
_CIRCLE, _MATRIX = 2.05, 1.62  # inches of a circle and of the matrix
_GAP, _BAR, _TICKS = 0.14, 0.1, 0.41  # inches
_HEAD, _FOOT = 0.3, 0.36
_NUMBERED = 24  # nodes that can all have their number
_BEND = 0.75  # how far edges are bent inwards, so that they do not overlap the circle
_RIGHT, _WRONG = "#0072b2", "#d55e00"
_COLORS = "PuOr"  # diverging, and safe for colour-blind readers
_SHADES = "Blues"


def order_edges(edges: Iterable[Iterable[int]]) -> frozenset[Edge]:
    """Return edges with the smaller node first."""
    return frozenset((a, b) for a, b in map(sorted, edges))


@dataclass(frozen=True)
class TrueGraph:
    """The true graph of a task."""

    d: int
    edges: frozenset[Edge]

    @classmethod
    def of(cls, d: int, edges: Iterable[Iterable[int]]) -> "TrueGraph":
        """Take edges in any order."""
        return cls(d, order_edges(edges))

    @property
    def graph(self) -> "nx.Graph[int]":
        """The graph in networkx."""
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(self.d))
        graph.add_edges_from(self.edges)
        return graph


def lay_out(graph: "nx.Graph[int]") -> Layout:
    """Place every node."""
    parts = [_in_order(graph.subgraph(nodes)) for nodes in nx.connected_components(graph)]
    parts.sort(key=lambda part: (-len(part), min(part)))
    return _shelve([_lay_out_part(part) for part in parts])


def _in_order(graph: "nx.Graph[int]") -> "nx.Graph[int]":
    """Return the same graph with sorted nodes and edges."""
    ordered: nx.Graph[int] = nx.Graph()
    ordered.add_nodes_from(sorted(graph))
    ordered.add_edges_from(sorted((min(edge), max(edge)) for edge in graph.edges))
    return ordered


def name_shape(graph: "nx.Graph[int]") -> str:
    """Return the name of a known shape, "" for any other graph."""
    nodes = sorted(graph)
    edges = {tuple(sorted(edge)) for edge in graph.edges}
    if len(nodes) > 2:
        for name, drawn in _SHAPES.items():
            if edges == drawn(nodes):
                return name
    return ""


def _lay_out_part(part: "nx.Graph[int]") -> Layout:
    shape = name_shape(part)
    if shape == "ring":
        return _on_circle(sorted(part))
    if shape == "star":
        hub, *leaves = sorted(part)
        return {hub: (0.0, 0.0), **_on_circle(leaves)}
    if shape in _RIBBONS:
        return _on_ribbon(sorted(part), _RIBBONS[shape])
    if len(part) < 3:
        return {node: (float(i), 0.0) for i, node in enumerate(sorted(part))}
    return _relax(part)


def _on_circle(nodes: Sequence[int]) -> Layout:
    """Place nodes clockwise from the top."""
    turn = 2 * pi / len(nodes)
    radius = 0.5 / sin(turn / 2)
    return {node: (radius * sin(i * turn), radius * cos(i * turn)) for i, node in enumerate(nodes)}


def _on_ribbon(nodes: Sequence[int], sides: Sides) -> Layout:
    """Place nodes along a ribbon that turns back after rows of equal length."""
    length = sides(len(nodes) - 1)[0]
    turn = pi * _TURN
    rows = ceil((length + turn) / (_ROW + turn)) if length > 1.3 * _ROW else 1
    row = (length - (rows - 1) * turn) / rows
    places = (sides(i) for i in range(len(nodes)))
    return {
        node: _along_ribbon(distance, left, row)
        for node, (distance, left) in zip(nodes, places, strict=True)
    }


def _along_ribbon(distance: float, left: float, row: float) -> Position:
    """Return a point of the ribbon by its distance along it and its offset to the left."""
    period = row + pi * _TURN
    k = int(distance // period) if distance > row + 1e-9 else 0
    rest = distance - k * period
    forward = 1 if k % 2 == 0 else -1
    base = -2 * _TURN * k
    if rest <= row + 1e-9:
        x = rest if forward > 0 else row - rest
        return x, base + forward * left
    angle = (rest - row) / _TURN  # from 0 at the end of a row to pi at the start of the next
    radius = _TURN + forward * left
    end = row if forward > 0 else 0.0
    return end + forward * radius * sin(angle), base - _TURN + radius * cos(angle)


def _relax(part: "nx.Graph[int]") -> Layout:
    """Relax a connected part, its longest direction level and its first node on the left."""
    nodes = sorted(part)
    planar = nx.is_planar(part)
    start = nx.planar_layout(part) if planar else _on_circle(nodes)
    relaxed = nx.kamada_kawai_layout(part, pos=start)
    places = np.array([relaxed[node] for node in nodes])  # (nodes, 2)
    places -= places.mean(axis=0)
    places = places @ np.linalg.svd(places, full_matrices=False)[2].T
    places *= np.where(places[0] > 0, (-1.0, 1.0), (1.0, -1.0))  # and most nodes above
    at = dict(zip(nodes, places, strict=True))
    scale = float(np.mean([np.linalg.norm(at[a] - at[b]) for a, b in part.edges]))
    return {node: (float(x) / scale, float(y) / scale) for node, (x, y) in at.items()}


def _shelve(parts: Sequence[Layout]) -> Layout:
    """Put parts side by side, in rows from the top."""
    placed: Layout = {}
    x = y = lowest = 0.0
    for part in parts:
        xs, ys = zip(*part.values(), strict=True)
        width, height = max(xs) - min(xs), max(ys) - min(ys)
        if placed and x + width > _SHELF:
            x, y = 0.0, lowest - _APART
        for node, (a, b) in part.items():
            placed[node] = (x + a - min(xs), y + b - max(ys))
        x += width + _APART
        lowest = min(lowest, y - height)
    return placed


def _pairs(nodes: Sequence[int], *steps: int) -> set[tuple[int, ...]]:
    return {(a, b) for step in steps for a, b in zip(nodes, nodes[step:], strict=False)}


_SHAPES: dict[str, Callable[[Sequence[int]], set[tuple[int, ...]]]] = {
    "path": lambda nodes: _pairs(nodes, 1),
    "ring": lambda nodes: _pairs(nodes, 1) | {(nodes[0], nodes[-1])},
    "star": lambda nodes: {(nodes[0], leaf) for leaf in nodes[1:]},
    "chain of triangles": lambda nodes: _pairs(nodes, 1) | _pairs(nodes[::2], 1),
    "strip of triangles": lambda nodes: _pairs(nodes, 1, 2),
    "ladder": lambda nodes: _pairs(nodes, 2) | set(zip(nodes[::2], nodes[1::2], strict=False)),
}
_RIBBONS: dict[str, Sides] = {
    "path": lambda i: (float(i), 0.0),
    "chain of triangles": lambda i: (i / 2, sqrt(3) / 2 * (i % 2 - 0.5)),
    "strip of triangles": lambda i: (i / 2, sqrt(3) / 2 * (i % 2 - 0.5)),
    "ladder": lambda i: (float(i // 2), i % 2 - 0.5),
}


@dataclass(frozen=True)
class ShapePlot:
    """A graph in the plane, its cliques shaded."""

    title: str
    d: int

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the edges `a`, `b`."""
        width, longest, tallest = 4.9, 0.62, 2.5  # inches: all, an edge, the graph
        graph = TrueGraph.of(self.d, data[["a", "b"]].to_numpy(dtype=int).tolist()).graph
        layout = lay_out(graph)
        places = np.array([layout[node] for node in range(self.d)])  # (d, 2)
        title = wrap(self.title, 56)
        span = np.maximum(np.ptp(places, axis=0), 0.1)
        unit = min(longest, (width - 0.6) / span[0], tallest / span[1])  # inches
        radius = min(0.13, 0.27 * unit)
        height = span[1] * unit + 0.12 + 0.17 * (1 + title.count("\n")) + 2 * radius + 0.3
        corner = np.array([(width - span[0] * unit) / 2, radius + 0.12])
        places = (places - places.min(axis=0)) * unit + corner
        drawing = blank_drawing(width, height)
        axes = drawing.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(0, height), aspect="equal")
        axes.axis("off")
        axes.text(0.08, height - 0.08, title, va="top", fontsize=9.5, parse_math=False)
        for clique in nx.find_cliques(graph):
            if len(clique) > 2:
                corners = places[sorted(clique)]
                around = corners - corners.mean(axis=0)
                order = np.argsort(np.arctan2(around[:, 1], around[:, 0]))
                axes.add_patch(Polygon(corners[order], facecolor=TINT, linewidth=0, zorder=1))
        for a, b in graph.edges:
            axes.plot(*places[[a, b]].T, color=FAINT, linewidth=1.1, zorder=2)
        font = 72 * radius * 0.86
        for node, (x, y) in enumerate(places):
            small = font < 4.5  # too small to read
            axes.add_patch(Circle((x, y), radius, facecolor=INK if small else "white",
                                  edgecolor=INK, linewidth=0.9, zorder=3))  # fmt: skip
            if not small:
                axes.text(x, y, str(node), ha="center", va="center_baseline", fontsize=font,
                          zorder=4)  # fmt: skip
        return drawing


@dataclass(frozen=True)
class _Lines:
    """Edges with the same look."""

    edges: list[Edge]
    color: str
    dashes: tuple[float, ...] = ()
    width: float = 1.0
    label: str = ""


@dataclass(frozen=True)
class CirclePlot:
    """The true graph if it is known, a graph that was found, and the matrix it is derived from."""

    title: str
    truth: TrueGraph | None
    judged: bool  # whether edges are coloured as right or wrong
    found: str  # what the graph is called
    threshold: float | None = None  # of a pseudo-Hessian
    units: int | None = None  # how many units the matrix has; None: it is a pseudo-Hessian

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the pairs of `mark_edges`, and the matrix."""
        pairs = data if self.units is None else data[data["drawn"] == "pair"]
        pairs = pairs.astype({"a": int, "b": int, "edge": bool})
        circles = 1 if self.truth is None else 2
        width = circles * (_CIRCLE + _GAP) + 0.35 + _MATRIX + _GAP + _BAR + _TICKS
        title = wrap(self.title, round(13.5 * width))
        drawing = blank_drawing(width, _HEAD + _CIRCLE + _FOOT + 0.17 * title.count("\n"))
        height = drawing.get_size_inches()[1]
        drawing.text(0.08 / width, 1 - 0.06 / height, title, va="top", fontsize=9.5,
                     parse_math=False)  # fmt: skip
        left = 0.0
        if self.truth is not None:
            axes = _place(drawing, left, _FOOT, _CIRCLE, _CIRCLE)
            color = _RIGHT if self.judged else INK
            _draw_circle(axes, self.truth.d, [_Lines(sorted(self.truth.edges), color)])
            _label_circle(drawing, left, f"true graph, {len(self.truth.edges)} edges")
            left += _CIRCLE + _GAP
        axes = _place(drawing, left, _FOOT, _CIRCLE, _CIRCLE)
        lines = _judge(pairs) if self.judged else [_Lines(_edges(pairs, pairs["edge"]), INK)]
        _draw_circle(axes, int(pairs["b"].max()) + 1, lines)
        _label_circle(drawing, left, f"{self.found}, {int(pairs['edge'].sum())} edges", lines)
        left += _CIRCLE + 0.35 + _GAP
        bottom = _FOOT + (_CIRCLE - _MATRIX) / 2
        matrix = _place(drawing, left, bottom, _MATRIX, _MATRIX)
        bar = _place(drawing, left + _MATRIX + 0.08, bottom, _BAR, _MATRIX)
        if self.units is None:
            _draw_pairs(matrix, bar, pairs, self.threshold)
        else:
            energy = data.loc[data["drawn"] == "energy", "energy"].to_numpy(dtype=float)
            _draw_energy(matrix, bar, energy.reshape(self.units, -1))
        return drawing


def _place(drawing: Drawing, left: float, bottom: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches."""
    across, up = drawing.get_size_inches()
    return drawing.add_axes((left / across, bottom / up, width / across, height / up))


def _edges(pairs: pd.DataFrame, chosen: "pd.Series[bool]") -> list[Edge]:
    return list(pairs.loc[chosen, ["a", "b"]].itertuples(index=False, name=None))


def _judge(pairs: pd.DataFrame) -> list[_Lines]:
    edge, true = pairs["edge"], pairs["true_edge"].astype(bool)
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


def _label_circle(drawing: Drawing, left: float, text: str, lines: Iterable[_Lines] = ()) -> None:
    """Write the label and the legend of a circle below it."""
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


def _draw_pairs(axes: Axes, bar: Axes, pairs: pd.DataFrame, threshold: float | None) -> None:
    """Colour every pair by its scaled entry, the diagonal left out, and dot the edges."""
    codes = int(pairs["b"].max()) + 1
    table = np.full((codes, codes), np.nan)
    table[pairs["a"], pairs["b"]] = table[pairs["b"], pairs["a"]] = pairs["scaled"]
    most = max(float(pairs["scaled"].abs().max()), threshold or 0.0, 1e-6)
    marks = _space_marks(codes)
    sns.heatmap(table, mask=np.isnan(table), cmap=_COLORS, vmin=-most, vmax=most, ax=axes,
                cbar_ax=bar, square=True, xticklabels=marks, yticklabels=marks,
                rasterized=True)  # fmt: skip
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


def _draw_energy(axes: Axes, bar: Axes, energy: Values) -> None:  # (U, d)
    """Colour the share of each unit's energy, one row per unit, by hidden coordinate."""
    units, d = energy.shape
    sns.heatmap(energy, cmap=_SHADES, vmin=0, vmax=max(energy.max(), 0.1), ax=axes, cbar_ax=bar,
                xticklabels=_space_marks(d), yticklabels=_space_marks(units),
                rasterized=True)  # fmt: skip
    bar.tick_params(labelsize=7.5, length=2)
    for side in axes.spines.values():
        side.set_visible(True)
    axes.tick_params(labelsize=7.5, length=2, rotation=0)
    axes.set_xlabel("hidden coordinate", fontsize=8.5, labelpad=2)
    axes.set_ylabel("unit", fontsize=8.5, labelpad=1)
    axes.set_title("share of a unit's energy", loc="left", fontsize=8.5, pad=5)


def _space_marks(count: int) -> int:
    """Return the step between the tick labels of a matrix."""
    return next((step for step in (1, 2, 5, 10, 20) if count <= 5 * step), count)

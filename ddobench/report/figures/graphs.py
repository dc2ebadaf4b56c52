"""Graphs: the true one of a task, one that a method discovered, one read off units of a model."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import cos, pi, sin, sqrt
from typing import Any

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
from scipy.stats import norm

from ddobench.report.data import ReportData
from ddobench.report.figures.details import (
    Details,
    climbing_runs,
    column,
    find_details,
    read_details,
    stage_settings,
)
from ddobench.report.figures.draw import FAINT, INK, TINT, Values, blank_drawing, wrap
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.layouts import lay_out, name_shape
from ddobench.report.tables.select import BY_N, BY_TASK
from ddobench.report.tables.table import (
    file_stem,
    format_number,
    format_percent,
    name_runs,
    row_stem,
)
from ddobench.store.records import TaskSample

Edge = tuple[int, int]

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
_ROUNDING = 1e-5  # of a stored pseudo-Hessian
_UNITS = "units_graph"  # among the diagnostics of a run
_MOST_FILES = 50  # seeds of the same size that a caption counts


@dataclass(frozen=True)
class Truth:
    """The true graph of a task."""

    d: int
    edges: frozenset[Edge]

    @classmethod
    def of(cls, d: int, edges: Iterable[Iterable[int]]) -> "Truth":
        """Take edges in any order."""
        return cls(d, _ordered(edges))

    @property
    def graph(self) -> "nx.Graph[int]":
        """The same for networkx."""
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(self.d))
        graph.add_edges_from(self.edges)
        return graph


def find_truth(data: ReportData, run: "pd.Series[Any]") -> Truth | None:
    """Return the graph in the portrait of the task, None if that need not be the run's."""
    for portrait in data.portraits:
        shown = (portrait.task, portrait.task_variant, portrait.d, portrait.n)
        if shown == tuple(run[["task", "task_variant", "d", "n"]]) and portrait.edges is not None:
            truth = Truth.of(portrait.d, portrait.edges)
            same = portrait.seed == run["seed"] or name_shape(truth.graph) != ""
            return truth if same else None
    return None


def mark_edges(nodes: int, edges: Iterable[Iterable[int]], truth: Truth | None) -> pd.DataFrame:
    """Return one row per pair of nodes: an edge or not, and a true one or not.

    `true_edge` is of the hidden coordinates with the same numbers, empty where it is not known.
    """
    found = _ordered(edges)
    pairs = list(combinations(range(nodes), 2))
    table = pd.DataFrame(pairs, columns=["a", "b"])
    table["edge"] = [pair in found for pair in pairs]
    known = truth is not None and truth.d == nodes
    table["true_edge"] = [pair in truth.edges for pair in pairs] if truth and known else ""
    return table


def _ordered(edges: Iterable[Iterable[int]]) -> frozenset[Edge]:
    ordered = (sorted(edge) for edge in edges)
    return frozenset((a, b) for a, b in ordered)


def true_graphs(data: ReportData) -> Iterator[Figure]:
    """Draw the graph of each task; variants that share its shape share the picture."""
    groups: dict[tuple[str, object], list[TaskSample]] = {}
    for portrait in choose_portraits(data.portraits):
        if portrait.edges is not None:
            graph = Truth.of(portrait.d, portrait.edges).graph
            shape = name_shape(graph) or (portrait.d, frozenset(graph.edges))
            groups.setdefault((portrait.task, shape), []).append(portrait)
    for group in groups.values():
        portrait, *others = sorted(group, key=preference)
        caption = _graph_caption(portrait)
        if others:
            names = ", ".join(other.task_variant or "the default" for other in others)
            caption += f" The same shape for {names}."
        name = name_portrait(portrait)
        yield Figure(
            "graph", file_stem("graph", portrait.task, portrait.task_variant, f"d{portrait.d}"),
            f"True graph: {name}", caption, portrait.task,
            pd.DataFrame(portrait.edges, columns=["a", "b"]), portrait_commands(data, portrait),
            ShapePlot(f"True graph: {name}", portrait.d), about_task=True,
        )  # fmt: skip


def portrait_commands(data: ReportData, portrait: TaskSample) -> tuple[str, ...]:
    """Return the commands whose runs are of the task in a portrait."""
    size = {name: [getattr(portrait, name)] for name in ("task", "task_variant", "d", "n")}
    return data.commands(pd.DataFrame(size))


def choose_portraits(portraits: Iterable[TaskSample]) -> list[TaskSample]:
    """Take the smallest dimension that shows the pattern, with the most rows, of each variant."""
    chosen: dict[tuple[str, str], TaskSample] = {}
    for portrait in sorted(portraits, key=preference):
        chosen.setdefault((portrait.task, portrait.task_variant), portrait)
    return [chosen[key] for key in sorted(chosen)]


def preference(portrait: TaskSample) -> tuple[bool, int, int, int]:
    """Return a key by which the portrait that shows most comes first."""
    small = portrait.d < 7  # dimensions from which a graph shows its pattern
    return small, -portrait.d if small else portrait.d, -portrait.n, portrait.seed


def name_portrait(portrait: TaskSample) -> str:
    """Name the task, variant and dimension of a portrait."""
    return ", ".join(filter(None, [portrait.task, portrait.task_variant, f"d = {portrait.d}"]))


def _graph_caption(portrait: TaskSample) -> str:
    graph = Truth.of(portrait.d, portrait.edges or ()).graph
    cliques = list(nx.find_cliques(graph))
    sizes = sorted({len(clique) for clique in cliques})
    shape = name_shape(graph)
    said = f"A {shape}. " if shape else ""
    shaded = ", shaded" if sizes[0] > 2 else "; those of three or more are shaded"
    range_of = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return (
        f"{said}Every node is one of {portrait.d} variables; two are joined where a term of the "
        f"function holds both (seed {portrait.seed}). {graph.number_of_edges()} edges, "
        f"{len(cliques)} maximal cliques of {range_of} variables{shaded if sizes[-1] > 2 else ''}."
    )


@dataclass(frozen=True)
class ShapePlot:
    """A graph whose nodes lie in the plane, its cliques shaded."""

    title: str
    d: int

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the edges `a`, `b`."""
        width, longest, tallest = 4.9, 0.62, 2.5  # inches: all, an edge, the graph
        graph = Truth.of(self.d, data[["a", "b"]].to_numpy(dtype=int).tolist()).graph
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
            small = font < 4.5  # points that can be read
            axes.add_patch(Circle((x, y), radius, facecolor=INK if small else "white",
                                  edgecolor=INK, linewidth=0.9, zorder=3))  # fmt: skip
            if not small:
                axes.text(x, y, str(node), ha="center", va="center_baseline", fontsize=font,
                          zorder=4)  # fmt: skip
        return drawing


_DISCOVERED = ("edges", "pseudo_hessian")
_TRUTH = "Left: which variables of the function interact."
_TEXT = (
    "The discovered graph between the codes, and what decided it: the mean of z_i z_j y over the M "
    "visible rows (codes z and values y standardised) times \u221aM, so that a pair without "
    "interaction is about standard normal. Above the diagonal a dot marks each edge."
)
_AVERAGED = (
    "The discovered graph between the codes, and what decided it: the mean of z_i z_j y over M = "
    "{rows} rows at a time (codes z and values y standardised), averaged along the training, times "
    "\u221aM. The average rests on more rows than M, so a pair without interaction is nearer to 0 "
    "than a standard normal. Above the diagonal a dot marks each edge."
)


def discovered_graphs(data: ReportData) -> Iterator[Figure]:
    """Draw a discovered graph for each way to discover one, per task, variant, n and budget.

    It is that of the first seed, at d up to 41. Where a variant works on the hidden coordinates,
    its graph can be judged and is drawn as well.
    """
    runs = climbing_runs(data)
    staged = runs.assign(graph=column(runs, "graph"))
    staged = staged[staged["graph"] != ""]
    taken: set[str] = set()
    for _, family in staged.groupby(BY_N, sort=True):
        ways = [own for _, own in family.groupby("graph", sort=False)]
        for way in ways:
            cell = way[way["d"] == choose_size(way["d"])]
            plain = find_details(data, cell, _DISCOVERED, is_discovered)
            if plain is None:
                continue
            yield _discovered_figure(data, *plain, taken)
            if "graph_recovery" not in plain[1]:
                others = cell.drop_duplicates("digest")
                judged = find_details(data, others, (*_DISCOVERED, "graph_recovery"), is_discovered,
                                      most=len(others))  # fmt: skip
                if judged is not None:
                    yield _discovered_figure(data, *judged, taken)


def is_discovered(details: Details) -> bool:
    """Tell whether the edges are those pairs of codes with the largest entries.

    A graph that was shuffled afterwards is not what the pseudo-Hessian decided, and one code alone
    has no pairs.
    """
    pairs = pair_table(details, 1, None)
    entries = pairs["pseudo_hessian"].abs()
    edges, others = entries[pairs["edge"]], entries[~pairs["edge"]]
    apart = edges.empty or others.empty or edges.min() >= others.max() - _ROUNDING
    return len(pairs) > 0 and bool(apart)


def _discovered_figure(
    data: ReportData, run: "pd.Series[Any]", details: Details, taken: set[str]
) -> Figure:
    truth = find_truth(data, run)
    pairs = pair_table(details, _tested_rows(run, details), truth)
    threshold = _threshold(data, run, pairs)
    name = name_runs(run, "n", "d")
    label = data.style(run).label
    judged = "graph_recovery" in details and pairs["true_edge"].dtype == bool
    title = f"Discovered graph: {name}, {label}, seed {run['seed']}"
    caption = _discovered_caption(run, details, threshold, label, known=truth is not None)
    plot = CirclePlot(title, truth, judged, "discovered graph", threshold=threshold)
    return Figure("discovered", _stem(run, taken), title, caption, str(run["task"]), pairs,
                  tuple(filter(None, [str(run["command"])])), plot)  # fmt: skip


def _stem(run: "pd.Series[Any]", taken: set[str]) -> str:
    """Name the files by the variant, and by the method as well where another has that name."""
    variant, method = str(run["method_variant"]), str(run["method"])
    stem = row_stem("discovered", run, "d", "n", method=variant)
    if stem in taken:
        stem = row_stem("discovered", run, "d", "n", method=f"{method} {variant}".strip())
    taken.add(stem)
    return stem


def _tested_rows(run: "pd.Series[Any]", details: Details) -> int:
    """Return by how many rows a test took the entries to be estimated; older records took all."""
    return int(details.get("tested_rows") or run["n"])


def pair_table(details: Details, rows: int, truth: Truth | None) -> pd.DataFrame:
    """Return one row per pair of codes: its entry, the same times \u221arows, edge or not."""
    hessian = np.array(details["pseudo_hessian"], dtype=float)  # (e, e)
    table = mark_edges(len(hessian), details["edges"], truth)
    entries = hessian[table["a"], table["b"]]
    table.insert(2, "pseudo_hessian", entries)
    table.insert(3, "scaled", entries * sqrt(rows))
    return table


def _threshold(data: ReportData, run: "pd.Series[Any]", pairs: pd.DataFrame) -> float | None:
    """Return what a scaled entry must reach, None where the test was another than pair by pair."""
    test = stage_settings(data.configs.get(str(run["digest"]), {}), "graph")
    if not isinstance(test.get("alpha"), float) or test.get("correction", "none") != "none":
        return None
    threshold = float(norm.isf(test["alpha"] / 2))
    weakest = pairs.loc[pairs["edge"], "scaled"].abs().min()
    return None if weakest < threshold - 0.01 else threshold  # the record is rounded


def _discovered_caption(
    run: "pd.Series[Any]", details: Details, threshold: float | None, label: str, *, known: bool
) -> str:
    edges, codes = len(details["edges"]), len(details["pseudo_hessian"])
    rows = _tested_rows(run, details)
    whole = rows == run["n"]
    parts = [
        *([_TRUTH] if known else []),
        _TEXT if whole else _AVERAGED.format(rows=rows),
        f"{label}, seed {run['seed']} alone: {edges} of {codes * (codes - 1) // 2} pairs are edges",
    ]
    if "cliques" in details:
        parts[-1] += f", in {details['cliques']} maximal cliques"
    parts[-1] += "."
    if threshold is not None:
        expected = 2 * float(norm.sf(threshold)) * codes * (codes - 1) / 2
        chance = f", which chance alone would give about {expected:.2g} pairs" if whole else ""
        parts.append(
            f"An edge needs {format_number(threshold)} or more in absolute value (triangles at the "
            f"colour bar){chance}."
        )
    if details.get("dropped_edges"):
        parts.append(f"{details['dropped_edges']} of the weakest were dropped to limit cliques.")
    alignment, by_chance = details.get("alignment"), details.get("alignment_by_chance")
    if alignment is not None and by_chance is not None:
        parts.append(
            f"A code's largest correlation with a hidden coordinate is {format_number(alignment)} "
            f"on average, {format_number(by_chance)} for random axes."
        )
    if "graph_recovery" in details:
        recovery = details["graph_recovery"]
        parts.append(
            "The codes are the hidden coordinates, so the graphs can be compared: precision "
            f"{format_number(recovery['precision'])}, recall {format_number(recovery['recall'])}."
        )
    elif known:
        parts.append(
            "The codes are not the hidden coordinates: their edges need not match the true ones."
        )
    return " ".join(parts)


_UNITS_TEXT = (
    "The harness, and no method, wrote the directions along which the units of a model look in "
    "hidden coordinates, once the run was over (least squares of the codes on these leave "
    "{residual} of the variance of codes unexplained); the method saw neither these coordinates "
    "nor the true graph. An edge joins two coordinates that each have {share} or more of the "
    "energy (squared weight) of some unit. Right: that energy, one row per unit, sorted by where "
    "it lies."
)


def graphs_of_units(data: ReportData) -> Iterator[Figure]:
    """Draw what a model's units look at for each task, variant, budget and method that tells.

    It is that of the first seed, at the largest d up to 41 and there with the most rows.
    """
    runs = climbing_runs(data)
    for _, own in runs.groupby([*BY_TASK, "method"], sort=True):
        sized = own[own["d"] == choose_size(own["d"])]
        cell = sized[sized["n"] == sized["n"].max()]
        found = find_details(data, cell, [_UNITS], is_readable)
        if found is not None:
            run, details = found
            yield _unit_figure(data, run, details[_UNITS], _siblings(data, cell, run))


def is_readable(details: Details) -> bool:
    """Tell whether there are units to draw, of two or more coordinates, all shares in [0, 1]."""
    told = details[_UNITS]
    if not isinstance(told, Mapping) or not isinstance(told.get("edges"), list):
        return False
    try:
        energy = np.array(told["energy"], dtype=float)
    except (KeyError, TypeError, ValueError):
        return False
    return energy.ndim == 2 and energy.shape[1] > 1 and bool(((energy >= 0) & (energy <= 1)).all())


def sort_units(energy: Values) -> Values:  # (U, d) -> (U, d)
    """Return the units in the order of where on the axis of coordinates their energy lies."""
    middle = energy @ np.arange(energy.shape[1])
    return energy[np.argsort(middle, kind="stable")]


def _siblings(data: ReportData, cell: pd.DataFrame, run: "pd.Series[Any]") -> list[Details]:
    """Return what the other seeds of the same configuration tell of their units, and the run's."""
    same = cell[cell["digest"] == run["digest"]].head(_MOST_FILES)
    told = [read_details(data, other) for _, other in same.iterrows()]
    return [one[_UNITS] for one in told if isinstance(one.get(_UNITS), Mapping)]


def _unit_figure(
    data: ReportData, run: "pd.Series[Any]", told: Details, seeds: Sequence[Details]
) -> Figure:
    energy = sort_units(np.array(told["energy"], dtype=float))
    truth = find_truth(data, run)
    pairs = mark_edges(energy.shape[1], told["edges"], truth)
    label = data.style(run).label
    title = f"What units look at: {name_runs(run, 'n', 'd')}, {label}, seed {run['seed']}"
    plot = CirclePlot(title, truth, pairs["true_edge"].dtype == bool, "read off the units",
                      units=len(energy))  # fmt: skip
    return Figure("units", row_stem("units", run, "d", "n", method=str(run["method"])), title,
                  _unit_caption(run, told, seeds, label, truth), str(run["task"]),
                  _numbers(pairs, energy), tuple(filter(None, [str(run["command"])])),
                  plot)  # fmt: skip


def _numbers(pairs: pd.DataFrame, energy: Values) -> pd.DataFrame:
    """Return the pairs of coordinates, and below them the energy of each unit on each of them."""
    units, coordinates = np.indices(energy.shape)
    matrix = pd.DataFrame(
        {"unit": units.ravel(), "a": coordinates.ravel(), "energy": energy.ravel()}
    )
    parts = [
        pairs.assign(drawn="pair").astype(object),
        matrix.assign(drawn="energy").astype(object),
    ]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.reindex(columns=["drawn", "unit", "a", "b", "edge", "true_edge", "energy"])


def _unit_caption(
    run: "pd.Series[Any]",
    told: Details,
    seeds: Sequence[Details],
    label: str,
    truth: Truth | None,
) -> str:
    parts = ["Left: which hidden coordinates interact."] if truth is not None else []
    parts.append(
        _UNITS_TEXT.format(
            residual=format_percent(float(told.get("residual", np.nan))),
            share=format_percent(float(told.get("edge_share", np.nan))),
        )
    )
    units = len(told["energy"])
    text = f"{label}, seed {run['seed']} alone: {units} {'unit' if units == 1 else 'units'}"
    if "cliques_found" in told:
        share = format_percent(float(told.get("clique_share", np.nan)))
        text += (
            f"; {told['cliques_found']} of {told['cliques_true']} true cliques have a unit with "
            f"more than {share} of its energy in them"
        )
    if isinstance(recovery := told.get("recovery"), Mapping):
        text += (
            f"; precision of the edges {format_number(recovery['precision'])}, "
            f"recall {format_number(recovery['recall'])}"
        )
    parts.append(f"{text}.")
    found = [one["cliques_found"] for one in seeds if "cliques_found" in one]
    if len(found) > 1:
        parts.append(
            f"Over the {len(found)} seeds whose units are stored: "
            f"{format_number(float(np.mean(found)))} cliques found on average, "
            f"from {min(found)} to {max(found)}."
        )
    return " ".join(parts)


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


@dataclass(frozen=True)
class CirclePlot:
    """The true graph if there is one, a found graph, and the matrix it was read off."""

    title: str
    truth: Truth | None
    judged: bool  # whether edges are right or wrong
    found: str
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
            _say_below(drawing, left, f"true graph, {len(self.truth.edges)} edges")
            left += _CIRCLE + _GAP
        axes = _place(drawing, left, _FOOT, _CIRCLE, _CIRCLE)
        lines = _judge(pairs) if self.judged else [_Lines(_edges(pairs, pairs["edge"]), INK)]
        _draw_circle(axes, int(pairs["b"].max()) + 1, lines)
        _say_below(drawing, left, f"{self.found}, {int(pairs['edge'].sum())} edges", lines)
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
    """Colour how much of each unit's energy, row by row, lies on each hidden coordinate."""
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
    """Return how far apart the numbers along a side of a matrix stand."""
    return next((step for step in (1, 2, 5, 10, 20) if count <= 5 * step), count)

"""Pictures of the tasks, from the portraits that their runs left: the graph and the designs."""

from collections.abc import Callable, Iterator
from itertools import combinations
from math import atan2

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle, Polygon
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ddobench.report.data.commands import sweep_command
from ddobench.report.data.files import file_stem
from ddobench.report.data.portraits import (
    choose_portraits,
    coordinate_tables,
    name_portrait,
    preference,
)
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.drawing import (
    FAINT,
    INK,
    LOOK,
    PALE,
    TINT,
    WIDTH,
    Values,
    blank_drawing,
    limits_around,
)
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.layouts import lay_out, name_shape
from ddobench.store.records import Portrait

_TONES = {"hidden": "#7b8794", "observed": "#0072b2"}
_BINS = 28
_LONGEST_EDGE, _TALLEST = 0.62, 2.5  # inches
_SMALLEST_FONT = 4.5  # points


def true_graph(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the graph of each task; variants that share its shape share the picture."""
    groups: dict[tuple[str, object], list[Portrait]] = {}
    for portrait in choose_portraits(stored.portraits):
        if portrait.edges is not None:
            graph = _graph(portrait)
            shape = name_shape(graph) or (portrait.d, frozenset(graph.edges))
            groups.setdefault((portrait.task, shape), []).append(portrait)
    for group in groups.values():
        portrait, *others = sorted(group, key=preference)
        caption = _graph_caption(portrait)
        if others:
            names = ", ".join(other.task_variant or "the default" for other in others)
            caption += f" The same shape for {names}."
        edges = pd.DataFrame(portrait.edges, columns=["a", "b"])
        yield _figure("graph", "True graph", portrait, stored, caption, edges, _draw_graph)
    pictured = {portrait.task for portrait in stored.portraits}
    for task, runs in stored.runs.groupby("task", sort=True):
        if task not in pictured:
            yield _absence(runs)


def marginals(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the distribution of the first coordinates of each task with continuous designs."""
    for portrait in _different_designs(stored):
        caption = (
            f"The first coordinates of {len(portrait.observed)} of {portrait.n} visible designs "
            f"(seed {portrait.seed})"
        )
        if len(list(coordinate_tables(portrait))) == 2:
            caption += (
                ": above as the function takes them, hidden from every method; below as observed."
            )
        else:
            caption += ", observed as the function takes them."
        yield _figure("marginals", "Marginals of the designs", portrait, stored, caption,
                      _table(portrait), _draw_marginals)  # fmt: skip


def designs_in_pairs(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the designs of three-dimensional tasks, two coordinates at a time."""
    for portrait in _different_designs(stored):
        if portrait.d == 3:
            caption = (
                f"{len(portrait.observed)} of {portrait.n} visible designs (seed {portrait.seed}), "
                "two coordinates at a time, the largest values on top"
            )
            if len(list(coordinate_tables(portrait))) == 2:
                caption += "; the upper row is hidden from every method, the lower is observed"
            yield _figure("designs", "Designs and their values", portrait, stored, f"{caption}.",
                          _table(portrait), _draw_pairs)  # fmt: skip


def _figure(
    stem: str,
    title: str,
    portrait: Portrait,
    stored: ReportData,
    caption: str,
    data: pd.DataFrame,
    draw: Callable[[Portrait], Drawing],
) -> Figure:
    with mpl.rc_context(LOOK):
        drawing = draw(portrait)
        drawing.draw_without_rendering()
        drawing.set_layout_engine("none")  # once is enough for all formats
    return Figure(
        name=file_stem(stem, portrait.task, portrait.task_variant, f"d{portrait.d}"),
        title=f"{title}: {name_portrait(portrait)}",
        caption=caption,
        task=portrait.task,
        data=data,
        commands=stored.commands(
            {name: getattr(portrait, name) for name in ("task", "task_variant", "d", "n")}
        ),
        drawing=drawing,
        subject="task",
    )


def _absence(runs: pd.DataFrame) -> Absence:
    first = runs.iloc[0]
    return Absence(
        title=f"Pictures of the task: {first['task']}",
        task=str(first["task"]),
        reason="these runs were stored without a portrait of their task, as only fresh runs leave",
        remedy=f"{sweep_command(first, [first['method']])} results_dir=results/fresh",
    )


def _graph(portrait: Portrait) -> "nx.Graph[int]":
    graph: nx.Graph[int] = nx.Graph()
    graph.add_nodes_from(range(portrait.d))
    graph.add_edges_from((min(edge), max(edge)) for edge in portrait.edges or ())
    return graph


def _graph_caption(portrait: Portrait) -> str:
    graph = _graph(portrait)
    cliques = list(nx.find_cliques(graph))
    sizes = sorted({len(clique) for clique in cliques})
    shape = name_shape(graph)
    said = f"A {shape}. " if shape else ""
    shaded = ", shaded" if sizes[0] > 2 else "; those of three or more are shaded"
    spelled = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return (
        f"{said}Every node is one of {portrait.d} variables; two are joined where a term of the "
        f"function holds both (seed {portrait.seed}). {graph.number_of_edges()} edges, "
        f"{len(cliques)} maximal cliques of {spelled} variables{shaded if sizes[-1] > 2 else ''}."
    )


def _draw_graph(portrait: Portrait) -> Drawing:
    graph = _graph(portrait)
    layout = lay_out(graph)
    places = np.array([layout[node] for node in range(portrait.d)])  # (d, 2)
    title = wrap_text(name_portrait(portrait), 44)
    span = np.maximum(np.ptp(places, axis=0), 0.1)
    unit = min(_LONGEST_EDGE, (WIDTH - 0.6) / span[0], _TALLEST / span[1])  # inches
    radius = min(0.13, 0.27 * unit)
    head = 0.12 + 0.17 * (1 + title.count("\n"))
    height = span[1] * unit + head + 2 * radius + 0.3
    corner = np.array([(WIDTH - span[0] * unit) / 2, radius + 0.12])
    places = (places - places.min(axis=0)) * unit + corner

    drawing = blank_drawing(WIDTH, height)
    axes = drawing.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(0, height), aspect="equal")
    axes.axis("off")
    axes.text(0.08, height - 0.08, title, va="top", fontsize=9.5, parse_math=False)
    _draw_cliques(axes, graph, places)
    for a, b in graph.edges:
        axes.plot(*places[[a, b]].T, color=FAINT, linewidth=1.1, zorder=2)
    font = 72 * radius * 0.86
    for node, (x, y) in enumerate(places):
        filled = font < _SMALLEST_FONT
        face = INK if filled else "white"
        axes.add_patch(Circle((x, y), radius, facecolor=face, edgecolor=INK, linewidth=0.9,
                              zorder=3))  # fmt: skip
        if not filled:
            axes.text(x, y, str(node), ha="center", va="center_baseline", fontsize=font, zorder=4)
    return drawing


def _draw_cliques(axes: Axes, graph: "nx.Graph[int]", places: Values) -> None:
    for clique in nx.find_cliques(graph):
        if len(clique) > 2:
            corners = places[sorted(clique)]
            centre = corners.mean(axis=0)
            around = sorted(corners, key=lambda p: atan2(p[1] - centre[1], p[0] - centre[0]))
            axes.add_patch(Polygon(np.array(around), facecolor=TINT, linewidth=0, zorder=1))


def _different_designs(stored: ReportData) -> Iterator[Portrait]:
    """Yield the portraits with continuous designs, one of several variants with the same ones."""
    seen = set()
    for portrait in choose_portraits(stored.portraits):
        values = np.array(portrait.observed)
        first = (portrait.task, str(portrait.observed[:9]), str((portrait.hidden or [])[:9]))
        if first not in seen and not np.array_equal(values, values.round()):
            seen.add(first)
            yield portrait


def _table(portrait: Portrait) -> pd.DataFrame:
    columns = {
        f"{name}_{i}": column
        for name, designs in coordinate_tables(portrait)
        for i, column in enumerate(zip(*designs, strict=True))
    }
    return pd.DataFrame({**columns, "y": portrait.y})


def _panels(portrait: Portrait, columns: int) -> tuple[Drawing, NDArray[np.object_]]:
    """Return a drawing with a row of panels for every table of designs."""
    rows = len(list(coordinate_tables(portrait)))
    title = wrap_text(name_portrait(portrait), 44)
    drawing = blank_drawing(WIDTH, 0.35 + 1.5 * rows + 0.17 * title.count("\n"))
    drawing.set_layout_engine("constrained")
    drawing.suptitle(title, x=0.02, ha="left", fontsize=9.5, parse_math=False)
    return drawing, drawing.subplots(rows, columns, squeeze=False)


def _draw_marginals(portrait: Portrait) -> Drawing:
    drawing, panels = _panels(portrait, len(portrait.observed[0]))
    for row, (name, designs) in zip(panels, coordinate_tables(portrait), strict=True):
        x = np.array(designs)
        bins = np.linspace(*limits_around(x, room=0.0), _BINS + 1)
        for i, axes in enumerate(row):
            axes.set_xlim(*limits_around(bins))
            sns.histplot(x=x[:, i], bins=bins, stat="percent", color=_TONES[name], alpha=1,
                         linewidth=0, ax=axes)  # fmt: skip
            axes.set(xlabel=f"{name} $x_{{{i}}}$", ylabel="")
            axes.grid(axis="y", color=PALE, linewidth=0.6)
            axes.set_axisbelow(True)
            axes.tick_params(labelsize=8, labelleft=i == 0)
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        row[0].set_ylabel("designs per bin [%]", fontsize=8)
        tallest = max(bar.get_height() for axes in row for bar in axes.patches)
        for axes in row:
            axes.set_ylim(0, 1.06 * tallest)
    return drawing


def _draw_pairs(portrait: Portrait) -> Drawing:
    pairs = list(combinations(range(len(portrait.observed[0])), 2))
    drawing, panels = _panels(portrait, len(pairs))
    order = np.argsort(portrait.y)
    y = np.array(portrait.y)[order]
    least, most = limits_around(y, room=0.0)
    for row, (name, designs) in zip(panels, coordinate_tables(portrait), strict=True):
        x = np.array(designs)[order]
        for axes, (i, j) in zip(row, pairs, strict=True):
            axes.set_xlim(*limits_around(x[:, i]))
            axes.set_ylim(*limits_around(x[:, j]))
            dots = axes.scatter(x[:, i], x[:, j], c=y, s=3.5, cmap="cividis", linewidths=0,
                                vmin=least, vmax=most, rasterized=True)  # fmt: skip
            axes.set_xlabel(f"{name} $x_{i}$", labelpad=1)
            axes.set_ylabel(f"$x_{j}$", labelpad=0)
            axes.tick_params(labelsize=8)
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    bar = drawing.colorbar(dots, ax=panels, label="visible value $y$ [raw units]", aspect=30)
    bar.outline.set_visible(False)
    return drawing

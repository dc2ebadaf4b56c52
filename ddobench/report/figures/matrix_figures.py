"""The figures of a suite: the matrix of methods and cells, mean ranks, and cost against share."""

from collections.abc import Iterator
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, PercentFormatter

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import (
    BEST_VISIBLE,
    FAINT,
    INK,
    MUTED,
    PALE,
    WIDTH,
    blank_drawing,
    freeze,
    panel_grid,
    wrap,
)
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.row_figures import RankPlot, explain_position, explain_ranks
from ddobench.report.tables.formatting import file_stem
from ddobench.report.tables.matrix import (
    BEST_VISIBLE_ROW,
    Matrix,
    explain_matrix,
    format_cell,
    format_span,
    name_cell,
)
from ddobench.report.tables.select import BY_SIZE
from ddobench.report.tables.styles import Style, look_of_method

BELOW = "#fbdcc0"  # orange: worse than the mean visible value
HOLE = "#f1f1ee"


def suite_figures(data: ReportData) -> Iterator[Figure]:
    """Draw the matrix of a suite, the tests of its ranks, and what a share costs."""
    matrix = data.matrix
    if matrix is None:
        return
    name = matrix.suite.name
    drawn = pd.DataFrame([*matrix.suite.cells.values()], columns=BY_SIZE)
    commands = data.commands(drawn.assign(method_variant=""))
    table = matrix.table[matrix.table["method"] != BEST_VISIBLE_ROW]
    title = f"{name}: share of the optimum [%] of every method in every cell"
    yield Figure("suite", file_stem("suite", name), title,
                 f"{explain_matrix(matrix)} Bold: shown to beat the best visible design. Orange: "
                 "worse than the mean visible value.",
                 "", matrix.cells, commands, MatrixPlot(title, matrix.table),
                 table="suite")  # fmt: skip
    ranking = matrix.ranking
    if len(ranking.means) > 2:
        title = f"{name}: mean ranks of the methods that are ranked in every cell"
        looks = {method: _look(matrix, method) for method in matrix.methods}
        text = f"{explain_ranks(ranking, [name], 'cells')} {explain_position(ranking, looks)}"
        yield Figure("ranks", file_stem("ranks", name), title, text, "",
                     ranking.means.rename_axis("method").rename("mean_rank").reset_index(),
                     commands, RankPlot(title, ranking, looks), table="suite")  # fmt: skip
    known = table[["seconds", "iqm"]].notna().all(axis=1)
    if (known & (table["family"] != "reference")).any():
        title = f"{name}: cost and share of the optimum"
        text = (
            "Interquartile mean of the shares of the optimum over the cells where a method is "
            "ranked, with its 95\u00a0% interval over cells and seeds, against the mean CPU "
            "seconds of a run. The line joins the methods that surpass every cheaper one, which "
            "are named. Dotted: the best visible design, which costs nothing."
        )
        yield Figure("suite_costs", file_stem("costs", name), title, text, "", matrix.table,
                     commands, CostPlot(title), table="suite")  # fmt: skip


def _look(matrix: Matrix, method: str) -> Style:
    if method == BEST_VISIBLE_ROW:
        return BEST_VISIBLE
    look = look_of_method(method)
    return Style(matrix.labels[method], look.color, look.marker, look.dashes, ())


def color_cell(share: float) -> tuple[str, str]:
    """Return the background and the ink of a share: blue for more, orange below 0, else a hole."""
    if np.isnan(share):
        return HOLE, FAINT
    if share < 0:
        return BELOW, INK
    color = mpl.colormaps["Blues"](0.04 + 0.86 * min(share, 1.0))
    return to_hex(color), "white" if share > 0.68 else INK


@dataclass(frozen=True)
class MatrixPlot:
    """A heat map with the number in each cell, mean ranks and interquartile means beside it."""

    title: str
    methods: pd.DataFrame  # in the order of the rows

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw one row per method."""
        cells, rows = list(dict.fromkeys(data["cell"])), self.methods.to_dict("records")
        row, head, left, right = 0.175, 1.0, 2.05, 1.75  # inches
        width, height = WIDTH, head + row * len(rows) + 0.08
        drawing = blank_drawing(width, height)
        axes = drawing.add_axes((left / width, 0.08 / height, (width - left - right) / width,
                                 row * len(rows) / height))  # fmt: skip
        axes.set(xlim=(0, len(cells)), ylim=(len(rows), 0))
        axes.set_axis_off()
        drawing.suptitle(wrap(self.title, 90), x=0.012, y=1 - 0.06 / height, ha="left", va="top",
                         fontsize=9.5, parse_math=False)  # fmt: skip
        unit = (width - left - right) / len(cells)  # inches of a cell
        columns = {-(left - 0.05) / unit: ("left", "method"), -0.08 / unit: ("right", "family"),
                   len(cells) + 0.92 / unit: ("right", "mean rank"),
                   len(cells) + 1.7 / unit: ("right", "IQM [%]")}  # fmt: skip
        for x, (side, name) in columns.items():
            axes.text(x, -0.35, name, ha=side, va="bottom", fontsize=6.5, color=FAINT)
        for c, cell in enumerate(cells):
            axes.text(c + 0.5, -0.35, name_cell(cell), rotation=50, rotation_mode="anchor",
                      ha="left", va="center", fontsize=6.8, parse_math=False)  # fmt: skip
        numbers = data.set_index(["method", "cell"])
        for r, method in enumerate(rows):
            texts = [method["label"], method["family"], format_span(method, "rank", 1, 1),
                     format_span(method, "iqm", 100, 0)]  # fmt: skip
            landmark = method["method"] == BEST_VISIBLE_ROW
            for (x, (side, _)), text, color in zip(
                columns.items(), texts, (INK, FAINT, INK, INK), strict=True
            ):
                axes.text(x, r + 0.5, text, ha=side, va="center", fontsize=6.5, color=color,
                          parse_math=False, style="italic" if landmark else "normal")  # fmt: skip
            for c, cell in enumerate(cells):
                own = numbers.loc[(method["method"], cell)]
                back, ink = color_cell(own["share"])
                axes.add_patch(Rectangle((c, r), 1, 1, facecolor=back, edgecolor="white",
                                         linewidth=0.8))  # fmt: skip
                weight = "bold" if own["gain_low"] > 0 and not own["sign"] else "normal"
                axes.text(c + 0.5, r + 0.5, format_cell(own), ha="center", va="center",
                          fontsize=6.2, color=ink, parse_math=False, weight=weight)  # fmt: skip
            if landmark:
                axes.add_patch(Rectangle((0, r), len(cells), 1, fill=False, edgecolor=INK,
                                         linewidth=0.9, clip_on=False, zorder=5))  # fmt: skip
        return drawing


@dataclass(frozen=True)
class CostPlot:
    """Shares against CPU seconds, with the front of what no cheaper method surpasses."""

    title: str

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw one point per method."""
        drawing, (axes,) = panel_grid(1, self.title, [])
        landmark = data[data["method"] == BEST_VISIBLE_ROW]["iqm"]
        known = data[["seconds", "iqm"]].notna().all(axis=1)
        points = data[(data["family"] != "reference") & known]
        points = points.assign(seconds=points["seconds"].clip(lower=1e-3)).sort_values("seconds")
        free = float(landmark.max()) if len(landmark) else -np.inf
        before = points["iqm"].cummax().shift(fill_value=-np.inf).clip(lower=free)
        front = points[points["iqm"] > before]
        for value in landmark:
            axes.axhline(value, color=BEST_VISIBLE.color, dashes=BEST_VISIBLE.dashes, linewidth=1.2)
        axes.vlines(
            points["seconds"], points["iqm_low"], points["iqm_high"], color=PALE, linewidth=1
        )
        axes.plot(front["seconds"], front["iqm"], color=INK, linewidth=0.9, drawstyle="steps-post")
        for some, color in ((points, MUTED), (front, INK)):
            axes.plot(some["seconds"], some["iqm"], linestyle="none", marker="o", markersize=4.5,
                      markerfacecolor=color, markeredgecolor="white",
                      markeredgewidth=0.5)  # fmt: skip
        for one in front.to_dict("records"):
            place = (one["seconds"], one["iqm"])  # above and left of it there is no point
            axes.annotate(one["label"], place, (-5, 3), ha="right", fontsize=7.5,
                          textcoords="offset points", parse_math=False)  # fmt: skip
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=""))
        axes.set_ylim(max(-0.5, min(0.0, points["iqm"].min() - 0.05)), 1.05)
        axes.set_xlabel("CPU seconds of a run", fontsize=8.5)
        axes.set_ylabel("share of the optimum, IQM [%]", fontsize=8.5)
        freeze(drawing)
        return drawing

"""The controls: what remains of a method's score when one of its parts is replaced."""

from collections.abc import Iterator
from itertools import accumulate, pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample
from ddobench.report.figures.drawing import FAINT, LOOK, PALE, blank_drawing, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.panels import WIDTH, freeze_layout
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.comparisons import explain_comparison
from ddobench.report.tables.formats import name_runs
from ddobench.scores import find_score

_ROW = 0.27  # inches
_ACROSS = 25.5  # points of the letters below all panels together
_WIDEST_LABEL = 34  # characters
_TEXT = (
    "One method with one part replaced at a time. Large marks are means over seeds with 95\u00a0% "
    "bootstrap intervals (BCa), small dots below them the seeds; the thin line continues the mean "
    "of the first variant. The best iteration is an oracle's choice."
)


def variant_controls(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the variants of every method that has several on the same task, d, n and budget."""
    for _, table in stored.comparisons.groupby(CELL, sort=True):
        first = table.iloc[0]
        name = name_runs(first, "n", "d")
        parts = [_TEXT, explain_comparison(table), *describe_sample(stored, table)]
        yield Figure(
            name=row_stem("controls", first, "d", "n"),
            title=f"Controls: {name}",
            caption=" ".join(parts),
            task=str(first["task"]),
            data=table,
            commands=stored.commands(first[CELL].to_dict()),
            drawing=_draw(table, stored, name),
            subject="methods",
        )  # fmt: skip


def _draw(table: pd.DataFrame, stored: ReportData, name: str) -> Drawing:
    rows = list(table[SERIES].drop_duplicates().itertuples(index=False, name=None))
    heights = _row_places([method for method, _ in rows])
    task = str(table["task"].iloc[0])
    labels = [wrap_text(stored.styles[task, *key].label, _WIDEST_LABEL) for key in rows]
    with mpl.rc_context(LOOK):
        drawing = blank_drawing(WIDTH, 0.95 + _ROW * (heights[-1] + 1))
        drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
        drawing.suptitle(name, x=0.012, ha="left", fontsize=9.5, parse_math=False)
        scores = list(dict.fromkeys(table["score"]))
        panels = drawing.subplots(1, len(scores), sharey=True, squeeze=False)[0]
        for axes, score in zip(panels, scores, strict=True):
            _draw_panel(axes, table[table["score"] == score], stored, heights)
            axes.set_xlabel(find_score(score).axis, fontsize=min(8.5, _ACROSS / len(scores)))
        panels[0].set_yticks(heights, labels, fontsize=8)
        for text in panels[0].get_yticklabels():
            text.set_parse_math(False)
        panels[0].set_ylim(heights[-1] + 0.6, -0.6)
        freeze_layout(drawing)
    return drawing


def _row_places(methods: list[str]) -> list[float]:
    """Return the place of every row from the top, methods apart."""
    changes = accumulate((a != b for a, b in pairwise(methods)), initial=0)
    return [i + 0.5 * change for i, change in enumerate(changes)]


def _draw_panel(axes: Axes, table: pd.DataFrame, stored: ReportData, heights: list[float]) -> None:
    axes.grid(axis="x", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    unit = find_score(table["score"].iloc[0]).unit
    scale = unit.scale
    places = dict(zip(table[SERIES].itertuples(index=False, name=None), heights, strict=True))
    seeds = table.assign(place=np.add(heights, 0.24), value=table["by_seed"].str.split())
    seeds = seeds.explode("value").astype({"value": float})
    if unit.fraction:
        axes.set_xlim(-4, 104)
    else:
        bounds = table[["mean", "low", "high"]].to_numpy(dtype=float)
        axes.set_xlim(*limits_around([*seeds["value"], *bounds.ravel()]))
    sns.stripplot(x=scale * seeds["value"], y=seeds["place"], hue=seeds["method"], orient="y",
                  palette={key[0]: stored.styles[str(table["task"].iloc[0]), *key].color
                           for key in places},
                  native_scale=True, jitter=False, size=2.8, alpha=0.4, linewidth=0, zorder=2,
                  legend=False, ax=axes)  # fmt: skip
    axes.set(xlabel="", ylabel="")
    for row in table.to_dict("records"):
        key = (str(row["method"]), str(row["method_variant"]))
        style, y = stored.styles[str(row["task"]), *key], places[key]
        axes.hlines(y, scale * row["low"], scale * row["high"], color=style.color, linewidth=1.6,
                    zorder=3)  # fmt: skip
        axes.plot([scale * row["mean"]], [y], linestyle="none", marker=style.marker, markersize=6.5,
                  markerfacecolor=style.color, markeredgecolor="white", markeredgewidth=0.6,
                  zorder=4)  # fmt: skip
        if row["method_variant"] == row["reference"]:
            last = max(place for other, place in places.items() if other[0] == row["method"])
            axes.vlines(scale * row["mean"], y, last + 0.4, color=FAINT, linewidth=0.8, zorder=1)

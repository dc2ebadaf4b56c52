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
from ddobench.report.figures.doing_nothing import BEST_VISIBLE, DOTTED_NOTE, means_of_nothing
from ddobench.report.figures.drawing import FAINT, LOOK, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.panels import draw_row, freeze_layout, row_panels
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.comparisons import explain_comparison
from ddobench.report.tables.formats import name_runs
from ddobench.scores import find_score

_ACROSS = 25.5  # points of the letters below all panels together
_TEXT = (
    "One method with one part replaced at a time. Large marks are means over seeds with 95\u00a0% "
    "intervals, small dots below them the seeds; the thin line continues the mean "
    "of the first variant. The best iteration is an oracle's choice."
)


def variant_controls(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the variants of every method that has several on the same task, d, n and budget."""
    nothing = means_of_nothing(stored.runs)
    for _, table in stored.comparisons.merge(nothing, on=CELL, how="left").groupby(CELL, sort=True):
        first = table.iloc[0]
        name = name_runs(first, "n", "d")
        parts = [_TEXT, DOTTED_NOTE, explain_comparison(table), *describe_sample(stored, table)]
        yield Figure(
            name=row_stem("controls", first, "d", "n"),
            title=f"Controls: {name}",
            caption=" ".join(parts),
            task=str(first["task"]),
            data=table,
            commands=stored.commands(first[CELL].to_dict(), table),
            drawing=_draw(table, stored, name),
            subject="methods",
        )  # fmt: skip


def _draw(table: pd.DataFrame, stored: ReportData, name: str) -> Drawing:
    rows = list(table[SERIES].drop_duplicates().itertuples(index=False, name=None))
    heights = _row_places([method for method, _ in rows])
    task = str(table["task"].iloc[0])
    labels = [stored.styles[task, *key].label for key in rows]
    scores = list(dict.fromkeys(table["score"]))
    with mpl.rc_context(LOOK):
        drawing, panels = row_panels(len(scores), name, labels, heights)
        for axes, score in zip(panels, scores, strict=True):
            _draw_panel(axes, table[table["score"] == score], stored, heights)
            axes.set_xlabel(find_score(score).axis, fontsize=min(8.5, _ACROSS / len(scores)))
        freeze_layout(drawing)
    return drawing


def _row_places(methods: list[str]) -> list[float]:
    """Return the place of every row from the top, methods apart."""
    changes = accumulate((a != b for a, b in pairwise(methods)), initial=0)
    return [i + 0.5 * change for i, change in enumerate(changes)]


def _draw_panel(axes: Axes, table: pd.DataFrame, stored: ReportData, heights: list[float]) -> None:
    axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    unit = find_score(table["score"].iloc[0]).unit
    scale = unit.scale
    places = dict(zip(table[SERIES].itertuples(index=False, name=None), heights, strict=True))
    seeds = table.assign(place=np.add(heights, 0.24), value=table["by_seed"].str.split())
    seeds = seeds.explode("value").astype({"value": float})
    if unit.fraction:
        axes.set_xlim(-4, 104)
    else:
        bounds = table[["mean", "low", "high", "nothing_value"]].to_numpy(dtype=float)
        axes.axvline(table["nothing_value"].iloc[0], color=BEST_VISIBLE.color, linewidth=1.1,
                     dashes=BEST_VISIBLE.dashes, zorder=1)  # fmt: skip
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
        draw_row(axes, y, scale * row["mean"], (scale * row["low"], scale * row["high"]), style)
        if row["method_variant"] == row["reference"]:
            last = max(place for other, place in places.items() if other[0] == row["method"])
            axes.vlines(scale * row["mean"], y, last + 0.4, color=FAINT, linewidth=0.8, zorder=1)

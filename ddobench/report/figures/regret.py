"""Regret of every method against the size of the problem: dimension, or visible rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from ddobench.report.data.commands import sweep_command
from ddobench.report.data.curves import choose_series
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_hollow
from ddobench.report.figures.doing_nothing import BEST_VISIBLE, DOTTED_NOTE, means_of_nothing
from ddobench.report.figures.drawing import (
    INK,
    LOOK,
    blank_axes,
    blank_drawing,
    fit_margins,
    set_sizes,
    set_title,
    set_values,
)
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import label_ends
from ddobench.report.figures.leading import SeriesKey, describe_muted, lead_styles
from ddobench.report.figures.series import Place, describe_intervals, draw_curve
from ddobench.report.tables.columns import CELL, FAMILY, LOST, SERIES, SLICE, STUDY
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.styles import Style, explain_signs

_UNITS = {"raw": "raw units", "sd": "sd of the visible values"}
_NOTHING = "nothing_regret"


@dataclass(frozen=True)
class Axis:
    """What regret is drawn against."""

    column: str
    words: str
    symbol: str
    fixed: str  # the column that stays the same in one figure


DIMENSION = Axis("d", "dimension", "$d$", fixed="n")
ROWS = Axis("n", "visible rows", "$n$", fixed="d")


def regret_by_dimension(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw mean regret against dimension, one figure per task, variant, n and budget."""
    scores = _with_regret(stored.scores)
    many_rows = scores.groupby(SLICE)["n"].transform("nunique") > 1
    for _, points in scores.groupby(FAMILY, sort=True):
        if len(points["d"].unique()) > 1:
            yield _figure(stored, points, DIMENSION)
        elif not many_rows[points.index].any():
            yield _absence(points)


def regret_by_rows(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw mean regret against visible rows, one figure per task, variant and budget.

    It shows the dimension with the most numbers of rows, and of several such the largest.
    """
    for _, study in _with_regret(stored.scores).groupby(STUDY, sort=True):
        counts = study.groupby("d")["n"].nunique()
        d = counts[counts == counts.max()].index.max()
        if counts[d] > 1:
            others = counts[counts > 1].index.drop(d).tolist()
            yield _figure(stored, study[study["d"] == d], ROWS, others)


def _with_regret(scores: pd.DataFrame) -> pd.DataFrame:
    """Keep the cells where any method has a regret, whole: methods without one are counted."""
    return scores[scores.groupby([*FAMILY, "d"])["regret_mean"].transform("count") > 0]


def _figure(
    stored: ReportData, points: pd.DataFrame, axis: Axis, others: list[int] | None = None
) -> Figure:
    first = points.iloc[0]
    shown, hidden = choose_series(points)
    styles = lead_styles(stored, shown, "regret_mean", lower_is_better=True)
    shown = shown.merge(means_of_nothing(stored.runs), on=CELL, how="left")
    caption = _caption(shown, styles)
    if hidden:
        caption += f" {hidden} variants of these methods are left out; the tables have them."
    if others:
        listed = ", ".join(map(str, others))
        caption += f" The tables have several numbers of rows for {axis.fixed} = {listed} as well."
    alike = FAMILY if axis is DIMENSION else SLICE
    return Figure(
        name=row_stem("regret", first, axis.fixed),
        title=f"Regret against {axis.words}: {name_runs(first, axis.fixed)}",
        caption=caption,
        task=str(first["task"]),
        data=shown,
        commands=stored.commands(first[alike].to_dict(), shown),
        drawing=_draw(shown, styles, axis),
        subject="methods",
    )  # fmt: skip


def _absence(points: pd.DataFrame) -> Absence:
    first = points.iloc[0]
    n = int(first["n"])
    methods = sorted(set(points.loc[points["seeds"] > 0, "method"]))
    return Absence(
        title=f"Regret against dimension: {name_runs(first, 'n')}",
        task=str(first["task"]),
        reason=f"only d = {first['d']} has a regret, and a curve needs a second d or a second n",
        remedy=sweep_command(first, methods, n=f"{n},{2 * n},{4 * n}"),
    )


def _draw(points: pd.DataFrame, styles: Mapping[SeriesKey, Style], axis: Axis) -> Drawing:
    with mpl.rc_context(LOOK):
        drawing = blank_drawing()
        axes = blank_axes(drawing)
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
        sizes = sorted(points[axis.column].unique())
        x = np.asarray(sizes, dtype=float)
        ends: list[tuple[Style, float]] = []
        for index, (key, style) in enumerate(styles.items()):
            curve = points[(points[SERIES] == list(key)).all(axis=1)]
            curve = curve.set_index(axis.column).reindex(sizes)
            mean, low, high = (
                curve[f"regret_{name}"].to_numpy(dtype=float) for name in ("mean", "low", "high")
            )
            if np.isfinite(mean).any():
                short = curve[LOST].sum(axis=1).to_numpy() > 0
                draw_curve(axes, x, mean, (low, high), style, short, Place(index, len(styles)))
                if style.marker:
                    ends.append((style, float(mean[np.isfinite(mean)][-1])))
        nothing = points.groupby(axis.column)[_NOTHING].first().dropna()
        if len(nothing) and not does_nothing(set(points["method"])):
            axes.plot(nothing.index, nothing, color=BEST_VISIBLE.color, linewidth=1.2,
                      dashes=BEST_VISIBLE.dashes, zorder=1)  # fmt: skip
            ends.append((BEST_VISIBLE, float(nothing.iloc[-1])))
        unit = _UNITS.get(str(points["regret_unit"].max()), "")
        axes.set_xlabel(f"{axis.words} {axis.symbol}")
        axes.set_ylabel(f"regret [{unit}]")
        set_title(axes, name_runs(points.iloc[0], axis.fixed))
        set_sizes(axes, sizes)
        bounds = points[["regret_mean", "regret_low", "regret_high"]]
        set_values(axes, np.append(bounds.to_numpy(dtype=float), nothing), floor=0.0)
        label_ends(axes, ends)
        fit_margins(drawing, axes)
    return drawing


def _caption(points: pd.DataFrame, styles: Mapping[SeriesKey, Style]) -> str:
    scored = points[points["seeds"] > 0]
    fewest, most = int(scored["seeds"].min()), int(scored["seeds"].max())
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    parts = [
        f"Mean regret over {seeds} at each point: by how much the proposed design falls short of "
        f"the optimum. Lower is better, and 0 is the optimum. {describe_intervals(len(styles))}"
    ]
    if points[_NOTHING].notna().any() and not does_nothing(set(points["method"])):
        parts.append(DOTTED_NOTE)
    parts += [*describe_hollow(points), *describe_muted(styles)]
    return " ".join([*parts, *(f"{note}." for note in explain_signs(styles.values()))])

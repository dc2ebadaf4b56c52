"""Critical-difference diagrams: mean ranks on an axis, methods not shown to differ joined by bars.

After Demšar 2006; `ranks` has the tests and `lineups` says what a block is.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import ceil

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from ddobench.report.data.commands import join_commands
from ddobench.report.data.files import file_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.doing_nothing import BEST_VISIBLE
from ddobench.report.figures.drawing import INK, LOOK, PALE, blank_drawing
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.series import marker_look
from ddobench.report.tables.columns import CELL
from ddobench.report.tables.differences import format_p
from ddobench.report.tables.lineups import Lineup
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.ranks import Ranking, rank_methods
from ddobench.report.tables.styles import Style, explain_signs

_WIDTH = 5.6  # inches
_ROW = 0.3  # inches
_GROUP = 0.34  # of a row, between bars that join groups
_WIDEST = 26  # characters
_WIDEST_TITLE = 72
_NOTHING = "best visible design"  # a column beside the methods


def mean_rank_diagrams(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the mean ranks of every line-up of three or more methods on several cells.

    A line-up that a larger one holds is left out.
    """
    for lineup in stored.lineups:
        if len(lineup.methods) < 3 or len(lineup.means) < 2:  # one cell gives no mean
            continue
        if any(_holds(other, lineup) for other in stored.lineups):
            continue
        ranking = rank_methods(_with_nothing(lineup))
        table = stored.standings
        table = table[(table["lineup"] == ", ".join(lineup.methods))
                      & (table["budget"] == lineup.budget)]  # fmt: skip
        tasks = sorted(set(lineup.runs["task"]))
        looks = _looks(lineup, table, stored)
        notes = [f"{note}." for note in explain_signs(looks.values())]
        told = [_explain_ranks(ranking, tasks), _judge_by_nothing(ranking, looks)]
        yield Figure(
            name=file_stem("ranks", *tasks, f"{len(lineup.methods)}-methods",
                           "" if lineup.budget == "full" else lineup.budget),
            title=f"Mean ranks: {', '.join(tasks)}",
            caption=" ".join([*told, *notes]),
            task="",  # of no single task
            data=table,
            commands=join_commands(lineup.runs["command"]),
            drawing=_draw(ranking, looks, _name(tasks, ranking)),
            subject="methods",
        )  # fmt: skip


def _holds(larger: Lineup, lineup: Lineup) -> bool:
    """Tell whether a line-up has all methods of another and more, on the same tasks."""
    return (
        larger.budget == lineup.budget
        and {*larger.methods} > {*lineup.methods}
        and {*larger.runs["task"]} == {*lineup.runs["task"]}
    )


def _with_nothing(lineup: Lineup) -> pd.DataFrame:
    """Return the means of every block and method, with the best visible design as one more."""
    if does_nothing(lineup.methods):
        return lineup.means
    tables = lineup.runs.drop_duplicates([*CELL, "seed"])
    return lineup.means.assign(**{_NOTHING: tables.groupby(CELL)["best_visible"].mean()})


def _find_nothing(ranking: Ranking) -> str:
    """Return the column of doing nothing, whether added or a method of the line-up."""
    return next(name for name in map(str, ranking.means.index)
                if name == _NOTHING or does_nothing([name]))  # fmt: skip


def _judge_by_nothing(ranking: Ranking, looks: Mapping[str, Style]) -> str:
    """Say which methods rank behind the best visible design."""
    rank = ranking.means[_find_nothing(ranking)]
    behind = [looks[str(name)].label for name in ranking.means[ranking.means > rank].index]
    who = f"behind it: {', '.join(behind)}" if behind else "no method is behind it"
    if len(behind) == len(ranking.means) - 1:
        who = "every method is behind it, and the first of them wins nothing"
    return f"The dotted line is doing nothing, the best visible design, at {rank:.2f}; {who}."


def _looks(lineup: Lineup, table: pd.DataFrame, stored: ReportData) -> dict[str, Style]:
    """Return the style of each method, under its overall label."""
    looks = {_NOTHING: BEST_VISIBLE}
    for row in table.to_dict("records"):
        own = lineup.runs[lineup.runs["method"] == row["method"]].iloc[0]
        style = stored.styles[own["task"], own["method"], own["method_variant"]]
        privileges = tuple(str(row["privileges"]).split())
        looks[str(row["method"])] = replace(
            style, label=str(row["label"]), privileges=privileges,
        )  # fmt: skip
    return looks


def _explain_ranks(ranking: Ranking, tasks: Sequence[str]) -> str:
    where = "1 cell" if ranking.blocks == 1 else f"{ranking.blocks} cells"
    return (
        "Ranks by the mean final value over the seeds that all methods have, averaged over "
        f"{where} of {', '.join(tasks)}. {_explain_bars(ranking)}"
    )


def _explain_bars(ranking: Ranking) -> str:
    if not ranking.groups:
        return "There are too few cells to say which differences are more than chance."
    p = format_p(ranking.p)
    return (
        "Bars join those whose mean ranks are not shown to differ at the 5\u00a0% level "
        f"(Friedman's test, p {p if p.startswith('<') else f'= {p}'}, then Nemenyi's)."
    )


def _name(tasks: list[str], ranking: Ranking) -> str:
    return f"{', '.join(tasks)} ({ranking.blocks} {'cell' if ranking.blocks == 1 else 'cells'})"


def _draw(ranking: Ranking, looks: Mapping[str, Style], name: str) -> Drawing:
    names = [str(name) for name in ranking.means.index]
    left = ceil(len(names) / 2)
    bars = _GROUP * len(ranking.groups)
    top = 2.7 if np.isfinite(ranking.critical) else 1.9
    bottom = left + bars + 1.1
    with mpl.rc_context(LOOK):
        drawing = blank_drawing(_WIDTH, _ROW * (bottom + top))
        axes = drawing.add_axes((0.31, 0.02, 0.38, 0.96))
        axes.set_axis_off()
        axes.set_xlim(1, len(names))
        axes.set_ylim(bottom, -top)
        drawing.suptitle(wrap_text(name, _WIDEST_TITLE), x=0.012, y=0.96, ha="left", va="top",
                         fontsize=9.5, parse_math=False)  # fmt: skip
        _draw_axis(axes, len(names))
        _shade_losers(axes, float(ranking.means[_find_nothing(ranking)]), len(names), bottom)
        for i, name in enumerate(names):
            row = i if i < left else len(names) - 1 - i
            _draw_method(axes, float(ranking.means.iloc[i]), row + bars + 0.75, looks[name],
                         1.0 if i < left else float(len(names)))  # fmt: skip
        for i, group in enumerate(ranking.groups):
            ends = [ranking.means[group[0]] - 0.04, ranking.means[group[-1]] + 0.04]
            axes.plot(ends, [0.35 + _GROUP * i] * 2, color=INK, linewidth=3.2, clip_on=False,
                      solid_capstyle="butt", zorder=4)  # fmt: skip
        if np.isfinite(ranking.critical):
            _draw_critical(axes, ranking.critical)
    return drawing


def _draw_axis(axes: Axes, methods: int) -> None:
    axes.plot([1, methods], [0, 0], color=INK, linewidth=0.9, clip_on=False)
    for rank in range(1, methods + 1):
        axes.plot([rank] * 2, [0, -0.16], color=INK, linewidth=0.9, clip_on=False)
        axes.annotate(str(rank), (rank, -0.16), (0, 2), textcoords="offset points", ha="center",
                      va="bottom", fontsize=8, annotation_clip=False)  # fmt: skip
    axes.annotate("mean rank,\n1 is best", (methods, 0), (14, 0), textcoords="offset points",
                  ha="left", va="center", fontsize=7.5, annotation_clip=False)  # fmt: skip


def _shade_losers(axes: Axes, nothing: float, methods: int, bottom: float) -> None:
    """Shade where methods rank that do worse than nothing."""
    axes.fill_between(
        [nothing, methods], -0.1, bottom, color=PALE, alpha=0.7, linewidth=0, zorder=0
    )
    axes.plot([nothing] * 2, [-0.1, bottom], color=BEST_VISIBLE.color, linewidth=1.2,
              dashes=BEST_VISIBLE.dashes, clip_on=False, zorder=1)  # fmt: skip
    outward = -1 if nothing > (1 + methods) / 2 else 1  # where there is more room
    axes.annotate("shaded: worse\nthan doing nothing", (nothing, bottom), (4 * outward, 3),
                  textcoords="offset points", ha="right" if outward < 0 else "left", va="bottom",
                  fontsize=7, linespacing=1.05, annotation_clip=False)  # fmt: skip


def _draw_method(axes: Axes, rank: float, y: float, style: Style, side: float) -> None:
    """Lead from a mean rank down and out to the method's name, on the side it is nearer to."""
    outward = -1 if side == 1.0 else 1
    axes.plot([rank, rank, side], [0, y, y], color=style.color, linewidth=1.1, clip_on=False,
              zorder=2)  # fmt: skip
    axes.plot([rank], [0], linestyle="none", clip_on=False, zorder=5, **marker_look(style, 6))
    axes.annotate(
        f"{wrap_text(style.label, _WIDEST)}  {rank:.2f}", (side, y), (5 * outward, 0),
        textcoords="offset points", ha="right" if outward < 0 else "left", va="center",
        fontsize=8, parse_math=False, annotation_clip=False,
    )  # fmt: skip


def _draw_critical(axes: Axes, critical: float) -> None:
    """Draw how far apart two mean ranks must be, above the axis."""
    y = -1.05
    axes.plot([1, 1 + critical], [y, y], color=INK, linewidth=1.2, clip_on=False)
    for x in (1, 1 + critical):
        axes.plot([x, x], [y - 0.1, y + 0.1], color=INK, linewidth=1.2, clip_on=False)
    axes.annotate(f"critical difference {critical:.2f}", (1, y), (-5, 0), ha="right", va="center",
                  textcoords="offset points", fontsize=7.5, annotation_clip=False)  # fmt: skip

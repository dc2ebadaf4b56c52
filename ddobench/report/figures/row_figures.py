"""The row figures: controls of a method, mean ranks across tasks, and factorials of parts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import ceil
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import (
    BEST_VISIBLE,
    FAINT,
    INK,
    PALE,
    RowPlot,
    add_legend,
    blank_drawing,
    freeze,
    limits_around,
    marker_look,
    row_grid,
    wrap,
)
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.series import count_seeds
from ddobench.report.tables.factorial import (
    EXPLANATION,
    FACTORIAL,
    REST,
    SEED,
    TIMES,
    combination_table,
    share_table,
)
from ddobench.report.tables.formatting import file_stem, format_p, name_runs, row_stem
from ddobench.report.tables.paired import explain_controls
from ddobench.report.tables.select import BY_SIZE, SERIES, is_best_visible
from ddobench.report.tables.standings import Lineup, Ranking, rank_methods
from ddobench.report.tables.styles import Style, explain_signs
from ddobench.scores import HEADLINE, find_score


def controls(data: ReportData) -> Iterator[Figure]:
    """Draw the variants of every method that has several at the same size."""
    landmarks = data.best_visible.rename(columns={"best_visible_value": "best_visible"})
    table = data.controls.merge(landmarks[[*BY_SIZE, "best_visible"]], on=BY_SIZE, how="left")
    for _, size in table.groupby(BY_SIZE, sort=True):
        first = size.iloc[0]
        rows = size[["task", *SERIES]].drop_duplicates()
        changes = accumulate((a != b for a, b in pairwise(rows["method"])), initial=0)
        rows["place"] = [i + 0.5 * change for i, change in enumerate(changes)]  # methods apart
        looks = [data.style(row) for _, row in size.iterrows()]
        points = size.merge(rows).assign(
            panel=size["score"].to_numpy(),
            color=[look.color for look in looks],
            marker=[look.marker for look in looks],
        )
        scores = {name: find_score(name) for name in dict.fromkeys(size["score"])}
        title = f"Controls: {name_runs(first, 'n', 'd')}"
        plot = RowPlot(
            title,
            {row["place"]: data.style(row).label for row in rows.to_dict("records")},
            {name: score.axis for name, score in scores.items()},
            frozenset(name for name, score in scores.items() if score.unit.fraction),
        )
        notes = [f"{note}." for note in explain_signs(looks)]
        caption = " ".join([
            "Variants of a method: means over seeds with 95\u00a0% intervals, and single seeds as "
            "small dots. An oracle chooses the best iteration. Dotted: the best visible design.",
            explain_controls(size),
            count_seeds(size["seeds"], "variant"), *notes,
        ])  # fmt: skip
        yield Figure("controls", row_stem("controls", first, "d", "n"), title, caption,
                     str(first["task"]), points, data.commands(points), plot,
                     table="controls")  # fmt: skip


def mean_ranks(data: ReportData) -> Iterator[Figure]:
    """Draw the mean ranks of every line-up of three or more methods on several sizes.

    A line-up is left out if a larger one that is drawn, on the same tasks, contains it.
    """
    for lineup in data.lineups:
        if len(lineup.methods) < 3 or len(lineup.means) < 2:
            continue
        if any(_contains(other, lineup) for other in data.lineups):
            continue
        tasks = sorted(set(lineup.runs["task"]))
        ranking = rank_methods(_with_best_visible(lineup))
        looks = _looks(lineup, data)
        title = f"Mean ranks over {ranking.blocks} sizes: {', '.join(tasks)}"
        table = data.standings
        table = table[(table["lineup"] == ", ".join(lineup.methods))
                      & (table["budget"] == lineup.budget)]  # fmt: skip
        notes = [f"{note}." for note in explain_signs(looks.values())]
        yield Figure(
            "ranks",
            file_stem("ranks", *tasks, f"{len(lineup.methods)}-methods",
                      "" if lineup.budget == "full" else lineup.budget),
            title,
            " ".join([explain_ranks(ranking, tasks), explain_position(ranking, looks), *notes]),
            "",
            table,
            data.commands(lineup.runs[[*BY_SIZE, *SERIES]].drop_duplicates()),
            RankPlot(title, ranking, looks),
            table="standings",
        )  # fmt: skip


def _contains(larger: Lineup, lineup: Lineup) -> bool:
    return (
        larger.budget == lineup.budget
        and len(larger.means) > 1
        and {*larger.methods} > {*lineup.methods}
        and {*larger.runs["task"]} == {*lineup.runs["task"]}
    )


def _with_best_visible(lineup: Lineup) -> pd.DataFrame:
    """Return the means of every block and method, and of the best visible design."""
    if any(map(is_best_visible, lineup.methods)):
        return lineup.means
    tables = lineup.runs.drop_duplicates([*BY_SIZE, "seed"])
    return lineup.means.assign(
        **{BEST_VISIBLE.name: tables.groupby(BY_SIZE)["best_visible"].mean()}
    )


def _looks(lineup: Lineup, data: ReportData) -> dict[str, Style]:
    """Return the style of each method, its label without a variant."""
    looks = {BEST_VISIBLE.name: BEST_VISIBLE}
    for row in lineup.runs.drop_duplicates("method").to_dict("records"):
        style = data.style(row)
        variant = f", {row['method_variant']}" if row["method_variant"] else ""
        looks[row["method"]] = replace(style, label=style.label.removesuffix(variant))
    return looks


def _find_best_visible(ranking: Ranking) -> str:
    names = map(str, ranking.means.index)
    return next(name for name in names if name == BEST_VISIBLE.name or is_best_visible(name))


def explain_ranks(ranking: Ranking, tasks: list[str], blocks: str = "sizes") -> str:
    """Explain how ranks were averaged and tested."""
    text = (
        "Ranks by the mean final value over common seeds, averaged over "
        f"{ranking.blocks} {blocks} of {', '.join(tasks)}."
    )
    if not ranking.groups:
        return f"{text} There are too few {blocks} to test the differences."
    p = format_p(ranking.p)
    return (
        f"{text} Bars join methods whose mean ranks are not shown to differ at the 5\u00a0% level "
        f"(Friedman's test, p {p if p.startswith('<') else f'= {p}'}, then Nemenyi's)."
    )


def explain_position(ranking: Ranking, looks: Mapping[str, Style]) -> str:
    """List the methods that rank worse than the best visible design."""
    rank = ranking.means[_find_best_visible(ranking)]
    worse = [looks[str(name)].label for name in ranking.means[ranking.means > rank].index]
    return (
        f"The dotted line is the best visible design, at {rank:.2f}. Methods that rank worse: "
        f"{', '.join(worse) or 'none'}."
    )


@dataclass(frozen=True)
class RankPlot:
    """A critical-difference diagram after Demšar 2006: mean ranks on an axis, groups as bars."""

    title: str
    ranking: Ranking
    looks: Mapping[str, Style]

    def draw(self, data: pd.DataFrame) -> Drawing:  # noqa: ARG002 - the ranking has the numbers
        """Draw the methods, the better half on the left."""
        row, step = 0.3, 0.34  # inches of a row, and rows between the bars of groups
        ranking = self.ranking
        names = [str(name) for name in ranking.means.index]
        left = ceil(len(names) / 2)
        bars = step * len(ranking.groups)
        top = 2.7 if np.isfinite(ranking.critical) else 1.9
        bottom = left + bars + 1.1
        drawing = blank_drawing(5.6, row * (bottom + top))
        axes = drawing.add_axes((0.31, 0.02, 0.38, 0.96))
        axes.set_axis_off()
        axes.set_xlim(1, len(names))
        axes.set_ylim(bottom, -top)
        drawing.suptitle(wrap(self.title, 72), x=0.012, y=0.96, ha="left", va="top", fontsize=9.5,
                         parse_math=False)  # fmt: skip
        self._draw_axis(axes, len(names))
        best_visible = float(ranking.means[_find_best_visible(ranking)])
        self._shade_worse(axes, best_visible, len(names), bottom)
        for i, name in enumerate(names):
            place = i if i < left else len(names) - 1 - i
            self._draw_method(axes, float(ranking.means.iloc[i]), place + bars + 0.75,
                              self.looks[name], 1.0 if i < left else float(len(names)))  # fmt: skip
        for i, group in enumerate(ranking.groups):
            ends = [ranking.means[group[0]] - 0.04, ranking.means[group[-1]] + 0.04]
            axes.plot(ends, [0.35 + step * i] * 2, color=INK, linewidth=3.2, clip_on=False,
                      solid_capstyle="butt", zorder=4)  # fmt: skip
        return drawing

    def _draw_axis(self, axes: Axes, methods: int) -> None:
        axes.plot([1, methods], [0, 0], color=INK, linewidth=0.9, clip_on=False)
        for rank in range(1, methods + 1, ceil(methods / 10)):
            axes.plot([rank] * 2, [0, -0.16], color=INK, linewidth=0.9, clip_on=False)
            _annotate(axes, str(rank), (rank, -0.16), (0, 2), ha="center", va="bottom", fontsize=8)
        _annotate(axes, "mean rank,\n1 is best", (methods, 0), (14, 0), ha="left", va="center")
        if np.isfinite(self.ranking.critical):
            y, ends = -1.05, (1.0, 1 + self.ranking.critical)
            axes.plot(ends, [y, y], color=INK, linewidth=1.2, clip_on=False)
            for x in ends:
                axes.plot([x, x], [y - 0.1, y + 0.1], color=INK, linewidth=1.2, clip_on=False)
            _annotate(axes, f"critical difference {self.ranking.critical:.2f}", (1, y), (-5, 0),
                 ha="right", va="center")  # fmt: skip

    def _shade_worse(self, axes: Axes, rank: float, methods: int, bottom: float) -> None:
        """Shade the ranks that are worse than that of the best visible design."""
        axes.fill_between([rank, methods], -0.1, bottom, color=PALE, alpha=0.7, linewidth=0,
                          zorder=0)  # fmt: skip
        axes.plot([rank] * 2, [-0.1, bottom], color=BEST_VISIBLE.color, linewidth=1.2,
                  dashes=BEST_VISIBLE.dashes, clip_on=False, zorder=1)  # fmt: skip
        outward = -1 if rank > (1 + methods) / 2 else 1  # where there is more room
        _annotate(axes, "shaded: worse than the\nbest visible design", (rank, bottom),
             (4 * outward, 3), ha="right" if outward < 0 else "left", va="bottom",
             fontsize=7)  # fmt: skip

    def _draw_method(self, axes: Axes, rank: float, y: float, style: Style, side: float) -> None:
        """Draw a line from a mean rank to the method's name."""
        outward = -1 if side == 1.0 else 1
        axes.plot([rank, rank, side], [0, y, y], color=style.color, linewidth=1.1, clip_on=False,
                  zorder=2)  # fmt: skip
        axes.plot([rank], [0], linestyle="none", clip_on=False, zorder=5, **marker_look(style, 6))
        _annotate(axes, f"{wrap(style.label, 26)}  {rank:.2f}", (side, y), (5 * outward, 0),
             ha="right" if outward < 0 else "left", va="center", fontsize=8)  # fmt: skip


def _annotate(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **look: Any
) -> None:
    axes.annotate(text, at, offset, textcoords="offset points", annotation_clip=False,
                  parse_math=False, **{"fontsize": 7.5, "linespacing": 1.05, **look})  # fmt: skip


_INTERACTION = "interactions"
_COLORS = {  # parts in the order of a method, then other sources
    "latent": "#0072B2",
    "axes": "#56B4E9",
    "graph": "#009E73",
    "surrogate": "#E69F00",
    "search": "#D55E00",
    _INTERACTION: "#9467A1",
    SEED: "#8a94a0",
    REST: "#d5dae0",
}


def variance_by_part(data: ReportData) -> Iterator[Figure]:
    """Draw all factorials of one budget together."""
    for budget in sorted({str(one.place["budget"]) for one in data.factorials}):
        own = [one for one in data.factorials if one.place["budget"] == budget]
        shares, gains = share_table(own), combination_table(own)
        labels = {1.9 * i: name_runs({**one.place, "budget": ""}, "n", "d")
                  for i, one in enumerate(own)}  # fmt: skip
        shown = "" if budget == "full" else budget
        title = "Which part explains the gain" + (f", budget {shown}" if shown else "")
        text = (
            "Left: the share of the variance of the final value that each part of a method "
            "explains. Right: the mean gain of every combination over the best visible design "
            "(dotted line); the best combination is named. "
            f"{EXPLANATION} {count_seeds([len(o.seeds) for o in own], 'combination')} "
            "The table lists all levels."
        )
        yield Figure("factorial", file_stem("cross", shown), title, text, "",
                     pd.concat([shares, gains], ignore_index=True),
                     data.commands(pd.DataFrame([one.place for one in own])),
                     FactorialPlot(title, labels), table="cross")  # fmt: skip


@dataclass(frozen=True)
class FactorialPlot:
    """Bars of the shares of variance beside the gains of all combinations."""

    title: str
    labels: Mapping[float, str]  # by place

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw one row per factorial."""
        drawing, (left, right) = row_grid(2, self.title, self.labels, more=0.5)
        left.set_ylim(max(self.labels) + 1.4, -0.8)
        sources = data[data["source"].notna()]
        combinations = data[data["combination"].notna()]
        for (place, _), (_, own) in zip(
            self.labels.items(), data.groupby(FACTORIAL, sort=False), strict=True
        ):
            self._draw_shares(left, own[own["source"].notna()], place)
            self._draw_gains(right, own[own["combination"].notna()], place)
        left.set_xlim(0, 100)
        left.set_xlabel("share of the variance [%]", fontsize=8.5)
        right.set_xlim(*limits_around([*combinations["gain"], 0.0], room=0.06))
        right.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        right.axvline(0, color=INK, linewidth=1.0, dashes=(1.5, 1.5), zorder=2)
        right.set_xlabel(f"gain over the best visible design [{HEADLINE.unit.sign}]", fontsize=8.5)
        used = {_group(source) for source in sources["source"]}
        names = [name for name in _COLORS if name in used]
        add_legend(drawing, [Patch(color=_COLORS[name]) for name in names], names, len(names),
                   handlelength=1.1, columnspacing=1.2)  # fmt: skip
        freeze(drawing)
        return drawing

    def _draw_shares(self, axes: Axes, shares: pd.DataFrame, place: float) -> None:
        """Draw one bar, its segments in the order of the legend."""
        grouped = shares.groupby(shares["source"].map(_group))["share"].sum()
        start = 0.0
        for name in (name for name in _COLORS if name in grouped.index):
            share = float(grouped[name])
            axes.barh(place, 100 * share, left=100 * start, height=0.95, color=_COLORS[name],
                      edgecolor="white", linewidth=0.8, zorder=2)  # fmt: skip
            if share >= 0.075:
                color = INK if name in (REST, "surrogate", "axes") else "white"
                axes.text(100 * (start + share / 2), place, f"{100 * share:.0f}", ha="center",
                          va="center", fontsize=7.5, zorder=3, color=color)  # fmt: skip
            start += share

    def _draw_gains(self, axes: Axes, gains: pd.DataFrame, place: float) -> None:
        """Draw a dot for each combination, and name the best."""
        best = gains.sort_values("gain", kind="stable").tail(1)
        for color, size, some in ((FAINT, 4.5, gains), (INK, 6.0, best)):
            axes.plot(some["gain"], [place] * len(some), linestyle="none", marker="o",
                      markersize=size, markerfacecolor=color, markeredgecolor="white",
                      markeredgewidth=0.5, alpha=0.8, zorder=3)  # fmt: skip
        words = str(best["combination"].iloc[0]).split()
        levels = ", ".join(word.partition("=")[2] for word in words)
        axes.text(0.99, place + 0.7, levels, transform=axes.get_yaxis_transform(), ha="right",
                  va="center", fontsize=7, color=INK, parse_math=False, zorder=4,
                  bbox={"facecolor": "white", "linewidth": 0, "pad": 0.8})  # fmt: skip


def _group(source: str) -> str:
    """Return the legend entry of a source of variance."""
    return _INTERACTION if TIMES in source else source

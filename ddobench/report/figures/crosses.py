"""Which part of a method earns the gain: shares of variance beside the gain over doing nothing."""

from collections.abc import Iterator

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from ddobench.report.data.files import file_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import count_seeds
from ddobench.report.figures.drawing import FAINT, INK, LOOK, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.panels import freeze_layout, row_panels
from ddobench.report.tables.crosses import (
    CROSS,
    EXPLANATION,
    REST,
    SEED,
    TIMES,
    Cross,
    combination_table,
    describe_cross,
    name_cross,
    share_table,
)
from ddobench.report.tables.formats import name_runs
from ddobench.scores import HEADLINE

_INTERACTION = "interactions"
_COLORS = {  # of the parts in the order of a method, then of what is no part
    "latent": "#0072B2",
    "axes": "#56B4E9",
    "graph": "#009E73",
    "surrogate": "#E69F00",
    "search": "#D55E00",
    _INTERACTION: "#9467A1",
    SEED: "#8a94a0",
    REST: "#d5dae0",
}
_STEP = 1.9  # rows from one cross to the next: a bar, and below it a name
_WIDTH = 0.95  # of a bar, in rows
_NAMED = 0.075  # share from which a segment has its number in it
_TEXT = (
    "Left: which share of the variance of the final value each part of a method explains, where "
    "every combination of its parts was run. Right: the mean gain of every combination over doing "
    "nothing, which is the dotted line; left of it one had better kept the best visible design. "
    "The best combination is named. "
)


def variance_by_part(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw all crosses of one budget together."""
    crosses = stored.crosses
    for budget in sorted({str(cross.place["budget"]) for cross in crosses}):
        yield _figure(stored, [cross for cross in crosses if cross.place["budget"] == budget])


def _figure(stored: ReportData, crosses: list[Cross]) -> Figure:
    budget = str(crosses[0].place["budget"])
    shares, gains = share_table(crosses), combination_table(crosses)
    seeds = [len(cross.seeds) for cross in crosses]
    told = [_TEXT + EXPLANATION, count_seeds(min(seeds), max(seeds), "combination")]
    told += [f"{name_cross(cross)}: {describe_cross(cross)}" for cross in crosses]
    places = shares[CROSS].drop_duplicates()
    runs = stored.runs.merge(places, on=CROSS)
    return Figure(
        name=file_stem("cross", "" if budget == "full" else budget),
        title=_title(crosses),
        caption=" ".join(told),
        task="",
        data=pd.concat([shares, gains], ignore_index=True),
        commands=tuple(sorted(set(runs["command"]) - {""})),
        drawing=_draw(crosses, shares, gains),
        subject="methods",
        table="cross",
    )  # fmt: skip


def _draw(crosses: list[Cross], shares: pd.DataFrame, gains: pd.DataFrame) -> Drawing:
    places = [_STEP * i for i in range(len(crosses))]
    methods = {str(cross.place["method"]) for cross in crosses}
    with mpl.rc_context(LOOK):
        drawing, (left, right) = row_panels(
            2, _title(crosses), [_label(cross, len(methods) > 1) for cross in crosses], places
        )
        drawing.set_figheight(drawing.get_figheight() + 0.35)  # the name below the last, the legend
        left.set_ylim(places[-1] + 1.4, -0.8)
        for cross, place in zip(crosses, places, strict=True):
            own = [(table[CROSS] == [cross.place[name] for name in CROSS]).all(axis=1)
                   for table in (shares, gains)]  # fmt: skip
            _draw_shares(left, shares[own[0]], place)
            _draw_gains(right, gains[own[1]], place)
        left.set_xlim(0, 100)
        left.set_xlabel("share of the variance [%]", fontsize=8.5)
        right.set_xlim(*limits_around([*gains["gain"], 0.0], room=0.06))
        right.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        right.axvline(0, color=INK, linewidth=1.0, dashes=(1.5, 1.5), zorder=2)
        right.annotate("doing nothing", (0, 1), (0, 2), xycoords=("data", "axes fraction"),
                       textcoords="offset points", ha="center", va="bottom", fontsize=7,
                       color=INK)  # fmt: skip
        right.set_xlabel(f"gain over doing nothing [{HEADLINE.unit.sign}]", fontsize=8.5)
        shown = dict.fromkeys(map(_group, shares["source"]))
        drawing.legend([Patch(color=_COLORS[name]) for name in _COLORS if name in shown],
                       [name for name in _COLORS if name in shown], loc="outside lower left",
                       ncols=len(shown), frameon=False, fontsize=8, handlelength=1.1,
                       columnspacing=1.2, borderaxespad=0.2)  # fmt: skip
        freeze_layout(drawing)
    return drawing


def _title(crosses: list[Cross]) -> str:
    budget, methods = crosses[0].place["budget"], {str(cross.place["method"]) for cross in crosses}
    told = [f"the parts of {methods.pop()}"] if len(methods) == 1 else []
    told += [f"budget {budget}"] if budget not in ("", "full") else []
    return ": ".join(filter(None, ["Which part earns the gain", ", ".join(told)]))


def _label(cross: Cross, several: bool) -> str:
    """Name a row by task and size, and by the method where there are several."""
    row = pd.Series({**cross.place, "budget": ""})
    return name_runs(row, "n", "d") + (f": {cross.place['method']}" if several else "")


def _group(source: str) -> str:
    """Return under which entry of the legend a source of variance is drawn."""
    return _INTERACTION if TIMES in source else source


def _draw_shares(axes: Axes, shares: pd.DataFrame, place: float) -> None:
    """Draw one bar, its segments in the order of the legend."""
    grouped = shares.groupby(shares["source"].map(_group))["share"].sum()
    start = 0.0
    for name in (name for name in _COLORS if name in grouped.index):
        share = float(grouped[name])
        axes.barh(place, 100 * share, left=100 * start, height=_WIDTH, color=_COLORS[name],
                  edgecolor="white", linewidth=0.8, zorder=2)  # fmt: skip
        if share >= _NAMED:
            axes.text(100 * (start + share / 2), place, f"{100 * share:.0f}", ha="center",
                      va="center", fontsize=7.5, zorder=3,
                      color=INK if name in (REST, "surrogate", "axes") else "white")  # fmt: skip
        start += share


def _draw_gains(axes: Axes, gains: pd.DataFrame, place: float) -> None:
    """Draw a dot for each combination, and name the best."""
    best = gains.sort_values("gain", kind="stable").tail(1)
    for color, size, some in ((FAINT, 4.5, gains), (INK, 6.0, best)):
        axes.plot(some["gain"], [place] * len(some), linestyle="none", marker="o", markersize=size,
                  markerfacecolor=color, markeredgecolor="white", markeredgewidth=0.5, alpha=0.8,
                  zorder=3)  # fmt: skip
    words = str(best["combination"].iloc[0]).split()
    levels = ", ".join(word.partition("=")[2] for word in words)
    axes.text(0.99, place + 0.7, levels, transform=axes.get_yaxis_transform(), ha="right",
              va="center", fontsize=7, color=INK, parse_math=False, zorder=4,
              bbox={"facecolor": "white", "linewidth": 0, "pad": 0.8})  # fmt: skip

"""The headline: how much of the exact optimum a method reaches as problems grow, task by task.

Only methods that see nothing but the visible table are drawn, in their default form; it is the
figure to look at first, and small enough to be read on a telephone.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import ceil

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ddobench.report.data.commands import join_commands
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample, lost_seeds
from ddobench.report.figures.doing_nothing import BEST_VISIBLE, DOTTED_NOTE, means_of_nothing
from ddobench.report.figures.drawing import FAINT, INK, LOOK, PALE, blank_drawing, set_sizes
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.leading import SeriesKey, leading_series
from ddobench.report.figures.panels import add_legend, freeze_layout
from ddobench.report.figures.series import Place, describe_intervals, draw_curve
from ddobench.report.figures.shares import share_points
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.looks import NOTHING, REFERENCE, role_of
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.styles import Style

MOST_LINES = 9
_WIDTH, _PANEL = 4.4, 1.75  # inches
_MOST_PANELS = 6
_WIDEST_TITLE = 22  # characters above one of two panels
_LOWEST = -0.5  # share below which all is equally bad
_NUMBERS = ("mean", "low", "high")
_TEXT = (
    "Share of the exact optimum that a method's own choice of final designs is worth: 0 is the "
    "mean of the visible values, 100\u00a0% the optimum, an invalid design counts as the worst "
    "visible value. Means over seeds, only of methods that know nothing but the visible table."
)


def headline(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw one panel for each task with a known optimum, at the number of rows with most sizes."""
    points = _points(stored)
    families = _choose_families(points)
    if not families:
        return
    shown = pd.concat(families, ignore_index=True)
    leading = leading_series(_with_a_line(shown), "final_mean", CELL, MOST_LINES)
    keys = shown[SERIES].apply(tuple, axis=1)
    drawn = shown[keys.isin(leading)].groupby(FAMILY).filter(_competes)
    styles = {
        key: _style_of(stored, shown, key) for key in leading if key in set(keys[drawn.index])
    }
    yield Figure(
        name="headline",
        title="Share of the optimum against dimension",
        caption=" ".join(_caption(stored, drawn, keys.nunique() - len(leading))),
        task="",  # of no single task
        data=shown.drop(columns=[f"best_{part}" for part in _NUMBERS]),
        commands=join_commands(stored.runs.merge(drawn[[*CELL, *SERIES]])["command"]),
        drawing=_draw(drawn, styles, lost_seeds(stored)),
        subject="methods",
    )


def _points(stored: ReportData) -> pd.DataFrame:
    """Return the shares of all methods in their default form that were told nothing."""
    runs = stored.runs
    fair = runs[
        (runs["privileges"] == "") & (runs["method_variant"] == "") & (runs["task_variant"] == "")
    ]
    points = share_points(stored, fair)
    return points.merge(means_of_nothing(runs), on=CELL, how="left") if len(points) else points


def _choose_families(points: pd.DataFrame) -> list[pd.DataFrame]:
    """Return one family for each task: the one with most dimensions, then rows, then methods.

    Tasks with one dimension only are left out where others have several, and those where no method
    does anything.
    """
    chosen = []
    for _, task in points.groupby("task", sort=True):
        families = [family for _, family in task.groupby(FAMILY, sort=True) if _competes(family)]
        if not families:
            continue
        chosen.append(max(families, key=lambda own: (
            own["budget"].iloc[0] == "full", own["d"].nunique(), own["n"].iloc[0],
            own["method"].nunique(),
        )))  # fmt: skip
    several = [family for family in chosen if len(set(family["d"])) > 1]
    return (several or chosen)[:_MOST_PANELS]


def _with_a_line(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out series with less than half of the dimensions: they are marks without a line."""
    own, all_of_them = (
        points.groupby(keys)["d"].transform("nunique") for keys in ([*FAMILY, *SERIES], FAMILY)
    )
    return points[2 * own >= all_of_them]


def _competes(family: pd.DataFrame) -> bool:
    return any(role_of(method) not in (NOTHING, REFERENCE) for method in family["method"])


def _style_of(stored: ReportData, points: pd.DataFrame, key: SeriesKey) -> Style:
    task = points.loc[(points[SERIES] == list(key)).all(axis=1), "task"].iloc[0]
    style = stored.styles[str(task), *key]
    return (
        replace(style, label=f"{style.label} (doing nothing)") if does_nothing(key[:1]) else style
    )


def _caption(stored: ReportData, drawn: pd.DataFrame, left_out: int) -> list[str]:
    parts = [_TEXT, describe_intervals(drawn["method"].nunique())]
    if not does_nothing(set(drawn["method"])):
        parts.append(DOTTED_NOTE)
    if (drawn["final_mean"] < _LOWEST).any():
        parts.append(f"Shares below {_LOWEST:.0%} are drawn there.".replace("-", "\u2212"))
    if left_out:
        methods = "One method is" if left_out == 1 else f"{left_out} methods are"
        parts.append(
            f"{methods} left out: drawn are the best, the usual and doing nothing; the tables have "
            "all."
        )
    return [*parts, *describe_sample(stored, drawn, signs=False)]  # they stand beside it anyway


def _draw(
    points: pd.DataFrame, styles: Mapping[SeriesKey, Style], lacking: set[tuple[object, ...]]
) -> Drawing:
    families = [family for _, family in points.groupby(FAMILY, sort=True)]
    across = min(len(families), 2)
    shown = list(styles.values())
    if not does_nothing(set(points["method"])):
        shown.append(BEST_VISIBLE)
    with mpl.rc_context(LOOK):
        lines = ceil(len(shown) / 2)
        drawing = blank_drawing(_WIDTH, 0.3 + _PANEL * ceil(len(families) / across) + 0.17 * lines)
        drawing.set_layout_engine("constrained", w_pad=0.04, h_pad=0.04)
        panels = list(drawing.subplots(ceil(len(families) / across), across, squeeze=False,
                                       sharey=True).flat)  # fmt: skip
        for spare in panels[len(families) :]:
            spare.set_visible(False)
        for place, (axes, family) in enumerate(zip(panels, families, strict=False)):
            title = wrap_text(name_runs(family.iloc[0], "n"), _WIDEST_TITLE * 2 // across)
            axes.set_title(title, loc="left", fontsize=9, parse_math=False)
            axes.set_xlabel("dimension $d$", fontsize=8.5)
            if place % across == 0:
                axes.set_ylabel("share of the optimum", fontsize=8.5)
            _draw_panel(axes, family, styles, lacking)
        heights = points[[f"final_{part}" for part in _NUMBERS]].to_numpy(dtype=float)
        panels[0].set_ylim(min(max(float(np.nanmin(heights)), _LOWEST), 0.0) - 0.06, 1.08)
        panels[0].yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        panels[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol="\u00a0%"))
        add_legend(drawing, shown, 2)
        freeze_layout(drawing)
    return drawing


def _draw_panel(
    axes: Axes, family: pd.DataFrame, styles: Mapping[SeriesKey, Style],
    lacking: set[tuple[object, ...]],
) -> None:  # fmt: skip
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8, labelleft=True)
    axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
    axes.axhline(1, color=INK, linewidth=0.9, zorder=1)
    axes.annotate("optimum", (1, 1), (0, 3), xycoords=("axes fraction", "data"), fontsize=7,
                  textcoords="offset points", ha="right")  # fmt: skip
    sizes = sorted(int(d) for d in family["d"].unique())
    x = np.asarray(sizes, dtype=float)
    if not does_nothing(set(family["method"])):
        nothing = family.groupby("d")["nothing_share"].first().reindex(sizes)
        axes.plot(x, nothing, color=BEST_VISIBLE.color, linewidth=1.2, dashes=BEST_VISIBLE.dashes,
                  zorder=1)  # fmt: skip
    for index, (key, style) in enumerate(styles.items()):
        own = family[(family[SERIES] == list(key)).all(axis=1)]
        short = [(*row, *key) in lacking for row in own[CELL].itertuples(index=False)]
        curve = own.assign(short=short).set_index("d").reindex(sizes)
        mean, low, high = (
            curve[f"final_{part}"].to_numpy(dtype=float).clip(min=_LOWEST) for part in _NUMBERS
        )
        hollow = curve["short"].eq(True).to_numpy()
        draw_curve(axes, x, mean, (low, high), style, hollow, Place(index, len(styles)))
    set_sizes(axes, sizes)

"""How many rows a method needs: its share of the optimum against rows per squared dimension."""

from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator, PercentFormatter

from ddobench.report.data.curves import choose_series, series_of
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample, lost_seeds
from ddobench.report.figures.drawing import FAINT, INK, LOOK, set_values
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.leading import leading_series
from ddobench.report.figures.panels import freeze_layout, panel_grid
from ddobench.report.figures.series import Place, describe_intervals, draw_curve
from ddobench.report.figures.shares import share_points
from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.looks import DASHES, MARKERS, NOTHING, REFERENCE, role_of
from ddobench.report.tables.styles import Style

_PUBLISHED = "chain"  # the task of the published sweep
_MOST_PANELS = 9
_WIDEST_TITLE = 26  # characters above a panel
_SHADES = mpl.colormaps["viridis_r"]
_LIGHTEST, _DARKEST = 0.18, 1.0  # of the shades, so that the smallest d is seen on white
_COUNTED = ("final_mean", "final_low", "final_high")
_TEXT = (
    "Value as a share of the optimum (0 is the mean of the visible values, 100\u00a0% the optimum) "
    "of the designs that a method itself ranks highest at its last iteration, invalid ones counted "
    "as the worst visible value, against the number of visible rows n divided by the squared "
    "dimension: where the curves of different d lie on each other, the rows that a method needs "
    "grow as d\u00b2. One panel per method. Means over seeds; the thin line is the optimum, dotted "
    "is the best visible design of each d."
)


def optimum_share_by_rows(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the share against n / d^2 for every task, variant and budget with several n at one d."""
    drawn, climbing = False, set()
    for _, study in stored.curves.groupby(STUDY, sort=True):
        if study["iteration"].max() > 0:
            climbing.add(str(study["task"].iloc[0]))
            points, hidden = choose_series(_with_several_rows(share_points(stored, study)))
            if len(points):
                drawn = True
                yield _figure(stored, points, hidden)
    if not drawn and _PUBLISHED in climbing:
        yield Absence(
            title=f"Share of the optimum against rows: {_PUBLISHED}",
            task=_PUBLISHED,
            reason="no dimension has runs with several numbers of rows and a known optimum",
            remedy="python -m ddobench -m experiment=rows",
        )


def _with_several_rows(points: pd.DataFrame) -> pd.DataFrame:
    """Keep dimensions and series that have several numbers of rows somewhere."""
    rows = points.groupby([*SERIES, "d"])["n"].transform("nunique")
    for keys in (["d"], SERIES):
        rows = rows[
            rows.groupby([points.loc[rows.index, key] for key in keys]).transform("max") > 1
        ]
    return points.loc[rows.index]


def _choose(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out doing nothing, dotted in every panel, and of many methods those of few sizes."""
    active = points[[role_of(name) not in (NOTHING, REFERENCE) for name in points["method"]]]
    points = points if active.empty else active
    ranked = leading_series(points, "final_mean", CELL, len(points))
    sizes = points.groupby(SERIES).size().to_dict()
    keys = sorted(ranked, key=lambda key: -sizes[key])[:_MOST_PANELS]
    return points[points[SERIES].apply(tuple, axis=1).isin(keys)]


def _figure(stored: ReportData, points: pd.DataFrame, hidden: int) -> Figure:
    shown = _choose(points)
    rest = len(series_of(points)) - len(series_of(shown))
    left_out = f" {hidden} variants of these methods are left out." if hidden else ""
    left_out += f" {rest} of the methods are not drawn; the tables have them." if rest else ""
    first, points = shown.iloc[0], shown
    points = points.assign(rows_per_square=points["n"] / points["d"] ** 2)
    sample = describe_sample(stored, points, "method, d and n")
    return Figure(
        name=row_stem("rows", first),
        title=f"Share of the optimum against rows: {name_runs(first)}",
        caption=" ".join([_TEXT + left_out, describe_intervals(points["d"].nunique()), *sample]),
        task=str(first["task"]),
        data=points.drop(columns=["best_mean", "best_low", "best_high"]),
        commands=stored.commands(first[STUDY].to_dict(), points),
        drawing=_draw(points, stored, name_runs(first)),
        subject="methods",
    )  # fmt: skip


def _draw(points: pd.DataFrame, stored: ReportData, name: str) -> Drawing:
    keys = series_of(points)
    task = str(points["task"].iloc[0])
    looks = shade_sizes(sorted(int(d) for d in points["d"].unique()))
    lacking = lost_seeds(stored)
    with mpl.rc_context(LOOK):
        drawing, panels = panel_grid(
            len(keys), name, [*looks.values()], "$n / d^2$", "share of the optimum [%]",
        )  # fmt: skip
        for axes, key in zip(panels, keys, strict=True):
            title = wrap_text(stored.styles[task, *key].label, _WIDEST_TITLE)
            axes.set_title(title, loc="left", fontsize=9, parse_math=False)
            axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
            axes.axhline(1, color=INK, linewidth=0.8, zorder=1)
            own = points[(points[SERIES] == list(key)).all(axis=1)].sort_values("n")
            for index, (d, look) in enumerate(looks.items()):
                curve = own[own["d"] == d]
                short = [(*row, *key) in lacking for row in curve[CELL].itertuples(index=False)]
                mean, low, high = (curve[part].to_numpy(dtype=float) for part in _COUNTED)
                ratios = curve["rows_per_square"].to_numpy(dtype=float)
                axes.plot(ratios, curve["best_visible_mean"], color=look.color, linewidth=0.9,
                          dashes=(1, 1.6), zorder=1)  # fmt: skip
                draw_curve(axes, ratios, mean, (low, high), look, np.array(short, dtype=bool),
                           Place(index, len(looks)))  # fmt: skip
        _set_ratios(panels[0], points["rows_per_square"].to_numpy(dtype=float))
        heights = points[[*_COUNTED, "best_visible_mean"]].to_numpy(dtype=float)
        set_values(panels[0], np.append(heights.ravel(), 1.0), 0.0)
        panels[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=""))
        freeze_layout(drawing)
    return drawing


def shade_sizes(sizes: list[int]) -> dict[int, Style]:
    """Give every dimension a look, the larger the darker."""
    steps = np.linspace(_LIGHTEST, _DARKEST, len(sizes)) if len(sizes) > 1 else [_DARKEST]
    return {
        d: Style(f"d = {d}", to_hex(_SHADES(step)), MARKERS[i % len(MARKERS)],
                 DASHES[i % len(DASHES)], ())
        for i, (d, step) in enumerate(zip(sizes, steps, strict=True))
    }  # fmt: skip


def _set_ratios(axes: Axes, ratios: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    """Set the horizontal axis to all ratios, logarithmic."""
    low, high = float(ratios.min()), float(ratios.max())
    room = max(high / low, 1.5) ** 0.06
    axes.set_xscale("log")
    axes.set_xlim(low / room, high * room)
    narrow = high < 6 * low  # too narrow for two of 1, 2, 5, 10: matplotlib would take many others
    axes.xaxis.set_major_locator(
        MaxNLocator(3) if narrow else LogLocator(10, subs=_marks(low, high))
    )
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axes.xaxis.set_minor_locator(NullLocator())


def _marks(low: float, high: float) -> tuple[float, ...]:
    """Return the multiples of powers of ten that can be marked without running together."""
    decades = np.log10(high / low)
    return (1.0, 2.0, 5.0) if decades < 1.6 else (1.0, 3.0) if decades < 2.2 else (1.0,)

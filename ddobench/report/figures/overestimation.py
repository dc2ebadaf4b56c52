"""Over-optimism: what a method predicts of its designs along the ascent, and what they are."""

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from ddobench.report.data.curves import (
    average_curves,
    choose_series,
    landmark_means,
    measured_families,
    series_of,
)
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample
from ddobench.report.figures.doing_nothing import BEST_VISIBLE
from ddobench.report.figures.drawing import FAINT, INK, LOOK, PALE, blank_drawing, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.iterations import describe_iterations, set_iterations
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.panels import WIDTH, freeze_layout
from ddobench.report.figures.series import describe_wide_intervals, drop_wide_intervals
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.formats import MINUS, name_runs
from ddobench.report.tables.styles import Style
from ddobench.scores import PREDICTED, VALUE_MODEL

_BAND_POINTS = 26  # along a band, which has less to show than its line
_MOST_ACROSS, _MOST_ROWS = 5, 6
_ROW, _WIDE_ROW = 1.28, 1.7  # inches of rows with many panels and with few
_TALLEST = 50  # sd that a linear axis can show beside the truth
_ROOT = 10  # sd about which a bent axis turns from linear to logarithmic
_TEXT = (
    "Thin and dashed: the value that a method predicts for the designs it ranks highest. Thick: "
    "their true value, an invalid design counted as the worst visible one. Where the two agree the "
    "method knows what it has; the shaded gap is over-optimism if the dashed line is above. Means "
    "over seeds with 95\u00a0% intervals. Across each panel: the optimum, and dotted the best "
    "visible design. All panels share their axes."
)
_BENT = (
    f"Predictions run so far away that the vertical axis is bent: about linear below "
    f"{_ROOT}\u00a0sd, logarithmic far above."
)


def prediction_and_truth(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw both against iteration, one panel per method and d, where predictions are stored."""
    for family in measured_families(stored):
        drawn, hidden = choose_series(family)
        predicting = drawn.groupby([*CELL, *SERIES])[PREDICTED.name].transform("count") > 0
        curves = drawn[predicting]
        if len(curves):
            curves = curves[curves["d"].isin(_choose_sizes(curves))]
            yield _figure(stored, family, curves, hidden)


def _choose_sizes(curves: pd.DataFrame) -> list[int]:
    """Return as many dimensions as there is room for rows, the largest among them."""
    sizes = sorted(curves["d"].unique())
    lines = ceil(len(series_of(curves)) / _MOST_ACROSS)
    room = max(_MOST_ROWS // lines, 1)
    if len(sizes) <= room:
        return [int(d) for d in sizes]
    places = np.linspace(len(sizes) - 1, 0, room).round().astype(int)
    return [int(sizes[place]) for place in sorted(places)]


def _figure(stored: ReportData, family: pd.DataFrame, curves: pd.DataFrame, hidden: int) -> Figure:
    shared = [*CELL, *SERIES, "iteration"]
    points = average_curves(curves, VALUE_MODEL.name).merge(
        average_curves(curves, PREDICTED.name)[[*shared, "mean", "low", "high"]],
        on=shared, suffixes=("", "_predicted"),
    )  # fmt: skip
    first = family.iloc[0]
    name = name_runs(first, "n")
    landmarks = landmark_means(stored, family)
    heights = np.append(points[["mean", "mean_predicted"]].to_numpy(dtype=float), landmarks)
    shown = drop_wide_intervals(drop_wide_intervals(points, heights), heights, "_predicted")
    parts = [_TEXT, *describe_wide_intervals(points, shown)]
    if _reach(points) > _TALLEST:
        parts.append(_BENT)
    parts += [*describe_iterations(points), _extreme(stored, points)]
    if len(skipped := set(family["d"]) - set(points["d"])):
        parts.append(f"Left out: d = {', '.join(map(str, sorted(skipped)))}.")
    if hidden:
        parts.append(f"{hidden} variants of these methods are left out.")
    return Figure(
        name=row_stem("optimism", first, "n"),
        title=f"Prediction and truth: {name}",
        caption=" ".join([*parts, *describe_sample(stored, points)]),
        task=str(first["task"]),
        data=points,
        commands=stored.commands(first[FAMILY].to_dict(), points),
        drawing=_draw(shown, stored, landmarks, name),
        subject="methods",
    )  # fmt: skip


def _reach(points: pd.DataFrame) -> float:
    return float(points[["mean", "mean_predicted"]].abs().max().max())


def _extreme(stored: ReportData, points: pd.DataFrame) -> str:
    """Name the largest final gap."""
    last = points.sort_values("iteration").groupby(["d", *SERIES]).tail(1)
    ends = last.assign(gap=last["mean_predicted"] - last["mean"]).dropna(subset="gap")
    if ends.empty:
        return ""
    worst = ends.sort_values("gap").iloc[-1]
    label = stored.styles[worst["task"], worst["method"], worst["method_variant"]].label
    predicted, true = (
        f"{worst[name]:.1f}".replace("-", MINUS) for name in ("mean_predicted", "mean")
    )
    return (
        f"The largest gap at the end: {label} at d\u00a0=\u00a0{worst['d']} predicts "
        f"{predicted} where the truth is {true}."
    )


def _draw(points: pd.DataFrame, stored: ReportData, landmarks: pd.DataFrame, name: str) -> Drawing:
    task = str(points["task"].iloc[0])
    styles = {key: stored.styles[task, *key] for key in series_of(points)}
    sizes = sorted(points["d"].unique())
    lines = ceil(len(styles) / _MOST_ACROSS)
    across = ceil(len(styles) / lines)
    with mpl.rc_context(LOOK):
        titles = [wrap_text(style.label, int(62 / across)) for style in styles.values()]
        tallest = 1 + max(title.count("\n") for title in titles)
        heads = tallest * (lines * len(sizes) if lines > 1 else 1)
        title = wrap_text(name, 90)
        row = _ROW if across > 3 else _WIDE_ROW
        height = 0.85 + 0.16 * heads + row * lines * len(sizes) + 0.17 * title.count("\n")
        drawing = blank_drawing(WIDTH, height)
        drawing.set_layout_engine("constrained", w_pad=0.03, h_pad=0.05)
        drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
        grid = drawing.subplots(lines * len(sizes), across, squeeze=False, sharex=True, sharey=True)
        _set_axes(grid[0, 0], points, landmarks)
        for place_of_d, d in enumerate(sizes):
            panels = list(grid[place_of_d * lines : (place_of_d + 1) * lines].flat)
            for spare in panels[len(styles) :]:
                spare.set_visible(False)
            _draw_row(panels, points[points["d"] == d], styles, landmarks.loc[d])
            for place, axes in enumerate(panels[: len(styles)]):
                if place_of_d == 0 or lines > 1:
                    axes.set_title(titles[place], loc="left", fontsize=8, parse_math=False)
                if place % across == 0:
                    axes.set_ylabel(f"$d = {d}$\nvalue [sd]", fontsize=8.5)
                if place_of_d == len(sizes) - 1 and place + across >= len(styles):
                    axes.set_xlabel("iteration", fontsize=8.5)
                    axes.tick_params(labelbottom=True)
        _explain_lines(drawing)
        freeze_layout(drawing)
    return drawing


def _set_axes(axes: Axes, points: pd.DataFrame, landmarks: pd.DataFrame) -> None:
    """Set the axes that all panels share, so that none cuts anything."""
    set_iterations(axes, points, ticks=3)
    columns = [
        f"{part}{suffix}" for part in ("mean", "low", "high") for suffix in ("", "_predicted")
    ]
    shown = np.append(points[columns].to_numpy(dtype=float), landmarks.to_numpy(dtype=float))
    if not _reach(points) > _TALLEST:
        axes.set_ylim(*limits_around([0.0, *shown], room=0.08))
        axes.yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        return
    axes.set_yscale("asinh", linear_width=_ROOT)
    axes.set_ylim(1.4 * np.nanmin([-2.0, *shown]), 1.4 * np.nanmax([2.0, *shown]))
    powers = [10.0**power for power in range(1, 16)]
    marks = [-mark for mark in powers] + [0.0, *powers]
    axes.yaxis.set_major_locator(FixedLocator(marks))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}".replace("-", MINUS)))
    axes.yaxis.set_minor_locator(NullLocator())


def _draw_row(
    panels: Sequence[Axes], points: pd.DataFrame, styles: Mapping[tuple[str, str], Style],
    landmarks: "pd.Series[float]",
) -> None:  # fmt: skip
    for axes, (key, style) in zip(panels, styles.items(), strict=False):
        axes.grid(axis="y", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.axhline(0, color=FAINT, linewidth=0.6, zorder=1)
        axes.axhline(landmarks["optimum"], color=INK, linewidth=0.7, zorder=1)
        axes.axhline(landmarks["best_visible"], color=BEST_VISIBLE.color, linewidth=0.9,
                     dashes=BEST_VISIBLE.dashes, zorder=1)  # fmt: skip
        axes.tick_params(labelsize=8)
        curve = points[(points[SERIES] == list(key)).all(axis=1)].sort_values("iteration")
        if curve.empty:
            axes.text(0.5, 0.5, "no run", transform=axes.transAxes, ha="center", fontsize=8)
            continue
        _draw_panel(axes, curve, style)


def _draw_panel(axes: Axes, curve: pd.DataFrame, style: Style) -> None:
    x, true, predicted = (curve[name].to_numpy(dtype=float)
                         for name in ("iteration", "mean", "mean_predicted"))  # fmt: skip
    last = len(x) - 1
    places = [np.linspace(0, last, _BAND_POINTS), np.geomspace(1, last + 1, _BAND_POINTS) - 1]
    coarse = np.unique(np.concatenate(places).round().astype(int))  # dense at the start, if bent
    axes.fill_between(x[coarse], true[coarse], predicted[coarse], color=style.color, alpha=0.13,
                      linewidth=0, zorder=1)  # fmt: skip
    for suffix in ("", "_predicted"):
        low, high = (
            curve[f"{bound}{suffix}"].to_numpy(dtype=float)[coarse] for bound in ("low", "high")
        )
        axes.fill_between(x[coarse], low, high, color=style.color, alpha=0.25, linewidth=0,
                          zorder=2)  # fmt: skip
    axes.plot(x, true, color=style.color, linewidth=1.9, zorder=4)
    axes.plot(x, predicted, color=style.color, linewidth=1.1, dashes=(3.5, 1.5), zorder=3)
    if len(x) == 1:  # a method that proposes once
        axes.plot(x, true, color=style.color, marker="o", markersize=4)
        axes.plot(
            x, predicted, color=style.color, marker="o", markersize=4, markerfacecolor="white"
        )


def _explain_lines(drawing: Drawing) -> None:
    samples: dict[str, Any] = {
        "predicted by the method": Line2D([], [], color=INK, linewidth=1.1, dashes=(3.5, 1.5)),
        "true": Line2D([], [], color=INK, linewidth=1.9),
    }
    drawing.legend(samples.values(), samples, loc="outside lower left", ncols=2, frameon=False,
                   fontsize=8, handlelength=3.2, borderaxespad=0.2)  # fmt: skip

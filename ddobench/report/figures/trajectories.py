"""What happens along the ascent: value and invalid designs against iteration, a panel per d."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator, PercentFormatter

from ddobench import scores
from ddobench.report.data.curves import (
    average_curves,
    choose_series,
    landmark_means,
    measured_families,
)
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample, lost_seeds
from ddobench.report.figures.drawing import LOOK, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.iterations import describe_iterations, set_iterations
from ddobench.report.figures.leading import SeriesKey, describe_muted, lead_styles
from ddobench.report.figures.panels import draw_landmarks, freeze_layout, panel_grid
from ddobench.report.figures.series import (
    MOST_BANDS,
    Place,
    describe_wide_intervals,
    draw_long_curve,
    drop_wide_intervals,
    mark_end,
)
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.styles import Style

_MEANS = "Lines are means over all seeds of a method,"
_BANDS = "bands 95\u00a0% intervals of the mean"
_BARS = "the bars beside their ends 95\u00a0% intervals of the last mean"
_ONE_SHOT = "A method that proposes once is a level line."
_PUNISHED = "An invalid design counts as the worst visible value."
_ALL_VALID = "No design was ever invalid."
_STOPPED = (
    "A seed stops for good once fewer valid designs than that remain; a line ends, at a bar across "
    "it, with the last iteration that all its seeds reach."
)


@dataclass(frozen=True)
class Reading:
    """One score along the ascent and how to read it."""

    score: str
    stem: str
    title: str
    axis: str
    text: str
    landmarks: bool = True
    fraction: bool = False


VALUE = Reading(
    scores.VALUE_MODEL.name, "value", "Value against iteration", "value [sd of visible values]",
    "True value of the designs that the method itself ranks highest (128 unless the budget says "
    "otherwise), in standard deviations of the visible values above their mean.",
)  # fmt: skip
SURVIVORS = Reading(
    scores.SURVIVORS.name, "survivors", "Value of the best valid designs against iteration",
    "value [sd of visible values]",
    "The published reading, an oracle's choice: the valid designs of largest true value (128 "
    "unless the budget says otherwise), invalid ones left out.",
)  # fmt: skip
INVALID = Reading(
    scores.INVALID.name, "invalid", "Invalid designs against iteration", "invalid designs [%]",
    "Share of all proposed designs that are outside the domain of the function.",
    landmarks=False, fraction=True,
)  # fmt: skip


def value_by_iteration(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the headline: the value of the designs that a method ranks highest."""
    for family in measured_families(stored):
        yield _figure(stored, family, VALUE)


def survivors_by_iteration(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the published reading wherever it differs from the headline."""
    for family in measured_families(stored):
        if not np.allclose(family[VALUE.score], family[SURVIVORS.score], equal_nan=False):
            yield _figure(stored, family, SURVIVORS)


def invalid_by_iteration(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the share of invalid designs wherever there are any."""
    for family in measured_families(stored):
        if (family[INVALID.score] > 0).any():
            yield _figure(stored, family, INVALID)


def _figure(stored: ReportData, family: pd.DataFrame, reading: Reading) -> Figure:
    drawn, hidden = choose_series(family)
    points = average_curves(drawn, reading.score)
    if reading.fraction:
        points[["low", "high"]] = points[["low", "high"]].clip(0, 1)
    last = points.dropna(subset="mean").groupby(["d", *SERIES]).tail(1)
    order = points.groupby([*CELL, *SERIES], as_index=False)["iteration"].max().merge(
        last[["d", *SERIES, "mean"]], on=["d", *SERIES], how="left"
    )  # fmt: skip
    styles = lead_styles(stored, order, "mean")  # the highest, of invalid designs too: who has them
    landmarks = landmark_means(stored, family)
    first = family.iloc[0]
    name = name_runs(first, "n")
    shown = points
    if not reading.fraction:
        heights = np.concatenate([points["mean"], landmarks.to_numpy().ravel(), [0.0]])
        shown = drop_wide_intervals(points, heights)
    told = [*describe_wide_intervals(points, shown), *describe_muted(styles)]
    return Figure(
        name=row_stem(reading.stem, first, "n"),
        title=f"{reading.title}: {name}",
        caption=_caption(stored, family, points, reading, hidden, len(styles), told),
        task=str(first["task"]),
        data=points.merge(landmarks.reset_index(), on="d") if reading.landmarks else points,
        commands=stored.commands(first[FAMILY].to_dict(), points),
        drawing=_draw(shown, styles, lost_seeds(stored), reading, landmarks, name),
        subject="methods",
    )  # fmt: skip


def _draw(
    points: pd.DataFrame, styles: Mapping[SeriesKey, Style], lacking: set[tuple[object, ...]],
    reading: Reading, landmarks: pd.DataFrame, name: str,
) -> Drawing:  # fmt: skip
    sizes = sorted(points["d"].unique())
    last = max(int(points["iteration"].max()), 1)  # some methods propose once
    with mpl.rc_context(LOOK):
        drawing, panels = panel_grid(
            len(sizes), name, list(dict.fromkeys(styles.values())), "iteration", reading.axis
        )
        set_iterations(panels[0], points, Place.room_at_the_end(len(styles)))
        if reading.fraction:
            panels[0].set_ylim(-0.04, 1.04)
            panels[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=""))
        else:
            panels[0].set_ylim(*_limits(points, landmarks, len(styles)))
            panels[0].yaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
        for axes, d in zip(panels, sizes, strict=True):
            _draw_panel(axes, points[points["d"] == d], styles, reading, last, lacking)
            axes.set_title(f"$d = {d}$", loc="left", fontsize=9)
        if reading.landmarks:
            for axes, d in zip(panels, sizes, strict=True):
                draw_landmarks(axes, *landmarks.loc[d, ["best_visible", "optimum"]])
        freeze_layout(drawing)
    return drawing


def _limits(points: pd.DataFrame, landmarks: pd.DataFrame, count: int) -> tuple[float, float]:
    """Return limits that hold all that is drawn of so many series: nothing is cut by the frame."""
    bounded = points.dropna(subset="mean")
    if count > MOST_BANDS:  # only the last interval of each
        bounded = bounded.groupby(["d", *SERIES]).tail(1)
    bounds = bounded[["low", "high"]].to_numpy(dtype=float).ravel()
    shown = np.concatenate([points["mean"], bounds, landmarks.to_numpy().ravel(), [0.0]])
    return limits_around(shown, room=0.04)


def _draw_panel(
    axes: Axes, points: pd.DataFrame, styles: Mapping[SeriesKey, Style], reading: Reading,
    last: int, lacking: set[tuple[object, ...]],
) -> None:  # fmt: skip
    for index, (key, style) in enumerate(styles.items()):
        curve = points[(points[SERIES] == list(key)).all(axis=1)].sort_values("iteration")
        shown = curve[curve["mean"].notna()]
        if shown.empty:
            continue
        level = curve["iteration"].max() == 0
        repeated = shown.loc[shown.index.repeat(2)] if level else shown
        x = np.array([0.0, last]) if level else shown["iteration"].to_numpy(dtype=float)
        mean, low, high = (repeated[part].to_numpy(dtype=float) for part in ("mean", "low", "high"))
        row = curve.iloc[0]
        hollow = (*row[FAMILY], row["d"], *key) in lacking
        place = Place(index, len(styles))
        draw_long_curve(axes, x, mean, (low, high), style, place, hollow=hollow)
        if len(shown) < len(curve) and reading is SURVIVORS:
            mark_end(axes, x[-1], mean[-1], style)


def _caption(
    stored: ReportData, family: pd.DataFrame, points: pd.DataFrame, reading: Reading, hidden: int,
    count: int, told: list[str],
) -> str:  # fmt: skip
    intervals = _BANDS if count <= MOST_BANDS else _BARS
    cut = ", cut at 0 and 100\u00a0%" if reading.fraction else ""
    parts = [reading.text, f"{_MEANS} {intervals}{cut}."]
    if reading is SURVIVORS and points["mean"].isna().any():
        parts += [_STOPPED, *_without_curve(points, stored)]
    if points.groupby(["d", *SERIES])["iteration"].max().eq(0).any():
        parts.append(_ONE_SHOT)
    if reading is VALUE:
        parts.append(_PUNISHED if (family[INVALID.score] > 0).any() else _ALL_VALID)
    parts += describe_iterations(points)
    if reading is VALUE and np.allclose(family[VALUE.score], family[SURVIVORS.score]):
        parts.append("The published reading, ranked by truth among the valid, is the same here.")
    if hidden:
        parts.append(f"{hidden} variants of these methods are left out; the controls compare them.")
    parts += [*told, *describe_sample(stored, points)]
    return " ".join(parts)


def _without_curve(points: pd.DataFrame, stored: ReportData) -> list[str]:
    """Name the series that have no point at all because a seed stopped before the first step."""
    empty = points.groupby(["d", *SERIES])["mean"].count()
    task = str(points["task"].iloc[0])
    missing = [
        f"{stored.styles[task, str(method), str(variant)].label} at d\u00a0=\u00a0{d}"
        for d, method, variant in empty[empty == 0].index
    ]
    return [f"Without a line, as some seed stops at once: {', '.join(missing)}."] if missing else []

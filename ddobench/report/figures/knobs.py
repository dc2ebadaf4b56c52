"""Methods against the settings of a knob of their task: a curve over numbers, rows over words."""

from collections.abc import Iterator, Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from ddobench.report.data.commands import join_commands
from ddobench.report.data.curves import choose_series
from ddobench.report.data.details import climbing_runs
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample, lost_seeds
from ddobench.report.figures.doing_nothing import BEST_VISIBLE, DOTTED_NOTE, means_of_nothing
from ddobench.report.figures.drawing import (
    FAINT,
    INK,
    LOOK,
    Values,
    blank_axes,
    blank_drawing,
    fit_margins,
    limits_around,
    set_title,
    set_values,
)
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import label_ends
from ddobench.report.figures.leading import SeriesKey, describe_muted, lead_styles
from ddobench.report.figures.panels import draw_row, freeze_layout, row_panels
from ddobench.report.figures.series import Place, draw_curve
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.knobs import (
    MEASURES,
    SWEEP,
    UNITS,
    name_sweep,
    rank_series,
    settings_of,
    without_knob,
)
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.styles import Style
from ddobench.scores import HEADLINE, SHARE

_PUBLISHED = {"noise": "noise", "bump": "forms"}  # the experiment that turns each knob
_TASK = "chain"  # which they are about
_UNIT_OF = {"noise": "sd of the values"}
_MOST_PANELS = 5
_BELOW = {"share": "of the optimum", "value": "value"}  # a panel
_SCALES = {"share": SHARE.scale, "value": HEADLINE.unit.scale}
_TEXT = (
    "Nothing about the task differs but {knob}. Means over seeds of the value of the designs that "
    "a method itself ranks highest at its last iteration, invalid ones counted as the worst "
    "visible value, with 95\u00a0% intervals; 0 is the mean of the visible values."
)
_SHARE = "The thin line is the optimum."
_NO_OPTIMUM = "Where no exact optimum is known, values are in sd of the visible ones."
_ON_AVERAGE = "Methods come by their mean over the panels, each relative to the best there."
_EVEN = "Settings are evenly spaced."


def shares_by_setting(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw every sweep over a knob of a task."""
    table = stored.knobs
    for _, sweep in table.groupby(SWEEP, sort=True):
        numeric = bool(sweep["numeric"].iloc[0])
        yield _curve_figure(stored, sweep) if numeric else _row_figure(stored, sweep)
    drawn = set(table.loc[table["task"] == _TASK, "knob"])
    climbs = _TASK in set(climbing_runs(stored)["task"])
    for knob, experiment in _PUBLISHED.items():
        if climbs and knob not in drawn:
            yield Absence(
                title=f"Share of the optimum against {knob}: {_TASK}",
                task=_TASK,
                reason=f"all stored runs of one size have the same {knob}",
                remedy=f"python -m ddobench -m experiment={experiment}",
            )


def _figure(
    stored: ReportData, sweep: pd.DataFrame, told: list[str], drawing: Drawing, measure: str
) -> Figure:
    first = sweep.iloc[0]
    knob = str(first["knob"])
    name = name_sweep(first)
    sample = describe_sample(stored, sweep, f"method and {knob}")
    runs = stored.runs.merge(sweep[[*CELL, *SERIES]], on=[*CELL, *SERIES])
    title = MEASURES[measure]
    return Figure(
        name=row_stem(knob, without_knob(first), "d", "n"),
        title=f"{title[0].upper()}{title[1:]} against {knob}: {name}",
        caption=" ".join([_TEXT.format(knob=knob), *told, *sample]),
        task=str(first["task"]),
        data=sweep,
        commands=join_commands(runs["command"]),
        drawing=drawing,
        subject="methods",
    )  # fmt: skip


def _curve_figure(stored: ReportData, sweep: pd.DataFrame) -> Figure:
    shown, hidden = choose_series(sweep)
    shown = shown.merge(means_of_nothing(stored.runs), on=CELL, how="left")
    measure = "share" if set(shown["measure"]) == {"share"} else "value"
    styles = lead_styles(stored, shown, f"{measure}_mean", within="setting")
    nothing = "" if does_nothing(set(shown["method"])) else DOTTED_NOTE
    told = [_EVEN, _SHARE if measure == "share" else "", nothing, *describe_muted(styles)]
    if hidden:
        told.append(f"{hidden} variants of these methods are left out; the tables have them.")
    drawing = _draw_curves(shown, styles, lost_seeds(stored), measure)
    return _figure(stored, shown, [*filter(None, told)], drawing, measure)


def _draw_curves(
    sweep: pd.DataFrame, styles: Mapping[SeriesKey, Style], lacking: set[tuple[object, ...]],
    measure: str,
) -> Drawing:  # fmt: skip
    settings, scale = settings_of(sweep), _SCALES[measure]
    x = np.arange(len(settings), dtype=float)
    with mpl.rc_context(LOOK):
        drawing = blank_drawing()
        axes = blank_axes(drawing)
        axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
        ends: list[tuple[Style, float]] = []
        for index, (key, style) in enumerate(styles.items()):
            own = sweep[(sweep[SERIES] == list(key)).all(axis=1)]
            short = [(*row, *key) in lacking for row in own[CELL].itertuples(index=False)]
            curve = own.assign(short=short).set_index("setting").reindex(settings)
            mean, low, high = _numbers(curve, measure)
            draw_curve(axes, x, mean, (low, high), style, curve["short"].eq(True).to_numpy(),
                       Place(index, len(styles)))  # fmt: skip
            if style.marker:
                ends.append((style, float(mean[np.isfinite(mean)][-1])))
        nothing = scale * sweep.groupby("setting")[f"nothing_{measure}"].first().reindex(settings)
        if not does_nothing(set(sweep["method"])):
            axes.plot(x, nothing, color=BEST_VISIBLE.color, linewidth=1.2,
                      dashes=BEST_VISIBLE.dashes, zorder=1)  # fmt: skip
            ends.append((BEST_VISIBLE, float(nothing.dropna().iloc[-1])))
        heights = np.concatenate([*_numbers(sweep, measure), nothing])
        if measure == "share":
            axes.axhline(scale, color=INK, linewidth=0.8, zorder=1)
            heights = np.append(heights, scale)
        knob = str(sweep["knob"].iloc[0])
        unit = f" [{_UNIT_OF[knob]}]" if knob in _UNIT_OF else ""
        axes.set_xlabel(f"{knob}{unit}", parse_math=False)
        axes.set_xticks(x, settings, parse_math=False)
        axes.set_xlim(-0.2, x[-1] + 0.2)
        axes.set_ylabel(f"{MEASURES[measure]} [{UNITS[measure]}]")
        set_title(axes, name_sweep(sweep.iloc[0]))
        set_values(axes, heights, floor=0.0)
        label_ends(axes, ends)
        fit_margins(drawing, axes)
    return drawing


def _numbers(sweep: pd.DataFrame, measure: str) -> tuple[Values, Values, Values]:
    """Return means and both ends of their intervals, as they are shown."""
    scale = _SCALES[measure]
    mean, low, high = (
        scale * sweep[f"{measure}_{part}"].to_numpy(dtype=float) for part in ("mean", "low", "high")
    )
    return mean, low, high


def _row_figure(stored: ReportData, sweep: pd.DataFrame) -> Figure:
    settings = settings_of(sweep)
    shown = sweep[sweep["setting"].isin(settings[:_MOST_PANELS])]
    measures = set(shown["measure"])
    shown = shown.merge(means_of_nothing(stored.runs), on=CELL, how="left")
    told = [_SHARE if "share" in measures else "", _NO_OPTIMUM if "value" in measures else ""]
    told += [DOTTED_NOTE, _ON_AVERAGE]
    if len(settings) > _MOST_PANELS:
        told.append(f"The tables also have {', '.join(settings[_MOST_PANELS:])}.")
    measure = "share" if measures == {"share"} else "value"
    return _figure(stored, shown, [*filter(None, told)], _draw_rows(stored, shown), measure)


def _draw_rows(stored: ReportData, sweep: pd.DataFrame) -> Drawing:
    """Draw one panel per setting with a row for each method, the best on top."""
    settings, keys = settings_of(sweep), rank_series(sweep)
    task, knob = str(sweep["task"].iloc[0]), str(sweep["knob"].iloc[0])
    labels = [stored.styles[task, *key].label for key in keys]
    lacking = lost_seeds(stored)
    with mpl.rc_context(LOOK):
        name, places = name_sweep(sweep.iloc[0]), list(map(float, range(len(keys))))
        drawing, panels = row_panels(len(settings), name, labels, places)
        for axes, setting in zip(panels, settings, strict=True):
            here = sweep[sweep["setting"] == setting]
            measure = str(here["measure"].iloc[0])
            alike = sweep[sweep["measure"] == measure]  # panels of one measure share their limits
            nothing = _SCALES[measure] * float(here[f"nothing_{measure}"].iloc[0])
            ends = [0.0, *_draw_landmarks(axes, measure, nothing)]
            axes.set_xlim(*limits_around([*ends, *np.concatenate(_numbers(alike, measure))], 0.08))
            axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
            axes.set_title(f"{knob} = {setting}", loc="left", fontsize=9, parse_math=False)
            axes.set_xlabel(f"{_BELOW[measure]} [{UNITS[measure]}]", fontsize=8.5)
            for row, mean, *ends in zip(
                here[[*CELL, *SERIES]].itertuples(index=False, name=None),
                *_numbers(here, measure), strict=True,
            ):  # fmt: skip
                key = (str(row[-2]), str(row[-1]))
                draw_row(axes, keys.index(key), mean, (ends[0], ends[1]),
                         stored.styles[task, *key], hollow=row in lacking)  # fmt: skip
        freeze_layout(drawing)
    return drawing


def _draw_landmarks(axes: Axes, measure: str, nothing: float) -> list[float]:
    """Draw mean and best of the visible values and the optimum; return where the last two are."""
    axes.axvline(0, color=FAINT, linewidth=0.7, zorder=1)
    axes.axvline(nothing, color=BEST_VISIBLE.color, linewidth=1.1, dashes=BEST_VISIBLE.dashes,
                 zorder=1)  # fmt: skip
    if measure != "share":
        return [nothing]
    optimum = float(_SCALES[measure])
    axes.axvline(optimum, color=INK, linewidth=0.8, zorder=1)
    return [nothing, optimum]

"""Performance profiles: which share of a method's runs reaches how much of the optimum.

After Agarwal et al., Deep reinforcement learning at the edge of the statistical precipice, 2021. A
profile shows all runs instead of one mean, and the runs of several sizes together.
"""

from collections.abc import Iterator, Mapping

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import PercentFormatter

from ddobench.report.data.commands import join_commands
from ddobench.report.data.files import file_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample
from ddobench.report.figures.doing_nothing import BEST_VISIBLE
from ddobench.report.figures.drawing import LOOK
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.leading import SeriesKey, describe_muted, lead_styles
from ddobench.report.figures.panels import freeze_layout, panel_grid
from ddobench.report.figures.series import MOST_BANDS, Place, draw_long_curve
from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.lineups import Lineup, find_lineups
from ddobench.report.tables.normalised import strata_of
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.styles import Style
from ddobench.stats.resampling import share_at_least, share_band
from ddobench.stats.samples import Sample

_POINTS = 201
_FEWEST = 10  # runs per method before their distribution is worth a curve
_LOWEST = -1.0  # of the shares drawn
_TEXT = (
    "Performance profiles: the share of runs whose final value, ranked by the method, reaches at "
    "least this share of the optimum, where 0 is the mean of the visible values and 100\u00a0% the "
    "optimum. Higher is better."
)
_BANDS = "Bands are pointwise 95\u00a0% bootstrap intervals that resample seeds within each size."
_NO_BANDS = "Pointwise 95\u00a0% intervals would cover each other here and are not drawn."


def performance_profiles(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw one figure per task, with a panel for each variant and budget where methods meet."""
    for task, runs in stored.runs.groupby("task", sort=True):
        lineups = [lineup for _, study in runs.groupby(STUDY, sort=True)
                   if (lineup := _main_lineup(study)) is not None]  # fmt: skip
        if not lineups:
            continue
        data = pd.concat([_profile(lineup, stored, _thresholds(lineups)) for lineup in lineups])
        cells = pd.concat([lineup.runs for lineup in lineups]).drop_duplicates([*CELL, "method"])
        drawn = data[data["method"] != ""]
        means = drawn.groupby(["task", "task_variant", *SERIES])["share"].mean().reset_index()
        styles = lead_styles(stored, means, "share", within="task_variant")
        commands = pd.concat([lineup.runs["command"] for lineup in lineups])
        yield Figure(
            name=file_stem("profiles", str(task)),
            title=f"Performance profiles: {task}",
            caption=" ".join([_TEXT, *_describe(lineups, styles), *describe_sample(stored, cells)]),
            task=str(task),
            data=data,
            commands=join_commands(commands),
            drawing=_draw(data, styles, str(task)),
            subject="methods",
        )


def _main_lineup(study: pd.DataFrame) -> Lineup | None:
    """Return the line-up of a study with the most runs, as far as their optimum is known."""
    known = study[~(study["optimum"] <= 0) & (study["optimum"].notna() | (study["status"] != "ok"))]
    found = [lineup for lineup in find_lineups(known)
             if len(lineup.runs) >= _FEWEST * len(lineup.methods)]  # fmt: skip
    return max(found, key=lambda lineup: len(lineup.runs), default=None)


def _thresholds(lineups: list[Lineup]) -> Sample:
    """Return the shares to draw: from the lowest that any run has, within reason, to all."""
    lowest = min(float(cell.min()) for lineup in lineups for cell in strata_of(lineup.runs))
    return np.linspace(min(0.0, max(lowest, _LOWEST)), 1.0, _POINTS)


def _profile(lineup: Lineup, stored: ReportData, thresholds: Sample) -> pd.DataFrame:
    """Return the profile of every method of a line-up, and of the best visible design."""
    first = lineup.runs.iloc[0]
    parts = []
    for method in ["", *lineup.methods]:
        own = lineup.runs[lineup.runs["method"] == (method or lineup.methods[0])]
        variant = str(own["method_variant"].iloc[0]) if method else ""
        style = stored.styles[first["task"], method, variant] if method else BEST_VISIBLE
        strata = strata_of(own) if method else strata_of(own, "best_visible")
        low, high = share_band(strata, thresholds)
        named = {name: first[name] for name in STUDY} | {"method": method, "label": style.label,
                 "method_variant": variant, "cells": len(strata), "runs": sum(map(len, strata)),
                 "threshold": thresholds, "low": low, "high": high,
                 "share": share_at_least(strata, thresholds)}  # fmt: skip
        parts.append(pd.DataFrame(named))
    return pd.concat(parts)


def _describe(lineups: list[Lineup], styles: Mapping[SeriesKey, Style]) -> list[str]:
    said = []
    for lineup in lineups:
        cells = lineup.runs[CELL].drop_duplicates()
        name = name_runs(cells.iloc[0])
        said.append(f"{name}: d = {', '.join(map(str, sorted(set(cells['d']))))}")
    bands = _BANDS if len(styles) <= MOST_BANDS else _NO_BANDS
    return [bands, f"Sizes together ({'; '.join(said)}).", *describe_muted(styles)]


def _draw(data: pd.DataFrame, methods: Mapping[SeriesKey, Style], task: str) -> Drawing:
    styles = dict(methods) | (
        {} if does_nothing({method for method, _ in methods}) else {("", ""): BEST_VISIBLE}
    )
    studies = [study for _, study in data.groupby(STUDY, sort=True)]
    with mpl.rc_context(LOOK):
        drawing, panels = panel_grid(
            len(studies),
            task,
            list(dict.fromkeys(styles.values())),
            "share of the optimum reached",
            "runs [%]",
        )
        for axes, study in zip(panels, studies, strict=True):
            if len(studies) > 1:
                axes.set_title(name_runs(study.iloc[0]), loc="left", fontsize=8.5, parse_math=False)
            for index, (key, style) in enumerate(styles.items()):
                own = study[(study["method"] == key[0]) & (study["method_variant"] == key[1])]
                if own.empty:
                    continue
                x, share, low, high = (
                    own[name].to_numpy(dtype=float)
                    for name in ("threshold", "share", "low", "high")
                )
                band = (100 * low, 100 * high) if len(methods) <= MOST_BANDS else None
                draw_long_curve(axes, x, 100 * share, band, style, Place(index, len(methods)))
            axes.set_ylim(-3, 103)
            axes.set_xlim(x[0] - 0.012 * (1 - x[0]), 1 + 0.012 * (1 - x[0]))
            axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol="\u00a0%"))
        freeze_layout(drawing)
    return drawing

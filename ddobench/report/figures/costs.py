"""What a method costs: seconds to fit and to propose, for each task and dimension."""

from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ddobench.report.data.curves import choose_series, climbing_families, series_of
from ddobench.report.data.details import column, stage_settings
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import count_seeds
from ddobench.report.figures.drawing import LOOK, PALE, blank_drawing
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.panels import WIDTH, freeze_layout
from ddobench.report.figures.series import marker_look
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.formats import format_ranges, name_runs

_STAGES = {
    "fit": "wall-clock seconds to fit, per seed",
    "propose": "wall-clock seconds to propose, per seed",
}
_ROW, _APART = 0.17, 0.35  # inches of a row, rows between methods
_WIDEST_LABEL = 44  # characters
_SHORTEST = 1e-6  # seconds that can be drawn, as a logarithmic axis has no 0
_LEAST_DECADES = 0.8  # of an axis
_TEXT = (
    "Wall-clock seconds per seed, medians with the range over seeds, on a logarithmic axis. Seeds "
    "are fitted in batches, of which each seed counts an equal share, so the range is that between "
    "batches. Machines differ, and so does what else they did: compare orders of magnitude."
)
_LATENT = (
    "A latent that an earlier run of the same task and seed has trained is taken from memory and "
    "not counted again, so that of methods which share one only the first pays for it."
)


def seconds_by_method(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the seconds of every method that climbs or competes with one that does."""
    for family in climbing_families(stored):
        drawn, hidden = choose_series(family)
        runs = _runs_of(stored, drawn)
        points = cost_table(runs)
        if points.empty:
            continue
        first = family.iloc[0]
        name = name_runs(first, "n")
        yield Figure(
            name=row_stem("costs", first, "n"),
            title=f"Costs: {name}",
            caption=_caption(stored, runs, points, hidden),
            task=str(first["task"]),
            data=points,
            commands=stored.commands(first[FAMILY].to_dict(), points),
            drawing=_draw(points, stored, name),
            subject="methods",
            table="costs",
        )  # fmt: skip


def _runs_of(stored: ReportData, curves: pd.DataFrame) -> pd.DataFrame:
    """Return the finished runs of these curves that were timed."""
    keys = [*CELL, *SERIES]
    runs = stored.runs.merge(curves[keys].drop_duplicates(), on=keys)
    timed = runs[[f"seconds_{stage}" for stage in _STAGES]].notna().all(axis=1)
    return runs[timed & (runs["status"] == "ok")]


def cost_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per d and series: seeds, and median and range of the seconds of each stage."""
    rows: list[dict[Any, Any]] = []
    for key, seeds in runs.groupby([*CELL, *SERIES], sort=True):
        row: dict[Any, Any] = dict(zip([*CELL, *SERIES], key, strict=True))
        row["seeds"] = len(seeds)
        for stage in _STAGES:
            seconds = seeds[f"seconds_{stage}"]
            row |= {f"{stage}_median": seconds.median(), f"{stage}_least": seconds.min(),
                    f"{stage}_most": seconds.max()}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def _caption(
    stored: ReportData, runs: pd.DataFrame, points: pd.DataFrame, hidden: int
) -> str:  # fmt: skip
    parts = [_TEXT]
    if any(_trains_latent(stored.configs.get(digest, {})) for digest in set(runs["digest"])):
        parts.append(_LATENT)
    parts += _describe_machines(stored, runs)
    if hidden:
        parts.append(f"{hidden} variants of these methods are left out.")
    parts.append(count_seeds(int(points["seeds"].min()), int(points["seeds"].max())))
    return " ".join(parts)


def _trains_latent(config: Mapping[str, Any]) -> bool:
    """Tell whether a method has a latent with a training of its own, which is worth keeping."""
    return "training" in stage_settings(config, "latent")


def _describe_machines(stored: ReportData, runs: pd.DataFrame) -> list[str]:
    """Say on what the runs were timed, as far as they tell."""
    known = [stored.provenance.get(path, {}) for path in column(runs, "path")]
    machines = sorted({str(one.get("gpu") or one.get("cpu") or "") for one in known} - {""})
    text = [f"Timed on {' and '.join(machines)}."] if machines else []
    for key, noun in (("threads", "threads of PyTorch"), ("batch", "seeds in a batch")):
        counts = {one[key] for one in known if isinstance(one.get(key), int)}
        if counts:
            text.append(f"{noun[0].upper()}{noun[1:]}: {format_ranges(counts)}.")
    return text


def _draw(points: pd.DataFrame, stored: ReportData, name: str) -> Drawing:
    task = str(points["task"].iloc[0])
    heights: dict[tuple[str, str, int], float] = {}
    heads: list[tuple[float, str]] = []
    top = 0.0
    for key in series_of(points):
        label = wrap_text(stored.styles[task, *key].label, _WIDEST_LABEL)
        heads.append((top, label))
        top += 1 + label.count("\n")
        for d in sorted(points.loc[(points[SERIES] == list(key)).all(axis=1), "d"]):
            heights[*key, int(d)] = top
            top += 1
        top += _APART
    with mpl.rc_context(LOOK):
        title = wrap_text(name, 90)
        drawing = blank_drawing(WIDTH, 0.75 + _ROW * top + 0.17 * title.count("\n"))
        drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
        drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
        panels = drawing.subplots(1, len(_STAGES), sharey=True, squeeze=False)[0]
        for axes, (stage, unit) in zip(panels, _STAGES.items(), strict=True):
            axes.set_xlabel(unit, fontsize=8.5)
            _draw_panel(axes, points, stored, stage, heights)
        for place, label in heads:
            panels[0].text(0.0, place - 0.4, label, transform=panels[0].get_yaxis_transform(),
                           va="top", fontsize=8, parse_math=False, linespacing=1.1,
                           bbox={"facecolor": "white", "linewidth": 0, "pad": 0.5})  # fmt: skip
        sizes = [f"$d$ = {d}" for _, _, d in heights]
        panels[0].set_yticks(list(heights.values()), sizes, fontsize=7.5)
        panels[0].set_ylim(top - _APART, -0.6)
        freeze_layout(drawing)
    return drawing


def _draw_panel(
    axes: Axes, points: pd.DataFrame, stored: ReportData, stage: str,
    heights: dict[tuple[str, str, int], float],
) -> None:  # fmt: skip
    _set_seconds(axes, points[f"{stage}_least"].min(), points[f"{stage}_most"].max())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(_format_seconds))
    axes.grid(axis="x", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=8)
    for row in points.to_dict("records"):
        key = (str(row["method"]), str(row["method_variant"]))
        style, y = stored.styles[str(row["task"]), *key], heights[*key, int(row["d"])]
        median, least, most = (max(row[f"{stage}_{part}"], _SHORTEST)
                               for part in ("median", "least", "most"))  # fmt: skip
        axes.hlines(y, least, most, color=style.color, linewidth=1.5, zorder=2)
        axes.plot([median], [y], linestyle="none", zorder=3, **marker_look(style, 5.5))


def _format_seconds(seconds: float, _: int) -> str:
    """Spell short times as powers of ten, which are narrower."""
    return f"{seconds:g}" if seconds > 0.005 else f"$10^{{{round(np.log10(seconds))}}}$"


def _set_seconds(axes: Axes, least: float, most: float) -> None:
    """Let a logarithmic axis reach from the least to the most seconds, with some room.

    The limits are set before anything is drawn: matplotlib would first look for its own, and warns
    where all times are the same.
    """
    axes.set_xscale("log")
    low, high = np.log10([max(least, _SHORTEST), max(most, _SHORTEST)])
    wide = high - low > 2.3  # powers of ten are marks enough
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0), numticks=12))
    short = max(_LEAST_DECADES - (high - low), 0) / 2  # or equal times would look far apart
    room = 0.05 * (high - low) + 0.05
    axes.set_xlim(10 ** (low - short - room), 10 ** (high + short + room))

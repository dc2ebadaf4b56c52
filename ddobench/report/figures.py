"""The figures of a report: one function each, listed in FIGURES.

A figure function takes the evidence and yields, for every family of runs it applies to, a Figure
with the numbers it draws, or an Absence that says why there is nothing to draw and what would help.
"""

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import MaxNLocator

from ddobench.report.columns import FAMILY, SERIES
from ddobench.report.evidence import Evidence
from ddobench.report.files import file_stem
from ddobench.report.labels import label_ends, wrap_text
from ddobench.report.styles import Style, explain_privileges
from ddobench.report.tables import MINUS, family_title

FORMATS = ("svg", "png", "pdf")
INK = "#1f2933"
FAINT = "#7b8794"
_MARGIN = 0.06  # inches
_WIDEST_TITLE = 44  # characters

_LOOK: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # shipped with matplotlib: the same everywhere
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.unicode_minus": True,
    "mathtext.fontset": "dejavusans",
    "pdf.fonttype": 42,  # embed whole TrueType outlines
    "savefig.facecolor": "white",
    "svg.fonttype": "path",
    "svg.hashsalt": "ddobench",
    "text.color": INK,
    "xtick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.color": FAINT,
    "ytick.labelcolor": INK,
}
_UNDATED = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
_UNITS = {"raw": "raw units", "sd": "sd of the visible values"}


@dataclass(frozen=True)
class Figure:
    """A drawing, what it says, and the exact numbers in it."""

    name: str  # the stem of its files
    title: str
    caption: str
    task: str
    data: pd.DataFrame
    commands: tuple[str, ...]  # the commands whose runs are drawn
    drawing: Drawing

    def render(self, ending: str) -> bytes:
        """Return the bytes of an SVG, PNG or PDF file, the same for the same numbers."""
        buffer = io.BytesIO()
        with mpl.rc_context(_LOOK):
            self.drawing.savefig(buffer, format=ending, dpi=300, metadata=_UNDATED[ending])
        return buffer.getvalue()


@dataclass(frozen=True)
class Absence:
    """A figure that cannot be drawn yet."""

    title: str
    task: str
    reason: str
    remedy: str


FigureFunction = Callable[[Evidence], Iterator[Figure | Absence]]


def regret_by_dimension(evidence: Evidence) -> Iterator[Figure | Absence]:
    """Draw mean regret against dimension, one figure per task, variant, n and budget."""
    for family, points in evidence.scores.groupby(FAMILY, sort=True):
        if not points["regret_mean"].notna().any():
            continue
        first = points.iloc[0]
        title = f"Regret against dimension: {family_title(first)}"
        dimensions = points.loc[points["regret_mean"].notna(), "d"].nunique()
        if dimensions < 2:
            yield Absence(
                title=title,
                task=str(first["task"]),
                reason=f"only d = {points['d'].iloc[0]} has a regret, and a curve needs two",
                remedy=f"python -m ddobench -m task={first['task']} n={first['n']} d=10,20,40 "
                "seed=0-49",
            )
            continue
        yield Figure(
            name=file_stem(
                "regret", *(str(first[key]) for key in ("task", "task_variant")),
                f"n{first['n']}", "" if first["budget"] == "full" else str(first["budget"]),
            ),
            title=title,
            caption=_regret_caption(points, evidence),
            task=str(first["task"]),
            data=points,
            commands=_commands(evidence.runs, family),
            drawing=_draw_regret(points, evidence),
        )  # fmt: skip


FIGURES: tuple[FigureFunction, ...] = (regret_by_dimension,)


def draw_all(evidence: Evidence) -> list[Figure | Absence]:
    """Return every figure the evidence allows, each under a name of its own."""
    found: list[Figure | Absence] = []
    names: dict[str, int] = {}
    for function in FIGURES:
        for item in function(evidence):
            if isinstance(item, Figure):
                names[item.name] = names.get(item.name, 0) + 1
                again = names[item.name]
                item = replace(item, name=f"{item.name}-{again}") if again > 1 else item
            found.append(item)
    return found


def _commands(runs: pd.DataFrame, family: tuple[Any, ...]) -> tuple[str, ...]:
    """Return the commands that made the runs of a family."""
    members = (runs[FAMILY] == list(family)).all(axis=1)
    return tuple(sorted(set(runs.loc[members, "command"]) - {""}))


def _draw_regret(points: pd.DataFrame, evidence: Evidence) -> Drawing:
    with mpl.rc_context(_LOOK):
        drawing, axes = _blank_drawing()
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
        dimensions = sorted(points["d"].unique())
        ends: list[tuple[Style, float, float]] = []
        for key, series in points.groupby(SERIES, sort=True):
            style = evidence.styles[str(key[0]), str(key[1])]
            curve = series.set_index("d").reindex(dimensions)
            if curve["regret_mean"].notna().any():
                _draw_curve(axes, curve, style, covered=len(ends))
                last = curve["regret_mean"].dropna()
                ends.append((style, float(last.index[-1]), float(last.iloc[-1])))
        unit = _UNITS.get(str(points["regret_unit"].max()), "")
        axes.set_xlabel("dimension $d$")
        axes.set_ylabel(rf"regret, optimum {MINUS} $f(\hat{{x}})$ [{unit}]")
        title = wrap_text(family_title(points.iloc[0]), _WIDEST_TITLE)
        axes.set_title(title, loc="left", pad=10, parse_math=False)
        _set_limits(axes, points, dimensions)
        label_ends(axes, ends)
        _fit_margins(drawing, axes)
    return drawing


def _blank_drawing() -> tuple[Drawing, Axes]:
    drawing = Drawing(figsize=(4.9, 3.2), dpi=300)
    FigureCanvasAgg(drawing)
    axes = drawing.add_subplot()
    axes.grid(axis="y", color="#e4e7eb", linewidth=0.6)
    axes.set_axisbelow(True)
    return drawing, axes


def _fit_margins(drawing: Drawing, axes: Axes) -> None:
    """Let what hangs out of the axes, labels included, just fit onto the page."""
    width, height = drawing.get_size_inches()
    for _ in range(2):  # the second time with the ticks that the first left room for
        inner = axes.get_window_extent().transformed(drawing.dpi_scale_trans.inverted())
        outer = drawing.get_tightbbox()
        drawing.subplots_adjust(
            left=(inner.x0 - outer.x0 + _MARGIN) / width,
            right=1 - (outer.x1 - inner.x1 + _MARGIN) / width,
            bottom=(inner.y0 - outer.y0 + _MARGIN) / height,
            top=1 - (outer.y1 - inner.y1 + _MARGIN) / height,
        )


def _draw_curve(axes: Axes, curve: pd.DataFrame, style: Style, covered: int) -> None:
    """Draw one series; it breaks where a dimension is missing and is hollow where seeds are.

    The more series it covers, the smaller its markers, so that equal curves are seen as several.
    """
    d = curve.index.to_numpy(dtype=float)
    mean = curve["regret_mean"].to_numpy(dtype=float)
    low, high = (curve[name].to_numpy(dtype=float) for name in ("regret_low", "regret_high"))
    axes.fill_between(d, low, high, color=style.color, alpha=0.22, linewidth=0, zorder=2)
    axes.vlines(d, low, high, color=style.color, linewidth=1.1, zorder=3)
    axes.plot(d, mean, color=style.color, linewidth=1.6, dashes=style.dashes or (None, None),
              zorder=3)  # fmt: skip
    short = curve[["declined", "failed", "missing", "unscored"]].sum(axis=1).to_numpy() > 0
    for x, y, hollow in zip(d, mean, short, strict=True):
        if np.isfinite(y):
            axes.plot(
                x,
                y,
                marker=style.marker,
                markersize=max(6.4 - 0.5 * covered, 4.4),
                markerfacecolor="white" if hollow else style.color,
                markeredgecolor=style.color if hollow else "white",
                markeredgewidth=1.2 if hollow else 0.6,
                clip_on=False,
                zorder=4,
            )


def _set_limits(axes: Axes, points: pd.DataFrame, dimensions: list[int]) -> None:
    """Leave room below zero, so that a curve that stays there is seen on its line."""
    top = float(points[["regret_mean", "regret_high"]].max().max())
    bottom = float(points[["regret_mean", "regret_low"]].min().min())
    height = max(top - min(bottom, 0.0), 1e-3)
    axes.set_ylim(min(bottom, 0.0) - 0.06 * height, top + 0.06 * height)
    width = dimensions[-1] - dimensions[0]
    axes.set_xlim(dimensions[0] - 0.04 * width, dimensions[-1] + 0.02 * width)
    gaps = [b - a for a, b in pairwise(dimensions)]
    if min(gaps) >= 0.06 * width:
        axes.set_xticks(dimensions)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _regret_caption(points: pd.DataFrame, evidence: Evidence) -> str:
    scored = points[points["seeds"] > 0]
    fewest, most = int(scored["seeds"].min()), int(scored["seeds"].max())
    seeds = f"{most} seeds" if fewest == most else f"{fewest} to {most} seeds"
    parts = [
        f"Mean regret of the proposed design over {seeds} at each point; bands and bars are "
        "95\u00a0% bootstrap intervals of the mean (BCa, 9999 resamples), of zero width where all "
        "seeds agree. Lower is better, and 0 is the optimum."
    ]
    lost = points[["declined", "failed", "missing", "unscored"]].sum()
    if lost.sum():
        said = ", ".join(f"{count} {name}" for name, count in lost.items() if count)
        parts.append(f"Hollow markers lack seeds ({said} in all).")
    used = {(str(m), str(v)): evidence.styles[str(m), str(v)]
            for m, v in points[SERIES].itertuples(index=False)}  # fmt: skip
    parts += [f"{note}." for note in explain_privileges(used)]
    return " ".join(parts)

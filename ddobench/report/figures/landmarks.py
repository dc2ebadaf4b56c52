"""The landmarks of a task: the best value in the table and the largest there is."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from ddobench.report.data.files import file_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.drawing import (
    INK,
    LOOK,
    blank_axes,
    blank_drawing,
    fit_margins,
    set_sizes,
    set_title,
    set_values,
)
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import label_ends
from ddobench.report.figures.series import Place, describe_intervals, draw_curve
from ddobench.report.tables.styles import Style
from ddobench.stats.samples import mean_interval

_TABLE = ["task", "task_variant", "n"]  # what fixes the visible table, but for its d and its seed
_STYLES = {
    "optimum": Style("optimum", INK, "D", (), ()),
    "best_visible": Style("best visible", "#b8642b", "o", (5, 1.6), ()),
}


def best_visible_and_optimum(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw both against dimension, one figure per task, variant and n with two dimensions."""
    runs = stored.runs.dropna(subset=["best_visible", "optimum"])
    for _, instances in runs.groupby(_TABLE, sort=True):
        points = _points(instances)
        if points["d"].nunique() < 2:
            continue
        first = instances.iloc[0]
        yield Figure(
            name=file_stem("landmarks", *(str(first[key]) for key in _TABLE[:2]), f"n{first['n']}"),
            title=f"Best visible value and optimum: {_title(first)}",
            caption=_caption(points),
            task=str(first["task"]),
            data=points,
            commands=stored.commands(first[_TABLE].to_dict()),
            drawing=_draw(points, _title(first)),
            subject="task",
        )


def _points(instances: pd.DataFrame) -> pd.DataFrame:
    """Average the seeds of each dimension; the methods of a seed share its table."""
    rows: list[dict[str, Any]] = []
    for d, tables in instances.drop_duplicates(["d", "seed"]).groupby("d", sort=True):
        row: dict[str, Any] = {"d": d, "seeds": len(tables)}
        for name in _STYLES:
            interval = mean_interval(tables[name])
            row |= {f"{name}_mean": tables[name].mean(), f"{name}_low": interval.low,
                    f"{name}_high": interval.high}  # fmt: skip
        rows.append(row)
    return pd.DataFrame(rows)


def _title(first: "pd.Series[Any]") -> str:
    return ", ".join(filter(None, [first["task"], first["task_variant"], f"n = {first['n']}"]))


def _draw(points: pd.DataFrame, title: str) -> Drawing:
    with mpl.rc_context(LOOK):
        drawing = blank_drawing()
        axes = blank_axes(drawing)
        d = points["d"].to_numpy(dtype=float)
        ends: list[tuple[Style, float]] = []
        for index, (name, style) in enumerate(_STYLES.items()):
            mean, low, high = (
                points[f"{name}_{part}"].to_numpy(dtype=float) for part in ("mean", "low", "high")
            )
            full = np.zeros(len(d), dtype=bool)
            draw_curve(axes, d, mean, (low, high), style, full, Place(index, len(_STYLES)))
            ends.append((style, float(mean[-1])))
        axes.set_xlabel("dimension $d$")
        axes.set_ylabel("value [sd of the visible values]")
        set_title(axes, title)
        set_sizes(axes, points["d"].tolist())
        set_values(axes, points.drop(columns=["d", "seeds"]).to_numpy(dtype=float), floor=0.0)
        label_ends(axes, ends)
        fit_margins(drawing, axes)
    return drawing


def _caption(points: pd.DataFrame) -> str:
    fewest, most = points["seeds"].min(), points["seeds"].max()
    seeds = f"{most} instances" if fewest == most else f"{fewest} to {most} instances"
    return (
        "What there is to gain: the largest value in the visible table and the optimum, in "
        "standard deviations of the visible values above their mean. Means over "
        f"{seeds} at each point. {describe_intervals(len(_STYLES))}"
    )

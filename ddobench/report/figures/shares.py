"""How much of what there is to gain a method gains: its value as a share of the optimum."""

from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import PercentFormatter

from ddobench.report.data.curves import choose_series, measured_families
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import describe_sample, lost_seeds
from ddobench.report.figures.doing_nothing import DOTTED_NOTE
from ddobench.report.figures.drawing import FAINT, INK, LOOK, set_sizes, set_values
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.leading import SeriesKey, describe_muted, lead_styles
from ddobench.report.figures.panels import freeze_layout, panel_grid
from ddobench.report.figures.series import Place, describe_intervals, draw_curve
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.nothing import does_nothing
from ddobench.report.tables.styles import Style
from ddobench.scores import BEST_ORACLE, FINAL_MODEL
from ddobench.stats.samples import mean_interval

_PANELS = {
    "final": "final, ranked by the method",
    "best": "best iteration, ranked by the oracle",
}
_TEXT = (
    "Value as a share of the optimum: 0 is the mean of the visible values, 100\u00a0% the optimum. "
    "Left: the designs that the method ranks highest at its last iteration, invalid ones counted "
    "as the worst visible value. Right: an oracle chooses both the iteration and the designs, "
    "which no method could. The thin line on top is the optimum. Means over seeds."
)


def optimum_share_by_dimension(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the share against dimension for every family with two dimensions and known optima."""
    for family in measured_families(stored):
        drawn, hidden = choose_series(family)
        points = share_points(stored, drawn)
        if points["d"].nunique() < 2:
            continue
        first = family.iloc[0]
        name = name_runs(first, "n")
        styles = lead_styles(stored, points, "final_mean")
        told = [_TEXT, describe_intervals(len(styles)), *describe_muted(styles)]
        if not does_nothing(set(points["method"])):
            told.append(DOTTED_NOTE)
        if hidden:
            told.append(f"{hidden} variants of these methods are left out.")
        yield Figure(
            name=row_stem("share", first, "n"),
            title=f"Share of the optimum against dimension: {name}",
            caption=" ".join([*told, *describe_sample(stored, points)]),
            task=str(first["task"]),
            data=points,
            commands=stored.commands(first[FAMILY].to_dict(), points),
            drawing=_draw(points, styles, lost_seeds(stored), name),
            subject="methods",
        )  # fmt: skip


def share_points(stored: ReportData, curves: pd.DataFrame) -> pd.DataFrame:
    """Average the shares of the seeds in each series and cell; the best visible's as well."""
    runs = stored.runs.merge(curves[[*CELL, *SERIES]].drop_duplicates(), on=[*CELL, *SERIES])
    runs = runs[(runs["status"] == "ok") & (runs["optimum"] > 0)]
    tables = runs.drop_duplicates([*CELL, "seed"])  # which the methods of a seed share
    known = tables["best_visible"] / tables["optimum"]
    visible = known.groupby([tables[name] for name in CELL]).mean()
    rows: list[dict[Any, Any]] = []
    for key, seeds in runs.groupby([*CELL, *SERIES], sort=True):
        shares = pd.DataFrame(
            {
                "final": seeds[FINAL_MODEL.name] / seeds["optimum"],
                "best": seeds[BEST_ORACLE.name] / seeds["optimum"],
            }
        ).dropna()
        if shares.empty:
            continue
        row: dict[Any, Any] = dict(zip([*CELL, *SERIES], key, strict=True))
        row["seeds"] = len(shares)
        for name in _PANELS:
            interval = mean_interval(shares[name])
            row |= {f"{name}_mean": shares[name].mean(), f"{name}_low": interval.low,
                    f"{name}_high": interval.high}  # fmt: skip
        rows.append(row | {"best_visible_mean": visible[tuple(row[name] for name in CELL)]})
    return pd.DataFrame(rows, columns=[*CELL, *SERIES] if not rows else None)


def _draw(
    points: pd.DataFrame, styles: Mapping[SeriesKey, Style], lacking: set[tuple[object, ...]],
    name: str,
) -> Drawing:  # fmt: skip
    sizes = sorted(points["d"].unique())
    with mpl.rc_context(LOOK):
        drawing, panels = panel_grid(
            len(_PANELS), name, [*dict.fromkeys(styles.values())], "dimension $d$",
            "share of the optimum [%]",
        )  # fmt: skip
        for axes, (score, title) in zip(panels, _PANELS.items(), strict=True):
            axes.set_title(title, loc="left", fontsize=9)
            axes.axhline(0, color=FAINT, linewidth=0.7, zorder=1)
            axes.axhline(1, color=INK, linewidth=0.8, zorder=1)
            if not does_nothing(set(points["method"])):
                _draw_best_visible(axes, points)
            for index, (key, style) in enumerate(styles.items()):
                series = points[(points[SERIES] == list(key)).all(axis=1)]
                hollow = [(*row, *key) in lacking for row in series[CELL].itertuples(index=False)]
                curve = series.assign(hollow=hollow).set_index("d").reindex(sizes)
                mean, low, high = (
                    curve[f"{score}_{part}"].to_numpy(dtype=float)
                    for part in ("mean", "low", "high")
                )
                x, short = np.asarray(sizes, dtype=float), curve["hollow"].eq(True).to_numpy()
                draw_curve(axes, x, mean, (low, high), style, short, Place(index, len(styles)))
        set_sizes(panels[0], sizes)
        columns = [f"{score}_{part}" for score in _PANELS for part in ("mean", "low", "high")]
        heights = points[[*columns, "best_visible_mean"]].to_numpy(dtype=float)
        set_values(panels[0], np.append(heights, 1.0), 0.0)
        panels[0].yaxis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=""))
        freeze_layout(drawing)
    return drawing


def _draw_best_visible(axes: Axes, points: pd.DataFrame) -> None:
    means = points.groupby("d")["best_visible_mean"].first()
    axes.plot(means.index, means, color=FAINT, linewidth=1.2, dashes=(1.5, 1.5), zorder=1)
    axes.annotate("best\nvisible", (means.index[-1], means.iloc[-1]), (5, 0),
                  textcoords="offset points", va="center", fontsize=7, color=INK,
                  annotation_clip=False)  # fmt: skip

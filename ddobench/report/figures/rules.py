"""What a rule that chooses settings on visible rows loses against the oracle's choice."""

from collections.abc import Iterator
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from ddobench.report.data.files import file_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.data.samples import count_seeds
from ddobench.report.figures.drawing import FAINT, INK, LOOK, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.panels import freeze_layout, row_panels
from ddobench.report.tables.columns import CELL
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.rules import EXPLANATION, LOSSES, name_base
from ddobench.scores import HEADLINE

_TITLE = "What a rule loses against the oracle's choice"
_MARKS = {  # marker, colour, size and whether it is filled, of each way to choose
    "rule": ("o", "#0072B2", 6.5, True),
    "first": ("D", "#D55E00", 5.0, False),
    "average": ("x", FAINT, 5.0, True),
    "nothing": ("|", INK, 9.0, True),
}


def losses_by_rule(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw all rules of one budget together."""
    for budget, table in stored.rules.groupby("budget", sort=True):
        shown = "" if budget == "full" else str(budget)
        seeds = (int(table["seeds"].min()), int(table["seeds"].max()))
        runs = stored.runs.merge(table[CELL].drop_duplicates(), on=CELL)
        yield Figure(
            name=file_stem("rules", shown),
            title=_TITLE + (f": budget {shown}" if shown else ""),
            caption=f"{EXPLANATION} {count_seeds(*seeds, 'rule and task')}",
            task="",
            data=table,
            commands=tuple(sorted(set(runs["command"]) - {""})),
            drawing=_draw(table, shown),
            subject="methods",
            table="rules",
        )  # fmt: skip


def _draw(table: pd.DataFrame, budget: str) -> Drawing:
    table = table.sort_values([*CELL, "method", "rule"], kind="stable")
    rows = [row for _, row in table.iterrows()]
    labels = [f"{name_runs(pd.Series({**row, 'budget': ''}), 'n', 'd')}: "
              f"{name_base(row)}, {row['rule']}" for row in rows]  # fmt: skip
    cells = [tuple(row[name] for name in CELL) for row in rows]
    places = [1.45 * i + 0.5 * len(set(cells[: i + 1])) - 0.5 for i in range(len(rows))]
    with mpl.rc_context(LOOK):
        drawing, (axes,) = row_panels(
            1, _TITLE + (f": budget {budget}" if budget else ""), labels, places
        )
        drawn = [*(f"{name}_loss" for name in _MARKS), "rule_low", "rule_high"]
        bounds = table[drawn].to_numpy(dtype=float).ravel()
        axes.set_xlim(*limits_around([*bounds, 0.0]))
        axes.axvline(0, color=INK, linewidth=0.9, zorder=1)
        for place, row in zip(places, rows, strict=True):
            axes.hlines(place, row["rule_low"], row["rule_high"], color=_MARKS["rule"][1],
                        linewidth=1.6, zorder=2)  # fmt: skip
            for name, look in _MARKS.items():
                axes.plot([row[f"{name}_loss"]], [place], zorder=3, **_look(*look))
        axes.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
        axes.set_xlabel(f"less than the oracle's choice [{HEADLINE.unit.sign}]", fontsize=8.5)
        drawing.legend([Line2D([], [], **_look(*look)) for look in _MARKS.values()],
                       [LOSSES[name] for name in _MARKS], loc="outside lower left",
                       ncols=len(_MARKS), frameon=False, fontsize=8, handlelength=1.1,
                       columnspacing=1.2, borderaxespad=0.2)  # fmt: skip
        freeze_layout(drawing)
    return drawing


def _look(marker: str, color: str, size: float, filled: bool) -> dict[str, Any]:
    return {"linestyle": "none", "marker": marker, "markersize": size,
            "markerfacecolor": color if filled else "white",
            "markeredgecolor": color if marker in "x|" or not filled else "white",
            "markeredgewidth": 1.4 if marker in "x|" or not filled else 0.6}  # fmt: skip

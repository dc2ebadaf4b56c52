"""Which runs get figures of their own, beside those that show a whole sweep at once.

A sweep over many numbers of rows at one size is shown as such, and closely at most rows only; a
reduced budget is left to figures of its own where the same task was run at the full one; the many
combinations of a large cross of parts are shown by the figure of crosses alone.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import prod

import pandas as pd

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Absence
from ddobench.report.tables.columns import STUDY

MOST_COMBINATIONS = 12  # of the parts of a method that each get figures of their own
MOST_ROWS = 5  # numbers of rows at one size that each get figures of their own


def look_closer(stored: ReportData) -> ReportData:
    """Return the runs that get figures of their own."""
    runs = stored.runs
    left_out = _has_full_budget(runs) | _is_one_of_many_rows(runs) | _is_of_large_cross(stored)
    if not left_out.any():
        return stored
    kept = runs[~left_out].reset_index(drop=True)
    curves = stored.curves[stored.curves["digest"].isin(kept["digest"])].reset_index(drop=True)
    return replace(stored, runs=kept, curves=curves)


def tell_left_out(stored: ReportData) -> Iterator[Absence]:
    """Say how to see what is not looked at closely."""
    runs = stored.runs
    reduced = runs.loc[_has_full_budget(runs), ["task", "budget"]].drop_duplicates()
    for task, budget in reduced.sort_values(["task", "budget"]).itertuples(index=False):
        yield Absence(
            title=f"Budget {budget} by itself",
            task=task,
            reason="this task was run at the full budget too, which is drawn",
            remedy=f"python -m ddobench.report task={task} budget={budget}",
        )
    swept = runs[_is_one_of_many_rows(runs)].sort_values("n").drop_duplicates("task")
    for task, n in swept[["task", "n"]].itertuples(index=False):
        yield Absence(
            title="Each number of rows by itself",
            task=task,
            reason="there are many, and another figure shows them all",
            remedy=f"python -m ddobench.report task={task} n={n}",
        )


def _has_full_budget(runs: pd.DataFrame) -> "pd.Series[bool]":
    full = runs["budget"] == "full"
    return ~full & full.groupby([runs["task"], runs["task_variant"]]).transform("any")


def _is_one_of_many_rows(runs: pd.DataFrame) -> "pd.Series[bool]":
    studies = runs.groupby(STUDY)
    many = (studies["d"].transform("nunique") == 1) & (
        studies["n"].transform("nunique") > MOST_ROWS
    )
    return many & (runs["n"] < studies["n"].transform("max"))


def _is_of_large_cross(stored: ReportData) -> "pd.Series[bool]":
    runs = stored.runs
    found = pd.Series(False, runs.index)
    for cross in stored.crosses:
        if prod(map(len, cross.levels.values())) > MOST_COMBINATIONS:
            found |= (runs[[*cross.place]] == [*cross.place.values()]).all(axis=1)
    return found & (runs["method_variant"] != "")

"""The cost of runs, by method and by command, and the runs that failed or declined."""

from collections.abc import Mapping
from math import isnan
from typing import Any

import pandas as pd

from ddobench.report.tables.formatting import (
    DASH,
    Column,
    Group,
    Table,
    format_number,
    format_ranges,
    name_runs,
    number_column,
    row_stem,
    word_column,
)
from ddobench.report.tables.select import BY_SIZE, BY_TASK, SERIES
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import SECONDS_CPU

_COLUMNS = [*BY_SIZE, *SERIES, "label", "mean", "least", "most", "seeds"]
_HOUR = 3600.0
_NOTE = (
    "Mean CPU seconds to fit and propose, per seed. The seconds of a batch are divided by its "
    "seeds. A latent that an earlier run of the same task and seed trained is not counted again. "
    "Machines differ: compare methods, not digits. The CSV also has the range over seeds."
)
_PROBLEMS_NOTE = (
    "A method declines a run if it does not apply to the task. A failed run raised an error; the "
    "next sweep retries it. Neither is part of any mean."
)


def cpu_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per size, method and variant whose runs recorded their cost."""
    timed = runs[(runs["status"] == "ok") & runs[SECONDS_CPU.name].notna()]
    rows: list[dict[str, Any]] = []
    for key, own in timed.groupby([*BY_SIZE, *SERIES], sort=True):
        named: dict[str, Any] = dict(zip([*BY_SIZE, *SERIES], key, strict=True))
        label = styles[named["task"], named["method"], named["method_variant"]].name
        seconds = own[SECONDS_CPU.name]
        rows.append(named | {"label": label, "mean": seconds.mean(), "least": seconds.min(),
                             "most": seconds.max(), "seeds": len(own)})  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def describe_cpu(table: pd.DataFrame) -> Table:
    """Describe the costs, a group per task, a column per size, the cheapest method first."""
    groups = []
    for _, study in table.groupby(BY_TASK, sort=True):
        first = study.iloc[0]
        sizes = sorted({(int(d), int(n)) for d, n in zip(study["d"], study["n"], strict=True)})
        dearest = study.groupby("label")["mean"].max().sort_values(kind="stable")
        rows = [
            {"label": str(label)}
            | dict.fromkeys(sizes, float("nan"))
            | study[study["label"] == label].set_index(["d", "n"])["mean"].to_dict()
            for label in dearest.index
        ]
        columns = [
            word_column("method", "label"),
            *(number_column(f"d = {d}, n = {n}", (d, n), _format) for d, n in sizes),
        ]
        groups.append(Group(name_runs(first), row_stem("costs", first), rows, columns,
                            task=str(first["task"])))  # fmt: skip
    return Table("costs", "CPU seconds", _NOTE, table, groups)


def _format(seconds: float) -> str:
    """Format seconds with the digits that are reproducible."""
    if isnan(seconds):
        return DASH
    return "< 0.1" if seconds < 0.1 else f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"


def command_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per command, the costliest first; runs without a recorded cost count as 0."""
    rows: list[dict[str, Any]] = [
        {
            "command": command,
            "runs": len(own),
            "cpu_hours": own[SECONDS_CPU.name].sum() / _HOUR,
            "without_cost": int(own[SECONDS_CPU.name].isna().sum()),
        }
        for command, own in runs.groupby("command", sort=True)
    ]
    table = pd.DataFrame(rows, columns=["command", "runs", "cpu_hours", "without_cost"])
    return table.sort_values(
        ["cpu_hours", "command"], ascending=[False, True], kind="stable", ignore_index=True
    )


def summarise_costs(table: pd.DataFrame) -> str:
    """Return the cost of all runs in a sentence."""
    runs, hours, unknown = (table[name].sum() for name in ("runs", "cpu_hours", "without_cost"))
    text = f"{runs} runs took {format_number(hours)} CPU hours to fit and propose"
    return f"{text}; {unknown} of them recorded no cost." if unknown else f"{text}."


def describe_commands(table: pd.DataFrame) -> Table:
    """Describe the costs by command."""
    columns = [
        Column("command", lambda row: row["command"] or "not recorded", words=True),
        number_column("runs", "runs"),
        number_column("CPU hours", "cpu_hours", format_number),
    ]
    group = Group("", "", table.to_dict("records"), columns)
    return Table("command_costs", "Costs", summarise_costs(table), table, [group])


def problem_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return every failed and declined run with its reason."""
    problems = runs[runs["status"] != "ok"]
    columns = [*BY_SIZE, *SERIES, "seed", "status", "reason", "command"]
    return problems[columns].reset_index(drop=True)


def describe_problems(table: pd.DataFrame, styles: Mapping[Key, Style]) -> Table:
    """Describe failed and declined runs, one line per reason."""
    rows = []
    for _, own in table.groupby([*BY_TASK, *SERIES, "status", "reason"], sort=True):
        first = own.iloc[0].to_dict()
        where = "; ".join([
            name_runs(first), *(f"{size} = {format_ranges(own[size])}" for size in ("n", "d")),
            f"seeds {format_ranges(own['seed'])}",
        ])  # fmt: skip
        label = styles[first["task"], first["method"], first["method_variant"]].label
        rows.append(first | {"label": label, "count": len(own), "where": where})
    columns = [
        word_column("method", "label"),
        word_column("status", "status"),
        number_column("runs", "count"),
        Column("reason", lambda row: row["reason"] or "no reason was recorded", words=True),
        word_column("where", "where"),
    ]
    groups = [Group("", "", rows, columns)] if rows else []
    return Table("problems", "Failures and declines", _PROBLEMS_NOTE, table, groups)

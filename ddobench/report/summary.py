"""The first screen: the best methods, invalid designs, and the results of the claims."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.data import ReportData
from ddobench.report.tables.formatting import DASH, format_number, format_percent, name_runs
from ddobench.report.tables.leaderboard import position_of
from ddobench.report.tables.select import (
    BY_SIZE,
    SERIES,
    is_best_visible,
    share_of_optimum,
)
from ddobench.report.tables.styles import REMARK_SIGN
from ddobench.report.verdicts import (
    Judgement,
    Outcome,
    Verdict,
    by_source,
    format_counts,
    format_numbers,
)
from ddobench.scores import BEST_VISIBLE, HEADLINE, INVALID_FINAL

_HARDLY = 0.01  # the share of invalid designs below which a method has hardly any
_LISTED = 4  # methods that are listed by name
_OF_OPTIMUM = " of the optimum"
RESULTS = {"holds": "holds", "fails": "fails", "undecided": "is undecided"}


@dataclass(frozen=True)
class Summary:
    """The sentences of the first screen."""

    best: str
    by_task: tuple[str, ...]  # a line for each task, below the first sentence
    invalid: str
    claims: str
    conclusion: str  # of the paper; "": it was not run


def summarise(data: ReportData, judged: Judgement) -> Summary:
    """Summarise the leading size of each task, and the claims."""
    ranked = data.board[data.board["rank"].notna() & (data.board["lead"] == 1)]
    tasks = [own for _, own in ranked.groupby("task", sort=True) if _is_valued(own, data)]
    return Summary(
        best=_count_wins(tasks, data),
        by_task=tuple(_unbroken(_describe_task(own, data)) for own in tasks),
        invalid=_unbroken(_describe_invalid(ranked, data)),
        claims=_describe_claims(judged.verdicts, judged.outcomes),
        conclusion=_describe_conclusion(judged.conclusion),
    )


def _is_valued(own: pd.DataFrame, data: ReportData) -> bool:
    """Return whether proposed designs were measured, which a task from a table of rows cannot."""
    proposing = [row for row in _rows(own) if not is_best_visible(row["method"])]
    runs = [_runs_of(row, data) for row in proposing]
    return not proposing or any(one[HEADLINE.name].notna().any() for one in runs)


def _unbroken(text: str) -> str:
    """Keep a number and its unit on one line."""
    return text.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")


def _count_wins(tasks: Sequence[pd.DataFrame], data: ReportData) -> str:
    wins = [_beats_best_visible(own) for own in tasks]
    plain = [_beats_best_visible(own[[not data.style(row).remarks for row in _rows(own)]])
             for own in tasks]  # fmt: skip
    noun = "task" if len(tasks) == 1 else "tasks"
    text = (
        "From the visible table alone, some method beats the best visible design on "
        f"{sum(wins)} of {len(tasks)} {noun}"
    )
    if any(data.style(row).remarks for own in tasks for row in _rows(own)):
        count = "the same tasks" if plain == wins else sum(plain)
        text += (
            f", and on {count} without methods marked {REMARK_SIGN} (explained below the figure)"
        )
    return f"{text}."


def _beats_best_visible(own: pd.DataFrame) -> bool:
    return any(position_of(row["gain_low"], row["gain_high"]) == "above" for row in _rows(own))


def _describe_task(own: pd.DataFrame, data: ReportData) -> str:
    """Name the best methods of one task, and the best without a remark where that is another."""
    first = own[own["rank"] == own["rank"].min()]
    runs = _runs_of(own.iloc[0], data, BY_SIZE).drop_duplicates("seed")
    best = _merit(runs, BEST_VISIBLE.name)
    place = name_runs(own.iloc[0], "d", "n")
    if any(map(is_best_visible, first["method"])):
        return f"{place}: {_none_of(own, data)} is above the best visible design, which has {best}."
    text = f"{place}: {_name(first, data)} with {_merit(_runs_of(first.iloc[0], data))}"
    if not _beats_best_visible(first.head(1)):
        text += ", not shown to beat the best visible design"
    text += f"; the best visible design has {best.removesuffix(_OF_OPTIMUM)}"
    plain = own[[not data.style(row).remarks for row in _rows(own)]]
    fair = plain[plain["rank"] == plain["rank"].min()]
    if len(fair) and not set(fair.index) & set(first.index):
        returned = any(map(is_best_visible, fair["method"]))
        name = "the best visible design" if returned else _name(fair, data)
        merit = _merit(_runs_of(fair.iloc[0], data)).removesuffix(_OF_OPTIMUM)
        text += f"; the best without {REMARK_SIGN} is {name} with {merit}"
    return f"{text}."


def _none_of(own: pd.DataFrame, data: ReportData) -> str:
    names = {
        data.style(row).name.removesuffix(f", {row['method_variant']}")
        for row in _rows(own)
        if not is_best_visible(row["method"])
    }
    if len(names) > _LISTED:
        return f"none of {len(names)} methods"
    return f"no method ({', '.join(sorted(names))})" if names else "no method"


def _name(rows: pd.DataFrame, data: ReportData) -> str:
    return " and ".join(data.style(row).label for row in _rows(rows))


def _merit(runs: pd.DataFrame, column: str = HEADLINE.name) -> str:
    """Format the mean share of the optimum, or the mean value where no optimum is known."""
    share = share_of_optimum(runs, column).mean()
    if np.isfinite(share):
        return f"{format_percent(share)}{_OF_OPTIMUM}"
    return f"{format_number(runs[column].mean())} sd"


def _runs_of(
    row: "pd.Series[Any]", data: ReportData, keys: Sequence[str] = (*BY_SIZE, *SERIES)
) -> pd.DataFrame:
    runs = data.runs[data.runs["status"] == "ok"]
    return runs[(runs[[*keys]] == [row[key] for key in keys]).all(axis=1)]


def _describe_invalid(ranked: pd.DataFrame, data: ReportData) -> str:
    """List the share of invalid designs of each method, over the tasks where there are any."""
    runs = data.runs
    possible = sorted(set(runs.loc[runs[INVALID_FINAL.name] > 0, "task"]) & set(ranked["task"]))
    if not possible:
        return "No method proposed an invalid design."
    proposing = np.array([not is_best_visible(method) for method in ranked["method"]], dtype=bool)
    rows = ranked[ranked["task"].isin(possible) & proposing]
    spans = {
        _name_method(_rows(own)[0], data): (own["invalid"].min(), own["invalid"].max())
        for _, own in rows[rows["invalid"].notna()].groupby("method", sort=True)
    }
    often = sorted((x for x in spans.items() if x[1][1] >= _HARDLY), key=lambda x: -x[1][1])
    never = sorted(name for name, span in spans.items() if span[1] < _HARDLY)
    sizes = (own.iloc[0] for _, own in rows.groupby("task", sort=True))
    places = ", ".join(f"{name_runs(row)} (d = {row['d']})" for row in sizes)
    shares = "; ".join(f"{name} {_format_span(*span)}" for name, span in often)
    text = f"Share of invalid designs on {places}: {shares or 'none'}"
    return f"{text}; below 1 % for {', '.join(never)}." if never and often else f"{text}."


def _name_method(row: "pd.Series[Any]", data: ReportData) -> str:
    return data.style(row).name.removesuffix(f", {row['method_variant']}")


def _format_span(low: float, high: float) -> str:
    ends = list(dict.fromkeys([format_percent(low), format_percent(high)]))
    return f"{ends[0].removesuffix(' %')}{DASH}{ends[1]}" if len(ends) > 1 else ends[0]


def _describe_claims(verdicts: Sequence[Verdict], outcomes: Sequence[Outcome]) -> str:
    """Count the paper's claims by their results over all readings, and our own by verdict."""
    parts = []
    for source, own in by_source(verdicts).items():
        if source == "paper":
            order = ("robust", "depends on the reading", "refuted", "undecided", "not run")
            counts = format_counts([outcome.robustness for outcome in outcomes], order)
            declared = format_counts([outcome.verdict.result for outcome in outcomes],
                                     ("holds", "fails", "undecided"))  # fmt: skip
            parts.append(f"Of the paper's {len(outcomes)} claims, {counts}.")
            parts += [f"In the declared reading, {declared}."] if declared else []
        else:
            counts = format_counts([verdict.result for verdict in own],
                                   ("holds", "fails", "undecided", "not run"))  # fmt: skip
            parts.append(f"Of our own {len(own)} claims, {counts}.")
    return " ".join(parts) or "No claims were tested."


def _describe_conclusion(verdict: Verdict | None) -> str:
    """Return the paper's conclusion and its verdict, "" if it was not run."""
    if verdict is None or verdict.result == "not run":
        return ""
    return f"{verdict.claim.text} This claim {RESULTS[verdict.result]}: {format_numbers(verdict)}."


def _rows(table: pd.DataFrame) -> list["pd.Series[Any]"]:
    return [row for _, row in table.iterrows()]

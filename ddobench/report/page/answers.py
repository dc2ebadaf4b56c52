"""What a reader wants to know first: who is best, who proposes nonsense, what claims came to."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.claims.outcomes import count_fates, find_outcomes, spell_fates
from ddobench.report.claims.verdicts import Verdict, by_source
from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.formats import DASH, format_number, format_percent, name_runs
from ddobench.report.tables.normalised import normalise
from ddobench.report.tables.nothing import does_nothing, nothing_values, standing_of
from ddobench.report.tables.scores import lead_studies, leaderboard
from ddobench.report.tables.styles import REMARK_SIGN, Style
from ddobench.scores import HEADLINE, INVALID_FINAL

_HARDLY = 0.01  # a smaller share of invalid designs is called hardly any
_LISTED = 4  # so many methods are named where all of them lose
_OF_OPTIMUM = " of the optimum"
_OWNERS = {"paper": "the paper's", "ours": "our own"}


@dataclass(frozen=True)
class Answers:
    """Three sentences, the first with a line for each task."""

    best: str
    by_task: tuple[str, ...]
    invalid: str
    claims: str


def find_answers(stored: ReportData, verdicts: Sequence[Verdict]) -> Answers:
    """Answer from the plainest study of each task, at the size of its leaderboard."""
    board = lead_studies(leaderboard(stored.scores))
    ranked = board[board["rank"].notna()]
    tasks = [own for _, own in ranked.groupby("task", sort=True) if _is_valued(own, stored)]
    return Answers(
        best=_count_wins(tasks, stored),
        by_task=tuple(_unbroken(_describe_task(own, stored)) for own in tasks),
        invalid=_unbroken(_describe_invalid(ranked, stored)),
        claims=_describe_claims(verdicts),
    )


def _is_valued(own: pd.DataFrame, stored: ReportData) -> bool:
    """Tell whether what methods propose has values: on rows of one's own nobody may know them."""
    active = [row for row in _rows(own) if not does_nothing([row["method"]])]
    runs = [_runs_of(row, stored, [*CELL, *SERIES]) for row in active]
    return not active or any(one[HEADLINE.name].notna().any() for one in runs)


def _unbroken(text: str) -> str:
    """Keep a number and its unit on one line."""
    return text.replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")


def _count_wins(tasks: Sequence[pd.DataFrame], stored: ReportData) -> str:
    wins = [_beats_nothing(own) for own in tasks]
    plain = [_beats_nothing(own[[not _style(row, stored).remarks for row in _rows(own)]])
             for own in tasks]  # fmt: skip
    noun = "task" if len(tasks) == 1 else "tasks"
    text = (
        f"Told nothing but the visible table, some method beats doing nothing on {sum(wins)} of "
        f"{len(tasks)} {noun}"
    )
    if any(_style(row, stored).remarks for own in tasks for row in _rows(own)):
        also = "also " if plain == wins else ""
        text += f", {also}without those marked {REMARK_SIGN} (explained below the figure)"
        text += "" if plain == wins else f" on {sum(plain)}"
    return f"{text}."


def _beats_nothing(own: pd.DataFrame) -> bool:
    return any(standing_of(row["gain_low"], row["gain_high"]) == "above" for row in _rows(own))


def _describe_task(own: pd.DataFrame, stored: ReportData) -> str:
    """Name the best methods of one task, and the best without a remark where that is another."""
    first = own[own["rank"] == own["rank"].min()]
    idle = _format_merit(_share_of_nothing(own, stored))
    place = name_runs(own.iloc[0], "d", "n")
    if does_nothing(first["method"]):
        return f"{place}: {_none_of(own, stored)} is above doing nothing, which has {idle}."
    text = f"{place}: {_name(first, stored)} with {_merit(first.iloc[0], stored)}"
    gain = first.iloc[0]
    if standing_of(gain["gain_low"], gain["gain_high"]) != "above":
        text += ", not shown to beat doing nothing"
    text += f"; doing nothing has {idle.removesuffix(_OF_OPTIMUM)}"
    plain = own[[not _style(row, stored).remarks for row in _rows(own)]]
    fair = plain[plain["rank"] == plain["rank"].min()]
    if len(fair) and not set(fair.index) & set(first.index):
        name = "doing nothing" if does_nothing(fair["method"]) else _name(fair, stored)
        merit = _merit(fair.iloc[0], stored).removesuffix(_OF_OPTIMUM)
        text += f"; the best without {REMARK_SIGN} is {name} with {merit}"
    return f"{text}."


def _none_of(own: pd.DataFrame, stored: ReportData) -> str:
    """Say how little was tried, lest it seem that nothing could be better."""
    tried = {
        row["method"]: _style(row, stored).name.removesuffix(f", {row['method_variant']}")
        for row in _rows(own)
        if not does_nothing([row["method"]])
    }
    names = sorted(tried.values())
    if len(names) > _LISTED:
        return f"none of {len(names)} methods tried"
    return f"no method tried ({', '.join(names)})" if names else "no method"


def _name(rows: pd.DataFrame, stored: ReportData) -> str:
    return " and ".join(_style(row, stored).label for row in _rows(rows))


def _merit(row: "pd.Series[Any]", stored: ReportData) -> str:
    runs = _runs_of(row, stored, [*CELL, *SERIES])
    return _format_merit((normalise(runs).mean(), runs[HEADLINE.name].mean()))


def _share_of_nothing(own: pd.DataFrame, stored: ReportData) -> tuple[float, float]:
    runs = _runs_of(own.iloc[0], stored, CELL)
    runs = runs.assign(idle=nothing_values(runs)).drop_duplicates("seed")
    return normalise(runs, "idle").mean(), runs["idle"].mean()


def _runs_of(row: "pd.Series[Any]", stored: ReportData, keys: list[str]) -> pd.DataFrame:
    runs = stored.runs[stored.runs["status"] == "ok"]
    return runs[(runs[keys] == [row[key] for key in keys]).all(axis=1)]


def _format_merit(share_and_value: tuple[float, float]) -> str:
    """Spell a share of the optimum, or a value where no optimum is known."""
    share, value = share_and_value
    if np.isfinite(share):
        return f"{format_percent(share)}{_OF_OPTIMUM}"
    return f"{format_number(value)} sd"


def _describe_invalid(ranked: pd.DataFrame, stored: ReportData) -> str:
    """Say how often each method proposes designs that are none, over the tasks where one can."""
    runs = stored.runs
    possible = sorted(set(runs.loc[runs[INVALID_FINAL.name] > 0, "task"]) & set(ranked["task"]))
    if not possible:
        return "No method proposed an invalid design."
    active = np.array([not does_nothing([method]) for method in ranked["method"]], dtype=bool)
    rows = ranked[ranked["task"].isin(possible) & active]
    spans = {
        _style(_rows(own)[0], stored).name: (own["invalid"].min(), own["invalid"].max())
        for _, own in rows[rows["invalid"].notna()].groupby(SERIES, sort=True)
    }
    often = sorted((x for x in spans.items() if x[1][1] >= _HARDLY), key=lambda x: -x[1][1])
    never = sorted(name for name, span in spans.items() if span[1] < _HARDLY)
    places = ", ".join(name_runs(own.iloc[0], "d") for _, own in rows.groupby("task", sort=True))
    told = "; ".join(f"{name} {_format_span(*span)}" for name, span in often)
    text = f"Invalid designs among those proposed on {places}: {told or 'none'}"
    return f"{text}; none or hardly any by {', '.join(never)}." if never and often else f"{text}."


def _format_span(low: float, high: float) -> str:
    ends = list(dict.fromkeys([format_percent(low), format_percent(high)]))
    return f"{ends[0].removesuffix(' %')}{DASH}{ends[1]}" if len(ends) > 1 else ends[0]


def _describe_claims(verdicts: Sequence[Verdict]) -> str:
    parts = []
    for source, own in by_source(verdicts).items():
        outcomes = find_outcomes(own)
        fates = spell_fates(count_fates(outcomes))
        parts.append(f"of {_OWNERS[source]} {len(outcomes)} claims {fates}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else "No claims were checked."


def _rows(table: pd.DataFrame) -> list["pd.Series[Any]"]:
    return [row for _, row in table.iterrows()]


def _style(row: "pd.Series[Any]", stored: ReportData) -> Style:
    return stored.styles[str(row["task"]), str(row["method"]), str(row["method_variant"])]

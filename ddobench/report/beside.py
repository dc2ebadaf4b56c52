"""Runs beside others: one's own and the published ones, ranked together and paired by seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.errors import UsageError
from ddobench.report.data import ReportData, read_sources
from ddobench.report.tables.paired import paired_changes
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.scores import HEADLINE, INVALID_FINAL, REGRET_FINAL

Sources = str | Path | Sequence[str | Path]
_SHOWN = [*BY_SIZE, "rank", "label", *SERIES, "seeds"]


def check_beside(beside: Sources, specs: Sequence[Mapping[str, Any]]) -> None:
    """Raise unless there are runs to compare with, at the size of each specification."""
    others = read_sources(_list(beside)).runs
    for spec in specs:
        size = {name: spec[name] for name in BY_SIZE}
        if _at(others, size).empty:
            same = others[others["task"] == size["task"]]
            sizes = sorted(map(_name, same[BY_SIZE].drop_duplicates().to_dict("records")))
            known = f"it has {'; '.join(sizes)}" if sizes else f"it has no {size['task']}"
            raise UsageError(f"beside={beside} has no runs of {_name(size)}; {known}")


def rank_beside(runs: pd.DataFrame, beside: Sources) -> pd.DataFrame:
    """Return a leaderboard of runs and others of the same sizes and seeds.

    `value` is the mean true value of the designs that a method ranks first, in standard deviations
    of the visible values, with its 95 % interval. `above` is how far the evaluated method is above
    a row of the leaderboard, on the seeds that both have, with its interval.
    """
    mine = set(runs["digest"])
    others = read_sources(_list(beside), like=runs).runs
    seeds = runs[[*BY_SIZE, "seed"]].drop_duplicates()
    others = others[~others["digest"].isin(mine)].merge(seeds, on=[*BY_SIZE, "seed"])
    data = ReportData.of(pd.concat([runs, others], ignore_index=True))
    keys = [*BY_SIZE, *SERIES]
    values = data.runs[data.runs["status"] == "ok"].set_index([*keys, "seed"])[HEADLINE.name]
    own = data.runs[data.runs["digest"].isin(mine)]
    rows = []
    for row in data.board.to_dict("records"):
        same = own[(own[BY_SIZE] == pd.Series({name: row[name] for name in BY_SIZE})).all(axis=1)]
        first = _values(values, same[keys].iloc[0]) if len(same) else values.head(0)
        second = _values(values, pd.Series({name: row[name] for name in keys}))
        both = first.index.intersection(second.index)
        (change,) = paired_changes([(first.loc[both], second.loc[both], HEADLINE.name)])
        rows.append({
            **{name: row[name] for name in _SHOWN},
            "value": row[f"{HEADLINE.prefix}_mean"],
            "value_low": row[f"{HEADLINE.prefix}_low"],
            "value_high": row[f"{HEADLINE.prefix}_high"],
            "regret": row[REGRET_FINAL.column()],
            "invalid": row[INVALID_FINAL.column()],
            "above": change.get("difference"),
            "above_low": change.get("difference_low"),
            "above_high": change.get("difference_high"),
            "pairs": change["pairs"],
        })  # fmt: skip
    return pd.DataFrame(rows)


def _values(values: "pd.Series[float]", series: "pd.Series[Any]") -> "pd.Series[float]":
    """Return the values of one series by seed."""
    try:
        return values.xs(tuple(series), level=[*BY_SIZE, *SERIES])
    except KeyError:
        return pd.Series(dtype=float)


def _at(runs: pd.DataFrame, size: Mapping[str, Any]) -> pd.DataFrame:
    return runs[(runs[[*size]] == pd.Series(dict(size))).all(axis=1)]


def _name(size: Mapping[str, Any]) -> str:
    words = [f"d={size['d']}", f"n={size['n']}", f"budget={size['budget']}", size["task_variant"]]
    return " ".join(filter(None, [size["task"], *words]))


def _list(beside: Sources) -> list[str | Path]:
    return [beside] if isinstance(beside, str | Path) else list(beside)

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
from ddobench.seeds import Seeds, format_seeds

Sources = str | Path | Sequence[str | Path]
_SHOWN = [*BY_SIZE, "rank", "label", *SERIES, "seeds"]


def check_beside(beside: Sources, specs: Sequence[Mapping[str, Any]], seeds: Seeds) -> None:
    """Raise unless there are runs to compare with, at the size of each specification."""
    others = read_sources(_list(beside)).runs
    for spec in specs:
        size = {name: spec[name] for name in BY_SIZE}
        found = _at(others, size)
        if len(found) and not found["seed"].isin([*seeds]).any():
            known = format_seeds(sorted(set(found["seed"])))
            raise UsageError(f"beside={beside} has seeds {known} of {_name(size)}, got {seeds}")
        if found.empty:
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
    finished = data.runs[data.runs["status"] == "ok"]
    own = finished[finished["digest"].isin(mine)]
    rows = []
    for row in data.board.to_dict("records"):
        size = {name: row[name] for name in BY_SIZE}
        first = _at(own, size).set_index("seed")[HEADLINE.name]
        second = _at(finished, {**size, **{name: row[name] for name in SERIES}})
        pairs = first.to_frame("own").join(second.set_index("seed")[HEADLINE.name], how="inner")
        (change,) = paired_changes([(pairs["own"], pairs[HEADLINE.name], HEADLINE.name)])
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


def _at(runs: pd.DataFrame, size: Mapping[str, Any]) -> pd.DataFrame:
    return runs[(runs[[*size]] == pd.Series(dict(size))).all(axis=1)]


def _name(size: Mapping[str, Any]) -> str:
    words = [f"d={size['d']}", f"n={size['n']}", f"budget={size['budget']}", size["task_variant"]]
    return " ".join(filter(None, [size["task"], *words]))


def _list(beside: Sources) -> list[str | Path]:
    return [beside] if isinstance(beside, str | Path) else list(beside)

"""The overall standings: mean rank and normalised score of the methods that meet across tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.tables.columns import CELL, FAMILY
from ddobench.report.tables.differences import format_p
from ddobench.report.tables.formats import (
    DASH,
    describe_counts,
    escape_markdown,
    format_estimate,
    format_number,
    format_part,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.lineups import SCORE, Lineup
from ddobench.report.tables.normalised import strata_of
from ddobench.report.tables.ranks import FEWEST, Ranking, rank_methods
from ddobench.report.tables.seeds import expected_seeds
from ddobench.report.tables.styles import REMARK_SIGN, Key, Style
from ddobench.scores import standing_scores
from ddobench.stats.resampling import iqm_interval
from ddobench.stats.samples import interquartile_mean

_RESULTS = [
    *("budget", "lineup", "tasks", "place", "method", "label", "privileges"),
    "remarks",
    *("blocks", "left_out", "mean_rank", "friedman_p", "critical_difference"),
    *("share_iqm", "share_low", "share_high", "share_mean", "without_optimum"),
]
_COUNTS = ["seeds", "declined", "failed", "missing", "unscored", "unshared"]
LINEUP = ["budget", "lineup"]  # the columns that tell line-ups apart


def header() -> list[str]:
    """Return the headings of the standings."""
    told = [table.key for _, table in standing_scores()]
    return ["place", "method", "mean rank", "share of optimum, IQM", *told, "cells", "runs"]


def word_columns() -> list[int]:
    """Return the places under `header` that hold words."""
    return [1, len(header()) - 1]


def standing_table(lineups: Sequence[Lineup], styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per line-up and method, best mean rank first.

    `unshared` are scored runs on seeds that another method of the line-up lacks: not counted.
    """
    rows: list[dict[str, Any]] = []
    for lineup in lineups:
        ranking = rank_methods(lineup.means)
        places = ranking.means.round(9).rank(method="min").astype(int)
        shared = _describe_lineup(lineup, ranking)
        rows += [
            {"place": places[method], "mean_rank": ranking.means[method]}
            | shared
            | _describe_method(lineup, str(method), styles)
            for method in ranking.means.index
        ]
    told = [table.key for _, table in standing_scores()]
    return pd.DataFrame(rows, columns=[*_RESULTS, *told, *_COUNTS])


def _describe_lineup(lineup: Lineup, ranking: Ranking) -> dict[str, Any]:
    return {
        "budget": lineup.budget,
        "lineup": ", ".join(lineup.methods),
        "tasks": ", ".join(sorted(set(lineup.runs["task"]))),
        "blocks": ranking.blocks,
        "left_out": _format_left_out(lineup.left_out),
        "friedman_p": ranking.p,
        "critical_difference": ranking.critical,
    }


def _format_left_out(cells: pd.DataFrame) -> str:
    """Say which cells were left out and why, those of one reason together."""
    said = []
    for (*_, reason), own in cells.groupby([*FAMILY, "reason"], sort=True):
        dimensions = ", ".join(map(str, sorted(own["d"])))
        said.append(f"{name_runs(own.iloc[0], 'n')}, d = {dimensions} ({reason})")
    return "; ".join(said)


def _describe_method(lineup: Lineup, method: str, styles: Mapping[Key, Style]) -> dict[str, Any]:
    runs = lineup.runs[lineup.runs["method"] == method]
    tried = lineup.tried[lineup.tried["method"] == method]
    cells = runs.drop_duplicates(CELL)
    keys = cells[["task", "method", "method_variant"]].itertuples(index=False, name=None)
    looks = [styles[key] for key in keys]
    remarks = sorted({remark for look in looks for remark in look.remarks})
    strata = strata_of(runs)
    found: dict[str, Any] = {}
    if strata:
        together, interval = np.concatenate(strata), iqm_interval(strata)
        found = {
            "share_iqm": interquartile_mean(together),
            "share_low": interval.low,
            "share_high": interval.high,
            "share_mean": together.mean(),
        }
    return found | {
        "method": method,
        "label": _overall_label(cells, styles) + (REMARK_SIGN if remarks else ""),
        "privileges": "",  # who was told more takes no part
        "remarks": "; ".join(remarks),
        "without_optimum": len(runs) - sum(map(len, strata)),
        **{table.key: runs[score.name].mean() for score, table in standing_scores()},
        "seeds": len(runs),
        **_count_lost(lineup, tried, len(runs)),
    }


def _overall_label(cells: pd.DataFrame, styles: Mapping[Key, Style]) -> str:
    """Return a method's name without the variant that it plays in on some task."""
    first = cells.iloc[0]
    style = styles[first["task"], first["method"], first["method_variant"]]
    return style.name.removesuffix(f", {first['method_variant']}")


def _count_lost(lineup: Lineup, tried: pd.DataFrame, counted: int) -> dict[str, int]:
    short = expected_seeds(lineup.tried).sub(tried.groupby(CELL).size(), fill_value=0)
    status = tried["status"].value_counts()
    scored = int(((tried["status"] == "ok") & tried[SCORE].notna()).sum())
    return {
        "declined": int(status.get("declined", 0)),
        "failed": int(status.get("failed", 0)),
        "missing": int(short.clip(lower=0).sum()),
        "unscored": int(status.get("ok", 0)) - scored,
        "unshared": scored - counted,
    }


def explain_standings(table: pd.DataFrame) -> str:
    """Say how to read the standings of one line-up, and how little few blocks show."""
    first = table.iloc[0]
    blocks = int(first["blocks"])
    text = (
        f"{len(table)} methods on {blocks} {'cell' if blocks == 1 else 'cells'} of {first['tasks']}"
        ", ranked in each cell by their mean final value over the seeds all of them have; 1 is "
        "best. The share of the optimum is the interquartile mean of all runs with a 95\u00a0% "
        "bootstrap interval that resamples seeds within cells: 0 is the mean visible value, 1 the "
        "optimum."
    )
    if np.isfinite(first["friedman_p"]):
        text += (
            f" Friedman's test: p {_equals(format_p(first['friedman_p']))}; mean ranks closer than "
            f"{format_number(first['critical_difference'])} (Nemenyi) are not shown to differ. "
            "Sizes of one task are alike, so both are optimistic."
        )
    elif blocks < FEWEST:
        text += f" With fewer than {FEWEST} cells nothing is tested."
    else:
        text += " Two methods need no test of three: see them paired by seed."
    return " ".join([text, *(f"{REMARK_SIGN} {note}." for note in table["remarks"] if note)])


def explain_left_out(table: pd.DataFrame) -> str:
    """Say where not all of one line-up have a score, "" if that is nowhere."""
    told = table.iloc[0]["left_out"]
    return f"Left out: {told}." if told else ""


def _equals(text: str) -> str:
    return text if text.startswith("<") else f"= {text}"


def name_lineup(row: "pd.Series[Any]") -> str:
    """Name the standings of a line-up by its tasks."""
    budget = "" if row["budget"] in ("", "full") else f", budget {row['budget']}"
    return f"{row['tasks']}: {row['lineup']}{budget}"


def standing_cells(table: pd.DataFrame) -> list[list[tuple[str, Any]]]:
    """Return the standings of one line-up as lines of texts, each with the value to sort it by."""
    return [
        [
            (str(row["place"]), row["place"]),
            (row["label"], row["label"]),
            (format_number(row["mean_rank"]), row["mean_rank"]),
            (_format_share(row), row["share_iqm"]),
            *(
                (format_part(row, score, table, "mean"), row[table.key])
                for score, table in standing_scores()
            ),
            (str(row["blocks"]), row["blocks"]),
            (_format_counts(row), row["seeds"]),
        ]
        for row in table.to_dict("records")
    ]


def _format_share(row: Mapping[Any, Any]) -> str:
    if not np.isfinite(row["share_iqm"]):
        return DASH
    return format_estimate(row["share_iqm"], row["share_low"], row["share_high"])


def _format_counts(row: Mapping[Any, Any]) -> str:
    extra = [(row["unshared"], "not shared"), (row["without_optimum"], "without optimum")]
    said = [f"{count} {words}" for count, words in extra if count]
    return ", ".join([describe_counts(row), *said])


def standing_markdown(table: pd.DataFrame) -> str:
    """Spell the standings for people, one heading per line-up."""
    parts = ["# Standings across tasks\n"]
    for _, lineup in table.groupby(LINEUP, sort=False):
        parts.append(f"## {escape_markdown(name_lineup(lineup.iloc[0]))}\n")
        told = " ".join(filter(None, [explain_standings(lineup), explain_left_out(lineup)]))
        parts.append(f"{escape_markdown(told)}\n")
        lines = [[text for text, _ in line] for line in standing_cells(lineup)]
        parts.append(markdown_table(header(), lines, words=word_columns()))
    return "\n".join(parts)

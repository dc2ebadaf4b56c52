"""Variants of one method against its default, paired by seed."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.columns import CELL, FAMILY, SERIES
from ddobench.report.styles import Key, Style
from ddobench.report.tables import (
    DASH,
    MINUS,
    escape_markdown,
    format_percent,
    markdown_table,
    name_runs,
)
from ddobench.statistics import holm, mean_interval, paired_difference, smallest_p

SCORES = {
    "final_model": "final value",
    "best_oracle": "best by oracle",
    "invalid_final": "invalid at the end",
}
_ESTIMATE = ["seeds", "mean", "low", "high", "by_seed"]
_CHANGE = [
    *("pairs", "difference", "difference_low", "difference_high", "difference_t_low"),
    *("difference_t_high", "p", "p_holm", "improvement"),
]
_COLUMNS = [*CELL, *SERIES, "label", "reference", "score", *_ESTIMATE, *_CHANGE]
_TRIPLES = ((name, "difference", "p (Holm)") for name in SCORES.values())
HEADER = ["variant", *chain.from_iterable(_TRIPLES), "pairs"]


def comparison_table(
    runs: pd.DataFrame, curves: pd.DataFrame, styles: Mapping[Key, Style]
) -> pd.DataFrame:
    """Return one row per cell, variant and score, where a method that climbs has variants.

    The differences are to the method's default, on the seeds that both have; a larger invalid
    share is worse. All variants of a cell are one family of comparisons for each score.
    """
    climbing = curves.loc[curves["iteration"] > 0, FAMILY].drop_duplicates()
    runs = runs[runs["status"] == "ok"].merge(climbing, on=FAMILY)
    rows: list[dict[Any, Any]] = []
    for _, method in runs.groupby([*CELL, "method"], sort=True):
        if len(set(method["method_variant"])) > 1:
            rows += _compare(method, styles)
    table = pd.DataFrame(rows, columns=_COLUMNS)
    for _, family in table.groupby([*CELL, "score"]):
        tested = family["p"].dropna()
        if len(tested):
            table.loc[tested.index, "p_holm"] = holm(tested)
    return table


def _compare(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> list[dict[Any, Any]]:
    """Compare the variants of one method in one cell, its default first."""
    variants = sorted(runs["method_variant"].unique(), key=lambda name: (len(name) > 0, name))
    reference = min(variants, key=lambda name: (len(name), name))
    variants.sort(key=lambda name: name != reference)
    rows = []
    for variant in variants:
        own = runs[runs["method_variant"] == variant]
        named = {name: own[name].iloc[0] for name in [*CELL, *SERIES]}
        named["label"] = styles[named["task"], named["method"], variant].label
        default = runs[runs["method_variant"] == reference]
        for score in SCORES:
            row = named | {"reference": reference, "score": score} | _estimate(own, score)
            if variant != reference:
                row |= _change(own, default, score)
            rows.append(row)
    return rows


def _estimate(runs: pd.DataFrame, score: str) -> dict[str, Any]:
    values = runs.sort_values("seed")[score].dropna()
    if values.empty:
        return {"seeds": 0, "by_seed": ""}
    interval = mean_interval(values)
    return {"seeds": len(values), "mean": values.mean(), "low": interval.low,
            "high": interval.high, "by_seed": " ".join(map(repr, values.tolist()))}  # fmt: skip


def _change(own: pd.DataFrame, default: pd.DataFrame, score: str) -> dict[str, Any]:
    pairs = own[["seed", score]].merge(default[["seed", score]], on="seed").dropna()
    if pairs.empty:
        return {"pairs": 0}
    found = paired_difference(pairs[f"{score}_x"], pairs[f"{score}_y"])
    return {
        "pairs": found.pairs,
        "difference": found.mean,
        "difference_low": found.interval.low,
        "difference_high": found.interval.high,
        "difference_t_low": found.student.low,
        "difference_t_high": found.student.high,
        "p": found.p,
        "improvement": found.improvement,
    }


def explain_comparison(table: pd.DataFrame) -> str:
    """Say how to read the differences, and what so few seeds cannot show."""
    pairs = table["pairs"].dropna()
    compared = int(table.groupby([*CELL, "score"])["p"].count().max())
    text = (
        "Differences are to the first variant of the same method, paired by seed, with 95\u00a0% "
        "bootstrap intervals (BCa); p is Wilcoxon's signed-rank test, adjusted after Holm for the "
        f"{compared} comparisons of a score. Invalid shares differ by percentage points."
    )
    if compared and pairs.max() < 10:
        most = int(pairs.max())
        least = smallest_p(most)
        text += (
            f" With {most} pairs no p falls below {format_p(least)}, and none "
            f"below {format_p(min(1.0, least * compared))} once adjusted; and bootstrap intervals "
            "of so few seeds are too narrow, for which the CSV has Student's as well."
        )
    return text


def spell_rows(cell: pd.DataFrame) -> list[list[str]]:
    """Spell the comparisons of one cell for people, one line per variant, under HEADER."""
    lines = []
    for _, variant in cell.groupby(SERIES, sort=False):
        line = [str(variant["label"].iloc[0])]
        for row in variant.to_dict("records"):
            line += [_spell_mean(row), _spell_change(row), format_p(row["p_holm"])]
        pairs = variant["pairs"].max()
        lines.append([*line, f"{pairs:.0f}" if np.isfinite(pairs) else DASH])
    return lines


def _spell_mean(row: dict[Any, Any]) -> str:
    if row["score"] == "invalid_final":
        return format_percent(row["mean"])
    return _spell_number(row["mean"], 2)


def _spell_change(row: dict[Any, Any]) -> str:
    """Spell a difference with its interval; that of shares in percentage points."""
    scale, digits = (100, 1) if row["score"] == "invalid_final" else (1, 2)
    mean, low, high = (
        _spell_number(scale * row[name], digits)
        for name in ("difference", "difference_low", "difference_high")
    )
    return mean if DASH in (mean, low) else f"{mean} [{low}, {high}]"


def _spell_number(value: float, digits: int) -> str:
    """Spell a number with so many decimals; what rounds to nothing keeps its sign."""
    if not np.isfinite(value):
        return DASH
    return f"{value + 0.0:.{digits}f}".replace("-", MINUS)


def format_p(p: float) -> str:
    """Spell a p value with two digits, never as zero."""
    if not np.isfinite(p):
        return DASH
    if p < 0.001:
        return "< .001"
    return f"{p:.2f}".lstrip("0") if p >= 0.01 else f"{p:.3f}".lstrip("0")


def comparison_markdown(table: pd.DataFrame) -> str:
    """Spell the comparisons for people, one heading per cell."""
    parts = ["# Controls\n"]
    for _, cell in table.groupby(CELL, sort=True):
        parts.append(f"## {escape_markdown(name_runs(cell.iloc[0], 'n', 'd'))}\n")
        parts.append(f"{explain_comparison(cell)}\n")
        parts.append(markdown_table(HEADER, spell_rows(cell), words=[0]))
    return "\n".join(parts)

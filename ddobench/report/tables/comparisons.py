"""Variants of one method against its default, paired by seed."""

from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.report.tables.differences import (
    CHANGE,
    adjust_families,
    explain_few_pairs,
    format_change,
    format_digits,
    format_p,
    paired_changes,
)
from ddobench.report.tables.formats import (
    DASH,
    INTERVAL_RULE,
    escape_markdown,
    format_percent,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import contrasted_scores, find_score
from ddobench.stats.samples import mean_interval

_ESTIMATE = ["seeds", "mean", "low", "high", "by_seed"]
_COLUMNS = [*CELL, *SERIES, "label", "reference", "score", *_ESTIMATE, *CHANGE]


def header() -> list[str]:
    """Return the headings of the comparisons of a cell."""
    triples = ((name, "difference", "p (Holm)") for name in contrasted_scores().values())
    return ["variant", *chain.from_iterable(triples), "pairs"]


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
    return adjust_families(pd.DataFrame(rows, columns=_COLUMNS), [*CELL, "score"])


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
        for score in contrasted_scores():
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
    first, second = own.set_index("seed")[score].align(default.set_index("seed")[score])
    (change,) = paired_changes([(first, second, score)])
    return change


def explain_comparison(table: pd.DataFrame) -> str:
    """Say how to read the differences, and what so few seeds cannot show."""
    pairs = table["pairs"].dropna()
    compared = int(table.groupby([*CELL, "score"])["p"].count().max())
    text = (
        "Differences are to the first variant of the same method, paired by seed, with 95\u00a0% "
        f"intervals ({INTERVAL_RULE}); p is Wilcoxon's signed-rank test, adjusted after Holm for "
        f"the {compared} comparison{'' if compared == 1 else 's'} of a score. Invalid shares "
        "differ by percentage points."
    )
    if few := explain_few_pairs(int(pairs.max()) if len(pairs) else 0, compared):
        text += f"{few}."
    return text


def format_rows(cell: pd.DataFrame) -> list[list[str]]:
    """Spell the comparisons of one cell for people, one line per variant, under `header`."""
    lines = []
    for _, variant in cell.groupby(SERIES, sort=False):
        line = [str(variant["label"].iloc[0])]
        for row in variant.to_dict("records"):
            line += [_format_mean(row), format_change(row), format_p(row["p_holm"])]
        pairs = variant["pairs"].max()
        lines.append([*line, f"{pairs:.0f}" if np.isfinite(pairs) else DASH])
    return lines


def _format_mean(row: dict[Any, Any]) -> str:
    if find_score(row["score"]).unit.fraction:
        return format_percent(row["mean"])
    return format_digits(row["mean"], 2)


def comparison_markdown(table: pd.DataFrame) -> str:
    """Spell the comparisons for people, one heading per cell."""
    parts = ["# Controls\n"]
    for _, cell in table.groupby(CELL, sort=True):
        parts.append(f"## {escape_markdown(name_runs(cell.iloc[0], 'n', 'd'))}\n")
        parts.append(f"{explain_comparison(cell)}\n")
        parts.append(markdown_table(header(), format_rows(cell), words=[0]))
    return "\n".join(parts)

"""Method against method in every cell, paired by seed."""

from collections.abc import Hashable, Mapping
from itertools import chain, combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.columns import CELL, STUDY
from ddobench.report.tables.differences import (
    CHANGE,
    adjust_families,
    explain_few_pairs,
    format_change,
    format_p,
    paired_changes,
)
from ddobench.report.tables.formats import (
    INTERVAL_RULE,
    escape_markdown,
    format_percent,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.lineups import SCORE, plainest_variants
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import contrasted_scores
from ddobench.stats.samples import Sample

MOST = 6  # methods of a cell compared each with each; of more, all with the leader only
_SIDES = ["first", "first_variant", "first_label", "second", "second_variant", "second_label"]
_COLUMNS = [*CELL, *_SIDES, "score", "lost", *CHANGE]
WORDS = [2, 3]  # the columns under `header` that hold words


def header() -> list[str]:
    """Return the headings of the pairs of a study."""
    triples = ((name, "p (Holm)", "P(better)") for name in contrasted_scores().values())
    return ["n", "d", "first", "second", *chain.from_iterable(triples), "pairs"]


def pair_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per cell, pair of methods and score.

    Each method plays in its plainest variant, the one with the higher mean headline first. Seeds of
    the cell that are no pair are counted as `lost`. The pairs of a cell are one family per score.
    """
    plain = plainest_variants(runs)
    rows: list[dict[str, Any]] = []
    asked: list[tuple[Sample, Sample, str]] = []
    columns = {str(name): plain[name].to_numpy() for name in plain}
    scores = contrasted_scores()
    for places in plain.groupby(CELL, sort=True).indices.values():
        cell = {name: column[places] for name, column in columns.items()}
        named = {name: cell[name][0] for name in CELL}
        sides, tables = _name_methods(cell, styles), _by_method(cell)
        for pair in _choose_pairs(tables[SCORE]):
            both = dict(zip(_SIDES, sides[pair[0]] + sides[pair[1]], strict=True))
            rows += [named | both | {"score": score} for score in scores]
            asked += [(tables[score][pair[0]], tables[score][pair[1]], score) for score in scores]
    changes = paired_changes(asked)
    rows = [
        row | change | {"lost": len(first) - change["pairs"]}
        for row, change, (first, _, _) in zip(rows, changes, asked, strict=True)
    ]
    return adjust_families(pd.DataFrame(rows, columns=_COLUMNS), [*CELL, "score"])


def _by_method(cell: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Sample]]:
    """Return each score of each method, one value per seed of the cell, NaN where it has none."""
    seeds, order = np.unique(cell["seed"], return_inverse=True)
    finished, methods = cell["status"] == "ok", cell["method"]
    tables: dict[str, dict[str, Sample]] = {}
    for score in contrasted_scores():
        values = cell[score].astype(np.float64)
        tables[score] = {}
        for method in sorted(set(methods)):
            own = finished & (methods == method)
            tables[score][method] = np.full(len(seeds), np.nan)
            tables[score][method][order[own]] = values[own]
    return tables


def _choose_pairs(values: Mapping[str, Sample]) -> list[tuple[str, str]]:
    """Pair the methods with a score, the higher mean first: each with each, or a crowd's leader."""
    means = {name: round(float(np.nanmean(own)), 9) for name, own in values.items()
             if np.isfinite(own).any()}  # fmt: skip
    order = sorted(means, key=lambda name: -means[name])
    if len(order) <= MOST:
        return list(combinations(order, 2))
    return [(order[0], name) for name in order[1:]]


def _name_methods(
    cell: Mapping[str, NDArray[Any]], styles: Mapping[Key, Style]
) -> dict[str, list[str]]:
    """Return each method of a cell with its variant and its label."""
    keys = set(zip(cell["task"], cell["method"], cell["method_variant"], strict=True))
    return {key[1]: [key[1], key[2], styles[key].label] for key in keys}


def explain_pairs(table: pd.DataFrame) -> str:
    """Say how to read the differences of one study."""
    compared = int(table.groupby([*CELL, "score"])["p"].count().max())
    most = int(table["pairs"].max())
    lost = int(table.loc[table["score"] == SCORE, "lost"].sum())
    text = (
        "Mean difference, first minus second, over the seeds both have, with its 95\u00a0% "
        f"interval ({INTERVAL_RULE}); p is Wilcoxon's signed-rank test, adjusted after Holm for "
        "the comparisons of a cell; P(better) is the share of seeds where the first does better, "
        "with fewer invalid designs for instance, ties half. Invalid shares differ by percentage "
        "points."
        f"{explain_few_pairs(most, compared)}"
    )
    text = text.removesuffix(".") + "."
    return f"{text} {lost} seeds are no pair, in all rows together." if lost else text


def format_pairs(study: pd.DataFrame) -> list[list[str]]:
    """Spell the pairs of one study under `header`, one line per cell and pair."""
    return [[text for text, _ in line] for line in pair_cells(study)]


def pair_cells(study: pd.DataFrame) -> list[list[tuple[str, Any]]]:
    """Return the pairs of one study as lines of texts, each with the value to sort it by."""
    lines = []
    for _, pair in study.groupby([*CELL, "first", "second"], sort=False):
        rows = pair.to_dict("records")
        line = [(str(rows[0][name]), rows[0][name]) for name in ("n", "d")]
        line += [(rows[0][name], rows[0][name]) for name in ("first_label", "second_label")]
        for row in rows:
            line += [
                (format_change(row), row["difference"]),
                (format_p(row["p_holm"]), row["p_holm"]),
                (format_percent(row["improvement"]), row["improvement"]),
            ]
        lines.append([*line, (_format_counts(rows[0]), rows[0]["pairs"])])
    return lines


def _format_counts(row: Mapping[Hashable, Any]) -> str:
    return f"{row['pairs']}" + (f", {row['lost']} lost" if row["lost"] else "")


def pair_markdown(table: pd.DataFrame) -> str:
    """Spell the pairs for people, one heading per task, variant and budget."""
    parts = ["# Method against method\n"]
    for _, study in table.groupby(STUDY, sort=True):
        parts.append(f"## {escape_markdown(name_runs(study.iloc[0]))}\n")
        parts.append(f"{explain_pairs(study)}\n")
        parts.append(markdown_table(header(), format_pairs(study), words=WORDS))
    return "\n".join(parts)

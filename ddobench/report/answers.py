"""What the matrix of a suite shows, in words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from ddobench.report.tables.formatting import format_digits, format_percent
from ddobench.report.tables.leaderboard import position_of
from ddobench.report.tables.matrix import BEST_VISIBLE_ROW, Matrix, family_of, format_span

STABLE = 0.8  # Kendall's tau below which the order of methods depends on a choice of ours
_HARDLY = 0.01  # the share of invalid designs below which a method has hardly any
_LISTED = 5  # methods that a sentence names


@dataclass(frozen=True)
class Answer:
    """A sentence, and the cells it is about."""

    text: str
    cells: tuple[str, ...] = ()
    first: bool = False  # whether it stands above the matrix


def answer(matrix: Matrix) -> list[Answer]:
    """Say in words what the matrix shows."""
    ranked = matrix.table[
        matrix.table["rank"].notna() & (matrix.table["method"] != BEST_VISIBLE_ROW)
    ]
    if ranked.empty:
        return []
    stability = _describe_stability(matrix)
    return [
        *(one for one in stability if one.first),
        Answer(_describe_best(matrix, ranked), first=True),
        *(one for one in stability if not one.first),
        Answer(_describe_families(matrix)),
        Answer(_describe_invalid(matrix)),
        Answer(_describe_cheapest(ranked)),
        *(Answer(text, tuple(cells)) for name, cells in matrix.suite.readers.items()
          if (text := _recommend(matrix, name, cells))),
    ]  # fmt: skip


_KINDS = {
    "cells": "without single cells",
    "half of the seeds": "with half of the seeds",
    "other seeds": "with other seeds",
    "score": "under other scores",
}


def _describe_stability(matrix: Matrix) -> list[Answer]:
    """Say under which changes the order of the methods stays; above the matrix if not under all."""
    known = matrix.stability.dropna(subset="tau").sort_values("tau", kind="stable")
    worst = known.drop_duplicates("kind").set_index("kind")["tau"]
    least = {words: worst[kind] for kind, words in _KINDS.items() if kind in worst}
    stable = [f"{words} ({format_digits(tau, 2)} or more)"
              for words, tau in least.items() if tau >= STABLE]  # fmt: skip
    unstable = [words for words, tau in least.items() if tau < STABLE]
    if not unstable:
        text = f"The ranking is stable, by Kendall's tau: {', '.join(stable)}."
        return [Answer(text)] if stable else []
    first = known.iloc[0]
    also = f" It is stable {', '.join(stable)}." if stable else ""
    return [Answer(
        f"The ranking is not stable {' and '.join(unstable)}: Kendall's tau is "
        f"{format_digits(first['tau'], 2)} after the worst change ({first['change']}).{also}",
        first=True,
    )]  # fmt: skip


def _describe_best(matrix: Matrix, ranked: pd.DataFrame) -> str:
    first = ranked.iloc[0]
    ranked_in = int(first["ranked"])
    where = f" in the {ranked_in} where it is ranked" if ranked_in < len(matrix.suite.cells) else ""
    text = (
        f"Best across {len(matrix.suite.cells)} cells: {first['label']}, mean rank "
        f"{format_span(first, 'rank', 1, 1)} of {len(matrix.methods)}{where}"
    )
    visible = float(matrix.table.loc[matrix.table["method"] == BEST_VISIBLE_ROW, "rank"].iloc[0])
    if visible < first["rank"]:
        return (
            "No ranked method is better than the best visible design across "
            f"{len(matrix.suite.cells)} cells, which has the mean rank "
            f"{format_digits(visible, 1)}; the first is {first['label']} with "
            f"{format_span(first, 'rank', 1, 1)}."
        )
    near = ranked[(ranked["rank_low"] <= first["rank_high"]) & (ranked.index != first.name)]
    if near.empty:
        return f"{text}; no other interval overlaps."
    return f"{text}; the intervals of {_list_names(near['label'])} overlap."


def _describe_families(matrix: Matrix) -> str:
    cells = matrix.cells[(matrix.cells["sign"] == "") & (matrix.cells["state"] == "")]
    above = [position_of(low, high) == "above"
             for low, high in zip(cells["gain_low"], cells["gain_high"], strict=True)]  # fmt: skip
    families = cells["method"].map(family_of)
    wins = cells[above].groupby(families)["cell"].nunique()
    counts = {name: int(wins.get(name, 0)) for name in dict.fromkeys(families)}
    counts.pop("reference", None)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    parts = ", ".join(f"{name} {count}" for name, count in ordered)
    return (
        "Cells in which some method of a family is shown to beat the best visible design, of "
        f"{len(matrix.suite.cells)}: {parts}."
    )


def _describe_invalid(matrix: Matrix) -> str:
    often = matrix.table[matrix.table["invalid"] >= _HARDLY].sort_values("invalid", ascending=False)
    if often.empty:
        return "No method proposes invalid designs in more than 1 % of cases."
    names = [f"{row['label']} {format_percent(row['invalid'])}" for row in often.to_dict("records")]
    rest = len(matrix.methods) - len(often)
    return f"Share of invalid designs over all cells: {_list_names(names)}; below 1 % for {rest}."


def _describe_cheapest(ranked: pd.DataFrame) -> str:
    near = ranked[ranked["rank"] <= ranked["rank"].min() + 1].sort_values("seconds")
    first = near.iloc[0]
    return (
        f"Cheapest within one rank of the best: {first['label']}, mean rank "
        f"{format_digits(first['rank'], 1)}, {first['seconds']:.3g} CPU seconds a run."
    )


def _recommend(matrix: Matrix, reader: str, cells: Sequence[str]) -> str:
    """Name the method of the best mean rank over some cells, among those ranked in all of them.

    If another method is first in several of the cells, name that, too.
    """
    table = matrix.cells[matrix.cells["cell"].isin([*cells])]
    ranks = table.pivot_table("rank", ["method", "label"], "cell", aggfunc="mean").dropna()
    if ranks.empty or len(ranks.columns) < len(cells):
        return ""
    method, label = ranks.mean(axis=1).sort_values(kind="stable").index[0]
    own = table[table["method"] == method]
    if method == BEST_VISIBLE_ROW:
        return f"With {reader}: no method is above the best visible design."
    above = int((own["gain_low"] > 0).sum())
    shown = "shown" if above else "not shown"
    where = f" in {above} of {len(cells)} cells" if above and len(cells) > 1 else ""
    firsts = table[(table["rank"] == 1) & (table["method"] != BEST_VISIBLE_ROW)]["label"]
    most = firsts.value_counts()
    also = (
        f" {most.index[0]} is first in {most.iloc[0]} of these cells."
        if len(most) and most.iloc[0] > 1 and most.index[0] != label else ""
    )  # fmt: skip
    return (
        f"With {reader}: {label} has {format_percent(own['share'].mean())} of the optimum, "
        f"{shown} to beat the best visible design{where}.{also}"
    )


def _list_names(names: Iterable[object]) -> str:
    listed = [str(name) for name in names]
    more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
    return ", ".join(listed[:_LISTED]) + more

"""Which methods may be compared across tasks: line-ups that meet, complete, in several cells.

A mean over tasks that one method skipped is no comparison. A line-up is therefore the set of
methods with a score in some cell, and its blocks are all cells of the same budget where every one
of them has a score, on the seeds they share. A block is a whole cell (task, variant, n and d) and
not a seed of it: the seeds of a cell are draws of one problem, and Friedman's test wants one block
per problem. Sizes of one task are still alike, so the blocks are fewer in spirit than in number.
Runs that were told more than the visible table are no competitors and take no part.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ddobench.report.tables.columns import CELL, SERIES
from ddobench.scores import HEADLINE

SCORE = HEADLINE.name


@dataclass(frozen=True)
class Lineup:
    """Methods that meet, their finished runs on the seeds they share, and where they do not."""

    budget: str
    methods: tuple[str, ...]
    runs: pd.DataFrame  # of these methods, in the blocks, on the shared seeds
    tried: pd.DataFrame  # all of their runs in the blocks, lost ones included
    left_out: pd.DataFrame  # cells where some of them met but not all, each with a reason

    @property
    def means(self) -> pd.DataFrame:
        """The mean headline score of every block (row) and method (column)."""
        return self.runs.pivot_table(SCORE, CELL, "method", aggfunc="mean")[list(self.methods)]


def plainest_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep one variant of each method in each cell: its default, or the one nearest to it."""
    variants = runs[[*CELL, *SERIES]].drop_duplicates()
    variants = variants.assign(length=variants["method_variant"].str.len())
    variants = variants.sort_values(["length", "method_variant"])
    chosen = variants.drop_duplicates([*CELL, "method"])[[*CELL, *SERIES]]
    return runs.merge(chosen, on=[*CELL, *SERIES])


def find_lineups(runs: pd.DataFrame) -> list[Lineup]:
    """Return the line-ups of two or more methods that share a seed somewhere, the largest first."""
    plain = plainest_variants(runs[runs["privileges"] == ""])
    scored = plain[(plain["status"] == "ok") & plain[SCORE].notna()]
    present = {key: frozenset(cell["method"]) for key, cell in scored.groupby(CELL)}
    meetings = {(str(key[CELL.index("budget")]), methods) for key, methods in present.items()}
    found = [
        _lineup(budget, methods, plain, scored, present)
        for budget, methods in meetings
        if len(methods) > 1
    ]
    met = [lineup for lineup in found if len(lineup.runs)]
    return sorted(met, key=lambda lineup: (lineup.budget, -len(lineup.methods), lineup.methods))


def _lineup(
    budget: str,
    methods: frozenset[str],
    plain: pd.DataFrame,
    scored: pd.DataFrame,
    present: Mapping[Any, frozenset[str]],
) -> Lineup:
    own = scored[scored["method"].isin(methods) & (scored["budget"] == budget)]
    shared = own.groupby([*CELL, "seed"])["method"].transform("nunique") == len(methods)
    runs = own[shared]
    blocks = runs[CELL].drop_duplicates()
    tried = plain[plain["method"].isin(methods)].merge(blocks, on=CELL)
    inside = set(blocks.itertuples(index=False, name=None))
    rows = [
        [*cell, _reason(methods, there)]
        for cell, there in present.items()
        if cell not in inside and cell[CELL.index("budget")] == budget and len(there & methods) > 1
    ]
    return Lineup(budget, tuple(sorted(methods)), runs, tried,
                  pd.DataFrame(rows, columns=[*CELL, "reason"]))  # fmt: skip


def _reason(methods: frozenset[str], there: Iterable[str]) -> str:
    absent = sorted(methods - set(there))
    return f"no score of {', '.join(absent)}" if absent else "no seed that all of them have"

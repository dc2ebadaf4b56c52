"""Methods across tasks: which of them can be compared, their mean ranks, and the standings.

Means over different tasks cannot be compared. A line-up is therefore the set of methods with a
score at some size, and its blocks are all sizes of the same budget where every one of them has a
score, on the seeds they share. A block is a whole size (task, variant, n and d), not a seed of it:
the seeds of a size are draws of one problem, and Friedman's test needs one block per problem. Sizes
of one task are similar, so the blocks are not fully independent. Runs that use more than the
visible table are left out.

Ranks are tested after Demšar, Statistical comparisons of classifiers over multiple data sets, 2006:
Friedman's test, then Nemenyi's. Fewer than FEWEST blocks are not tested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ddobench.report.tables.formatting import (
    DASH,
    Column,
    Group,
    Row,
    Table,
    describe_counts,
    format_estimate,
    format_number,
    format_p,
    format_percent,
    name_runs,
    number_column,
    word_column,
)
from ddobench.report.tables.select import (
    BY_N,
    BY_SIZE,
    expected_seeds,
    plainest_variants,
    scored_runs,
    shares_by_size,
)
from ddobench.report.tables.styles import REMARK_SIGN, Key, Style
from ddobench.scores import HEADLINE, standing_scores
from ddobench.stats.ranks import compare_across
from ddobench.stats.samples import interquartile_mean, iqm_interval

SCORE = HEADLINE.name
FEWEST = 5  # blocks before a test means anything
LEVEL = 0.05
_DIGITS = 9  # means that agree to so many decimals are equal
_RESULTS = [
    *("budget", "lineup", "tasks", "place", "method", "label", "privileges"),
    "remarks",
    *("blocks", "left_out", "mean_rank", "mean_rank_low", "mean_rank_high"),
    *("friedman_p", "critical_difference"),
    *("share_iqm", "share_low", "share_high", "share_mean", "without_optimum"),
]
_COUNTS = ["seeds", "declined", "failed", "missing", "unscored", "unshared"]
LINEUP = ["budget", "lineup"]  # the columns that identify a line-up


@dataclass(frozen=True)
class Lineup:
    """Methods, their finished runs on the sizes and seeds they share, and the other sizes."""

    budget: str
    methods: tuple[str, ...]
    runs: pd.DataFrame  # of these methods, in the blocks, on the shared seeds
    tried: pd.DataFrame  # all of their runs in the blocks, lost ones included
    left_out: pd.DataFrame  # sizes where only some of them have a score, each with a reason

    @cached_property
    def expected(self) -> "pd.Series[int]":
        """How many usual seeds each size has."""
        return expected_seeds(self.tried)

    @property
    def means(self) -> pd.DataFrame:
        """The mean headline score of every block (row) and method (column)."""
        return self.runs.pivot_table(SCORE, BY_SIZE, "method", aggfunc="mean")[list(self.methods)]


def find_lineups(runs: pd.DataFrame) -> list[Lineup]:
    """Return the line-ups of two or more methods that share a seed somewhere, the largest first."""
    plain = plainest_variants(runs[runs["privileges"] == ""])
    scored = scored_runs(plain)
    present = {key: frozenset(cell["method"]) for key, cell in scored.groupby(BY_SIZE)}
    meetings = {(str(key[BY_SIZE.index("budget")]), methods) for key, methods in present.items()}
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
    shared = own.groupby([*BY_SIZE, "seed"])["method"].transform("nunique") == len(methods)
    runs = own[shared]
    blocks = runs[BY_SIZE].drop_duplicates()
    tried = plain[plain["method"].isin(methods)].merge(blocks, on=BY_SIZE)
    inside = set(blocks.itertuples(index=False, name=None))
    rows = [
        [*cell, _reason(methods, there)]
        for cell, there in present.items()
        if cell not in inside
        and cell[BY_SIZE.index("budget")] == budget
        and len(there & methods) > 1
    ]
    return Lineup(budget, tuple(sorted(methods)), runs, tried,
                  pd.DataFrame(rows, columns=[*BY_SIZE, "reason"]))  # fmt: skip


def _reason(methods: frozenset[str], there: Iterable[str]) -> str:
    absent = sorted(methods - set(there))
    return f"no score of {', '.join(absent)}" if absent else "no seed that all of them have"


@dataclass(frozen=True)
class Ranking:
    """Mean ranks, best first, and the results of the tests."""

    means: "pd.Series[float]"  # by method; 1 is best
    blocks: int
    p: float  # Friedman's; NaN where nothing was tested
    critical: float  # Nemenyi's critical difference of mean ranks; NaN likewise
    groups: tuple[tuple[str, ...], ...]  # methods not shown to differ; empty likewise


def rank_methods(scores: pd.DataFrame) -> Ranking:
    """Rank the columns of a table with a row per block; larger is better and ties share ranks."""
    ranks = scores.round(_DIGITS).rank(axis=1, ascending=False, method="average")
    means = ranks.mean().sort_values(kind="stable")
    blocks, methods = ranks.shape
    if blocks < FEWEST or methods < 3:
        return Ranking(means, blocks, np.nan, np.nan, ())
    p = friedman_p(ranks)
    critical = critical_difference(methods, blocks)
    return Ranking(means, blocks, p, critical, join_groups(means, critical, p))


def friedman_p(ranks: pd.DataFrame) -> float:
    """Return the p of Friedman's test; 1 where every block is one tie."""
    tied = bool(np.ptp(ranks.to_numpy(), axis=1).max() == 0)
    return 1.0 if tied else float(stats.friedmanchisquare(*ranks.to_numpy().T).pvalue)


def critical_difference(methods: int, blocks: int) -> float:
    """Return Nemenyi's critical difference of two mean ranks at the level of five per cent."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * blocks)))


def join_groups(
    means: "pd.Series[float]", critical: float, p: float
) -> tuple[tuple[str, ...], ...]:
    """Return the largest groups within the critical difference; one if Friedman rejects nothing."""
    names, values = [str(name) for name in means.index], means.to_numpy()
    if p >= LEVEL:
        return (tuple(names),)
    groups: list[tuple[str, ...]] = []
    reached = 0
    for start in range(len(names)):
        end = int(np.searchsorted(values, values[start] + critical, side="left"))
        if end > max(reached, start + 1):
            groups.append(tuple(names[start:end]))
        reached = max(reached, end)
    return tuple(groups)


def standing_table(lineups: Sequence[Lineup], styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per line-up and method, best mean rank first.

    `unshared` are scored runs on seeds that another method of the line-up lacks: not counted.
    """
    rows: list[dict[str, Any]] = []
    for lineup in lineups:
        ranking = rank_methods(lineup.means)
        places = ranking.means.round(9).rank(method="min").astype(int)
        shared = _describe_lineup(lineup, ranking)
        ends = _rank_intervals(lineup.means)
        rows += [
            {"place": places[method], "mean_rank": ranking.means[method]}
            | ends.get(str(method), {})
            | shared
            | _describe_method(lineup, str(method), styles)
            for method in ranking.means.index
        ]
    means = [score.prefix for score in standing_scores()]
    return pd.DataFrame(rows, columns=[*_RESULTS, *means, *_COUNTS])


def _rank_intervals(means: pd.DataFrame) -> dict[str, dict[str, float]]:
    """Return the interval of each method's mean rank over blocks, if there are enough of them."""
    if len(means) < FEWEST:
        return {}
    rank, _ = compare_across(means.to_numpy().T[:, :, None])
    ends = zip(means.columns, rank.low, rank.high, strict=True)
    return {str(name): {"mean_rank_low": low, "mean_rank_high": high} for name, low, high in ends}


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
    """List the sizes that were left out, grouped by reason."""
    parts = []
    for (*_, reason), own in cells.groupby([*BY_N, "reason"], sort=True):
        dimensions = ", ".join(map(str, sorted(own["d"])))
        parts.append(f"{name_runs(own.iloc[0], 'n')}, d = {dimensions} ({reason})")
    return "; ".join(parts)


def _describe_method(lineup: Lineup, method: str, styles: Mapping[Key, Style]) -> dict[str, Any]:
    runs = lineup.runs[lineup.runs["method"] == method]
    tried = lineup.tried[lineup.tried["method"] == method]
    cells = runs.drop_duplicates(BY_SIZE)
    keys = cells[["task", "method", "method_variant"]].itertuples(index=False, name=None)
    looks = [styles[key] for key in keys]
    remarks = sorted({remark for look in looks for remark in look.remarks})
    strata = shares_by_size(runs)
    found: dict[str, Any] = {}
    if strata:
        together = np.concatenate(strata)
        alone = len(strata) == len(together) >= FEWEST  # one seed a size: sizes are the repeats
        interval = iqm_interval([together] if alone else strata)
        found = {
            "share_iqm": interquartile_mean(together),
            "share_low": interval.low,
            "share_high": interval.high,
            "share_mean": together.mean(),
        }
    return found | {
        "method": method,
        "label": _overall_label(cells, styles) + (REMARK_SIGN if remarks else ""),
        "privileges": "",  # privileged runs are left out
        "remarks": "; ".join(remarks),
        "without_optimum": len(runs) - sum(map(len, strata)),
        **{score.prefix: runs[score.name].mean() for score in standing_scores()},
        "seeds": len(runs),
        **_count_lost(lineup, tried, len(runs)),
    }


def _overall_label(cells: pd.DataFrame, styles: Mapping[Key, Style]) -> str:
    """Return a method's name without its variant, which may differ between tasks."""
    first = cells.iloc[0]
    style = styles[first["task"], first["method"], first["method_variant"]]
    return style.name.removesuffix(f", {first['method_variant']}")


def _count_lost(lineup: Lineup, tried: pd.DataFrame, counted: int) -> dict[str, int]:
    short = lineup.expected.sub(tried.groupby(BY_SIZE).size(), fill_value=0)
    status = tried["status"].value_counts()
    scored = len(scored_runs(tried))
    return {
        "declined": int(status.get("declined", 0)),
        "failed": int(status.get("failed", 0)),
        "missing": int(short.clip(lower=0).sum()),
        "unscored": int(status.get("ok", 0)) - scored,
        "unshared": scored - counted,
    }


def describe_standings(table: pd.DataFrame) -> Table:
    """Describe the standings, one group per line-up."""
    columns = [
        number_column("place", "place"),
        word_column("method", "label"),
        Column("mean rank", _format_rank, lambda row: row["mean_rank"]),
        Column("share of optimum, IQM", _format_share, lambda row: row["share_iqm"]),
        *(
            number_column(s.prefix, s.prefix, format_percent if s.unit.fraction else format_number)
            for s in standing_scores()
        ),
        number_column("sizes", "blocks"),
        Column("runs", _format_counts, lambda row: row["seeds"], words=True),
    ]
    groups = [
        Group(name_lineup(own.iloc[0]), f"standings-{i}", own.to_dict("records"), columns,
              explain_standings(own))
        for i, (_, own) in enumerate(table.groupby(LINEUP, sort=False), start=1)
    ]  # fmt: skip
    note = (
        "Methods are compared only over sizes (task, variant, n and d) where all of them have a "
        "score, so every set of methods with a common size has standings of its own."
    )
    return Table("standings", "Standings across tasks", note, table, groups)


def explain_standings(table: pd.DataFrame) -> str:
    """Explain the standings of one line-up and their tests."""
    first = table.iloc[0]
    blocks = int(first["blocks"])
    text = (
        f"{len(table)} methods on {blocks} {'size' if blocks == 1 else 'sizes'} of {first['tasks']}"
        ", ranked at each size by their mean final value over common seeds; rank 1 is best. The "
        "share of the optimum is an interquartile mean over all runs: 0 is the mean visible value "
        "and 1 the optimum. Its 95\u00a0% bootstrap interval resamples seeds within sizes, or "
        "the sizes themselves where each has one seed, and that of the mean rank resamples sizes."
    )
    if np.isfinite(first["friedman_p"]):
        p = format_p(first["friedman_p"])
        text += (
            f" Friedman's test: p {p if p.startswith('<') else f'= {p}'}; mean ranks closer than "
            f"{format_number(first['critical_difference'])} (Nemenyi) are not shown to differ. "
            "Sizes of one task are similar, so both tests are optimistic."
        )
    elif blocks < FEWEST:
        text += f" Fewer than {FEWEST} sizes are not tested."
    else:
        text += " Two methods are not tested here; the paired table compares them by seed."
    left_out = [f"Left out: {first['left_out']}."] if first["left_out"] else []
    remarks = [f"{REMARK_SIGN} {note}." for note in dict.fromkeys(table["remarks"]) if note]
    return " ".join([text, *remarks, *left_out])


def name_lineup(row: Row) -> str:
    """Name the standings of a line-up by its tasks."""
    budget = "" if row["budget"] in ("", "full") else f", budget {row['budget']}"
    return f"{row['tasks']}: {row['lineup']}{budget}"


def _format_rank(row: Row) -> str:
    return format_estimate(row["mean_rank"], row["mean_rank_low"], row["mean_rank_high"])


def _format_share(row: Row) -> str:
    if not np.isfinite(row["share_iqm"]):
        return DASH
    return format_estimate(row["share_iqm"], row["share_low"], row["share_high"])


def _format_counts(row: Row) -> str:
    extra = [(row["unshared"], "not shared"), (row["without_optimum"], "without optimum")]
    parts = [f"{count} {words}" for count, words in extra if count]
    return ", ".join([describe_counts(row), *parts])

"""The scores of every method on every task, and the leaderboard made from them."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.formatting import (
    DASH,
    INTERVAL_RULE,
    Column,
    Group,
    Row,
    Table,
    describe_counts,
    format_estimate,
    format_number,
    format_percent,
    name_runs,
    number_column,
    row_stem,
    word_column,
)
from ddobench.report.tables.select import (
    BY_SIZE,
    BY_TASK,
    SERIES,
    expected_seeds,
    scored_runs,
)
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import (
    BEST_VISIBLE,
    HEADLINE,
    HELD_OUT_RANK,
    INVALID_FINAL,
    Score,
    Statistic,
    TableName,
    leaderboard_scores,
    meanings,
    tabled_scores,
)
from ddobench.stats.samples import Sample, interquartile_mean, iqm_interval, mean_intervals

GAIN = ("gain_mean", "gain_low", "gain_high", "gain_interval", "gain_pairs")
INTERVAL_NOTE = f"Mean over seeds [95\u00a0% interval: {INTERVAL_RULE}]."
Position = Literal["above", "below", "open", ""]  # of an interval, if there is one

_COUNTS = ["seeds", "ok", "declined", "failed", "missing", "unscored"]
_INTERVAL = ("mean", "low", "high", "interval")
_FULL = (*_INTERVAL, "iqm", "iqm_low", "iqm_high", "median")
_NOTE = (
    "Each task at the largest dimension, and the most visible rows there, where most methods have "
    "a score; further sizes follow where other methods were run. Methods are ranked by regret, or "
    "by value where no optimum is known, each in its plainest variant. "
    f"{INTERVAL_NOTE} The value is that of the designs that the method itself ranks highest, in "
    "standard deviations of the visible values. The last column is the difference to the best "
    "visible design, paired by seed. Methods that use more than the visible table have no rank."
)


def score_columns() -> list[str]:
    """Return the columns of a score table: scores in full, then with an interval, then means."""
    tabled = tabled_scores()
    ordered = [*leaderboard_scores(), *(score for score in tabled if not score.leaderboard)]
    return [
        *(*BY_SIZE, *SERIES, "label", "privileges", *_COUNTS, "regret_unit"),
        *(f"{s.prefix}_{part}" for s in ordered if s.summary == "full" for part in _FULL),
        *GAIN,
        *(f"{s.prefix}_{part}" for s in tabled if s.summary == "interval" for part in _INTERVAL),
        *(s.prefix for s in tabled if s.summary == "mean"),
    ]


def score_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per task, variant, n, budget, d and method: the counts and the scores.

    `seeds` are the averaged runs. `missing` counts the seeds that most methods of the size have and
    this row lacks; `unscored` are finished runs without a finite value. `gain` is the value above
    the best visible design.
    """
    runs = runs.reset_index(drop=True)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    columns["expected"] = runs.join(expected_seeds(runs), on=BY_SIZE)["expected"].to_numpy()
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, Score, Sample]] = []  # the first is the index of a row
    for places in runs.groupby([*BY_SIZE, *SERIES], sort=True).indices.values():
        series = {name: column[places] for name, column in columns.items()}
        named = {name: series[name][0] for name in [*BY_SIZE, *SERIES]}
        style = styles[named["task"], named["method"], named["method_variant"]]
        finished = series["status"] == "ok"
        units = series["regret_unit"][finished]
        rows.append(
            named
            | {"label": style.label, "privileges": " ".join(style.privileges)}
            | {"regret_unit": units[0] if len(units) else ""}
            | _count(series)
        )
        for score in tabled_scores():
            values = series[score.name][finished].astype(np.float64)
            if not len(values := values[~np.isnan(values)]):
                continue
            if score.summary == "mean":
                rows[-1][score.prefix] = values.mean()
            else:
                samples.append((len(rows) - 1, score, values))
    intervals = mean_intervals([values for _, _, values in samples])
    for (place, score, values), interval in zip(samples, intervals, strict=True):
        found = {"mean": values.mean(), "low": interval.low, "high": interval.high,
                 "interval": interval.kind}  # fmt: skip
        if score.summary == "full":
            middle = iqm_interval([values])
            found |= {"iqm": interquartile_mean(values), "iqm_low": middle.low,
                      "iqm_high": middle.high, "median": float(np.median(values))}  # fmt: skip
        rows[place] |= {f"{score.prefix}_{part}": number for part, number in found.items()}
    gains = find_gains(runs)
    rows = [row | gains.get(tuple(row[name] for name in [*BY_SIZE, *SERIES]), {}) for row in rows]
    return pd.DataFrame(rows, columns=score_columns())


def known_scores(scores: pd.DataFrame, tabled: Sequence[Score]) -> list[Score]:
    """Leave out the scores that no row of a score table has."""
    return [score for score in tabled if scores[score.column()].notna().any()]


def _count(series: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    status = series["status"]
    ok = int((status == "ok").sum())
    deciding = [score.name for score in leaderboard_scores() if score.rank]
    known = [~np.isnan(series[name][status == "ok"].astype(np.float64)) for name in deciding]
    scored = int(np.any(known, axis=0).sum())
    return {
        "seeds": scored,
        "ok": ok,
        "declined": int((status == "declined").sum()),
        "failed": int((status == "failed").sum()),
        "missing": max(0, int(series["expected"][0]) - len(np.unique(series["seed"]))),
        "unscored": ok - scored,
    }


def find_gains(runs: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return how far each series is above the best visible design on the same seeds, by its key."""
    scored = scored_runs(runs)
    changes = (scored[HEADLINE.name] - scored[BEST_VISIBLE.name]).dropna()
    keys = [scored.loc[changes.index, name] for name in [*BY_SIZE, *SERIES]]
    samples = {key: own.to_numpy(np.float64) for key, own in changes.groupby(keys)}
    intervals = mean_intervals([*samples.values()])
    return {
        key: dict(zip(GAIN, (sample.mean(), found.low, found.high, found.kind, sample.size),
                      strict=True))
        for (key, sample), found in zip(samples.items(), intervals, strict=True)
    }  # fmt: skip


def position_of(low: float, high: float) -> Position:
    """Return where the interval of a gain lies."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return ""
    return "above" if low > 0 else "below" if high < 0 else "open"


def leaderboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods at every size, by the first ranking score that is known there.

    Each method has one row, its plainest variant, and one more if only some variants use more than
    the visible table. Those have no rank and come last; equal means share a rank. `lead` numbers
    the sizes of a task that the page shows first, from 1, and is 0 for all others.
    """
    boards = []
    for _, size in scores.groupby(BY_SIZE, sort=True):
        board = _plainest(size)
        merit = _merit(board).round(9)
        board["rank"] = merit.where(~board["privileged"]).rank(ascending=False, method="min")
        board["tied"] = board["rank"].duplicated(keep=False) & board["rank"].notna()
        order = board.assign(merit=-merit).sort_values(["privileged", "merit", "label"])
        boards.append(order.drop(columns="merit"))
    if not boards:
        return scores.head(0).assign(rank=np.nan, tied=False, privileged=False, lead=0)
    whole = pd.concat(boards, ignore_index=True)
    lead = {key: i for _, task in whole.groupby("task")
            for i, key in enumerate(_leading_sizes(task), start=1)}  # fmt: skip
    sizes = whole[BY_SIZE].itertuples(index=False, name=None)
    return whole.assign(lead=[lead.get(size, 0) for size in sizes])


def _leading_sizes(board: pd.DataFrame) -> list[tuple[Any, ...]]:
    """Return the sizes of one task that are shown first.

    The first is of the plainest variant at the full budget, if it has one, where most methods have
    a score, and there the largest. Others follow only with a method that none before them has.
    """
    sizes = []
    for key, own in board.groupby(BY_SIZE, sort=True):
        scored = set(own.loc[own["seeds"] > 0, "method"])
        first = own.iloc[0]
        plain = (len(first["task_variant"]), first["task_variant"], first["budget"] != "full",
                 first["budget"])  # fmt: skip
        sizes.append((plain, -len(scored), -first["d"], -first["n"], key, scored))
    sizes.sort(key=lambda size: size[:4])
    chosen: list[tuple[Any, ...]] = []
    shown: set[str] = set()
    for *_, key, scored in sizes:
        if not chosen or not scored <= shown:
            chosen.append(key)
            shown |= scored
    return chosen


def _plainest(board: pd.DataFrame) -> pd.DataFrame:
    """Keep one variant of each method, and one more if only some of them are privileged."""
    board = board.assign(
        privileged=board["privileges"] != "", length=board["method_variant"].str.len()
    )
    ordered = board.sort_values(["length", "method_variant"])
    return ordered.drop_duplicates(["method", "privileged"]).drop(columns="length")


def _merit(board: pd.DataFrame) -> "pd.Series[float]":
    """Return what decides the ranks at one size; higher is better."""
    merit = pd.Series(np.nan, index=board.index)
    for score in leaderboard_scores():
        if score.rank and merit.isna().all():
            means = board[score.column()].astype(float)
            merit = -means if score.better == "lower" else means
    return merit


def describe_leaderboard(board: pd.DataFrame, scores: pd.DataFrame) -> Table:
    """Describe the leaderboard; its leading sizes come first."""
    columns = board_columns(scores)
    lead = [own for _, own in board[board["lead"] > 0].groupby(["task", "lead"], sort=True)]
    rest = [own for _, own in board[board["lead"] == 0].groupby(BY_SIZE, sort=True)]
    groups = [_board_group(own, columns) for own in (*lead, *rest)]
    return Table("leaderboard", "Leaderboard", _NOTE, board, groups)


def board_columns(scores: pd.DataFrame) -> list[Column]:
    """Return the columns of the leaderboard; those shown on a phone come first."""
    found = [
        score_column(score.leaderboard, score, minor=score not in (HEADLINE, INVALID_FINAL))
        for score in known_scores(scores, leaderboard_scores())
    ]
    return [
        Column("Rank", _format_rank, lambda row: row["rank"]),
        word_column("Method", "label"),
        *sorted(found, key=lambda column: column.minor),
        Column("Above best visible, sd", _format_gain, lambda row: row["gain_mean"], minor=True),
        Column("Seeds", describe_counts, lambda row: row["seeds"], words=True, minor=True),
    ]


def _board_group(own: pd.DataFrame, columns: Sequence[Column]) -> Group:
    first = own.iloc[0]
    return Group(
        title=name_runs(first, "n", "d"),
        stem=row_stem("leaderboard", first, "d", "n") if first["lead"] else "",
        rows=own.to_dict("records"),
        columns=columns,
        task=str(first["task"]),
        note=_board_unit(own),
    )


def _board_unit(own: pd.DataFrame) -> str:
    """Return the unit of regret, or a note where no new design was measured."""
    measured, ranked = (own[s.column()].notna().any() for s in (HEADLINE, HELD_OUT_RANK))
    if ranked and not measured:
        return "No new design was measured: ranked by the order of hidden rows."
    unit = str(own["regret_unit"].iloc[0])
    return f"Regret in {({'raw': 'raw units', 'sd': 'sd'}).get(unit, unit)}." if unit else ""


def _format_rank(row: Row) -> str:
    return DASH if np.isnan(row["rank"]) else f"{row['rank']:.0f}{'=' if row['tied'] else ''}"


def _format_gain(row: Row) -> str:
    text = format_estimate(row["gain_mean"], row["gain_low"], row["gain_high"])
    below = position_of(row["gain_low"], row["gain_high"]) == "below"
    return f"{text}, below" if below else text


def describe_scores(
    scores: pd.DataFrame, notes: Sequence[str], name: TableName = "scores"
) -> Table:
    """Describe our scores, or those of other benchmarks, one group per task and variant."""
    groups = []
    for _, study in scores.groupby(BY_TASK, sort=True):
        known = known_scores(study, [score for score in tabled_scores(name) if score.heading])
        if not known and name != "scores":
            continue
        first = study.iloc[0]
        columns = [
            number_column("n", "n"),
            number_column("d", "d"),
            word_column("method", "label"),
            *(
                score_column(heading, score, statistic)
                for score in known
                for heading, statistic in score.headings.items()
            ),
            Column("seeds", describe_counts, lambda row: row["seeds"], words=True),
        ]
        groups.append(
            Group(name_runs(first), row_stem(name, first), study.to_dict("records"), columns,
                  task=str(first["task"]))
        )  # fmt: skip
    note = " ".join(notes if name == "scores" else meanings(name))
    return Table(name, name.capitalize(), note, scores, groups)


def score_column(
    heading: str, score: Score, statistic: Statistic = "mean", *, minor: bool = False
) -> Column:
    """Return a column of one statistic of a score; a mean comes with its interval, if any."""
    key = score.column(statistic)

    def text(row: Row) -> str:
        if statistic == "mean" and score.summary != "mean":
            parts = (key, f"{score.prefix}_low", f"{score.prefix}_high")
            return format_estimate(*(score.unit.scale * row[part] for part in parts))
        return format_percent(row[key]) if score.unit.fraction else format_number(row[key])

    return Column(heading, text, lambda row: row[key], minor=minor)

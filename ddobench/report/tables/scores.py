"""The scores of every method on every task: how many runs count, how good they are, who leads."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.select import (
    BY_SIZE,
    BY_TASK,
    SERIES,
    expected_seeds,
    scored_runs,
)
from ddobench.report.tables.styles import Key, Style
from ddobench.report.tables.table import (
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
from ddobench.scores import (
    BEST_VISIBLE,
    HEADLINE,
    HELD_OUT_RANK,
    INVALID_FINAL,
    Part,
    Score,
    Sheet,
    Tabled,
    leaderboard_scores,
    meanings,
    tabled_scores,
)
from ddobench.stats.samples import Sample, interquartile_mean, iqm_interval, mean_intervals

GAIN = ("gain_mean", "gain_low", "gain_high", "gain_interval", "gain_pairs")
INTERVAL_NOTE = f"Mean over seeds [95\u00a0% interval: {INTERVAL_RULE}]."
Position = Literal["above", "below", "open", ""]  # of an interval; "": there is none

_COUNTS = ["seeds", "ok", "declined", "failed", "missing", "unscored"]
_ESTIMATE = ("mean", "low", "high", "interval")
_DETAIL = (*_ESTIMATE, "iqm", "iqm_low", "iqm_high", "median")
_BOARD_NOTE = (
    "Methods of each task at one size: the largest dimension, and there the most visible rows, "
    "where most methods have a score; further sizes follow where other methods were run. Least "
    "regret first, or most value where no optimum is known; each method in its plainest variant. "
    f"{INTERVAL_NOTE} The value is that of the designs that the method itself ranks highest, in "
    "standard deviations of the visible values. The last difference is to the best visible design, "
    "paired by seed. Methods that know more than the visible table are not ranked."
)


def score_columns() -> list[str]:
    """Return the columns of a score table: whole scores first, mere means last."""
    tabled = tabled_scores()
    leading = [table for _, table in leaderboard_scores()]
    others = [table for score, table in tabled if not score.board]
    whole = [table.key for table in (*leading, *others) if table.summary == "whole"]
    return [
        *(*BY_SIZE, *SERIES, "label", "privileges", *_COUNTS, "regret_unit"),
        *(f"{key}_{part}" for key in whole for part in _DETAIL),
        *GAIN,
        *(f"{t.key}_{part}" for _, t in tabled if t.summary == "estimate" for part in _ESTIMATE),
        *(table.key for _, table in tabled if table.summary == "mean"),
    ]


def score_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per task, variant, n, budget, d and method: who was counted, and the scores.

    `seeds` are the runs averaged. `missing` is by how many seeds the row falls short of those that
    most methods of its size have; `unscored` are finished runs without a finite value. `gain` is
    the value above the best visible design.
    """
    runs = runs.reset_index(drop=True)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    columns["expected"] = runs.join(expected_seeds(runs), on=BY_SIZE)["expected"].to_numpy()
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, Tabled, Sample]] = []  # of which row, and of which score
    tabled = tabled_scores()
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
        for score, table in tabled:
            values = series[score.name][finished].astype(np.float64)
            if not len(values := values[~np.isnan(values)]):
                continue
            if table.summary == "mean":
                rows[-1][table.key] = values.mean()
            else:
                samples.append((len(rows) - 1, table, values))
    intervals = mean_intervals([values for _, _, values in samples])
    for (place, table, values), interval in zip(samples, intervals, strict=True):
        found = {"mean": values.mean(), "low": interval.low, "high": interval.high,
                 "interval": interval.kind}  # fmt: skip
        if table.summary == "whole":
            found |= _describe(values)
        rows[place] |= {f"{table.key}_{part}": number for part, number in found.items()}
    gains = find_gains(runs)
    rows = [row | gains.get(tuple(row[name] for name in [*BY_SIZE, *SERIES]), {}) for row in rows]
    return pd.DataFrame(rows, columns=score_columns())


def known_scores(
    scores: pd.DataFrame, tabled: Sequence[tuple[Score, Tabled]]
) -> list[tuple[Score, Tabled]]:
    """Leave out the rare scores that no row of a score table has."""
    return [
        (score, table)
        for score, table in tabled
        if not score.rare or scores[table.column("mean")].notna().any()
    ]


def _count(series: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    status = series["status"]
    ok = int((status == "ok").sum())
    deciding = [score.name for score, _ in leaderboard_scores() if score.rank]
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


def _describe(values: Sample) -> dict[str, float]:
    middle = iqm_interval([values])
    return {
        "iqm": interquartile_mean(values),
        "iqm_low": middle.low,
        "iqm_high": middle.high,
        "median": float(np.median(values)),
    }


def find_gains(runs: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return how far each series is above the best visible design on the same seeds.

    By size and series, as far as they have a pair; all zero for the best visible design itself.
    """
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
    """Tell where the interval of a gain lies."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return ""
    return "above" if low > 0 else "below" if high < 0 else "open"


def leaderboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods at every size, by the first deciding score that is known there.

    Each method has one row, its plainest variant, and one more if only some variants know more than
    the visible table. Those have no rank and come last; equal means share a rank. `lead` numbers
    the sizes of a task that the page shows first, from 1, and is 0 for all others.
    """
    boards = []
    for _, size in scores.groupby(BY_SIZE, sort=True):
        board = _plainest(size)
        merit = _merit(board).round(9)
        board["rank"] = merit.where(~board["told"]).rank(ascending=False, method="min")
        board["tied"] = board["rank"].duplicated(keep=False) & board["rank"].notna()
        order = board.assign(merit=-merit).sort_values(["told", "merit", "label"])
        boards.append(order.drop(columns="merit"))
    if not boards:
        return scores.head(0).assign(rank=np.nan, tied=False, told=False, lead=0)
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
    """Keep one variant of each method, and one more if only some of them know more."""
    board = board.assign(told=board["privileges"] != "", length=board["method_variant"].str.len())
    ordered = board.sort_values(["length", "method_variant"])
    return ordered.drop_duplicates(["method", "told"]).drop(columns="length")


def _merit(board: pd.DataFrame) -> "pd.Series[float]":
    """Return what decides the ranks at one size, more being better."""
    merit = pd.Series(np.nan, index=board.index)
    for score, table in leaderboard_scores():
        if score.rank and merit.isna().all():
            means = board[table.column("mean")].astype(float)
            merit = -means if score.better == "lower" else means
    return merit


def describe_leaderboard(board: pd.DataFrame, scores: pd.DataFrame) -> Table:
    """Describe the leaderboard; its leading sizes come first."""
    columns = board_columns(scores)
    lead = [own for _, own in board[board["lead"] > 0].groupby(["task", "lead"], sort=True)]
    rest = [own for _, own in board[board["lead"] == 0].groupby(BY_SIZE, sort=True)]
    groups = [_board_group(own, columns) for own in (*lead, *rest)]
    return Table("leaderboard", "Leaderboard", _BOARD_NOTE, board, groups)


def board_columns(scores: pd.DataFrame) -> list[Column]:
    """Return the columns of the leaderboard, those that a phone has room for first."""
    found = [
        score_column(heading, score, table, part, minor=score not in (HEADLINE, INVALID_FINAL))
        for score, table in known_scores(scores, leaderboard_scores())
        for heading, part in score.board.items()
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
    """Say what regret is measured in, or that no new design was measured."""
    columns = {score.name: f"{table.key}_mean" for score, table in leaderboard_scores()}
    rank, value = columns[HELD_OUT_RANK.name], columns[HEADLINE.name]
    if rank in own and own[rank].notna().any() and own[value].isna().all():
        return "No new design was measured: ranked by the order of hidden rows."
    unit = str(own["regret_unit"].iloc[0])
    return f"Regret in {({'raw': 'raw units', 'sd': 'sd'}).get(unit, unit)}." if unit else ""


def _format_rank(row: Row) -> str:
    return DASH if np.isnan(row["rank"]) else f"{row['rank']:.0f}{'=' if row['tied'] else ''}"


def _format_gain(row: Row) -> str:
    text = format_estimate(row["gain_mean"], row["gain_low"], row["gain_high"])
    below = position_of(row["gain_low"], row["gain_high"]) == "below"
    return f"{text}, below" if below else text


def describe_scores(scores: pd.DataFrame, notes: Sequence[str], sheet: Sheet = "scores") -> Table:
    """Describe all scores, or those of the protocol of others, one group per task and variant."""
    groups = []
    for _, study in scores.groupby(BY_TASK, sort=True):
        known = known_scores(study, tabled_scores(sheet))
        if not known:
            continue  # runs of a version that knew none of them
        first = study.iloc[0]
        columns = [
            number_column("n", "n"),
            number_column("d", "d"),
            word_column("method", "label"),
            *(
                score_column(heading, score, table, part)
                for score, table in known
                for heading, part in table.cells.items()
            ),
            Column("seeds", describe_counts, lambda row: row["seeds"], words=True),
        ]
        groups.append(
            Group(name_runs(first), row_stem(sheet, first), study.to_dict("records"), columns,
                  task=str(first["task"]))
        )  # fmt: skip
    note = " ".join(notes if sheet == "scores" else meanings(sheet))
    return Table(sheet, sheet.capitalize(), note, scores, groups)


def score_column(
    heading: str, score: Score, table: Tabled, part: Part, *, minor: bool = False
) -> Column:
    """Return a column of one part of a score."""
    return Column(
        heading,
        lambda row: format_part(row, score, table, part),
        lambda row: row[table.column(part)],
        minor=minor,
    )


def format_part(row: Row, score: Score, table: Tabled, part: Part) -> str:
    """Format one part of a score in a row of the score table: a share as a percentage."""
    value = row[table.column(part)]
    if part == "estimate" and table.summary != "mean":
        scale, ends = score.unit.scale, (row[f"{table.key}_low"], row[f"{table.key}_high"])
        return format_estimate(scale * value, scale * ends[0], scale * ends[1])
    return format_percent(value) if score.unit.fraction else format_number(value)

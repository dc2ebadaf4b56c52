"""The scores of every method on every task: who was counted, how good they were, who leads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.nothing import GAIN, find_gains
from ddobench.report.tables.seeds import expected_seeds
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import Score, Tabled, leaderboard_scores, tabled_scores, unstored_curves
from ddobench.stats.resampling import iqm_interval
from ddobench.stats.samples import Sample, interquartile_mean, mean_intervals

_COUNTS = ["seeds", "ok", "declined", "failed", "missing", "unscored"]
_ESTIMATE = ("mean", "low", "high", "interval")
_DETAIL = (*_ESTIMATE, "iqm", "iqm_low", "iqm_high", "median")


def score_columns() -> list[str]:
    """Return the columns of a score table: whole scores first, mere means last."""
    tabled = tabled_scores()
    leading = [table for _, table in leaderboard_scores()]
    others = [table for score, table in tabled if not score.board]
    whole = [table.key for table in (*leading, *others) if table.summary == "whole"]
    return [
        *(*CELL, *SERIES, "label", "privileges", *_COUNTS, "regret_unit"),
        *(f"{key}_{part}" for key in whole for part in _DETAIL),
        *GAIN,
        *(f"{t.key}_{part}" for _, t in tabled if t.summary == "estimate" for part in _ESTIMATE),
        *(table.key for _, table in tabled if table.summary == "mean"),
    ]


def score_table(
    runs: pd.DataFrame, styles: Mapping[Key, Style], curves: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row per task, variant, n, budget, d and method: who was counted, and the scores.

    `seeds` are the runs averaged. `missing` is by how many seeds the row falls short of those that
    most methods of its cell have; `unscored` are finished runs without a finite value. Scores that
    are not stored are taken from the curves' last iterations. `gain` is the value above doing
    nothing.
    """
    runs = _with_unstored(runs, curves).reset_index(drop=True)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    columns["expected"] = runs.join(expected_seeds(runs), on=CELL)["expected"].to_numpy()
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, Tabled, Sample]] = []  # of which row, and of which score
    tabled = tabled_scores()
    for places in runs.groupby([*CELL, *SERIES], sort=True).indices.values():
        series = {name: column[places] for name, column in columns.items()}
        named = {name: series[name][0] for name in [*CELL, *SERIES]}
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
    rows = [row | gains.get(tuple(row[name] for name in [*CELL, *SERIES]), {}) for row in rows]
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


def _with_unstored(runs: pd.DataFrame, curves: pd.DataFrame | None) -> pd.DataFrame:
    """Add what is taken from the end of each run's curves, NaN where those do not have it."""
    wanted = unstored_curves()
    runs = runs.drop(columns=[*wanted], errors="ignore")
    if curves is None or not {"digest", "seed", "iteration"} <= {*curves}:
        return runs.assign(**dict.fromkeys(wanted, float("nan")))
    last = curves.sort_values("iteration").drop_duplicates(["digest", "seed"], keep="last")
    taken = last[["digest", "seed"]].assign(
        **{name: last.get(curve, float("nan")) for name, curve in wanted.items()}
    )
    return runs.merge(taken, on=["digest", "seed"], how="left")


def _describe(values: Sample) -> dict[str, float]:
    middle = iqm_interval([values])
    return {
        "iqm": interquartile_mean(values),
        "iqm_low": middle.low,
        "iqm_high": middle.high,
        "median": float(np.median(values)),
    }


def leaderboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods of each study at one size, by the first deciding score that is known.

    The size is the largest dimension, and there the most rows, among those where most methods have
    a score. Each method plays in its plainest variant. Who was told more than the visible table has
    no rank and comes after the others; a method without a score has none either. Equal means share
    a rank.
    """
    boards = []
    for _, study in scores.groupby(STUDY, sort=True):
        d, n = _common_size(study)
        board = _plainest(study[(study["d"] == d) & (study["n"] == n)])
        merit = _merit(board).round(9)
        board["rank"] = merit.where(~board["told"]).rank(ascending=False, method="min")
        board["tied"] = board["rank"].duplicated(keep=False) & board["rank"].notna()
        order = board.assign(merit=-merit).sort_values(["told", "merit", "label"])
        boards.append(order.drop(columns="merit"))
    if not boards:
        return scores.head(0).assign(rank=np.nan, tied=False, told=False)
    return pd.concat(boards, ignore_index=True)


def lead_studies(board: pd.DataFrame) -> pd.DataFrame:
    """Keep the plainest study of each task: no variant of it, at the full budget, if it has one."""
    studies = board[STUDY].drop_duplicates()
    studies = studies.assign(
        reduced=studies["budget"] != "full", length=studies["task_variant"].str.len()
    ).sort_values(["task", "length", "task_variant", "reduced", "budget"])
    return board.merge(studies.drop_duplicates("task")[STUDY], on=STUDY)


def _plainest(board: pd.DataFrame) -> pd.DataFrame:
    """Keep one variant of each method, and one more if only some of them were told more."""
    board = board.assign(told=board["privileges"] != "", length=board["method_variant"].str.len())
    ordered = board.sort_values(["length", "method_variant"])
    return ordered.drop_duplicates(["method", "told"]).drop(columns="length")


def _merit(board: pd.DataFrame) -> "pd.Series[float]":
    """Return what decides the ranks of one board, more being better."""
    merit = pd.Series(np.nan, index=board.index)
    for score, table in leaderboard_scores():
        if score.rank and merit.isna().all():
            means = board[table.column("mean")].astype(float)
            merit = -means if score.better == "lower" else means
    return merit


def _common_size(study: pd.DataFrame) -> tuple[int, int]:
    scored = study["method"].where(study["seeds"] > 0)  # once, however many variants it has
    methods = scored.groupby([study["d"], study["n"]]).nunique()
    d, n = methods[methods == methods.max()].index.max()
    return int(d), int(n)

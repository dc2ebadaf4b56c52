"""The scores of every method on every task: who was counted, how good they were, who leads."""

from collections.abc import Mapping

import pandas as pd

from ddobench.report.columns import CELL, SERIES, STUDY
from ddobench.report.styles import Key, Style
from ddobench.statistics import interquartile_mean, mean_interval, t_interval

_COUNTS = ["seeds", "ok", "declined", "failed", "missing", "unscored"]
_REGRET = [
    *("regret_unit", "regret_mean", "regret_low", "regret_high", "regret_interval"),
    *("regret_t_low", "regret_t_high", "regret_iqm", "regret_median"),
]
_VALUE = ["value_mean", "value_low", "value_high", "value_interval", "best_visible", "optimum"]
_COLUMNS = [*CELL, *SERIES, "label", "privileges", *_COUNTS, *_REGRET, *_VALUE, "invalid"]


def score_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per task, variant, n, budget, d and method: who was counted, and the scores.

    `seeds` are the runs averaged. `missing` are seeds that another method of the same cell has
    and this one has not; `unscored` are finished runs without a finite value.
    """
    rows = []
    for _, cell in runs.groupby(CELL, sort=True):
        expected = cell["seed"].nunique()
        for key, series in cell.groupby(SERIES, sort=True):
            style = styles[str(series["task"].iloc[0]), str(key[0]), str(key[1])]
            rows.append(
                {name: series[name].iloc[0] for name in [*CELL, *SERIES]}
                | {"label": style.label, "privileges": " ".join(style.privileges)}
                | _count(series, expected)
                | _score(series)
            )
    return pd.DataFrame(rows, columns=_COLUMNS)


def _count(runs: pd.DataFrame, expected: int) -> dict[str, int]:
    status = runs["status"].value_counts()
    scored = _finished(runs)["final_model"].notna().sum()
    ok = int(status.get("ok", 0))
    return {
        "seeds": int(scored),
        "ok": ok,
        "declined": int(status.get("declined", 0)),
        "failed": int(status.get("failed", 0)),
        "missing": int(expected - runs["seed"].nunique()),
        "unscored": int(ok - scored),
    }


def _score(runs: pd.DataFrame) -> dict[str, object]:
    runs = _finished(runs)
    scores: dict[str, object] = {"regret_unit": "".join(runs["regret_unit"].head(1))}
    regret = runs["regret_final"].dropna()
    if len(regret):
        interval, student = mean_interval(regret), t_interval(regret)
        scores |= {
            "regret_mean": regret.mean(),
            "regret_low": interval.low,
            "regret_high": interval.high,
            "regret_interval": interval.kind,
            "regret_t_low": student.low,
            "regret_t_high": student.high,
            "regret_iqm": interquartile_mean(regret),
            "regret_median": regret.median(),
        }
    value = runs["final_model"].dropna()
    if len(value):
        interval = mean_interval(value)
        scores |= {
            "value_mean": value.mean(),
            "value_low": interval.low,
            "value_high": interval.high,
            "value_interval": interval.kind,
        }
    return scores | {
        "best_visible": runs["best_visible"].mean(),
        "optimum": runs["optimum"].mean(),
        "invalid": runs["invalid_final"].mean(),
    }


def _finished(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[runs["status"] == "ok"]


def leaderboard(scores: pd.DataFrame) -> pd.DataFrame:
    """Rank the methods of each study at one size, the least regret or else most value first.

    The size is the largest dimension, and there the most rows, among those where most methods have
    a score. Equal means share a rank; a method without a score there has none and comes last.
    """
    boards = []
    for _, study in scores.groupby(STUDY, sort=True):
        d, n = _common_size(study)
        board = study[(study["d"] == d) & (study["n"] == n)].copy()
        by_regret = board["regret_mean"].notna().any()
        merit = -board["regret_mean"] if by_regret else board["value_mean"]
        board["rank"] = merit.astype(float).round(9).rank(ascending=False, method="min")
        board["tied"] = board["rank"].duplicated(keep=False) & board["rank"].notna()
        boards.append(board.sort_values(["rank", "label"]))
    return pd.concat(boards, ignore_index=True) if boards else scores.head(0)


def _common_size(study: pd.DataFrame) -> tuple[int, int]:
    scored = study.assign(scored=study["seeds"] > 0).groupby(["d", "n"])["scored"].sum()
    d, n = scored[scored == scored.max()].index.max()
    return int(d), int(n)

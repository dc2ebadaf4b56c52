"""The scores of every method on every task: who was counted, how good they were, who leads."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.styles import Key, Style
from ddobench.stats.resampling import iqm_interval
from ddobench.stats.samples import Sample, interquartile_mean, mean_intervals, t_interval

_COUNTS = ["seeds", "ok", "declined", "failed", "missing", "unscored"]
# Per seed: the headline, then what an oracle would pick at the last and at the best iteration, then
# the 50th and the 100th percentile of all designs of the last iteration.
VALUES = {
    "value": "final_model",
    "oracle_final": "final_oracle",
    "oracle_best": "best_oracle",
    "p50": "median",
    "p100": "best",
}
_MEANS = {"best_visible": "best_visible", "optimum": "optimum", "invalid": "invalid_final"}
_ESTIMATE = ("mean", "low", "high", "interval")
_DETAIL = (*_ESTIMATE, "t_low", "t_high", "iqm", "iqm_low", "iqm_high", "median")
_COLUMNS = [
    *(*CELL, *SERIES, "label", "privileges", *_COUNTS, "regret_unit"),
    *(f"{score}_{part}" for score in ("regret", "value") for part in _DETAIL),
    *(f"{score}_{part}" for score in [*VALUES][1:] for part in _ESTIMATE),
    *_MEANS,
]


def score_table(
    runs: pd.DataFrame, styles: Mapping[Key, Style], curves: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Return one row per task, variant, n, budget, d and method: who was counted, and the scores.

    `seeds` are the runs averaged. `missing` are seeds that another method of the same cell has
    and this one has not; `unscored` are finished runs without a finite value. The percentiles are
    those of the curves' last iterations.
    """
    runs = _with_percentiles(runs, curves).reset_index(drop=True)
    columns = {str(name): runs[name].to_numpy() for name in runs}
    columns["expected"] = runs.groupby(CELL)["seed"].transform("nunique").to_numpy()
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, str, Sample]] = []  # of which row, and of which score
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
        for score, column in {"regret": "regret_final", **_MEANS, **VALUES}.items():
            values = series[column][finished].astype(np.float64)
            if not len(values := values[~np.isnan(values)]):
                continue
            if score in _MEANS:
                rows[-1][score] = values.mean()
            else:
                samples.append((len(rows) - 1, score, values))
    intervals = mean_intervals([values for _, _, values in samples])
    for (place, score, values), interval in zip(samples, intervals, strict=True):
        found = {"mean": values.mean(), "low": interval.low, "high": interval.high,
                 "interval": interval.kind}  # fmt: skip
        if score in ("regret", "value"):
            found |= _describe(values)
        rows[place] |= {f"{score}_{part}": number for part, number in found.items()}
    return pd.DataFrame(rows, columns=_COLUMNS)


def _count(series: Mapping[str, NDArray[Any]]) -> dict[str, int]:
    status = series["status"]
    ok = int((status == "ok").sum())
    scored = int((~np.isnan(series["final_model"][status == "ok"])).sum())
    return {
        "seeds": scored,
        "ok": ok,
        "declined": int((status == "declined").sum()),
        "failed": int((status == "failed").sum()),
        "missing": int(series["expected"][0]) - len(np.unique(series["seed"])),
        "unscored": ok - scored,
    }


def _with_percentiles(runs: pd.DataFrame, curves: pd.DataFrame | None) -> pd.DataFrame:
    """Add the percentiles of each run's last iteration, NaN where no curve has them."""
    columns = ["digest", "seed", "median", "best"]
    if curves is None or not {*columns, "iteration"} <= {*curves}:
        return runs.assign(median=float("nan"), best=float("nan"))
    last = curves.sort_values("iteration").drop_duplicates(["digest", "seed"], keep="last")
    return runs.drop(columns=["median", "best"], errors="ignore").merge(
        last[columns], on=["digest", "seed"], how="left"
    )


def _describe(values: Sample) -> dict[str, float]:
    student, middle = t_interval(values), iqm_interval([values])
    return {
        "t_low": student.low,
        "t_high": student.high,
        "iqm": interquartile_mean(values),
        "iqm_low": middle.low,
        "iqm_high": middle.high,
        "median": float(np.median(values)),
    }


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

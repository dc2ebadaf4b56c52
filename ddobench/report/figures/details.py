"""The diagnostics of single runs that a figure looks for; files may come and go meanwhile."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ddobench.report.data import ReportData

Details = dict[str, Any]
_MOST = 10  # files looked into before a search is given up


def climbing_runs(data: ReportData) -> pd.DataFrame:
    """Return the finished runs that take steps, the plainest variant and the first seed first."""
    curves, runs = data.curves, data.runs
    climbing = set(curves.loc[curves["iteration"] > 0, "digest"])
    chosen = runs[(runs["status"] == "ok") & runs["digest"].isin(climbing)]
    plain = chosen["method_variant"].str.len()
    return chosen.assign(_plain=plain).sort_values(
        ["_plain", "method_variant", "method", "seed"], kind="stable", ignore_index=True
    ).drop(columns="_plain")  # fmt: skip


def read_details(data: ReportData, run: "pd.Series[Any]") -> Details:
    """Return the diagnostics of a run, none of a file that is gone or torn."""
    path = run.get("path")
    if not isinstance(path, str):
        return {}
    try:
        return data.diagnostics(path)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return {}


def find_details(
    data: ReportData,
    runs: pd.DataFrame,
    names: Sequence[str],
    fits: Callable[[Details], bool] = lambda _: True,
    most: int = _MOST,
) -> tuple["pd.Series[Any]", Details] | None:
    """Return the first run whose diagnostics have these names and fit, with its diagnostics."""
    for _, run in runs.head(most).iterrows():
        details = read_details(data, run)
        if all(details.get(name) is not None for name in names) and fits(details):
            return run, details
    return None


def column(runs: pd.DataFrame, name: str) -> "pd.Series[str]":
    """Return a column of words, empty where an older record lacks it."""
    if name not in runs:
        return pd.Series("", index=runs.index, dtype=object)
    return runs[name].astype(object).where(runs[name].notna(), "").astype(str)


def stage_settings(config: Mapping[str, Any], stage: str) -> Mapping[str, Any]:
    """Return the settings of one stage of a method, such as its graph, none without the stage."""
    method = config.get("method")
    settings = method.get(stage) if isinstance(method, Mapping) else None
    return settings if isinstance(settings, Mapping) else {}

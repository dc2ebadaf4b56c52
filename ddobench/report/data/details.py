"""What single runs have to tell beyond their scores, read with care: files come and go."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ddobench.report.data.report_data import ReportData

Details = dict[str, Any]
_MOST = 10  # files looked into before a search is given up


def climbing_runs(stored: ReportData) -> pd.DataFrame:
    """Return the finished runs that take steps, the plainest variant and the first seed first."""
    curves, runs = stored.curves, stored.runs
    climbing = set(curves.loc[curves["iteration"] > 0, "digest"])
    chosen = runs[(runs["status"] == "ok") & runs["digest"].isin(climbing)]
    plain = chosen["method_variant"].str.len()
    return chosen.assign(_plain=plain).sort_values(
        ["_plain", "method_variant", "method", "seed"], kind="stable", ignore_index=True
    ).drop(columns="_plain")  # fmt: skip


def read_details(stored: ReportData, run: "pd.Series[Any]") -> Details:
    """Return the diagnostics of a run, none of a file that is gone or torn."""
    path = run.get("path")
    if not isinstance(path, str):
        return {}
    try:
        return stored.diagnostics(path)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return {}


def find_details(
    stored: ReportData, runs: pd.DataFrame, names: Sequence[str]
) -> tuple["pd.Series[Any]", Details] | None:
    """Return the first of the runs that tells all these things, and all it tells."""
    for _, run in runs.head(_MOST).iterrows():
        details = read_details(stored, run)
        if all(details.get(name) is not None for name in names):
            return run, details
    return None


def column(runs: pd.DataFrame, name: str) -> "pd.Series[str]":
    """Return a column of words, empty where an older record lacks it."""
    if name not in runs:
        return pd.Series("", index=runs.index, dtype=object)
    return runs[name].astype(object).where(runs[name].notna(), "").astype(str)


def graph_settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return how the method of a configuration comes by its graph, nothing if it does not say."""
    method = config.get("method")
    graph = method.get("graph") if isinstance(method, Mapping) else None
    return graph if isinstance(graph, Mapping) else {}

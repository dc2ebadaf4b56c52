"""Curves over the iterations of an ascent: one mean per series, of all its seeds or of none.

A mean over the seeds that are left is a mean over another population at each iteration, and rises
when the worst drop out. So an average ends with the last iteration that every finished seed has.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.columns import CELL, FAMILY, SERIES
from ddobench.scores import VALUE_MODEL
from ddobench.stats.samples import mean_band

MOST_SERIES = 8  # lines that one panel can hold before they are a tangle


def climbing_families(stored: ReportData) -> Iterator[pd.DataFrame]:
    """Yield the curves of each task, variant, n and budget where any method takes steps."""
    for _, family in stored.curves.groupby(FAMILY, sort=True):
        if family["iteration"].max() > 0:
            yield family


def measured_families(stored: ReportData) -> Iterator[pd.DataFrame]:
    """Yield those of them whose designs have values; a table without an oracle has none."""
    return (
        family for family in climbing_families(stored) if family[VALUE_MODEL.name].notna().any()
    )


def choose_series(family: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return the curves to draw in one figure, and how many series that leaves out.

    Where there are too many, only the default of a method that has one stays.
    """
    series = family[SERIES].drop_duplicates()
    if len(series) <= MOST_SERIES:
        return family, 0
    has_default = set(series.loc[series["method_variant"] == "", "method"])
    kept = (family["method_variant"] == "") | ~family["method"].isin(has_default)
    return family[kept], len(series) - len(family.loc[kept, SERIES].drop_duplicates())


def average_curves(curves: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return mean and 95 % interval of a score per series, d and iteration.

    `seeds` are the finished runs of the series, `counted` those with a value at the iteration;
    the mean is NaN unless they are the same.
    """
    parts = [pd.DataFrame(columns=[*CELL, *SERIES, "iteration", "seeds", "counted", "mean",
                                   "low", "high"])]  # fmt: skip
    for key, runs in curves.groupby([*CELL, *SERIES], sort=True):
        table = runs.set_index(["seed", "iteration"])[score].unstack()  # noqa: PD010 - no averaging
        values = table.to_numpy(dtype=float)  # (S, T)
        counted = np.isfinite(values).sum(axis=0)
        low, high = mean_band(values)
        shared: dict[Any, Any] = dict(zip([*CELL, *SERIES], key, strict=True))
        columns: dict[Any, Any] = {
            "iteration": table.columns.to_numpy(dtype=int),
            "seeds": len(values),
            "counted": counted,
            "mean": values.mean(axis=0),
            "low": low,
            "high": high,
        }
        parts.append(pd.DataFrame(shared | columns, index=range(len(counted))))
    return pd.concat(parts[1:] or parts, ignore_index=True)


def landmark_means(stored: ReportData, family: pd.DataFrame) -> pd.DataFrame:
    """Return the mean best visible value and optimum of every d, each table counted once."""
    first = family.iloc[0]
    runs = stored.runs
    members = (runs[FAMILY] == first[FAMILY]).all(axis=1) & (runs["status"] == "ok")
    tables = runs[members].drop_duplicates(["d", "seed"])
    return tables.groupby("d")[["best_visible", "optimum"]].mean()


def series_of(points: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the methods and variants of these points, in the order of the legend."""
    pairs = points[SERIES].drop_duplicates().sort_values(SERIES)
    return [(str(method), str(variant)) for method, variant in pairs.itertuples(index=False)]

"""Synthetic runs as rows, curves and report data, for the tests of the report."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.data import ReportData

Row = dict[str, Any]
NAIVE = {10: 2.3, 20: 7.8, 40: 20.0}
STEPS = 5


def run_row(method: str = "fgm", d: int = 10, seed: int = 0, **changes: Any) -> Row:
    """Return the row of one finished run; naive's regret grows with d, the others' is 0."""
    noise = np.random.default_rng([seed, d]).normal() if method == "naive" else 0.0
    regret = max(0.0, NAIVE.get(d, 0.3 * d) + noise) if method == "naive" else 0.0
    row: Row = {
        "task": "quadratic", "task_variant": "", "method": method, "method_variant": "",
        "d": d, "n": 100, "seed": seed, "budget": "full", "digest": f"{method}-{d}",
        "status": "ok", "reason": "", "privileges": "graph" if method == "fgm" else "",
        "label": {"fgm": "FGM", "naive": "Naive"}.get(method, ""),
        "color": {"fgm": "#0072B2", "naive": "#E69F00"}.get(method, ""),
        "best_visible": 2.0, "optimum": 4.0, "final_model": 4.0 - regret, "regret_final": regret,
        "regret_unit": "raw", "invalid_final": 0.0,
        "command": f"python -m ddobench method={method}",
    }  # fmt: skip
    return row | changes


def failed_row(**changes: Any) -> Row:
    """Return the row of a failed run."""
    scores = ("final_model", "regret_final", "invalid_final", "best_visible", "optimum")
    row = run_row(status="failed", reason="LinAlgError: no convergence", **changes)
    return {name: value for name, value in row.items() if name not in scores}


def sweep(
    methods: Iterable[str] = ("fgm", "naive"),
    dimensions: Iterable[int] = (10, 20, 40),
    seeds: int = 12,
    **changes: Any,
) -> list[Row]:
    """Return the rows of a small sweep."""
    return [
        run_row(method, d, seed, **changes)
        for method in methods
        for d in dimensions
        for seed in range(seeds)
    ]


def climb(method: str = "fgm", d: int = 11, seed: int = 0, **changes: Any) -> Row:
    """Return the row of a run on a task with continuous designs."""
    same = {"task": "chain", "regret_unit": "sd", "privileges": "", "optimum": 10.0,
            "best_visible": 4.0, "best_oracle": 3.0}  # fmt: skip
    row = run_row(method, d, seed, **same | changes)
    return row | {"digest": f"{method}-{d}-{row['method_variant']}"}


def curve_of(row: Row, steps: int = STEPS, stops: int | None = None) -> pd.DataFrame:
    """Return a curve that rises by one per step, from the seed; survivors end at `stops`."""
    iteration = np.arange(steps + 1)
    value = row["seed"] + iteration.astype(float)
    survivors = np.where(iteration < (steps + 1 if stops is None else stops), value + 1, np.nan)
    return pd.DataFrame({"digest": row["digest"], "seed": row["seed"], "iteration": iteration,
                         "value_model": value, "survivors": survivors,
                         "invalid": iteration / (2 * steps) if steps else 0.0})  # fmt: skip


def data_of(rows: list[Row]) -> ReportData:
    """Return the report data of rows."""
    return ReportData.of(pd.DataFrame(rows))


def data_with(rows: list[Row], curves: list[pd.DataFrame]) -> ReportData:
    """Return the report data of rows and curves."""
    return ReportData.of(pd.DataFrame(rows), curves=pd.concat(curves))

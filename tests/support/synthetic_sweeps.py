"""Synthetic sweeps over settings of a task and over sizes, for the tests of tables and figures."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ddobench.report.data import ReportData
from tests.support.synthetic_runs import Row, climb, curve_of, data_with

STRENGTHS = {"mine": 9.0, "other": 6.0, "naive": 4.0}  # of the optimum, which is 10
Settings = Mapping[str, Sequence[Any]]  # of a setting, the default first


def run_with(
    setting: str, value: Any, usual: Any, method: str = "mine", seed: int = 0, **changes: Any
) -> tuple[Row, dict[str, Any]]:
    """Return a run with a setting of its task, and its configuration."""
    variant = "" if value == usual else f"{setting}={value}"
    strength = STRENGTHS.get(method, 5.0) + 0.1 * seed
    row = climb(method, seed=seed, **{"task_variant": variant, "final_model": strength,
                                      "label": method.capitalize(), **changes})  # fmt: skip
    row["digest"] = f"{method}-{row['d']}-{row['n']}-{row['task_variant']}-{row['method_variant']}"
    return row, {"task": {setting: value, "d": row["d"]}, "method": {}}


def sweep_setting(
    setting: str, values: Sequence[Any], methods: Sequence[str] = tuple(STRENGTHS), seeds: int = 3,
    loss: Sequence[float] = (), **changes: Any,
) -> ReportData:  # fmt: skip
    """Return runs of some methods at each value of a setting; `loss` lowers their values there."""
    found = [
        run_with(setting, value, values[0], method, seed, **changes,
               final_model=(STRENGTHS.get(method, 5.0) + 0.1 * seed - less))
        for value, less in zip(values, loss or [0.0] * len(values), strict=True)
        for method in methods
        for seed in range(seeds)
    ]  # fmt: skip
    return configured(found)


def configured(found: Sequence[tuple[Row, dict[str, Any]]]) -> ReportData:
    """Return the report data of rows with their configurations; naive ones do not iterate."""
    rows = [row for row, _ in found]
    curves = [curve_of(row, 0 if row["method"] == "naive" else 3) for row in rows]
    configs = {row["digest"]: config for row, config in found}
    return replace(data_with(rows, curves), configs=configs)


def sizes(
    dimensions: Sequence[int] = (11, 21), counts: Sequence[int] = (500, 1000, 5000), seeds: int = 2,
    methods: Sequence[str] = tuple(STRENGTHS),
) -> ReportData:  # fmt: skip
    """Return runs whose share of the optimum grows with the rows per squared dimension."""
    rows = []
    for method in methods:
        for d in dimensions:
            for n in counts:
                reached = STRENGTHS.get(method, 5.0) * float(np.tanh(n / d**2 / 4))
                for seed in range(seeds):
                    row = climb(method, d, seed, n=n, final_model=reached + 0.1 * seed,
                                best_oracle=reached + 0.5, label=method.capitalize())  # fmt: skip
                    rows.append(row | {"digest": f"{method}-{d}-{n}"})
    return configured([(row, {"task": {"d": row["d"]}, "method": {}}) for row in rows])

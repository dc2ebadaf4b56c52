"""Promises of the sweep over the level of the test of edges."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.confidence import scores_by_confidence
from ddobench.report.figures.figure import Absence
from ddobench.stats.samples import mean_interval
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import climb, curve_of, data_with, run_row
from tests.support.synthetic_stores import stored_with

LEVELS = (0.5, 0.05, 0.001)


def sweep(
    folder: Path, *, levels: tuple[float, ...] = LEVELS, other: dict[str, Any] | None = None
) -> ReportData:
    """Return runs of three seeds at each level, whose value falls and edges grow with it."""
    runs, configs = [], {}
    for alpha in levels:
        variant = "" if alpha == 0.05 else f"graph.alpha={alpha}"
        for seed in range(3):
            row = climb(method_variant=variant, seed=seed, graph="stein", final_model=seed - alpha,
                        best_oracle=4.0, invalid_final=alpha / 2)  # fmt: skip
            edges = [[0, i] for i in range(1, 1 + round(10 * alpha))]
            runs.append((row, {"edges": edges, "cliques": 3, "pseudo_hessian": [[0.0] * 5] * 5}))
            method = {"graph": {"alpha": alpha}, "rate": 1.0} | (other or {}).get(variant, {})
            configs[row["digest"]] = {"method": method, "task": {"d": 11}}
    return stored_with(folder, runs, configs)


def test_every_level_has_its_scores_from_the_lowest_confidence_up(tmp_path: Path) -> None:
    figure = only(scores_by_confidence, sweep(tmp_path))
    final = figure.data[figure.data["score"] == "final_model"]
    assert final["confidence"].tolist() == [0.5, 0.95, 0.999]
    assert final["mean"].tolist() == pytest.approx([0.5, 0.95, 0.999])
    interval = mean_interval([-0.5, 0.5, 1.5])
    assert (final["low"].iloc[0], final["high"].iloc[0]) == (interval.low, interval.high)
    edges = figure.data[figure.data["score"] == "edges"]
    assert edges["mean"].tolist() == [5, 0, 0]
    assert edges["by_chance"].tolist() == pytest.approx([5.0, 0.5, 0.01])  # of ten pairs
    left, middle, right = figure.drawing.axes
    assert [text.get_text() for text in left.get_xticklabels()] == [".5", ".95", ".999"]
    assert "sd" in left.get_ylabel()
    assert "best visible design" in [line.get_label() for line in left.get_lines()]
    assert "%" in middle.get_ylabel()
    heights = [np.asarray(line.get_ydata(), float).tolist() for line in middle.get_lines()]
    assert pytest.approx([25, 2.5, 0.05]) in heights
    assert right.get_ylim()[0] == 0
    assert "3 seeds per level, a small sample." in figure.caption
    assert overflow(figure) <= 0


def test_runs_that_differ_in_more_than_the_level_are_not_one_sweep(tmp_path: Path) -> None:
    other = {"graph.alpha=0.5": {"rate": 2.0}, "graph.alpha=0.001": {"rate": 3.0}}
    (absence,) = scores_by_confidence(sweep(tmp_path, other=other))
    assert isinstance(absence, Absence)


def test_a_chain_with_one_level_is_told_which_sweep_is_missing(tmp_path: Path) -> None:
    (absence,) = scores_by_confidence(sweep(tmp_path, levels=(0.05,)))
    assert isinstance(absence, Absence)
    assert absence.remedy == "python -m ddobench -m experiment=confidence"


def test_vanished_files_leave_the_scores_and_lose_the_counts(tmp_path: Path) -> None:
    stored = sweep(tmp_path)
    for path in stored.runs["path"]:
        (tmp_path / path).unlink()
    figure = only(scores_by_confidence, stored)
    counted = figure.data.set_index("score")["seeds"]
    assert set(counted["edges"]) == {0}
    assert set(counted["final_model"]) == {3}


def test_methods_without_a_test_and_runs_without_a_config_are_passed_over() -> None:
    rows = [climb(), climb("ga"), run_row()]
    assert list(scores_by_confidence(data_with(rows, [curve_of(rows[0])]))) == []

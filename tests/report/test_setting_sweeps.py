"""Promises of sweeps over one setting of a task or of a method: found and tabled."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ddobench.report.data import ReportData
from ddobench.report.tables.formatting import Group
from ddobench.report.tables.setting_sweeps import describe_settings
from ddobench.stats.samples import mean_interval
from tests.support.pages import DASH
from tests.support.synthetic_runs import climb, data_of
from tests.support.synthetic_sweeps import configured, run_with, sweep_setting

NOISE = (0.0, 0.1, 0.3, 1.0)
BUMPS = ("gaussian", "laplace", "cauchy")


def described(stored: ReportData) -> Group:
    """Return the table of the only sweep of these runs."""
    (group,) = describe_settings(stored.settings, stored.styles).groups
    return group


def test_a_sweep_has_the_default_and_the_changed_levels() -> None:
    stored = sweep_setting("noise", NOISE)
    (sweep,) = stored.sweeps
    assert (sweep.owner, sweep.setting, sweep.numeric) == ("task", "noise", True)
    assert sweep.levels == ("0", "0.1", "0.3", "1")
    assert set(sweep.runs["rest"]) == {""}
    (sweep,) = sweep_setting("bump", BUMPS).sweeps
    assert sweep.levels == ("gaussian", "cauchy", "laplace")  # the usual one first
    assert not sweep.numeric


def test_runs_that_differ_in_more_than_one_setting_are_not_a_sweep() -> None:
    found = [
        run_with("noise", 0.0, 0.0),
        run_with("noise", 0.3, 0.0, d=13),
        run_with("noise", 0.3, 0.0, n=200),
        run_with("noise", 0.3, 0.0, task_variant="map=gaussian noise=0.3"),
        run_with("noise", 0.3, 0.0, budget="tiny"),
    ]
    assert configured(found).sweeps == []


def test_two_settings_that_vary_are_two_sweeps() -> None:
    found = [run_with("noise", value, 0.0) for value in (0.0, 0.3)]
    found += [run_with("bump", "laplace", "gaussian")]
    for _, config in found:
        config["task"] = {"noise": 0.0, "bump": "gaussian"} | config["task"]
    assert [(sweep.setting, sweep.levels) for sweep in configured(found).sweeps] == [
        ("bump", ("gaussian", "laplace")),
        ("noise", ("0", "0.3")),
    ]


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_level_without_a_score_does_not_make_a_sweep(status: str) -> None:
    found = [run_with("noise", 0.0, 0.0), run_with("noise", 0.3, 0.0, status=status)]
    assert configured(found).sweeps == []


def test_runs_without_the_setting_are_left_out() -> None:
    found = [run_with("noise", value, 0.0) for value in (0.0, 0.3)]
    found[0][1]["task"].pop("noise")
    assert configured(found).sweeps == []


def test_a_cell_is_the_mean_share_of_the_optimum_with_its_interval() -> None:
    stored = sweep_setting("bump", BUMPS, loss=(0.0, 2.0, 1.0))
    table = stored.settings
    own = table[(table["level"] == "laplace") & (table["method"] == "mine")].iloc[0]
    shares = [0.70, 0.71, 0.72]
    assert own["share_mean"] == pytest.approx(np.mean(shares))
    assert own["share_low"] == pytest.approx(mean_interval(shares).low)
    assert own["value_mean"] == pytest.approx(7.1)
    assert own["seeds"] == 3
    group = described(stored)
    assert [column.heading for column in group.columns][1:-1] == [
        "bump=gaussian [%]", "bump=cauchy [%]", "bump=laplace [%]",
    ]  # fmt: skip
    lines = group.texts()
    assert [line[0] for line in lines] == ["Mine", "Other", "Naive"]
    assert lines[0][3] == "71.0 [68.5, 73.5]"
    assert lines[0][-1] == "3"


def test_without_an_optimum_methods_are_compared_by_value() -> None:
    found = [
        run_with(
            "bump", bump, "gaussian", method, seed, optimum=np.nan if bump == "network" else 10.0
        )
        for bump in ("gaussian", "network")
        for method in ("mine", "naive")
        for seed in range(2)
    ]
    group = described(configured(found))
    assert [column.heading for column in group.columns][1:3] == [
        "bump=gaussian [%]", "bump=network [sd]",
    ]  # fmt: skip
    assert "Where the optimum is unknown" in group.note
    assert [line[0] for line in group.texts()] == ["Mine", "Naive"]
    assert group.texts()[0][2].startswith("9.05 [")


def test_a_method_that_lacks_a_level_comes_last() -> None:
    found = [run_with("noise", value, 0.0, "naive") for value in (0.0, 0.3, 1.0)]
    found += [run_with("noise", value, 0.0) for value in (0.0, 0.3)]
    found += [run_with("noise", 0.0, 0.0, "other")]  # was not swept
    assert [line[:4] for line in described(configured(found)).texts()] == [
        ["Naive", "40.0", "40.0", "40.0"],
        ["Mine", "90.0", "90.0", DASH],
    ]


def test_a_sweep_is_titled_and_explains_signs() -> None:
    stored = sweep_setting("noise", NOISE)
    styles = {key: replace(style, remarks=("Mine: knows a lot",)) if key[1] == "mine" else style
              for key, style in stored.styles.items()}  # fmt: skip
    (group,) = describe_settings(stored.settings, styles).groups
    assert group.title == "noise: chain, n = 100, d = 11"
    assert group.stem == "settings-noise-chain-d11-n100"
    assert group.note.endswith("\u00b6 Mine: knows a lot.")


def with_levels(
    *levels: Any, setting: str = "graph.alpha", usual: Any = 0.05, rest: str = ""
) -> ReportData:
    """Return runs of a method at levels of one of its settings, their values growing with it."""
    rows, configs = [], {}
    for level in levels:
        own = "" if level == usual else f"{setting}={level}"
        for seed in range(3):
            row = climb(method_variant=" ".join(filter(None, [own, rest])), seed=seed,
                        final_model=5.0 + float(level) + 0.1 * seed)  # fmt: skip
            rows.append(row)
        part, name = setting.split(".")
        configs[rows[-1]["digest"]] = {"method": {part: {name: level}}, "task": {}}
    return replace(data_of(rows), configs=configs)


def test_a_setting_of_a_method_needs_three_levels() -> None:
    stored = with_levels(0.5, 0.05, 0.001)
    (sweep,) = stored.sweeps
    assert (sweep.owner, sweep.setting, sweep.levels) == (
        "method", "graph.alpha", ("0.001", "0.05", "0.5"),
    )  # fmt: skip
    assert stored.settings["share_mean"].tolist() == pytest.approx([0.5101, 0.515, 0.56])
    (line,) = described(stored).texts()
    assert line[-1] == "3"
    assert with_levels(0.5, 0.05).sweeps == []


def test_a_sweep_of_a_method_keeps_its_other_settings_and_needs_numbers() -> None:
    (sweep,) = with_levels(0.5, 0.05, 0.001, rest="prior=1").sweeps
    assert set(sweep.runs["series"]) == {"prior=1"}
    assert with_levels("1", "2", "3", setting="search.name", usual="1").sweeps == []
    unknown = replace(with_levels(0.5, 0.05, 0.001), configs={})
    assert unknown.sweeps == []
    assert unknown.settings.empty

"""Promises of what is told of sweeps over a knob of a task: found, tabled and drawn."""

import numpy as np
import pytest

from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.knobs import shares_by_setting
from ddobench.report.tables.formats import DASH
from ddobench.report.tables.knobs import (
    explain_knobs,
    header,
    knob_cells,
    knob_markdown,
    rank_series,
)
from ddobench.report.tables.sweeps import find_sweeps
from ddobench.stats.samples import mean_interval
from tests.support.drawn import overflow
from tests.support.synthetic_runs import climb, curve_of, data_with
from tests.support.synthetic_sweeps import configured, turn_knob, turned

NOISE = (0.0, 0.1, 0.3, 1.0)
BUMPS = ("gaussian", "laplace", "cauchy")


def test_a_sweep_is_the_usual_setting_and_those_that_depart_from_it() -> None:
    stored = turn_knob("noise", NOISE)
    (sweep,) = find_sweeps(stored.runs, stored.configs)
    assert (sweep.knob, sweep.numeric) == ("noise", True)
    assert sweep.settings == ("0", "0.1", "0.3", "1")
    assert set(sweep.runs["rest"]) == {""}
    words = turn_knob("bump", BUMPS)
    (sweep,) = find_sweeps(words.runs, words.configs)
    assert sweep.settings == ("gaussian", "cauchy", "laplace")  # the usual one first
    assert not sweep.numeric


def test_runs_that_differ_in_another_setting_or_in_size_are_no_sweep() -> None:
    found = [
        turned("noise", 0.0, 0.0),
        turned("noise", 0.3, 0.0, d=13),
        turned("noise", 0.3, 0.0, n=200),
        turned("noise", 0.3, 0.0, task_variant="map=gaussian noise=0.3"),
        turned("noise", 0.3, 0.0, budget="tiny"),
    ]
    stored = configured(found)
    assert find_sweeps(stored.runs, stored.configs) == []


def test_two_knobs_that_were_turned_are_two_sweeps_each_at_the_usual_other() -> None:
    found = [turned("noise", value, 0.0) for value in (0.0, 0.3)]
    found += [turned("bump", "laplace", "gaussian")]
    for _, config in found:
        config["task"] = {"noise": 0.0, "bump": "gaussian"} | config["task"]
    stored = configured(found)
    sweeps = find_sweeps(stored.runs, stored.configs)
    assert [(sweep.knob, sweep.settings) for sweep in sweeps] == [
        ("bump", ("gaussian", "laplace")),
        ("noise", ("0", "0.3")),
    ]


@pytest.mark.parametrize("status", ["failed", "declined"])
def test_a_setting_without_a_score_does_not_make_a_sweep(status: str) -> None:
    found = [turned("noise", 0.0, 0.0), turned("noise", 0.3, 0.0, status=status)]
    stored = configured(found)
    assert find_sweeps(stored.runs, stored.configs) == []


def test_runs_stored_before_there_was_the_knob_are_left_out() -> None:
    found = [turned("noise", value, 0.0) for value in (0.0, 0.3)]
    found[0][1]["task"].pop("noise")
    stored = configured(found)
    assert find_sweeps(stored.runs, stored.configs) == []


def test_a_cell_is_the_mean_share_of_the_optimum_with_its_interval() -> None:
    stored = turn_knob("bump", BUMPS, loss=(0.0, 2.0, 1.0))
    table = stored.knobs
    own = table[(table["setting"] == "laplace") & (table["method"] == "mine")].iloc[0]
    shares = [0.70, 0.71, 0.72]
    assert own["share_mean"] == pytest.approx(np.mean(shares))
    assert own["share_low"] == pytest.approx(mean_interval(shares).low)
    assert own["value_mean"] == pytest.approx(7.1)
    assert own["seeds"] == 3
    assert header(table)[1:-1] == ["bump=gaussian [%]", "bump=cauchy [%]", "bump=laplace [%]"]
    lines = [[text for text, _ in line] for line in knob_cells(table)]
    assert [line[0] for line in lines] == ["Mine", "Other", "Naive"]
    assert lines[0][3] == "71.0 [68.5, 73.5]"
    assert lines[0][-1] == "3"


def test_where_no_optimum_is_known_methods_are_compared_by_value() -> None:
    found = [
        turned(
            "bump", bump, "gaussian", method, seed, optimum=np.nan if bump == "network" else 10.0
        )
        for bump in ("gaussian", "network")
        for method in ("mine", "naive")
        for seed in range(2)
    ]
    table = configured(found).knobs
    assert header(table)[1:3] == ["bump=gaussian [%]", "bump=network [sd]"]
    assert "no exact optimum is known" in explain_knobs(table)
    assert rank_series(table) == [("mine", ""), ("naive", "")]
    assert knob_cells(table)[0][2][0].startswith("9.05 [")


def test_a_method_that_lacks_a_setting_has_a_dash_there_and_comes_after_those_with_all() -> None:
    found = [turned("noise", value, 0.0, "naive") for value in (0.0, 0.3, 1.0)]
    found += [turned("noise", value, 0.0) for value in (0.0, 0.3)]
    found += [turned("noise", 0.0, 0.0, "other")]  # was not swept
    lines = knob_cells(configured(found).knobs)
    assert [[text for text, _ in line][:4] for line in lines] == [
        ["Naive", "40.0", "40.0", "40.0"],
        ["Mine", "90.0", "90.0", DASH],
    ]


def test_the_markdown_has_a_heading_for_each_sweep_and_says_what_signs_mean() -> None:
    text = knob_markdown(turn_knob("noise", NOISE).knobs, ["¶ Mine: knows a lot"])
    assert "## noise: chain, n = 100, d = 11" in text
    assert "¶ Mine: knows a lot." in text
    assert "| Mine | 91.0 [88.5, 93.5] |" in text


def test_numbers_are_drawn_as_curves_with_the_optimum_and_words_as_panels() -> None:
    noise, _ = shares_by_setting(turn_knob("noise", NOISE, loss=(0.0, 0.2, 1.0, 4.0)))
    assert isinstance(noise, Figure)
    (axes,) = noise.drawing.axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "0.1", "0.3", "1"]
    heights = [np.asarray(line.get_ydata(), float).tolist() for line in axes.get_lines()]
    assert pytest.approx([91.0, 89.0, 81.0, 51.0]) in heights
    assert [100.0, 100.0] in heights
    assert axes.get_ylim()[1] > 100
    assert noise.name == "noise-chain-d11-n100"
    assert "3 seeds per method and noise, a small sample." in noise.caption
    assert overflow(noise) <= 0
    bump = next(iter(shares_by_setting(turn_knob("bump", BUMPS))))
    assert isinstance(bump, Figure)
    assert [panel.get_title(loc="left") for panel in bump.drawing.axes] == [
        "bump = gaussian", "bump = cauchy", "bump = laplace",
    ]  # fmt: skip
    rows = [text.get_text() for text in bump.drawing.axes[0].get_yticklabels()]
    assert rows == ["Mine", "Other", "Naive"]
    assert len({panel.get_xlim() for panel in bump.drawing.axes}) == 1
    assert overflow(bump) <= 0


def test_a_panel_without_an_optimum_is_in_sd_and_has_limits_of_its_own() -> None:
    found = [
        turned("bump", bump, "gaussian", optimum=np.nan if bump == "network" else 10.0)
        for bump in ("gaussian", "laplace", "network")
    ]
    figure = next(iter(shares_by_setting(configured(found))))
    assert isinstance(figure, Figure)
    first, second, third = figure.drawing.axes
    assert first.get_xlim() == second.get_xlim() != third.get_xlim()
    assert third.get_xlabel() == "value [sd]"
    assert "no exact optimum is known" in figure.caption


def test_many_settings_are_all_in_the_table_and_the_first_in_the_figure() -> None:
    words = ("usual", *(f"word{i}" for i in range(7)))
    figure = next(iter(shares_by_setting(turn_knob("map", words, methods=["mine"], seeds=1))))
    assert isinstance(figure, Figure)
    assert len(figure.drawing.axes) == 5
    assert "The tables also have word4, word5, word6." in figure.caption


def test_a_chain_without_the_published_sweeps_is_told_how_to_get_them() -> None:
    rows = [climb()]
    absences = list(shares_by_setting(data_with(rows, [curve_of(rows[0])])))
    assert [item.remedy for item in absences if isinstance(item, Absence)] == [
        "python -m ddobench -m experiment=noise", "python -m ddobench -m experiment=forms",
    ]  # fmt: skip
    other = [climb(task="mine")]
    assert list(shares_by_setting(data_with(other, [curve_of(other[0])]))) == []

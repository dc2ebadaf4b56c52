"""Promises of the figure of how many rows a method needs."""

from dataclasses import replace

import numpy as np
import pytest

from ddobench.report.figures.figure import Absence
from ddobench.report.figures.row_shares import optimum_share_by_rows, shade_sizes
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import climb, curve_of, data_with
from tests.support.synthetic_sweeps import sizes


def test_each_method_has_a_panel_with_a_curve_per_dimension_over_rows_per_square() -> None:
    figure = only(optimum_share_by_rows, sizes((11, 21), (500, 1000, 5000)))
    assert [axes.get_title(loc="left") for axes in figure.drawing.axes] == ["Mine", "Other"]
    axes = figure.drawing.axes[0]
    assert axes.get_xscale() == "log"
    curves = [np.asarray(line.get_xdata(), float) for line in axes.get_lines()]
    for d in (11, 21):
        assert any(
            len(x) == 3 and x == pytest.approx(np.array([500, 1000, 5000]) / d**2) for x in curves
        )
    own = figure.data[(figure.data["method"] == "mine") & (figure.data["d"] == 11)]
    assert own["rows_per_square"].tolist() == pytest.approx([500 / 121, 1000 / 121, 5000 / 121])
    assert own["final_mean"].iloc[-1] == pytest.approx((9.0 * np.tanh(5000 / 121 / 4) + 0.05) / 10)
    (legend,) = figure.drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["d = 11", "d = 21"]
    assert "2 seeds per method, d and n, a small sample." in figure.caption
    assert overflow(figure) <= 0


def test_of_many_methods_nine_have_a_panel_and_doing_nothing_none() -> None:
    methods = ["naive", *(f"m{i}" for i in range(11))]
    figure = only(optimum_share_by_rows, sizes((11,), (500, 1000), methods=methods))
    assert len(figure.drawing.axes) == 9
    assert "naive" not in set(figure.data["method"])
    assert "3 of the methods are not drawn; the tables have them" in figure.caption


def test_a_dimension_with_one_number_of_rows_is_left_out_beside_one_with_several() -> None:
    stored = sizes((11, 21), (500, 1000))
    runs = stored.runs[(stored.runs["d"] == 11) | (stored.runs["n"] == 500)]
    figure = only(optimum_share_by_rows, replace(stored, runs=runs))
    assert set(figure.data["d"]) == {11}


def test_one_dimension_with_several_numbers_of_rows_is_enough() -> None:
    figure = only(optimum_share_by_rows, sizes((11,), (500, 1000)))
    assert set(figure.data["d"]) == {11}


def test_methods_with_one_number_of_rows_are_left_out() -> None:
    stored = sizes((11,), (500, 1000), methods=["mine", "other"])
    runs = stored.runs[(stored.runs["method"] == "mine") | (stored.runs["n"] == 500)]
    figure = only(optimum_share_by_rows, replace(stored, runs=runs))
    assert set(figure.data["method"]) == {"mine"}


def test_dimensions_with_one_number_of_rows_each_are_no_curve_and_the_chain_is_told_so() -> None:
    (absence,) = optimum_share_by_rows(sizes((11, 21), (500,)))
    assert isinstance(absence, Absence)
    assert absence.remedy == "python -m ddobench -m experiment=rows"
    other = [climb(task="mine")]
    assert list(optimum_share_by_rows(data_with(other, [curve_of(other[0])]))) == []


def test_without_an_optimum_there_is_no_share_of_it() -> None:
    rows = [climb(n=n, optimum=np.nan) | {"digest": str(n)} for n in (100, 200)]
    (absence,) = optimum_share_by_rows(data_with(rows, [curve_of(row) for row in rows]))
    assert isinstance(absence, Absence)


def test_a_larger_dimension_is_darker_and_no_two_look_alike() -> None:
    looks = shade_sizes([11, 21, 31, 41])
    assert len({look.color for look in looks.values()}) == 4
    assert len({look.marker for look in looks.values()}) == 4
    brightness = [sum(int(look.color[i : i + 2], 16) for i in (1, 3, 5)) for look in looks.values()]
    assert brightness == sorted(brightness, reverse=True)

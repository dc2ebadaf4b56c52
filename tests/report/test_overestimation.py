"""Promises of the figure of prediction and truth."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.overestimation import prediction_and_truth
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import STEPS, climb, curve_of, data_with


def believing(
    excess: Callable[[str], float] = lambda method: 20.0 if method == "ga" else 0.5,
    methods: tuple[str, ...] = ("fgm", "ga"),
    dimensions: tuple[int, ...] = (11, 21),
    seeds: int = 3,
) -> ReportData:
    """Return methods that predict too much by an excess of their own."""
    rows = [climb(m, d, s) for m in methods for d in dimensions for s in range(seeds)]
    curves = [curve_of(row) for row in rows]
    curves = [c.assign(predicted=c["value_model"] + excess(r["method"]) * c["iteration"] / STEPS)
              for r, c in zip(rows, curves, strict=True)]  # fmt: skip
    return data_with(rows, curves)


def heights(figure: Figure, panel: int) -> list[list[float]]:
    """Return the heights of the two curves of a panel."""
    lines = figure.drawing.axes[panel].get_lines()
    return [np.asarray(line.get_ydata(), float).tolist() for line in lines
            if len(np.asarray(line.get_ydata())) == STEPS + 1]  # fmt: skip


def test_every_method_and_dimension_has_both_curves_on_shared_axes() -> None:
    figure = only(prediction_and_truth, believing())
    titles = [axes.get_title(loc="left") for axes in figure.drawing.axes]
    assert titles == ["FGM", "ga", "", ""]
    assert [axes.get_ylabel()[:8] for axes in figure.drawing.axes] == ["$d = 11$", "", "$d = 21$",
                                                                       ""]  # fmt: skip
    truth = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert heights(figure, 1) == [truth, pytest.approx([y + 4 * i for i, y in enumerate(truth)])]
    assert len({axes.get_ylim() for axes in figure.drawing.axes}) == 1
    assert figure.drawing.axes[0].get_ylim()[1] > 26
    assert figure.drawing.axes[0].get_yscale() == "linear"
    assert overflow(figure) <= 0


def test_the_largest_gap_is_named_and_the_sample_described() -> None:
    caption = only(prediction_and_truth, believing()).caption
    assert "ga at d\u00a0=\u00a0" in caption
    assert "predicts 26.0 where the truth is 6.0" in caption
    assert "3 seeds per method and d, a small sample." in caption
    assert "bent" not in caption


def test_a_prediction_that_runs_away_bends_the_axis_and_the_caption_says_so() -> None:
    figure = only(prediction_and_truth, believing(lambda m: 1e5 if m == "ga" else 0.0))
    axes = figure.drawing.axes[0]
    assert axes.get_yscale() == "asinh"
    assert axes.get_ylim()[1] > 1e5
    assert "bent" in figure.caption
    assert overflow(figure) <= 0


def test_a_method_that_predicts_nothing_has_no_panel_and_alone_no_figure() -> None:
    silent = believing(lambda m: np.nan if m == "ga" else 0.5)
    assert set(only(prediction_and_truth, silent).data["method"]) == {"fgm"}
    assert list(prediction_and_truth(believing(lambda _: np.nan))) == []
    older = data_with([climb()], [curve_of(climb())])  # no predictions among its curves
    assert list(prediction_and_truth(older)) == []
    assert list(prediction_and_truth(data_with([climb()], [pd.DataFrame()]))) == []


@pytest.mark.slow
def test_more_than_fit_are_folded_and_thinned_out_and_the_caption_says_so() -> None:
    methods = tuple(f"method{i}" for i in range(7))
    sizes = (11, 21, 31, 41)
    stored = believing(lambda _: 1.0, methods, sizes, seeds=1)
    figure = only(prediction_and_truth, stored)
    drawn = set(figure.data["d"])
    assert len(drawn) == 3
    assert {11, 41} < drawn
    assert f"Left out: d = {(set(sizes) - drawn).pop()}." in figure.caption
    shown = [axes for axes in figure.drawing.axes if axes.get_visible()]
    assert len(shown) == 3 * len(methods)
    assert overflow(figure) <= 0


def test_a_dimension_that_a_method_lacks_says_so() -> None:
    rows = [climb("fgm", 11), climb("fgm", 21), climb("ga", 21)]
    curves = [c.assign(predicted=c["value_model"]) for c in map(curve_of, rows)]
    figure = only(prediction_and_truth, data_with(rows, curves))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.drawing.axes]
    assert texts == [[], ["no run"], [], []]

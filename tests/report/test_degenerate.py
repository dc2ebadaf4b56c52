"""Promises of the figures where there is little to see: one point, or all values the same.

Limits that matplotlib guesses of such data are arbitrary, and where values differ in their last bit
only it warns, or writes the same number at every tick.
"""

import logging
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.costs import seconds_by_method
from ddobench.report.figures.discovered import discovered_graph
from ddobench.report.figures.drawing import blank_drawing, limits_around, set_sizes
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.gallery import FIGURES
from ddobench.report.figures.knobs import shares_by_setting
from ddobench.report.figures.overestimation import prediction_and_truth
from ddobench.report.figures.row_shares import optimum_share_by_rows
from tests.support.drawn import only, overflow
from tests.support.synthetic_portraits import portrait
from tests.support.synthetic_runs import Row, climb, curve_of, data_with
from tests.support.synthetic_stores import Details
from tests.support.synthetic_sweeps import configured, turned

LEVELS = {"": 0.05, "graph.alpha=0.5": 0.5}
SWEEPS = {"optimum_share_by_rows": optimum_share_by_rows, "shares_by_setting": shares_by_setting}
NEED_MORE = {
    "performance_profiles",
    "variance_by_part",
    "losses_by_rule",
    *SWEEPS,
}  # more runs than these tests have
NEED_TWO = {"regret_by_dimension", "optimum_share_by_dimension", "best_visible_and_optimum",
            "mean_rank_diagrams"}  # fmt: skip


def nearly(value: float, place: int) -> float:
    """Return a number, or what may become of it by rounding."""
    return value + 1e-16 * max(abs(value), 0.1) if place % 2 else value


def told(value: float, codes: int = 3) -> Details:
    """Return what a run tells whose designs and codes are all alike."""
    designs = [[nearly(value, row)] * codes for row in range(5)]
    units = {"edges": [], "energy": [[nearly(1 / codes, unit)] * codes for unit in range(2)]}
    return {"edges": [], "cliques": 1, "pseudo_hessian": [[value] * codes] * codes,
            "units_graph": units,
            "codes_sample": [row[1:] for row in designs],
            "designs_sample": designs, "decoded_sample": designs,
            "values_sample": [nearly(value, row) for row in range(5)]}  # fmt: skip


def one_value(value: float, dimensions: tuple[int, ...] = (3, 5), seeds: int = 2) -> ReportData:
    """Return runs of which every score, curve and time is a value or the next number to it."""
    rows: list[Row] = []
    for method, variant in product(("fgm", "ga", "naive"), LEVELS):
        for d, seed in product(dimensions, range(seeds)):
            near = nearly(value, seed)
            rows.append(climb(
                method, d, seed, method_variant=variant, final_model=near, best_oracle=near,
                regret_final=abs(near), optimum=abs(near) + 1, best_visible=near,
                invalid_final=0.25, seconds_fit=nearly(0.1, seed), seconds_propose=0.0,
                graph="stein", latent="vae", path=f"{method}-{variant}-{d}-{seed}",
            ))  # fmt: skip
    curves = [
        curve_of(row, 0 if row["method"] == "naive" else 5).assign(
            value_model=row["final_model"], survivors=row["final_model"] + 1,
            predicted=row["final_model"], invalid=0.25,
        )
        for row in rows
    ]  # fmt: skip
    levels = {row["digest"]: LEVELS[row["method_variant"]] for row in rows}
    configs = {name: {"method": {"graph": {"alpha": alpha}}} for name, alpha in levels.items()}
    found = ReportData.of(pd.DataFrame(rows), None, (portrait(3, edges=[]),), pd.concat(curves))
    return replace(found, configs=configs)


def check_limits(axes: Axes) -> None:
    """Check that the ends of both axes can be told apart."""
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert np.isfinite([low, high]).all()
        assert abs(high - low) > 1e-4 * max(1e-3, abs(low), abs(high))


def draw_and_check(stored: ReportData, caplog: pytest.LogCaptureFixture) -> set[str]:
    """Draw every figure that the runs allow, and return the names of their functions."""
    drawn = set()
    for function in FIGURES:
        for figure in function(stored):
            if isinstance(figure, Figure):
                drawn.add(function.__name__)
                figure.drawing.draw_without_rendering()  # with all ticks and their numbers
                for axes in figure.drawing.axes:
                    check_limits(axes)
    warned = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert not warned  # matplotlib also warns here
    return drawn


@pytest.mark.slow
@pytest.mark.parametrize("value", [0.0, -2.0, -200.0, 1e-9])
def test_every_figure_can_be_drawn_of_values_that_are_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, value: float
) -> None:
    monkeypatch.setattr(ReportData, "diagnostics", lambda *_: told(value))
    drawn = draw_and_check(one_value(value), caplog)
    rest = {function.__name__ for function in FIGURES} - drawn
    assert rest == {"regret_by_rows"} | NEED_MORE


@pytest.mark.slow
def test_every_figure_can_be_drawn_of_a_single_seed_and_size(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ReportData, "diagnostics", lambda *_: told(2.0))
    drawn = draw_and_check(one_value(2.0, (3,), seeds=1), caplog)
    rest = {function.__name__ for function in FIGURES} - drawn
    assert rest == {"regret_by_rows"} | NEED_MORE | NEED_TWO


@pytest.mark.parametrize("value", [0.0, -2.0, -200.0, 1e-9])
def test_sweeps_can_be_drawn_of_values_that_are_all_the_same(
    caplog: pytest.LogCaptureFixture, value: float
) -> None:
    same: Row = {"final_model": nearly(value, 1), "best_oracle": value, "optimum": abs(value) + 1}
    found = [turned("bump", bump, "a", **same) for bump in ("a", "b")]
    found += [turned("noise", noise, 0.0, n=200, **same) for noise in (0.0, 1.0)]
    found += [turned("noise", 0.0, 0.0, n=n, d=5, **same) for n in (100, 101)]
    assert draw_and_check(configured(found), caplog) >= {*SWEEPS}


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.1, 1.0, 2.5, 100.0])
@pytest.mark.parametrize("bits", [0, 1])
def test_equal_times_are_drawn_in_the_middle_of_the_same_range(seconds: float, bits: int) -> None:
    other = seconds
    for _ in range(bits):
        other = float(np.nextafter(other, np.inf))
    rows = [climb(seed=seed, seconds_fit=time, seconds_propose=other)
            for seed, time in enumerate((seconds, other))]  # fmt: skip
    figure = only(seconds_by_method, data_with(rows, [curve_of(row) for row in rows]))
    for axes in figure.drawing.axes:
        low, high = np.log10(axes.get_xlim())
        assert high - low == pytest.approx(0.9)
        assert (low + high) / 2 == pytest.approx(np.log10(max(seconds, 1e-6)), abs=1e-9)
        shown = [tick for tick in axes.get_xticks() if 10**low <= tick <= 10**high]
        assert len(shown) >= 2
    assert overflow(figure) <= 0


def test_predictions_of_methods_that_propose_once_have_an_axis() -> None:
    rows = [climb("naive"), climb("ga")]
    curves = [curve_of(row, steps) for row, steps in zip(rows, (0, 5), strict=True)]
    curves[0] = curves[0].assign(predicted=-1.0)  # the one that climbs predicts nothing
    figure = only(prediction_and_truth, data_with(rows, curves))
    check_limits(figure.drawing.axes[0])


def test_a_graph_of_one_code_is_not_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReportData, "diagnostics", lambda *_: told(1.0, codes=1))
    assert list(discovered_graph(one_value(1.0))) == []


def test_a_single_size_has_an_axis() -> None:
    axes = blank_drawing().add_subplot()
    set_sizes(axes, [20])
    low, high = axes.get_xlim()
    assert low < 20 < high
    assert list(axes.get_xticks()) == [20]


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.0, 10.0], (-1.0, 11.0)),
        ([0.0, np.nan, 10.0, np.inf], (-1.0, 11.0)),
        ([7.0], (6.958, 7.042)),
        ([0.0, 1e-300], (-0.006, 0.006)),
        ([-1e6, -1e6], (-1006e3, -994e3)),
        ([], (-0.006, 0.006)),
    ],
)
def test_limits_leave_room_and_never_meet(values: list[float], limits: tuple[float, float]) -> None:
    assert limits_around(values, room=0.1) == pytest.approx(limits)

"""Promises of the figures along the ascent, on curves made by hand."""

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data.curves import MOST_SERIES
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure, FigureFunction
from ddobench.report.figures.shares import optimum_share_by_dimension
from ddobench.report.figures.trajectories import (
    invalid_by_iteration,
    survivors_by_iteration,
    value_by_iteration,
)
from ddobench.report.tables.looks import MARKERS
from ddobench.stats.samples import mean_interval, t_interval
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import STEPS, climb, curve_of, data_with


def study(dimensions: tuple[int, ...] = (11, 21), seeds: int = 3) -> ReportData:
    """Return two methods that climb and one that proposes once."""
    rows = [climb(m, d, s) for m in ("fgm", "ga", "naive") for d in dimensions
            for s in range(seeds)]  # fmt: skip
    return data_with(rows, [curve_of(r, 0 if r["method"] == "naive" else STEPS) for r in rows])


def lines_of(figure: Figure, panel: int = 0) -> list[list[float]]:
    """Return the heights of the lines in a panel."""
    lines = figure.drawing.axes[panel].get_lines()
    return [np.asarray(line.get_ydata(), float).tolist() for line in lines]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "dimensions"),
    [
        (value_by_iteration, (11, 21, 31, 41)),
        (survivors_by_iteration, (21, 41)),
        (invalid_by_iteration, (21,)),
    ],
)
def test_every_dimension_has_its_panel_and_everything_is_on_the_page(
    function: FigureFunction, dimensions: tuple[int, ...]
) -> None:
    figure = only(function, study(dimensions))
    titles = [axes.get_title(loc="left") for axes in figure.drawing.axes]
    assert titles == [f"$d = {d}$" for d in dimensions]
    assert "iteration" in figure.drawing.axes[-1].get_xlabel()
    assert "[" in figure.drawing.axes[0].get_ylabel()
    assert overflow(figure) <= 0
    (legend,) = figure.drawing.legends
    assert [text.get_text() for text in legend.get_texts()] == ["FGM", "ga", "Naive"]
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_tightbbox() or box) for axes in figure.drawing.axes)


def test_the_line_is_the_mean_of_all_seeds_with_students_interval() -> None:
    figure = only(value_by_iteration, study())
    points = figure.data[(figure.data["method"] == "fgm") & (figure.data["d"] == 11)]
    assert points["mean"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    interval = t_interval([0.0, 1.0, 2.0])
    assert points[["low", "high"]].iloc[0].tolist() == pytest.approx([interval.low, interval.high])
    assert points["mean"].tolist() in lines_of(figure)
    assert "3 seeds per method and d, a small sample." in figure.caption


def test_the_landmarks_are_drawn_named_and_in_the_numbers() -> None:
    figure = only(value_by_iteration, study())
    assert {(4.0, 10.0)} == set(zip(figure.data["best_visible"], figure.data["optimum"],
                                    strict=True))  # fmt: skip
    assert [4.0, 4.0] in lines_of(figure)
    assert [10.0, 10.0] in lines_of(figure)
    texts = [text.get_text() for text in figure.drawing.axes[0].texts]
    assert texts == ["best visible\n4.00", "optimum\n10.00"]


@pytest.mark.slow
@pytest.mark.parametrize("best_visible", [4.0, 9.0, 9.95, 10.0, 10.05, 12.0])  # noisy, at last
def test_the_numbers_of_landmarks_never_meet(best_visible: float) -> None:
    row = climb(best_visible=best_visible)
    figure = only(value_by_iteration, data_with([row], [curve_of(row)]))
    extents = [text.get_window_extent() for text in figure.drawing.axes[0].texts]
    lower, upper = reversed(extents) if best_visible > 10.0 else extents
    assert lower.y1 <= upper.y0
    assert overflow(figure) <= 0


def test_a_method_that_proposes_once_is_a_level_line_across_the_panel() -> None:
    figure = only(value_by_iteration, study())
    (level,) = [line for line in figure.drawing.axes[0].get_lines()
                if np.array_equal(np.asarray(line.get_ydata()), [1.0, 1.0])]  # fmt: skip
    assert np.asarray(level.get_xdata()).tolist() == [0, STEPS]
    assert "proposes once" in figure.caption
    assert list(value_by_iteration(data_with([row := climb()], [curve_of(row, 0)]))) == []


def test_the_survivors_line_ends_at_a_bar_where_the_first_seed_stops() -> None:
    rows = [climb(seed=s) for s in range(3)]
    curves = [curve_of(row, stops=stop) for row, stop in zip(rows, (3, 5, None), strict=True)]
    figure = only(survivors_by_iteration, data_with(rows, curves))
    assert figure.data["counted"].tolist() == [3, 3, 3, 2, 2, 1]
    assert figure.data["mean"].isna().tolist() == [False] * 3 + [True] * 3
    assert [2.0, 3.0, 4.0] in lines_of(figure)
    bars = [line for line in figure.drawing.axes[0].get_lines() if line.get_marker() == "|"]
    assert {(float(c.get_xdata()[0]), float(c.get_ydata()[0])) for c in bars} == {(2.0, 4.0)}  # type: ignore[index, arg-type]
    assert "|" not in MARKERS  # which no method has
    assert "all its seeds reach" in figure.caption


def test_a_series_whose_seed_stops_at_once_is_named_instead_of_drawn() -> None:
    rows = [climb(m, seed=s) for m in ("fgm", "ga") for s in range(2)]
    curves = [curve_of(row, stops=0 if row["method"] == "ga" else None) for row in rows]
    figure = only(survivors_by_iteration, data_with(rows, curves))
    assert "some seed stops at once: ga at d\u00a0=\u00a011." in figure.caption


def test_the_invalid_share_stays_between_nothing_and_everything() -> None:
    rows = [climb(seed=s) for s in range(2)]
    curves = [curve_of(row) for row in rows]
    curves[1]["invalid"] = 1.0
    figure = only(invalid_by_iteration, data_with(rows, curves))
    assert figure.data["low"].min() == 0.0
    assert figure.data["high"].max() == 1.0
    assert "%" in figure.drawing.axes[0].get_ylabel()


def test_where_nothing_is_invalid_the_headline_says_so_and_has_no_double() -> None:
    rows = [climb(seed=s) for s in range(2)]
    curves = [c.assign(invalid=0.0, survivors=c["value_model"]) for c in map(curve_of, rows)]
    stored = data_with(rows, curves)
    assert list(survivors_by_iteration(stored)) == list(invalid_by_iteration(stored)) == []
    caption = only(value_by_iteration, stored).caption
    assert "No design was ever invalid." in caption
    assert "the same here" in caption


def test_failed_and_missing_seeds_are_counted_and_drawn_hollow() -> None:
    rows = [climb(m, seed=s) for m in ("fgm", "ga") for s in range(3)]
    rows[0] |= {"status": "failed"}
    del rows[-1]
    figure = only(value_by_iteration, data_with(rows, [curve_of(r) for r in rows]))
    assert "2 seeds" in figure.caption
    assert "1 failed, 1 missing" in figure.caption
    marked = [line for line in figure.drawing.axes[0].get_lines() if line.get_marker() in MARKERS]
    assert marked
    assert all(line.get_markerfacecolor() == "white" for line in marked)


def test_where_variants_would_tangle_only_defaults_stay_and_the_caption_counts_the_rest() -> None:
    variants = ["", *(f"prior={i}" for i in range(MOST_SERIES))]
    rows = [climb("fgm", method_variant=v) for v in variants]
    rows += [climb("ga", method_variant="steps=200")]
    figure = only(value_by_iteration, data_with(rows, [curve_of(r) for r in rows]))
    assert set(zip(figure.data["method"], figure.data["method_variant"], strict=True)) == {
        ("fgm", ""), ("ga", "steps=200"),
    }  # fmt: skip
    assert f"{MOST_SERIES} variants of these methods are left out" in figure.caption


def test_curves_of_runs_that_the_filters_leave_out_are_left_out_too() -> None:
    rows = [climb(d=d, seed=s) for d in (11, 21) for s in range(2)]
    curves = pd.concat([curve_of(row) for row in rows])
    stored = ReportData.of(pd.DataFrame(rows), {"d": 21, "seed": "0"}, curves=curves)
    assert set(zip(stored.curves["d"], stored.curves["seed"], strict=True)) == {(21, 0)}


def test_the_share_of_the_optimum_is_averaged_over_seeds_for_both_readings() -> None:
    rows = [
        climb(m, d, s, final_model=float(s), best_oracle=s + 1.0, optimum=10.0 * (s + 1))
        for m in ("fgm", "ga")
        for d in (11, 21)
        for s in range(3)
    ]
    figure = only(optimum_share_by_dimension, data_with(rows, [curve_of(row) for row in rows]))
    first = figure.data.iloc[0]
    shares = [0.0, 1 / 20, 2 / 30]
    interval = mean_interval(shares)
    assert first["final_mean"] == pytest.approx(np.mean(shares))
    assert (first["final_low"], first["final_high"]) == pytest.approx((interval.low, interval.high))
    assert first["best_mean"] == pytest.approx(0.1)
    assert first["best_visible_mean"] == pytest.approx(np.mean([4 / 10, 4 / 20, 4 / 30]))
    titles = [axes.get_title(loc="left") for axes in figure.drawing.axes]
    assert titles == ["final, ranked by the method", "best iteration, ranked by the oracle"]
    assert "which no method could" in figure.caption
    assert figure.data.loc[figure.data["method"] == "ga", "best_mean"].tolist() in lines_of(
        figure, 1
    )
    assert overflow(figure) <= 0


def test_a_share_needs_two_dimensions_and_a_known_optimum() -> None:
    assert list(optimum_share_by_dimension(study(dimensions=(11,)))) == []
    rows = [climb(d=d, optimum=np.nan) for d in (11, 21)]
    unknown = data_with(rows, [curve_of(row) for row in rows])
    assert list(optimum_share_by_dimension(unknown)) == []
    assert len(list(value_by_iteration(unknown))) == 1


def test_a_band_of_two_seeds_does_not_dwarf_the_curves() -> None:
    rows = [climb(seed=s) for s in (0, 8)]
    figure = only(value_by_iteration, data_with(rows, [curve_of(row) for row in rows]))
    bottom, top = figure.drawing.axes[0].get_ylim()
    assert figure.data["high"].max() > 50
    assert -4 < bottom < 0
    assert 10 < top < 15
    assert "left out" in figure.caption  # rather than cut by the frame


@pytest.mark.parametrize("methods", [["fgm"], ["fgm", "ga", "coms", "rwr"]])
def test_no_band_and_no_bar_is_cut_by_the_frame(methods: list[str]) -> None:
    rows = [climb(m, seed=s) for m in methods for s in range(5)]
    figure = only(value_by_iteration, data_with(rows, [curve_of(row) for row in rows]))
    axes = figure.drawing.axes[0]
    last = figure.data.groupby("method").tail(1)
    bottom, top = axes.get_ylim()
    assert bottom < last["low"].min() < last["high"].max() < top
    assert ("bands" in figure.caption) == (len(methods) == 1)


def test_where_climbs_are_unequally_long_the_short_ones_are_seen() -> None:
    rows = [climb(m, seed=s) for m in ("fgm", "units") for s in range(2)]
    curves = [curve_of(row, 5 if row["method"] == "fgm" else 500) for row in rows]
    figure = only(value_by_iteration, data_with(rows, curves))
    axes = figure.drawing.axes[0]
    (start, short, end), _ = np.hsplit(axes.transData.transform([(0, 0), (5, 0), (500, 0)]), 2)
    assert short - start > 0.15 * (end - start)
    assert "linear to 5" in figure.caption

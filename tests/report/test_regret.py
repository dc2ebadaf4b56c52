"""Promises of the regret figures, on synthetic runs."""

import numpy as np
import pytest
from matplotlib.offsetbox import AnnotationBbox

from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.gallery import draw_all
from ddobench.report.figures.regret import regret_by_dimension, regret_by_rows
from ddobench.stats.samples import mean_interval
from tests.support.drawn import overflow
from tests.support.synthetic_runs import Row, evidence_of, sweep


def peak_rows() -> list[Row]:
    """Return runs of two variants at four numbers of rows, with a peak of one of them."""
    return [
        row | {"method_variant": variant, "regret_final": regret, "digest": f"{n}{variant}"}
        for variant in ("", "ridge=1.0")
        for n, regret in ((150, 2.0), (200, 40.0 if not variant else 1.0), (250, 0.0), (300, 0.0))
        for row in sweep(methods=["fgm"], dimensions=[100], seeds=2, n=n)
    ]


def test_a_label_with_dollar_signs_is_not_taken_for_mathematics() -> None:
    rows = sweep(methods=["fgm"], seeds=2, label=r"$\frac{", task_variant=r"price=$\oops")
    figures = [item for item in draw_all(evidence_of(rows)) if isinstance(item, Figure)]
    assert len(figures) == 2
    assert all(figure.render("svg") for figure in figures)


def test_a_figure_draws_the_numbers_it_returns() -> None:
    stored = evidence_of(sweep())
    (figure,) = regret_by_dimension(stored)
    assert isinstance(figure, Figure)
    runs = stored.runs
    for row in figure.data.to_dict("records"):
        cell = runs[(runs["method"] == row["method"]) & (runs["d"] == row["d"])]["regret_final"]
        interval = mean_interval(cell)
        assert row["regret_mean"] == pytest.approx(cell.mean())
        found = row["regret_low"], row["regret_high"]
        assert found == pytest.approx((interval.low, interval.high))
    lines = [np.asarray(line.get_ydata(), float) for line in figure.drawing.axes[0].get_lines()]
    for _, series in figure.data.groupby("method"):
        means = series.sort_values("d")["regret_mean"].to_numpy(float)
        assert any(len(line) == len(means) and np.allclose(line, means) for line in lines)


def test_a_curve_at_zero_is_inside_the_axes_and_every_label_on_the_page() -> None:
    (figure,) = regret_by_dimension(evidence_of(sweep(methods=["fgm", "naive", "mine", "yours"])))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    bottom, top = axes.get_ylim()
    assert bottom < -0.01 * top
    assert overflow(figure) <= 0
    boxes = [
        label.offsetbox.get_window_extent()
        for label in axes.artists
        if isinstance(label, AnnotationBbox)
    ]
    inside = axes.get_window_extent()
    assert len(boxes) == 4
    assert not [label for label in axes.artists if getattr(label, "arrow_patch", None)]
    assert all(box.x0 >= inside.x1 for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_axes_are_named_with_their_units_and_the_caption_counts_the_seeds() -> None:
    (figure,) = regret_by_dimension(evidence_of(sweep()))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    assert "dimension" in axes.get_xlabel()
    assert "raw units" in axes.get_ylabel()
    assert "12 seeds" in figure.caption
    assert "95\u00a0% intervals" in figure.caption
    assert "† knows the true graph." in figure.caption


@pytest.mark.slow
def test_variants_sizes_and_budgets_get_figures_of_their_own() -> None:
    rows = [
        *sweep(seeds=2),
        *sweep(seeds=2, n=300),
        *sweep(seeds=2, task_variant="signs=random"),
        *sweep(seeds=2, task_variant="signs:random"),
        *sweep(seeds=2, task_variant="signs=other", budget="tiny"),
        *sweep(seeds=2, budget="tiny"),  # which the full one is drawn for
    ]
    found = [item.name for item in draw_all(evidence_of(rows)) if isinstance(item, Figure)]
    assert {name for name in found if name.startswith("regret")} == {
        "regret-quadratic-n100",
        "regret-quadratic-signs-other-n100-tiny",
        "regret-quadratic-n300",
        "regret-quadratic-signs-random-n100",
        "regret-quadratic-signs-random-n100-2",
        "regret-quadratic-d40",
    }
    assert len(found) == len(set(found))


def test_regret_against_visible_rows_draws_each_variant_as_a_series() -> None:
    stored = evidence_of(peak_rows())
    assert list(regret_by_dimension(stored)) == []  # neither a curve nor a complaint
    (figure,) = regret_by_rows(stored)
    assert isinstance(figure, Figure)
    assert figure.name == "regret-quadratic-d100"
    axes = figure.drawing.axes[0]
    assert "visible rows" in axes.get_xlabel()
    lines = [list(np.asarray(line.get_ydata(), float)) for line in axes.get_lines()]
    assert [2.0, 40.0, 0.0, 0.0] in lines
    assert [2.0, 1.0, 0.0, 0.0] in lines


def test_of_too_many_variants_only_the_defaults_are_drawn_and_the_caption_counts_the_rest() -> None:
    rows = sweep(seeds=3)
    for ridge in range(1, 9):
        rows += sweep(methods=["fgm"], seeds=3, method_variant=f"ridge={ridge}")
    for row in rows:
        row["digest"] += row["method_variant"]
    (figure,) = regret_by_dimension(evidence_of(rows))
    assert isinstance(figure, Figure)
    assert set(figure.data["method_variant"]) == {""}
    assert set(figure.data["method"]) == {"fgm", "naive"}
    assert "8 variants of these methods are left out" in figure.caption


def test_rows_of_very_different_number_get_a_logarithmic_axis() -> None:
    rows = [
        row | {"digest": f"{n}"}
        for n in (100, 1000, 10000)
        for row in sweep(methods=["naive"], dimensions=[10, 20], seeds=2, n=n)
    ]
    (figure,) = regret_by_rows(evidence_of(rows))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    assert axes.get_xscale() == "log"
    assert list(axes.get_xticks()) == [100, 1000, 10000]
    assert "for d = 10 as well" in figure.caption


def test_an_absence_names_a_command_that_would_help() -> None:
    rows = sweep(dimensions=[20], seeds=1, task_variant="signs=random d_obs=None", budget="tiny")
    (absence,) = regret_by_dimension(evidence_of(rows))
    assert isinstance(absence, Absence)
    assert absence.remedy == (
        "python -m ddobench -m task=quadratic d=20 n=100,200,400 task.signs=random "
        "task.d_obs=null budget=tiny method=fgm,naive seed=0-49"
    )


def test_doing_nothing_is_drawn_even_where_no_run_of_it_is_stored() -> None:
    rows = [row | {"y_sd": 2.0} for row in sweep(methods=["fgm"])]
    (figure,) = regret_by_dimension(evidence_of(rows))
    assert isinstance(figure, Figure)
    lines = [list(np.asarray(line.get_ydata(), float)) for line in figure.drawing.axes[0].lines]
    assert [4.0, 4.0, 4.0] in lines  # (optimum 4 - best visible 2) sd of 2 raw units
    assert "doing nothing" in figure.caption

"""Promises of every figure of a report."""

import logging
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data import ReportData
from ddobench.report.figures import gallery
from ddobench.report.figures.draw import limits_around
from ddobench.report.figures.figure import Figure, render_drawing
from ddobench.report.figures.row_figures import RankPlot
from ddobench.report.tables.formatting import name_runs
from ddobench.report.tables.select import BY_SIZE, SERIES, is_best_visible
from tests.support.drawn import draw, overflow
from tests.support.varied_store import VariedReport

pytestmark = pytest.mark.slow  # every figure is drawn twice

OF_TASKS = {"graph", "marginals", "designs", "landmarks"}
OF_ONE_RUN = {"discovered", "units", "codes"}
OF_VALUES = {"headline", "share", "rows", "regret", "value", "survivors", "path", "optimism",
            "setting", "controls", "profiles", "ranks", "factorial", "coverage"}  # fmt: skip
KINDS = sorted(OF_TASKS | OF_ONE_RUN | OF_VALUES | {"invalid", "costs", "plane"})


def test_every_kind_of_figure_is_drawn_and_names_are_unique(varied: VariedReport) -> None:
    assert {figure.kind for figure in varied.figures} == set(KINDS)
    names = [figure.name for figure in varied.figures]
    assert len(names) == len(set(names))
    written = {path.stem for path in varied.written.files if path.parent.name == "figures"}
    assert written == set(names)


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_complete_reproducible_and_does_not_overflow(
    varied: VariedReport, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    for figure in (figure for figure in varied.figures if figure.kind == kind):
        assert figure.title
        assert figure.caption.endswith(".")
        assert figure.commands == tuple(sorted(commands_of(figure, varied.data)))
        assert figure.about_task == (kind in OF_TASKS)
        folder = varied.written.page.parent / "figures"
        check_numbers(figure.data, folder / f"{figure.name}.csv")
        copy = pickle.loads(pickle.dumps(figure))
        drawing = draw(copy)  # a warning is an error in all tests
        assert overflow(drawing) <= 0, figure.name
        drawn_elsewhere = (folder / f"{figure.name}.svg").read_bytes()
        assert render_drawing(drawing, "svg") == drawn_elsewhere, figure.name
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("value", [0.0, -200.0, 1e-9])
def test_limits_around_nearly_equal_numbers_are_apart(value: float) -> None:
    low, high = limits_around([value, np.nextafter(value, 1)])
    assert high - low > 1e-4 * max(1e-3, abs(value))


def test_nearly_equal_numbers_have_legible_axes(
    varied: VariedReport, caplog: pytest.LogCaptureFixture
) -> None:
    """Check what matplotlib guesses badly, or with a warning: values that differ by rounding."""
    value = -200.0
    figures = {figure.kind: figure for figure in varied.figures if figure.kind != "costs"}  # > 0
    for figure in figures.values():
        near = np.where(np.arange(len(figure.data)) % 2, value, np.nextafter(value, 1))
        flat = {str(name): near for name in figure.data.select_dtypes("float")
                if name not in ("x", "place")}  # fmt: skip
        drawing = draw(replace(figure, data=figure.data.assign(**flat)))
        drawing.draw_without_rendering()  # with all ticks and their numbers
        for axes in drawing.axes:
            for low, high in (axes.get_xlim(), axes.get_ylim()):
                assert abs(high - low) > 1e-4 * max(1e-3, abs(low), abs(high)), figure.name
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("naive", [True, False])
def test_every_panel_that_compares_methods_shows_the_best_visible_design(
    varied: VariedReport, naive: bool
) -> None:
    figures = varied.figures
    if not naive:
        assert varied.data.folder is not None
        some = ReportData.read(varied.data.folder, {"method": ["ga", "fgm", "units"]})
        figures = list(gallery.make_figures(some))
    figures = [figure for figure in figures if figure.kind in OF_VALUES]
    assert {figure.kind for figure in figures} == OF_VALUES
    for figure in figures:
        if isinstance(figure.plot, RankPlot):
            names = map(str, figure.plot.ranking.means.index)
            assert any(name == "best visible design" or is_best_visible(name) for name in names)
            continue
        panels = figure.data.assign(panel=figure.data.get("panel", "")).groupby("panel")
        for panel, own in panels:
            if panel == "invalid_final":  # not a value
                continue
            drawn = own["method"].map(is_best_visible).astype(bool).any()
            drawn |= "visible" in set(own.get("series", ()))
            marked = "best_visible" in own and own["best_visible"].notna().any()
            assert drawn or marked, f"{figure.name}, {panel}"


def commands_of(figure: Figure, data: ReportData) -> set[str]:
    """Return the different commands of the runs that a figure shows."""
    runs, drawn = data.runs, figure.data
    if figure.kind in OF_ONE_RUN:
        named = {
            f"{name_runs(row, 'n', 'd')}, {data.style(row).label}, seed {row['seed']}": row
            for _, row in runs.iterrows()
        }
        return {row["command"] for name, row in named.items() if figure.title.endswith(f": {name}")}
    if figure.kind == "ranks":
        (lineup,) = [one for one in data.lineups if ", ".join(one.methods) in set(drawn["lineup"])]
        return set(lineup.runs["command"])
    if figure.kind in OF_TASKS - {"landmarks"}:
        (shown,) = [one for one in data.task_samples if one.task == figure.task]
        drawn = pd.DataFrame([vars(shown)])[["task", "task_variant", "d", "n"]]
    keys = [name for name in (*BY_SIZE, *SERIES) if name in drawn]
    wanted = set(drawn[keys].itertuples(index=False, name=None))
    return {row["command"] for _, row in runs.iterrows() if tuple(row[keys]) in wanted}


def check_numbers(data: pd.DataFrame, path: Path) -> None:
    """Check that a file has the columns and the numbers of a figure."""
    stored = pd.read_csv(path)
    assert list(stored) == list(data)
    assert len(stored) == len(data)
    for name in data.select_dtypes("number"):
        np.testing.assert_allclose(stored[name], data[name], rtol=1e-9, err_msg=str(name))

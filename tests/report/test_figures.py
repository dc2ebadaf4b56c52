"""What every figure of a report promises, whatever it shows."""

import logging
import pickle
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.report import Written, write_report
from ddobench.report.data import ReportData
from ddobench.report.figures import gallery
from ddobench.report.figures.figure import Figure, render_drawing
from ddobench.report.figures.row_figures import RankPlot
from ddobench.report.tables.select import BY_SIZE, SERIES, is_best_visible
from ddobench.report.tables.table import name_runs
from tests.support.drawn import draw, overflow
from tests.support.varied_store import varied_store

pytestmark = pytest.mark.slow  # every figure is drawn twice

OF_TASKS = {"graph", "marginals", "designs", "landmarks"}
OF_ONE_RUN = {"discovered", "units", "codes"}
OF_WORTH = {"headline", "share", "rows", "regret", "value", "survivors", "path", "optimism",
            "setting", "controls", "profiles", "ranks", "factorial"}  # fmt: skip
KINDS = sorted(OF_TASKS | OF_ONE_RUN | OF_WORTH | {"invalid", "costs"})


@dataclass(frozen=True)
class Report:
    """A written report, the runs behind it, and its figures made again."""

    data: ReportData
    written: Written
    figures: list[Figure]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Write the report of a store that has something for every kind of figure."""
    folder = tmp_path_factory.mktemp("varied")
    varied_store(folder / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery, "MOST_CLOSE", 1)  # further families look alike and take time
        written = write_report(folder / "runs", folder / "report", formats="svg,csv")
        data = ReportData.read(folder / "runs")
        return Report(data, written, list(gallery.make_figures(data)))


def test_every_kind_of_figure_is_there_and_every_name_is_taken_once(report: Report) -> None:
    assert {figure.kind for figure in report.figures} == set(KINDS)
    names = [figure.name for figure in report.figures]
    assert len(names) == len(set(names))
    written = {path.stem for path in report.written.files if path.parent.name == "figures"}
    assert written == set(names)


@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_keeps_what_all_figures_promise(
    report: Report, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    for figure in (figure for figure in report.figures if figure.kind == kind):
        assert figure.title
        assert figure.caption.endswith(".")
        assert figure.commands == tuple(sorted(commands_of(figure, report.data)))
        assert figure.about_task == (kind in OF_TASKS)
        folder = report.written.page.parent / "figures"
        check_numbers(figure.data, folder / f"{figure.name}.csv")
        copy = pickle.loads(pickle.dumps(figure))
        drawing = draw(copy)  # a warning is an error in all tests
        assert overflow(drawing) <= 0, figure.name
        drawn_elsewhere = (folder / f"{figure.name}.svg").read_bytes()
        assert render_drawing(drawing, "svg") == drawn_elsewhere, figure.name
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("methods", [None, ["ga", "fgm", "units"]], ids=["all", "without naive"])
def test_every_panel_that_compares_methods_shows_the_best_visible_design(
    report: Report, methods: list[str] | None
) -> None:
    assert report.data.folder is not None
    some = ReportData.read(report.data.folder, {"method": methods})
    figures = [figure for figure in gallery.make_figures(some) if figure.kind in OF_WORTH]
    assert {figure.kind for figure in figures} == OF_WORTH
    for figure in figures:
        if isinstance(figure.plot, RankPlot):
            names = map(str, figure.plot.ranking.means.index)
            assert any(name == "best visible design" or is_best_visible(name) for name in names)
            continue
        panels = figure.data.assign(panel=figure.data.get("panel", "")).groupby("panel")
        for panel, own in panels:
            if panel == "invalid_final":  # a share of designs, no worth
                continue
            drawn = own["method"].map(is_best_visible).astype(bool).any()
            marked = "best_visible" in own and own["best_visible"].notna().any()
            assert drawn or marked, f"{figure.name}, {panel}"


def commands_of(figure: Figure, data: ReportData) -> set[str]:
    """Return the different commands of the runs that a figure shows."""
    runs, drawn = data.runs, figure.data
    if figure.kind in OF_ONE_RUN:
        named = [figure.title.endswith(f"{data.style(row).label}, seed {row['seed']}")
                 and f"{name_runs(row, 'n', 'd')}," in figure.title for _, row in runs.iterrows()]  # fmt: skip
        return set(runs.loc[named, "command"])
    if figure.kind == "ranks":
        (lineup,) = [one for one in data.lineups if ", ".join(one.methods) in set(drawn["lineup"])]
        return set(lineup.runs["command"])
    if figure.kind in OF_TASKS - {"landmarks"}:
        (shown,) = [one for one in data.portraits if one.task == figure.task]
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

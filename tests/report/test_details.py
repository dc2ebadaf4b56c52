"""Promises of reading single runs: files come and go, and older ones tell less."""

from pathlib import Path
from typing import Any

import pytest

from ddobench.report.data.details import climbing_runs, column, find_details, read_details
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.codes import codes_beside_designs
from ddobench.report.figures.confidence import scores_by_confidence
from ddobench.report.figures.costs import seconds_by_method
from ddobench.report.figures.discovered import discovered_graph
from ddobench.report.figures.figure import Figure, FigureFunction
from ddobench.report.figures.overestimation import prediction_and_truth
from tests.support.drawn import overflow
from tests.support.synthetic_runs import climb, curve_of, data_with
from tests.support.synthetic_stores import Details, stored_with


def test_the_plainest_climbing_run_comes_first() -> None:
    rows = [climb(method_variant=v, seed=s) for v in ("graph=empty", "") for s in (1, 0)]
    rows += [climb("naive"), climb(seed=2, status="failed")]
    stored = data_with(rows, [curve_of(r, 0 if r["method"] == "naive" else 5) for r in rows])
    runs = climbing_runs(stored)
    assert list(zip(runs["method_variant"], runs["seed"], strict=True)) == [
        ("", 0), ("", 1), ("graph=empty", 0), ("graph=empty", 1),
    ]  # fmt: skip


def test_the_first_run_that_tells_everything_asked_for_is_found(tmp_path: Path) -> None:
    told: list[Details] = [{}, {"edges": None}, {"edges": [], "cliques": 2}]
    stored = stored_with(tmp_path, [(climb(seed=s), told[s]) for s in range(3)])
    found = find_details(stored, stored.runs, ["edges", "cliques"])
    assert found is not None
    assert (found[0]["seed"], found[1]) == (2, {"edges": [], "cliques": 2})
    assert find_details(stored, stored.runs, ["codes"]) is None


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"torn")])
def test_a_file_that_is_gone_or_torn_tells_nothing(tmp_path: Path, damage: Any) -> None:
    stored = stored_with(tmp_path, [(climb(), {"edges": []})])
    run = stored.runs.iloc[0]
    assert read_details(stored, run) == {"edges": []}
    damage(tmp_path / run["path"])
    assert read_details(stored, run) == {}


def test_runs_that_were_never_stored_tell_nothing_and_lack_columns() -> None:
    stored = data_with([climb()], [curve_of(climb())])
    assert read_details(stored, stored.runs.iloc[0]) == {}
    assert column(stored.runs, "graph").tolist() == [""]


@pytest.mark.parametrize(
    "function",
    [
        discovered_graph,
        scores_by_confidence,
        codes_beside_designs,
        prediction_and_truth,
        seconds_by_method,
    ],
)
def test_an_empty_store_and_methods_of_others_are_no_trouble(
    function: FigureFunction, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    assert list(function(ReportData.read(tmp_path / "empty"))) == []
    theirs = climb("mine", seconds_fit=1.0, seconds_propose=1.0, graph="stein", latent="own")
    strange: Details = {"edges": [[1, 0]], "pseudo_hessian": [[0.0, 9.0], [9.0, 0.0]]}
    config = {theirs["digest"]: {"method": {"graph": "a name", "rate": 1}}}
    for item in function(stored_with(tmp_path / "theirs", [(theirs, strange)], config)):
        assert isinstance(item, Figure)
        assert overflow(item) <= 0

"""An invalid record is named and left out, and changes no number of a report or comparison."""

import logging
import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.compare.__main__ import main as compare
from ddobench.report import write_report
from ddobench.report.data import ReportData
from ddobench.report.diagnostic_checks import keep_usable
from ddobench.report.figures.gallery import make_figures
from ddobench.report.single_runs import gather_single_runs
from ddobench.report.tables.formatting import to_csv
from ddobench.store.checks import seal_sample
from ddobench.store.runs import load, load_curves
from tests.support.drawn import draw
from tests.support.odd_records import (
    HALF,
    ODD_FAILURES,
    ODD_RECORDS,
    ODD_SAMPLES,
    SAMPLE,
    SEED,
    deep,
    place_odd,
)
from tests.support.pages import SCRIPT, open_page
from tests.support.synthetic_runs import Row, climb, curve_of, data_with, run_row, sweep
from tests.support.synthetic_stores import store_rows, stored_with

GOOD = sweep(dimensions=[10], seeds=3)


def store_good(folder: Path) -> Path:
    """Store good runs."""
    return store_rows(folder / "runs", GOOD)


def numbers_of(stored: ReportData) -> list[str]:
    """Return all that the tables and figures of a report are computed from."""
    return [to_csv(stored.runs.drop(columns="path")), to_csv(stored.curves), str(stored.configs)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the numbers of the good runs alone."""
    return numbers_of(ReportData.read(store_good(tmp_path_factory.mktemp("good"))))


@pytest.mark.parametrize("name", ODD_RECORDS)
def test_a_report_is_the_same_with_one_odd_record_and_names_it(
    tmp_path: Path, expected: list[str], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = store_good(tmp_path)
    place_odd(folder, name)
    with caplog.at_level(logging.WARNING):
        stored = ReportData.read(folder)
    assert numbers_of(stored) == expected
    assert len(stored.left_out) == len(caplog.records) == 1
    assert "is left out: " in caplog.text
    assert len(load_curves(folder)) == len(GOOD)
    assert len(GOOD) <= len(load(folder)) <= len(GOOD) + 1  # which does not look at curves


@pytest.mark.parametrize("name", ODD_FAILURES)
def test_a_report_is_the_same_with_one_odd_failure_file(
    tmp_path: Path, expected: list[str], name: str
) -> None:
    folder = store_good(tmp_path)
    place = next(folder.glob("*-naive-10"))
    (place / f"seed-{SEED:05d}.error.json").write_text(ODD_FAILURES[name])
    stored = ReportData.read(folder)
    assert numbers_of(stored) == expected
    assert len(stored.left_out) == 1


@pytest.mark.parametrize("name", ODD_SAMPLES)
def test_an_odd_task_sample_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = store_good(tmp_path)
    path = folder / "quadratic-mine.sample.json"
    path.write_text(seal_sample(SAMPLE))
    assert len(ReportData.read(folder).task_samples) == 1
    path.write_text(seal_sample(ODD_SAMPLES[name]))
    assert not ReportData.read(folder).task_samples
    assert path.name in caplog.text


def test_a_comparison_is_the_same_with_one_odd_record_of_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, odd = store_good(tmp_path), store_good(tmp_path / "other")
    paths = [place_odd(odd, name, number) for number, name in enumerate(ODD_RECORDS)]
    assert compare([str(good), str(odd), "--fail-on-change"]) == 0
    printed = capsys.readouterr()
    assert "All 6 runs that both have are identical to the bit" in printed.out
    assert f"B: {odd}: 6 runs\n" in printed.out
    assert printed.err.count("is left out: ") == len(paths)


@pytest.mark.slow
def test_a_whole_report_is_the_same_with_one_odd_record_of_each_kind(tmp_path: Path) -> None:
    folder = store_good(tmp_path)
    before = write_report(folder, tmp_path / "before", formats="svg")
    for number, name in enumerate(ODD_RECORDS):
        place_odd(folder, name, number)
    after = write_report(folder, tmp_path / "after", formats="svg")
    kept = {path.relative_to(tmp_path / "before"): path.read_bytes() for path in before.files}
    for path, content in kept.items():
        if path.name not in ("index.html", "README.md"):  # which contain the command
            assert (tmp_path / "after" / path).read_bytes() == content, path
    assert before.message.splitlines()[0].endswith("6 runs, 0 figures")
    assert after.message.splitlines() == [
        before.message.replace("before", "after"),
        f"{len(ODD_RECORDS)} unusable files are listed in the page",
    ]
    text = " ".join(open_page(after.page).text.split())
    assert f"{len(ODD_RECORDS)} files look like a stored run but cannot be used" in text
    assert "d must be a whole number from 1 to 1,000,000,000, got None" in text
    assert "Files left out" not in open_page(before.page).text


@cache
def good_data() -> tuple[ReportData, int]:
    """Return the data of the good runs, and the number of their figures."""
    data = data_with(GOOD, [curve_of(good, 2) for good in GOOD])
    return data, len([*make_figures(data)])


def with_run(row: Row, **curves: float) -> ReportData:
    """Return the good runs and one more, each with a curve."""
    points = [curve_of(good, 2) for good in GOOD]
    return data_with([*GOOD, row], [*points, curve_of(row, 2).assign(**curves)])


@pytest.mark.parametrize(
    ("name", "number"),
    [("final_model", np.inf), ("regret_final", -np.inf), ("final_model", 1e308),
     ("optimum", np.inf), ("seconds_fit", np.inf), ("value_oracle", np.inf)],
)  # fmt: skip
def test_a_run_with_a_number_that_cannot_be_averaged_counts_as_failed(
    name: str, number: float
) -> None:
    of_curve = {name: number} if name == "value_oracle" else {}
    row = run_row("naive", 10, SEED, **{} if of_curve else {name: number})
    stored = with_run(row, **of_curve)
    failed = stored.runs[stored.runs["seed"] == SEED].iloc[0]
    assert failed["status"] == "failed"
    assert failed["reason"].startswith(f"{name} is infinite or beyond 1e+75,")
    alone, figures = good_data()
    counts = ["failed", "missing"]
    pd.testing.assert_frame_equal(
        stored.scores.drop(columns=counts), alone.scores.drop(columns=counts)
    )
    assert stored.scores["failed"].tolist() == [0, 1]
    assert len(stored.curves) == len(alone.curves)
    assert len([*make_figures(stored)]) == figures


def test_an_infinite_prediction_is_left_out_and_the_run_stays() -> None:
    row = climb("ga", predicted_final=float("inf"))
    curves = curve_of(row).assign(predicted=float("inf"))
    stored = ReportData.of(pd.DataFrame([row]), curves=curves)
    assert stored.runs["status"].tolist() == ["ok"]
    assert stored.runs["predicted_final"].isna().all()
    assert stored.curves["predicted"].isna().all()


def test_a_run_without_any_number_changes_no_mean() -> None:
    row = run_row("naive", 10, SEED)
    stored = with_run({name: np.nan if isinstance(x, float) else x for name, x in row.items()})
    counted = stored.scores.set_index("method").loc["naive"]
    assert (counted["unscored"], counted["seeds"]) == (1, 3)
    assert len(stored.curves) == 3 * len(GOOD)


CANDIDATE = {"candidate": "a", "held_out_top_rank": 0.5, "held_out_error": 0.1, "reason": "",
             "chosen": True}  # fmt: skip
UNITS = {"edges": [[0, 1]], "energy": [[0.5, 0.5, 0.0]], "edge_share": 0.1, "residual": 0.0,
         "clique_share": 0.8, "cliques_found": 1, "cliques_true": 1,
         "recovery": {"precision": 1.0, "recall": 1.0}}  # fmt: skip
SOUND = {
    "edges": [[0, 1]], "pseudo_hessian": [[0.0, 1.0], [1.0, 0.0]], "cliques": 1,
    "clique_sizes": {"2": 1}, "codes_sample": [[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]],
    "designs_sample": [[0.5, 0.1], [1.0, 0.7], [1.0, 0.9]],
    "decoded_sample": [[0.5, 0.1], [1.0, 0.7], [1.0, 0.8]], "values_sample": [0.0, 1.0, 2.0],
    "latent_dimensions": 2, "active_dimensions": 2,
    "round_trip_correlation": 1.0, "round_trip_valid": 1.0, "tested_rows": 100,
    "alignment": 0.5, "alignment_by_chance": 0.4, "dropped_edges": 0,
    "graph_recovery": {"precision": 1.0, "recall": 1.0}, "chosen": "a",
    "candidates": [CANDIDATE], "units_graph": UNITS,
}  # fmt: skip
OF_DETAILS = {"discovered", "units", "codes"}  # kinds of figures that need them
ODD_VALUES = ["mine", [], [[]], {}, -1, 10**17, True, [["a"]], [[0, 1], [2]], [[0, 1, 2]],
              [[-5, 10**12]], float("nan"), float("inf"), [[float("inf"), 0.0]], {"a": "b"},
              {"precision": float("nan"), "recall": None}, deep(30), SCRIPT, None]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
def test_diagnostics_can_be_drawn_or_are_left_out(tmp_path: Path, odd: Any) -> None:
    accepted = [name for name in SOUND if name in keep_usable(SOUND | {name: odd})[0]]
    for name in {*SOUND} - {*accepted}:
        assert odd is None or name in keep_usable(SOUND | {name: odd})[1]
    if accepted:
        run = climb("fgm", 3, latent="vae", graph="stein", seconds_fit=1.0)
        stored = stored_with(tmp_path, [(run, SOUND | dict.fromkeys(accepted, odd))])
        for figure in make_figures(stored):
            if figure.kind in OF_DETAILS:
                assert draw(figure).axes
        assert len(stored.choices) <= 1
        assert gather_single_runs(stored).shown == 1


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
def test_units_and_candidates_are_complete_or_left_out(odd: Any) -> None:
    for part in UNITS:
        usable, left_out = keep_usable({"units_graph": UNITS | {part: odd}})
        assert ("units_graph" in usable) != ("units_graph" in left_out)
    for part in CANDIDATE:
        usable, left_out = keep_usable({"candidates": [CANDIDATE | {part: odd}]})
        assert ("candidates" in usable) != ("candidates" in left_out)


def test_valid_diagnostics_are_drawn_and_undeclared_ones_are_passed_on(
    tmp_path: Path,
) -> None:
    assert keep_usable({"mine": [1, "a"], "units": 3}) == ({"mine": [1, "a"], "units": 3}, [])
    run = climb("fgm", 3, latent="vae", graph="stein")
    stored = stored_with(tmp_path, [(run, SOUND)])
    assert stored.diagnostics(stored.runs["path"].iloc[0]) == SOUND
    assert {figure.kind for figure in make_figures(stored)} >= OF_DETAILS
    assert stored.choices["candidate"].tolist() == ["a"]


def test_unknown_columns_do_not_disturb_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {"in": 1, "status_a": "x", "identical": 2, "print value_model": 3, "path": "/etc/passwd"}
    good = store_good(tmp_path)
    other = store_rows(tmp_path / "other" / "runs", [row | odd for row in GOOD])
    assert compare([str(good), str(other), "--fail-on-change"]) == 0
    assert "All 6 runs" in capsys.readouterr().out


def test_a_folder_of_invalid_records_has_a_page_that_names_them_and_escapes_names(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for name in ("a\x1b[2J.parquet", os.fsdecode(b"b\xff.parquet")):
        (folder / name).write_text("x")
    written = write_report(folder, tmp_path / "report", formats="svg")
    assert written.message.endswith("2 unusable files are listed in the page")
    assert "\x1b" not in caplog.text
    text = open_page(written.page).text
    assert r"a\x1b[2J.parquet" in text
    assert r"b\udcff.parquet" in text
    assert HALF not in text

"""One odd record from a stranger changes no number and stops nothing; it is named and left out."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.compare.__main__ import main as compare
from ddobench.report import write_report
from ddobench.report.data import ReportData
from ddobench.report.diagnostics import keep_usable
from ddobench.report.figures.gallery import make_figures
from ddobench.report.single_runs import gather_single_runs
from ddobench.report.tables.table import to_csv
from ddobench.store.records import Record
from ddobench.store.runs import Store, load, load_curves
from tests.support.odd_records import (
    HALF,
    ODD_FAILURES,
    ODD_PORTRAITS,
    ODD_RECORDS,
    PORTRAIT,
    SEED,
    deep,
    place_odd,
)
from tests.support.pages import SCRIPT, open_page
from tests.support.synthetic_runs import climb, curve_of, run_row, sweep
from tests.support.synthetic_stores import place_of, store_rows, stored_with

GOOD = sweep(dimensions=[10], seeds=3)


def store_good(folder: Path) -> Path:
    """Store good runs."""
    return store_rows(folder / "runs", GOOD)


def tables_of(folder: Path) -> list[str]:
    """Return all numbers of a report."""
    stored = ReportData.read(folder)
    frames = (stored.scores, stored.controls, stored.pairs, stored.standings)
    return [to_csv(frame) for frame in (*frames, stored.runs.drop(columns="path"), stored.curves)]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the numbers of the good runs alone."""
    return tables_of(store_good(tmp_path_factory.mktemp("good")))


@pytest.mark.parametrize("name", ODD_RECORDS)
def test_a_report_is_the_same_with_one_odd_record_and_names_it(
    tmp_path: Path, expected: list[str], caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = store_good(tmp_path)
    place_odd(folder, name)
    with caplog.at_level(logging.WARNING):
        assert tables_of(folder) == expected
    assert len(caplog.records) == 1
    assert "is left out: " in caplog.text
    assert len(ReportData.read(folder).left_out) == 1
    assert len(load_curves(folder)) == len(GOOD)
    assert len(GOOD) <= len(load(folder)) <= len(GOOD) + 1  # which does not look at curves


@pytest.mark.parametrize("name", ODD_FAILURES)
def test_a_report_is_the_same_with_one_odd_trace_of_a_failed_run(
    tmp_path: Path, expected: list[str], name: str
) -> None:
    folder = store_good(tmp_path)
    place = next(folder.glob("*-naive-10"))
    (place / f"seed-{SEED:05d}.error.json").write_text(ODD_FAILURES[name])
    assert tables_of(folder) == expected
    assert len(ReportData.read(folder).left_out) == 1


@pytest.mark.parametrize("name", ODD_PORTRAITS)
def test_a_report_does_without_an_odd_portrait(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    folder = store_good(tmp_path)
    path = folder / "quadratic-mine.portrait.json"
    path.write_text(json.dumps(PORTRAIT))
    assert len(ReportData.read(folder).portraits) == 1
    path.write_text(json.dumps(ODD_PORTRAITS[name]))
    assert not ReportData.read(folder).portraits
    assert path.name in caplog.text


def test_a_comparison_is_the_same_with_one_odd_record_of_each_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, odd = store_good(tmp_path), store_good(tmp_path / "other")
    paths = [place_odd(odd, name, number) for number, name in enumerate(ODD_RECORDS)]
    assert compare([str(good), str(odd), "--fail-on-change"]) == 0
    told = capsys.readouterr()
    assert "All 6 runs that both have are identical to the bit" in told.out
    assert f"B: {odd}: 6 runs\n" in told.out
    assert told.err.count("is left out: ") == len(paths)


@pytest.mark.slow
def test_a_whole_report_is_the_same_with_one_odd_record_of_each_kind(tmp_path: Path) -> None:
    folder = store_good(tmp_path)
    before = write_report(folder, tmp_path / "before", formats="svg")
    for number, name in enumerate(ODD_RECORDS):
        place_odd(folder, name, number)
    after = write_report(folder, tmp_path / "after", formats="svg")
    kept = {path.relative_to(tmp_path / "before"): path.read_bytes() for path in before.files}
    for path, content in kept.items():
        if path.name not in ("index.html", "README.md"):  # which say how they were written
            assert (tmp_path / "after" / path).read_bytes() == content, path
    assert before.message.splitlines()[0].endswith("6 runs, 0 figures")
    assert after.message.splitlines() == [
        before.message.replace("before", "after"),
        f"{len(ODD_RECORDS)} files could not be used and are named in the page",
    ]
    text = " ".join(open_page(after.page).text.split())
    assert f"{len(ODD_RECORDS)} that look like a stored run but cannot be used" in text
    assert "d must be a whole number from 1 to 1,000,000,000, got None" in text
    assert "Files left out" not in open_page(before.page).text


ODD_NUMBERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "an infinite score": ({"final_model": float("inf")}, {}),
    "a score below all": ({"regret_final": float("-inf")}, {}),
    "a score whose square is infinite": ({"final_model": 1e308}, {}),
    "an infinite optimum": ({"optimum": float("inf")}, {}),
    "infinite seconds": ({"seconds_fit": float("inf")}, {}),
    "an infinite point of a curve": ({}, {"value_oracle": [0.0, float("inf"), 0.0]}),
}


@pytest.mark.parametrize("name", ODD_NUMBERS)
def test_a_run_with_a_number_that_cannot_be_averaged_counts_as_failed_and_says_so(
    tmp_path: Path, name: str
) -> None:
    changes, curves = ODD_NUMBERS[name]
    folder = store_good(tmp_path)
    store, row = Store(folder), run_row("naive", 10, SEED, **changes)
    steps = {"iteration": np.arange(3.0), "value_model": np.zeros(3)}
    arrays = {curve: np.array(values) for curve, values in curves.items()}
    store.write(place_of(store, row), Record(row=row, curves=steps | arrays))
    stored = ReportData.read(folder)
    failed = stored.runs[stored.runs["seed"] == SEED].iloc[0]
    odd = next(iter({**changes, **curves}))
    assert failed["status"] == "failed"
    assert failed["reason"].startswith(f"it stored a {odd} that is infinite or beyond 1e+75;")
    alone = ReportData.read(store_good(tmp_path / "apart"))
    found, good = (data.scores.set_index("method").loc["naive"] for data in (stored, alone))
    same = [column for column in found.index if column not in ("failed", "missing")]
    assert found[same].equals(good[same])
    assert found["failed"] == 1
    assert not (stored.curves["seed"] == SEED).any()
    assert len([*make_figures(stored)]) == len([*make_figures(alone)])


def test_an_infinite_prediction_is_left_out_and_the_run_stays() -> None:
    row = climb("ga", predicted_final=float("inf"))
    curves = curve_of(row).assign(predicted=float("inf"))
    stored = ReportData.of(pd.DataFrame([row]), curves=curves)
    assert stored.runs["status"].tolist() == ["ok"]
    assert stored.runs["predicted_final"].isna().all()
    assert stored.curves["predicted"].isna().all()


def test_a_run_without_any_number_changes_no_mean(tmp_path: Path, expected: list[str]) -> None:
    folder = store_good(tmp_path)
    row = run_row("naive", 10, SEED)
    empty = {name: float("nan") for name, value in row.items() if isinstance(value, float)}
    store, curves = Store(folder), {"iteration": np.zeros(1), "value_model": np.full(1, np.nan)}
    store.write(place_of(store, row), Record(row=row | empty, curves=curves))
    stored = ReportData.read(folder)
    counted = stored.scores.set_index("method").loc["naive"]
    assert counted["unscored"] == 1
    assert counted["seeds"] == 3
    assert to_csv(stored.curves) == expected[-1]


SOUND = {
    "edges": [[0, 1]], "pseudo_hessian": [[0.0, 1.0], [1.0, 0.0]], "cliques": 1,
    "clique_sizes": {"2": 1}, "codes_sample": [[0.0, 1.0], [1.0, 3.0], [2.0, 0.0]],
    "designs_sample": [[0.5, 0.1], [1.0, 0.7], [1.0, 0.9]],
    "decoded_sample": [[0.5, 0.1], [1.0, 0.7], [1.0, 0.8]], "values_sample": [0.0, 1.0, 2.0],
    "latent_dimensions": 2, "active_dimensions": 2,
    "round_trip_correlation": 1.0, "round_trip_valid": 1.0, "tested_rows": 100,
    "alignment": 0.5, "alignment_by_chance": 0.4, "dropped_edges": 0,
    "graph_recovery": {"precision": 1.0, "recall": 1.0}, "chosen": "a",
    "candidates": [{"candidate": "a", "held_out_top_rank": 0.5, "held_out_error": 0.1,
                    "reason": "", "chosen": True}],
    "units_graph": {"edges": [[0, 1]], "energy": [[0.5, 0.5, 0.0]], "edge_share": 0.1,
                    "residual": 0.0, "clique_share": 0.8, "cliques_found": 1, "cliques_true": 1,
                    "recovery": {"precision": 1.0, "recall": 1.0}},
}  # fmt: skip
ODD_VALUES = ["mine", [], [[]], {}, -1, 10**17, True, [["a"]], [[0, 1], [2]], [[0, 1, 2]],
              [[-5, 10**12]], float("nan"), float("inf"), [[float("inf"), 0.0]], {"a": "b"},
              {"precision": float("nan"), "recall": None}, deep(30), SCRIPT, None]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
def test_whatever_a_run_tells_beyond_its_scores_can_be_shown_or_is_left_out(
    tmp_path: Path, odd: Any
) -> None:
    accepted = [name for name in SOUND if name in keep_usable(SOUND | {name: odd})[0]]
    for name in {*SOUND} - {*accepted}:
        assert name in keep_usable(SOUND | {name: odd})[1] or odd is None
    if accepted:
        run = climb("fgm", 3, latent="vae", graph="stein", seconds_fit=1.0)
        stored = stored_with(tmp_path, [(run, SOUND | dict.fromkeys(accepted, odd))])
        for figure in make_figures(stored):
            assert figure.data is not None
        assert len(stored.choices) <= 1
        assert gather_single_runs(stored).shown == 1


@pytest.mark.parametrize("odd", ODD_VALUES, ids=repr)
def test_what_is_told_of_units_and_candidates_is_whole_or_left_out(odd: Any) -> None:
    for name, told in (("units_graph", SOUND["units_graph"]), ("candidates", None)):
        parts = told if isinstance(told, dict) else SOUND["candidates"][0]  # type: ignore[index]
        for part in parts:
            changed = {**parts, part: odd}
            value = changed if name == "units_graph" else [changed]
            usable, left_out = keep_usable({name: value})
            assert (name in usable) != (name in left_out)


def test_names_that_nobody_declared_are_passed_on() -> None:
    assert keep_usable({"mine": [1, "a"], "units": 3}) == ({"mine": [1, "a"], "units": 3}, [])


def test_sound_details_are_drawn(tmp_path: Path) -> None:
    run = climb("fgm", 3, latent="vae", graph="stein")
    stored = stored_with(tmp_path, [(run, SOUND)])
    assert stored.diagnostics(stored.runs["path"].iloc[0]) == SOUND
    print([(f.kind, f.name, f.title) for f in make_figures(stored)])
    assert 0
    assert stored.choices["candidate"].tolist() == ["a"]


def test_columns_and_texts_of_a_stranger_are_no_trouble_to_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = {"in": 1, "status_a": "x", "identical": 2, "print value_model": 3, "path": "/etc/passwd"}
    good = store_good(tmp_path)
    other = store_rows(tmp_path / "other" / "runs", [row | odd for row in GOOD])
    assert compare([str(good), str(other), "--fail-on-change"]) == 0
    assert "All 6 runs" in capsys.readouterr().out


def test_a_folder_of_nothing_but_odd_records_has_a_page_that_names_them(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "mine.parquet").write_text("mine")
    written = write_report(tmp_path / "runs", tmp_path / "report")
    assert written.message.endswith("1 file could not be used and is named in the page")
    assert "mine.parquet" in open_page(written.page).text


def test_names_that_a_terminal_would_obey_are_spelled_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = store_good(tmp_path)
    (folder / "a\x1b[2J.parquet").write_text("x")
    path = os.fsdecode(b"b\xff.parquet")
    (folder / path).write_text("x")
    written = write_report(folder, tmp_path / "report")
    assert "\x1b" not in caplog.text
    text = open_page(written.page).text
    assert r"a\x1b[2J.parquet" in text
    assert r"b\udcff.parquet" in text
    assert HALF not in text

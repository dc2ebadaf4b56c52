"""Promises of the data of a report: which runs count, and what they are compared with."""

import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest

from ddobench.report import data as data_module
from ddobench.report import write_report, writer
from ddobench.report.data import ReportData, read_sources
from ddobench.report.figures.graph_figures import (
    climbing_runs,
    column,
    find_details,
    read_details,
)
from ddobench.report.tables.select import (
    best_visible_means,
    common_seeds,
    expected_seeds,
    share_of_optimum,
)
from ddobench.report.verdicts import Judgement
from ddobench.report.writer import make_tables
from tests.support.synthetic_runs import (
    Row,
    climb,
    curve_of,
    data_of,
    data_with,
    failed_row,
    run_row,
    sweep,
)
from tests.support.synthetic_stores import Details, store_rows, stored_with

TABLES = (
    *("score_table", "leaderboard", "control_table", "pair_table"),
    *("standing_table", "find_sweeps", "setting_table", "find_factorials", "read_judgements"),
    *("choice_table", "best_visible_means"),
)


def noisy(naive: bool = True, **changes: Any) -> list[Row]:
    """Return runs with a best visible value of 6, whose true value is 4 on seed 0, 5 on seed 1."""
    same = {"best_visible": 6.0, "y_sd": 2.0, **changes}
    worth = [climb("naive", seed=seed, final_model=4.0 + seed, **same) for seed in (0, 1)]
    return [climb("ga", seed=s, final_model=7.0, **same) for s in (0, 1)] + (worth if naive else [])


def test_under_noise_the_best_visible_design_has_its_true_value() -> None:
    data = data_of(noisy())
    assert data.runs["best_visible"].tolist() == [4.0, 5.0] * 2
    gains = data.scores.set_index("method")["gain_mean"]
    assert gains.to_dict() == {"ga": 2.5, "naive": 0.0}
    assert set(data.scores["best_visible"]) == {4.5}
    (means,) = best_visible_means(data.runs).to_dict("records")
    assert means["best_visible_value"] == 4.5
    assert means["best_visible_share"] == pytest.approx(0.45)
    assert means["best_visible_regret"] == pytest.approx(5.5)
    raw = data_of(noisy(regret_unit="raw"))
    assert raw.best_visible["best_visible_regret"].tolist() == pytest.approx([11.0])
    alone = ReportData.of(pd.DataFrame(noisy()), {"method": "ga"})  # a filter changes nothing
    assert alone.runs["best_visible"].tolist() == [4.0, 5.0]


def test_without_a_run_that_returns_it_the_visible_value_is_used() -> None:
    failed = climb("naive", best_visible=6.0, status="failed")
    for rows in (noisy(naive=False), [*noisy(naive=False), failed]):
        data = data_of(rows)
        assert set(data.runs["best_visible"]) == {6.0}
        assert data.scores.set_index("method").loc["ga", "gain_mean"] == 1.0
        assert best_visible_means(data.runs)["best_visible_value"].tolist() == [6.0]
    other = data_of([*noisy(naive=False), *noisy(n=200)])  # the run of another size
    assert other.runs.groupby("n")["best_visible"].mean().to_dict() == {100: 6.0, 200: 4.5}


def test_the_share_of_the_optimum_needs_a_positive_optimum() -> None:
    optima = (10.0, 0.0, -1.0, np.nan)
    rows = [climb(seed=s, optimum=x, optimum_share=0.123) for s, x in enumerate(optima)]
    runs = data_of(rows).runs
    pd.testing.assert_series_equal(runs["optimum_share"], share_of_optimum(runs), check_names=False)
    assert runs["optimum_share"].tolist() == pytest.approx([0.4, *[np.nan] * 3], nan_ok=True)
    rounded = data_of([run_row(final_model=4.0 * (1 - 1e-15))]).runs
    assert rounded["optimum_share"].tolist() == [1.0]


def seeds_of(runs: pd.DataFrame) -> dict[str, list[int]]:
    """Return the seeds of each method."""
    return {str(method): sorted(own["seed"]) for method, own in runs.groupby("method")}


def having(**seeds: range) -> pd.DataFrame:
    """Return the runs of methods that have these seeds."""
    return data_of([climb(m, seed=s) for m, own in seeds.items() for s in own]).runs


def test_series_are_compared_on_the_common_seeds_of_those_with_half_of_all() -> None:
    most = dict.fromkeys(("ga", "rwr", "cma"), range(10))
    runs = having(**most, coms=range(5), few=range(3, 7), other=range(20, 23))
    assert expected_seeds(runs).tolist() == [10]
    assert seeds_of(common_seeds(runs)) == {
        "ga": [*range(5)], "rwr": [*range(5)], "cma": [*range(5)], "coms": [*range(5)],
        "few": [3, 4],  # what it has of them
        "other": [20, 21, 22],  # it has none of them
    }  # fmt: skip


def test_common_seeds_are_found_for_each_size() -> None:
    runs = data_of([climb(m, d, s) for m, d in (("ga", 11), ("rwr", 11), ("rwr", 21))
                        for s in range(2 if (m, d) == ("ga", 11) else 4)]).runs  # fmt: skip
    kept = common_seeds(runs)
    assert kept.groupby(["method", "d"]).size().to_dict() == {
        ("ga", 11): 2, ("rwr", 11): 2, ("rwr", 21): 4,
    }  # fmt: skip
    assert common_seeds(runs.head(0)).empty


@pytest.mark.slow
def test_every_table_of_a_report_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        climb(method, 11, seed, n=n, method_variant=variant)
        for n in range(100, 600, 100)  # more than have figures of their own
        for method, variant in (("ga", ""), ("ga", "prior=1"), ("naive", ""))
        for seed in (0, 1)
    ]
    for row in rows:
        row["digest"] += f"-{row['n']}"
    stored_with(tmp_path / "runs", [(row, {}) for row in rows])
    calls = {name: Mock(wraps=getattr(data_module, name)) for name in TABLES}
    for module in [own for name, own in sys.modules.items() if name.startswith("ddobench.report")]:
        for name in {*TABLES} & {*vars(module)}:
            monkeypatch.setattr(module, name, calls[name])
    monkeypatch.setattr(  # which takes its time
        writer, "render_all",
        lambda figures, _: {(figure.name, "svg"): b"<svg></svg>" for figure in figures},
    )  # fmt: skip
    (tmp_path / "claims.yaml").write_text("claims: []")
    written = write_report(tmp_path / "runs", tmp_path / "report", formats="svg",
                           claims=tmp_path / "claims.yaml")  # fmt: skip
    assert "30 runs" in written.message
    assert {name: call.call_count for name, call in calls.items()} == dict.fromkeys(TABLES, 1)


@pytest.mark.parametrize(
    "rows",
    [[], [run_row()], [failed_row(seed=s) for s in (0, 1)], [run_row(status="declined")]],
    ids=["none", "one", "failed", "declined"],
)
def test_runs_with_any_status_have_all_tables(rows: list[Row]) -> None:
    data = data_of(rows)
    files = {name for t in make_tables(data, Judgement()).values() for name in t.files()}
    assert {"leaderboard.md", "scores.csv", "problems.md"} <= files
    assert data.scores["ok"].sum() == sum(row["status"] == "ok" for row in rows)


def test_missing_columns_are_empty_and_keep_the_series() -> None:
    lacking = ("label", "color", "regret_unit", "command", "privileges", "best_oracle")
    rows = sweep(["ga"], [10], 6)
    rows[3:] = [{k: v for k, v in row.items() if k not in lacking} for row in rows[3:]]
    data = data_of(rows)
    assert data.scores["seeds"].tolist() == [6]
    assert data.runs["command"].tolist()[3:] == [""] * 3


def test_different_configurations_with_the_same_names_are_kept_apart() -> None:
    rows = [run_row("ga", seed=seed, digest=digest) for digest in ("abc", "def") for seed in (0, 1)]
    scores = data_of(rows).scores
    assert scores["method_variant"].tolist() == ["digest=abc", "digest=def"]
    assert scores["seeds"].tolist() == [2, 2]


def test_a_run_that_is_deleted_after_reading_stays_in_the_tables(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = stored_with(tmp_path, [(climb("ga", seed=seed), {"units": 1}) for seed in range(3)])
    for path in data.runs["path"]:
        (tmp_path / path).unlink()
    tables = make_tables(data, Judgement())
    assert tables["scores"].frame["seeds"].tolist() == [3]
    assert tables["choices"].frame.empty
    assert caplog.text == ""


def test_the_plainest_climbing_run_comes_first() -> None:
    rows = [climb(method_variant=v, seed=s) for v in ("graph=empty", "") for s in (1, 0)]
    rows += [climb("naive"), climb(seed=2, status="failed")]
    stored = data_with(rows, [curve_of(r, 0 if r["method"] == "naive" else 5) for r in rows])
    runs = climbing_runs(stored)
    assert list(zip(runs["method_variant"], runs["seed"], strict=True)) == [
        ("", 0), ("", 1), ("graph=empty", 0), ("graph=empty", 1),
    ]  # fmt: skip


def test_the_first_run_with_all_diagnostics_is_found(tmp_path: Path) -> None:
    kept: list[Details] = [{}, {"edges": None}, {"edges": [], "cliques": 2}]
    stored = stored_with(tmp_path, [(climb(seed=s), kept[s]) for s in range(3)])
    found = find_details(stored, stored.runs, ["edges", "cliques"])
    assert found is not None
    assert (found[0]["seed"], found[1]) == (2, {"edges": [], "cliques": 2})
    assert find_details(stored, stored.runs, ["codes"]) is None


def test_a_damaged_or_missing_file_has_no_diagnostics(tmp_path: Path) -> None:
    stored = stored_with(tmp_path, [(climb(), {"edges": []})])
    run = stored.runs.iloc[0]
    path = tmp_path / run["path"]
    assert read_details(stored, run) == {"edges": []}
    for damage in (lambda: path.write_bytes(b"torn"), path.unlink):
        damage()
        assert read_details(stored, run) == {}
    new = data_of([climb()])
    assert read_details(new, new.runs.iloc[0]) == {}
    assert column(new.runs, "graph").tolist() == [""]


def test_several_folders_are_read_as_one_and_the_first_of_a_run_counts(tmp_path: Path) -> None:
    one = store_rows(tmp_path / "one", [run_row(seed=seed, final_model=1.0) for seed in (0, 1)])
    two = store_rows(
        tmp_path / "two",
        [run_row(seed=1, final_model=2.0), run_row("naive", seed=1, final_model=3.0)],
    )
    data = ReportData.read([one, two])
    found = data.runs.set_index(["method", "seed"])["final_model"].to_dict()
    assert found == {("fgm", 0): 1.0, ("fgm", 1): 1.0, ("naive", 1): 3.0}
    assert all((one / path).exists() for path in data.runs["path"])


def test_published_scores_are_those_at_the_sizes_of_the_other_folders(tmp_path: Path) -> None:
    own = store_rows(tmp_path, [run_row("mine", d=20, seed=0)])
    data = ReportData.read([own, Path("published")])
    sizes = data.runs[["task", "d", "n", "budget"]].drop_duplicates().to_numpy().tolist()
    assert sizes == [["quadratic", 20, 100, "full"]]
    assert {"mine", "fgm", "naive"} <= set(data.runs["method"])
    assert data.runs.loc[data.runs["method"] == "fgm", "p50"].notna().all()
    assert data.diagnostics("") == {}
    assert set(data.board["method"]) >= {"mine", "fgm"}


def test_published_scores_alone_are_all_of_them() -> None:
    assert len(read_sources(["published"]).runs) > 10_000


def test_runs_that_saw_other_rows_are_kept_apart(caplog: pytest.LogCaptureFixture) -> None:
    same: Row = {"y_mean": 0.0, "y_sd": 1.0, "y_min": -2.0, "y_max": 3.0}
    rows = [
        run_row("fgm", **same, data_digest="aaaa"),
        run_row("naive", **same, data_digest="aaaa"),
        run_row("ga", **same),  # an older run
        run_row("rwr", **same, data_digest="bbbb"),
        run_row("coms", **{**same, "y_max": 3.1}),
    ]
    found = data_of(rows).runs.set_index("method")["task_variant"].to_dict()
    assert found == {"fgm": "", "naive": "", "ga": "", "rwr": "rows=bbbb", "coms": "rows=other"}
    assert "2 runs saw other rows than the others of their task, size and seed" in caplog.text


def test_a_report_of_several_folders_names_them(tmp_path: Path) -> None:
    own = store_rows(tmp_path / "own", sweep(dimensions=(10,), seeds=2))
    other = store_rows(tmp_path / "other", sweep(("ga",), dimensions=(10,), seeds=2))
    written = write_report([own, other], tmp_path / "report", formats="svg")
    assert ": 6 runs, " in written.message
    assert "other]" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")

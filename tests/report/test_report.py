"""Promises of the report, on stores of synthetic runs written by the real store."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.errors import UsageError
from ddobench.report import Written, write_report
from ddobench.report.__main__ import format_filter
from ddobench.report.data.commands import portable
from ddobench.report.data.origins import find_origins
from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.formats import (
    format_estimate,
    format_number,
    format_percent,
    format_ranges,
)
from ddobench.store.runs import load
from tests.support.pages import DASH, MINUS, OUR_SCRIPTS, SCRIPT, open_page
from tests.support.processes import PATIENCE
from tests.support.synthetic_runs import failed_row, run_row, sweep
from tests.support.synthetic_stores import Fill, store_rows


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return the report of a small sweep, written once for all tests that only read it."""
    folder = tmp_path_factory.mktemp("plain")
    return write_report(store_rows(folder / "runs", sweep()), folder / "report")


@pytest.mark.slow
def test_a_report_has_every_promised_file_and_nothing_half_written(plain: Written) -> None:
    report = plain.page.parent
    names = {str(path.relative_to(report)) for path in plain.files}
    figures = ("figures/regret-quadratic-n100", "figures/landmarks-quadratic-n100")
    tables = ("scores", "controls", "pairs", "standings", "settings", "choices", "command_costs",
              "costs", "cross", "rules", "spread", "claims")  # fmt: skip
    papers = ("scores-quadratic", "pairs-quadratic", "claims-paper", "claims-ours")
    assert names == {
        "index.html", "README.md", "manifest.json", "tables/problems.csv", "tables/protocol.md",
        "tables/cross_levels.csv",
        *(f"tables/{table}.{end}" for table in tables for end in ("csv", "md")),
        *(f"tables/{table}.tex" for table in papers),
        *(f"{figure}.{end}" for figure in figures for end in ("png", "pdf", "svg", "csv")),
    }  # fmt: skip
    on_disk = {path for path in report.rglob("*") if path.is_file()}
    assert on_disk == set(plain.files)
    assert (report / f"{figures[0]}.png").read_bytes().startswith(b"\x89PNG")
    assert (report / f"{figures[0]}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(plain: Written, tmp_path: Path) -> None:
    again = write_report(plain.page.parent.parent / "runs", tmp_path / "again")
    for one, other in zip(plain.files, again.files, strict=True):
        if one.name not in ("index.html", "README.md"):  # which say how they were written
            assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.slow
def test_the_page_needs_nothing_but_itself(plain: Written) -> None:
    page = open_page(plain.page)
    links = [a[key] for _, a in page.tags for key in ("src", "href") if a.get(key)]
    assert not [link for link in links if re.match(r"https?:|//", link or "")]
    relative = {link for link in links if link and not link.startswith(("#", "data:"))}
    assert relative
    assert all((plain.page.parent / link).is_file() for link in relative)
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in links if link and re.match("#(?!run=)", link)}
    assert anchors <= set(ids)


def test_the_page_says_what_was_run_and_how_to_repeat_it(plain: Written) -> None:
    page = open_page(plain.page)
    for text in (
        "72 finished, 0 declined, 0 failed", "torch 2.13.0", "aaaaaaaaaaaa", "FGM†",
        "† knows the true graph", "python -m ddobench method=naive", "python -m ddobench.report",
        "None: every run finished", "proves little by itself", "experiment=peak",
    ):  # fmt: skip
        assert text in page.text, text


@pytest.mark.slow
def test_markup_in_any_stored_text_stays_text(fill: Fill, tmp_path: Path) -> None:
    hostile = dict.fromkeys(
        ("task", "task_variant", "method", "method_variant", "label", "command", "color"), SCRIPT
    )
    rows = [
        run_row(d=d, seed=seed, budget=SCRIPT, privileges=SCRIPT, digest=f"h{d}", **hostile)
        for d in (10, 20)
        for seed in (0, 1)
    ]
    rows.append(failed_row(d=10, seed=2, digest="h10") | hostile | {"reason": SCRIPT})
    written = write_report(fill(rows), tmp_path / "report", remarks={SCRIPT: [{"text": SCRIPT}]})
    page = open_page(written.page)
    assert page.scripts == OUR_SCRIPTS
    assert SCRIPT in page.text
    assert not [name for _, a in page.tags for name in a if name.startswith("on")]
    assert "<script" not in (tmp_path / "report" / "tables" / "scores.md").read_text()
    assert all(path.is_relative_to(tmp_path / "report") for path in written.files)
    for svg in (tmp_path / "report" / "figures").glob("*.svg"):
        assert "<script" not in svg.read_text(encoding="utf-8")


def test_an_existing_but_empty_store_gives_a_page_that_says_what_to_do(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill([]), tmp_path / "report")
    assert "nothing is stored yet" in written.message
    text = open_page(written.page).text
    assert "No run is stored" in text
    assert "python -m ddobench -m" in text


def test_a_missing_store_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; make one with: python -m ddobench"):
        write_report(tmp_path / "nowhere", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_one_run_is_reported_without_an_interval_and_without_a_figure(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill([run_row("naive", 10)]), tmp_path / "report")
    text = open_page(written.page).text
    assert "only d = 10 has a regret, and a curve needs a second d or a second n" in text
    scores = pd.read_csv(tmp_path / "report" / "tables" / "scores.csv")
    assert scores["regret_interval"].tolist() == ["none"]
    assert scores["regret_low"].isna().all()


def test_a_store_of_nothing_but_failures_is_reported_with_reasons(
    fill: Fill, tmp_path: Path
) -> None:
    rows = [failed_row(d=d, seed=seed, digest=f"f{d}") for d in (10, 20) for seed in (0, 1, 3)]
    written = write_report(fill(rows), tmp_path / "report")
    text = " ".join(open_page(written.page).text.split())
    assert "0 finished, 0 declined, 6 failed" in text
    assert "LinAlgError: no convergence" in text
    assert f"d = 10, 20; seeds 0{DASH}1, 3" in text


def test_a_torn_file_is_left_out_and_the_rest_is_reported(
    fill: Fill, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(sweep(dimensions=[10], seeds=2))
    torn = next(folder.rglob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:40])
    written = write_report(folder, tmp_path / "report")
    assert "3 runs" in written.message
    assert torn.name in caplog.text


def test_filters_take_one_value_or_several_and_refuse_what_is_not_stored() -> None:
    stored = pd.DataFrame(sweep(seeds=4))
    kept = ReportData.of(stored, {"method": "fgm", "d": [10, 20], "seed": "0-1", "n": None}).runs
    assert len(kept) == 4
    assert set(kept["method"]) == {"fgm"}
    spelled = ReportData.of(stored, {"seed": ["0-1", 3]}).runs
    assert set(spelled["seed"]) == {0, 1, 3}
    with pytest.raises(UsageError, match=r"method must be one of fgm, naive, .* got fgmm"):
        ReportData.of(stored, {"method": "fgmm"})


def test_an_unknown_filter_is_refused(fill: Fill, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a filter must be one of task, .* got 'colour'"):
        write_report(fill([]), tmp_path / "report", filters={"colour": "red"})


def test_filters_are_spelled_so_that_hydra_takes_them_for_values() -> None:
    assert format_filter("method=fgm,naive") == "only.method=[fgm,naive]"
    assert format_filter("d=20") == "only.d=20"
    assert format_filter("only.n=[100,300]") == "only.n=[100,300]"
    assert format_filter("results_dir=a,b") == "results_dir=a,b"


def test_numbers_are_spelled_for_people() -> None:
    assert [format_number(x) for x in (0.0, 3e-15, 0.004, 20.036, -1.5, np.nan)] == [
        "0", "0", "0.004", "20.04", f"{MINUS}1.50", DASH,
    ]  # fmt: skip
    assert format_estimate(1.0, 0.5, 1.5) == "1.00 [0.50, 1.50]"
    assert format_estimate(1.0, np.nan, np.nan) == "1.00"
    assert [format_percent(x) for x in (0.0, 0.001, 0.5, np.nan)] == ["0 %", "< 1 %", "50 %", DASH]
    assert format_ranges([3, 0, 1, 2, 7]) == f"0{DASH}3, 7"
    assert format_ranges([]) == ""


TWICE = """
import runpy, sys
runpy.run_module("ddobench.report", run_name="__main__")
assert "torch" not in sys.modules
sys.argv[-1] = "method=mine"
runpy.run_module("ddobench.report", run_name="__main__")
"""


@pytest.mark.slow
def test_the_command_line_says_where_the_report_is_or_what_is_wrong_and_never_imports_torch(
    fill: Fill, tmp_path: Path
) -> None:
    fill(sweep(dimensions=[10], seeds=2))
    words = ["results_dir=runs", "report_dir=out", "seed=0-0", "method=fgm,naive"]
    done = subprocess.run(
        [sys.executable, "-c", TWICE, *words], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["out/index.html: 2 of 4 runs, 0 figures"], done.stderr
    assert done.stderr.splitlines() == [
        "ddobench: method must be one of fgm, naive, which is what is stored, got mine"
    ]
    assert done.returncode == 2
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "out"}


@pytest.mark.slow
def test_help_shows_the_report_and_not_the_settings_of_a_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ddobench.report", "--help"], capture_output=True, text=True,
        check=True, timeout=PATIENCE,
    )  # fmt: skip
    assert "claims=mine.yaml" in done.stdout
    assert "latent:" not in done.stdout


def test_the_report_loads_what_the_store_promises(fill: Fill) -> None:
    runs = ReportData.of(load(fill([run_row(), failed_row(seed=1)]))).runs
    assert runs["status"].tolist() == ["ok", "failed"]
    assert runs["regret_final"].isna().tolist() == [False, True]


def test_runs_tell_when_and_by_which_revision_they_were_made(fill: Fill) -> None:
    rows = [
        run_row(seed=0, revision="b" * 40, finished="2024-02-03T23:59:00+00:00"),
        run_row(seed=1, revision="c" * 40, finished="2024-03-01T01:00:00+00:00"),
    ]
    folder = fill(rows)
    told = find_origins(ReportData.read(folder))
    assert told.stored == "2024-02-03 to 2024-03-01"
    assert {"b" * 12, "c" * 12} <= set(told.revisions)


def test_an_older_run_that_does_not_tell_is_dated_by_its_file(fill: Fill) -> None:
    folder = fill([run_row()])
    for path in folder.rglob("*.parquet"):
        os.utime(path, (0, 0))
    told = find_origins(ReportData.read(folder))
    assert told.stored == "1970-01-01"
    assert told.revisions == ("a" * 12,)


def test_a_command_is_repeated_without_the_folder_of_one_machine() -> None:
    typed = "python -m ddobench -m 'method=glob(*)' seed=0-4 'results_dir=/mnt/my runs'"
    assert portable(typed) == "python -m ddobench -m 'method=glob(*)' seed=0-4"
    assert portable("python -m ddobench 'half") == "python -m ddobench 'half"

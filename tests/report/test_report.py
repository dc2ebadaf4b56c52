"""Promises of a written report: its files, its page, its command line and its errors."""

import os
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.errors import UsageError
from ddobench.report import Written, write_report
from ddobench.report.__main__ import format_filter
from ddobench.report.data import ReportData, find_origins
from ddobench.report.figures.gallery import list_omitted
from ddobench.report.page import set_formula
from ddobench.report.tables import formatting
from ddobench.report.writer import clear_stale
from ddobench.store.atomic import write_whole
from ddobench.store.records import TaskSample
from ddobench.store.runs import Store
from tests.support.pages import DASH, MINUS, OUR_SCRIPTS, PAPERS, SCRIPT, open_page
from tests.support.processes import PATIENCE
from tests.support.synthetic_runs import climb, failed_row, run_row, sweep
from tests.support.synthetic_samples import task_sample
from tests.support.synthetic_stores import Fill, store_rows, stored_with
from tests.support.varied_store import VariedReport

TABLES = ("leaderboard", "scores", "protocol", "parity", "claims", "readings", "controls", "pairs",
          "standings", "settings", "choices", "cross", "cross_levels", "costs", "command_costs",
          "problems")  # fmt: skip


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return the report of a small sweep in all formats, shared by tests that only read it."""
    folder = tmp_path_factory.mktemp("plain")
    rows = sweep(dimensions=(10, 20), seeds=3)
    return write_report(store_rows(folder / "runs", rows), folder / "report")


@pytest.mark.slow
def test_a_report_has_every_promised_file_and_no_other(plain: Written) -> None:
    report = plain.page.parent
    names = {path.relative_to(report).as_posix() for path in plain.files}
    figures = ("figures/regret-quadratic-n100", "figures/landmarks-quadratic-n100")
    assert {name for name in names if not name.endswith(".tex")} == {
        "index.html", "README.md", "manifest.json",
        *(f"tables/{table}.{end}" for table in TABLES for end in ("csv", "md")),
        *(f"{figure}.{end}" for figure in figures for end in ("png", "pdf", "svg", "csv")),
    }  # fmt: skip
    assert {"tables/leaderboard-quadratic-d20-n100.tex", "tables/claims-paper.tex"} <= names
    assert {path for path in report.rglob("*") if path.is_file()} == set(plain.files)


@pytest.mark.slow
def test_the_same_runs_give_the_same_bytes(plain: Written, tmp_path: Path) -> None:
    again = write_report(plain.page.parent.parent / "runs", tmp_path / "again", formats="svg,csv")
    for other in again.files:
        one = plain.page.parent / other.relative_to(tmp_path / "again")
        if other.name not in ("index.html", "README.md", "manifest.json"):  # which name the folder
            assert one.read_bytes() == other.read_bytes(), one.name


@pytest.mark.slow
def test_the_page_needs_nothing_but_the_files_beside_it(varied: VariedReport) -> None:
    page = open_page(varied.written.page)
    links = [link for _, a in page.tags for key in ("src", "href") if (link := a.get(key))]
    links = [link for link in links if not link.startswith(PAPERS)]
    assert not [link for link in links if re.match(r"https?:|//", link)]
    files = [
        varied.written.page.parent / link for link in links if not link.startswith(("#", "data:"))
    ]
    assert len(files) > len(varied.figures)
    assert all(path.is_file() for path in files)
    ids = [name for _, a in page.tags if (name := a.get("id"))]
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in links if re.match("#(?!run=)", link)} <= set(ids)


@pytest.mark.slow
def test_the_page_has_all_parts_in_order_and_all_figures(varied: VariedReport) -> None:
    page = open_page(varied.written.page)
    order = ["summary", "leaderboard", "claims", "figures", "appendix", "single-runs"]
    assert [name for _, a in page.tags if (name := a.get("id")) in order] == order
    shown = {name for tag, a in page.tags if tag == "figure" and (name := a.get("id"))}
    assert shown == {figure.name for figure in varied.figures}
    assert "chain, noise=0.5, n = 100:" in page.text  # has no figures of its own
    assert "python -m ddobench.report task=chain n=200 budget=full" in page.text


def test_the_page_lists_the_runs_and_the_commands_that_repeat_them(plain: Written) -> None:
    text = open_page(plain.page).text
    for part in (
        "12 finished, 0 declined, 0 failed", "torch 2.13.0", "aaaaaaaaaaaa", "FGM†",
        "† uses the true graph", "python -m ddobench method=naive", "python -m ddobench.report",
        "All runs finished",
    ):  # fmt: skip
        assert part in text, part


def test_all_first_runs_of_a_new_user_are_in_a_leaderboard_and_a_figure(tmp_path: Path) -> None:
    rows = [climb(m, 11, seed, n=2000) for m in ("naive", "linear", "additive")
            for seed in range(5)]  # fmt: skip
    rows += [climb("fgm", 41, seed, n=2000, budget="tiny") for seed in range(3)]
    stored = stored_with(tmp_path / "runs", [(row, {}) for row in rows])
    report = tmp_path / "report"
    written = write_report(tmp_path / "runs", report, formats="svg,csv")
    board = pd.read_csv(report / "tables" / "leaderboard.csv")
    methods = {"naive", "linear", "additive", "fgm"}
    assert set(board.loc[board["lead"] > 0, "method"]) == methods
    frames = [pd.read_csv(path) for path in (report / "figures").glob("*.csv")]
    assert methods <= {name for frame in frames if "method" in frame for name in frame["method"]}
    assert list_omitted(stored) == []
    page = open_page(written.page)
    assert "FGM" in page.text
    assert "value-chain-n2000-tiny" in {a.get("id") for _, a in page.tags}


@pytest.mark.slow
def test_markup_in_any_stored_text_is_escaped(tmp_path: Path) -> None:
    names = ("task", "task_variant", "method", "method_variant", "label", "command", "color")
    hostile = dict.fromkeys(names, SCRIPT)
    rows = [run_row(d=d, seed=seed, budget=SCRIPT, privileges=SCRIPT, digest=f"h{d}", **hostile)
            for d in (10, 20) for seed in (0, 1)]  # fmt: skip
    rows.append(failed_row(d=10, seed=2, digest="h10") | hostile | {"reason": SCRIPT})
    store = Store(store_rows(tmp_path / "runs", rows))
    words = {"task": SCRIPT, "task_variant": SCRIPT, "d": 10, "title": SCRIPT, "formula": SCRIPT,
             "text": SCRIPT}  # fmt: skip
    store.write_sample(store.sample("any", "10"), TaskSample(**{**vars(task_sample(10)), **words}))
    report = tmp_path / "report"
    written = write_report(store.folder, report, remarks={SCRIPT: [{"text": SCRIPT}]},
                           formats="svg")  # fmt: skip
    page = open_page(written.page)
    assert page.scripts == OUR_SCRIPTS
    assert SCRIPT in page.text
    assert not [name for _, a in page.tags for name in a if name.startswith("on")]
    for path in (*report.glob("figures/*.svg"), *report.glob("tables/*.md")):
        assert "<script" not in path.read_text(encoding="utf-8"), path.name
    assert all(path.is_relative_to(report) for path in written.files)


def test_a_formula_has_indices_and_exponents_and_stays_text() -> None:
    assert set_formula("w_C exp(-x_12) ∈ R^41, a_long_name") == (
        "w<sub>C</sub> exp(\u2212x<sub>12</sub>) ∈ R<sup>41</sup>, a_long_name"
    )
    assert "<script" not in set_formula(SCRIPT)


def test_a_missing_store_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; make one with: python -m ddobench"):
        write_report(tmp_path / "nowhere", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_results_folder_that_cannot_be_read_leaves_the_earlier_report(
    fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fill([run_row()])
    earlier = write_report(folder, tmp_path / "report", formats="svg")
    before = {path: path.read_bytes() for path in earlier.files}
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(UsageError, match=r"must be a folder .*file \(Not a directory\)"):
        write_report(tmp_path / "file", tmp_path / "report", formats="svg")
    inner = next(path for path in folder.iterdir() if path.is_dir())
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == inner:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UsageError, match=r"must be a folder that can be read, got .* \(Permission"):
        write_report(folder, tmp_path / "report", formats="svg")
    monkeypatch.undo()
    left = {path: path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert left == before


def test_filters_take_one_or_several_stored_values() -> None:
    stored = pd.DataFrame(sweep(seeds=4))
    kept = ReportData.of(stored, {"method": "fgm", "d": [10, 20], "seed": "0-1", "n": None}).runs
    assert len(kept) == 4
    assert set(kept["method"]) == {"fgm"}
    assert set(ReportData.of(stored, {"seed": ["0-1", 3]}).runs["seed"]) == {0, 1, 3}
    with pytest.raises(UsageError, match=r"method must be one of fgm, naive .*, got fgmm"):
        ReportData.of(stored, {"method": "fgmm"})


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"filters": {"colour": "red"}}, r"a filter must be one of task, .* got 'colour'"),
        ({"formats": "svg,gif"}, r"formats must be among svg, png, pdf, csv, got 'gif'"),
        ({"formats": ["png"]}, r"formats must include svg, which the page needs, got png"),
    ],
)
def test_an_unknown_filter_or_format_is_refused(
    fill: Fill, tmp_path: Path, asked: dict[str, str], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        write_report(fill([]), tmp_path / "report", **asked)  # type: ignore[arg-type]


def test_filters_are_rewritten_for_hydra() -> None:
    assert format_filter("method=fgm,naive") == "only.method=[fgm,naive]"
    assert format_filter("d=20") == "only.d=20"
    assert format_filter("only.n=[100,300]") == "only.n=[100,300]"
    assert format_filter("results_dir=a,b") == "results_dir=a,b"


def test_numbers_are_formatted() -> None:
    assert [formatting.format_number(x) for x in (0.0, 3e-15, 0.004, 20.036, -1.5, np.nan)] == [
        "0", "0", "0.004", "20.04", f"{MINUS}1.50", DASH,
    ]  # fmt: skip
    assert formatting.format_estimate(1.0, 0.5, 1.5) == "1.00 [0.50, 1.50]"
    assert formatting.format_estimate(1.0, np.nan, np.nan) == "1.00"
    assert [formatting.format_percent(x) for x in (0.0, 0.001, 0.5, np.nan)] == [
        "0 %",
        "< 1 %",
        "50 %",
        DASH,
    ]
    assert formatting.format_ranges([3, 0, 1, 2, 7]) == f"0{DASH}3, 7"
    assert formatting.format_ranges([]) == ""


THRICE = """
import runpy, sys
runpy.run_module("ddobench.report", run_name="__main__")
words = sys.argv[1:]
sys.argv[1:] = ["--help"]
try:
    runpy.run_module("ddobench.report", run_name="__main__")
except SystemExit:
    pass
assert "torch" not in sys.modules
sys.argv[1:] = [*words[:-1], "method=mine"]
runpy.run_module("ddobench.report", run_name="__main__")
"""


@pytest.mark.slow
def test_the_command_line_prints_the_page_or_an_error_and_never_imports_torch(
    fill: Fill, tmp_path: Path
) -> None:
    fill(sweep(dimensions=[10], seeds=2))
    words = ["results_dir=runs", "report_dir=out", "seed=0-0", "method=fgm,naive"]
    done = subprocess.run(
        [sys.executable, "-c", THRICE, *words], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}, check=False,
        timeout=PATIENCE,
    )  # fmt: skip
    first, *shown = done.stdout.splitlines()
    assert first == "out/index.html: 2 of 4 runs, 0 figures", done.stderr
    assert any("claims=mine.yaml" in line for line in shown)  # the help of the report
    assert not any("latent:" in line for line in shown)  # and not of a run
    assert done.stderr.splitlines() == [
        "ddobench: method must be one of fgm, naive (the stored values), got mine"
    ]
    assert done.returncode == 2
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "out"}


def test_runs_have_their_date_or_that_of_their_file_and_their_revision(fill: Fill) -> None:
    rows = [run_row(seed=0, revision="b" * 40, finished="2024-02-03T23:59:00+00:00"),
            run_row(seed=1)]  # fmt: skip
    folder = fill(rows)
    for path in folder.rglob("*.parquet"):
        os.utime(path, (0, 0))
    origins = find_origins(ReportData.read(folder))
    assert origins.stored == "1970-01-01 to 2024-02-03"
    assert {"a" * 12, "b" * 12} == set(origins.revisions)


def test_commands_are_shown_without_the_results_folder() -> None:
    sweep_ = "python -m ddobench -m 'method=glob(*)' seed=0-4"
    typed = [f"{sweep_} 'results_dir=/mnt/my runs'", "python -m ddobench 'half"]
    rows = [run_row(seed=seed, command=command) for seed, command in enumerate(typed)]
    assert ReportData.of(pd.DataFrame(rows)).runs["command"].tolist() == [sweep_, typed[1]]


def test_a_report_removes_only_unchanged_files_of_an_earlier_one(tmp_path: Path) -> None:
    figures, tables = tmp_path / "figures", tmp_path / "tables"
    ours = {figures / "old.svg": b"old", figures / "edited.svg": b"ours", tables / "a.csv": b"a"}
    for path, content in ours.items():
        write_whole(path, content)
    clear_stale(tmp_path, ours)
    (figures / "edited.svg").write_bytes(b"theirs")
    (figures / "notes.svg").write_bytes(b"theirs")
    clear_stale(tmp_path, {tables / "a.csv": b"a"})
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"figures/edited.svg", "figures/notes.svg", "tables/a.csv", "manifest.json"}


@pytest.mark.parametrize(
    "listed", ["no JSON", "[]", '{"../victim": "%s"}', '{"figures/../victim": "%s"}']
)
def test_an_invalid_manifest_deletes_nothing(tmp_path: Path, listed: str) -> None:
    victim, report = tmp_path / "victim", tmp_path / "report"
    victim.write_bytes(b"precious")
    (report / "figures").mkdir(parents=True)
    (report / "victim").write_bytes(b"precious")
    (report / "manifest.json").write_text(listed.replace("%s", sha256(b"precious").hexdigest()))
    clear_stale(report, {})
    assert victim.exists()
    assert (report / "victim").exists()

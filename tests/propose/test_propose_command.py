"""`python -m ddobench.propose` writes designs and a page, or prints one sentence."""

import os
import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.propose.__main__ import main
from tests.propose.test_propose import ADDED, propose, table

QUICK = ["--target", "y", "--method", "linear", "budget=tiny", "--k", "4"]


@pytest.fixture(autouse=True)
def folder_with_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run in a folder that holds only a table."""
    monkeypatch.chdir(tmp_path)
    table().to_csv("rows.csv", index=False)


def test_designs_and_a_page_are_written_and_summarised(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rows.csv", *QUICK, "--same"]) == 0
    written = pd.read_csv("proposals.csv")
    expected = propose(table(), k=4, check=True, same=True)
    pd.testing.assert_frame_equal(written, expected, check_exact=False)
    assert {"gain_low", "gain_high"} <= set(written)
    assert Path("proposals.html").exists()
    printed = capsys.readouterr()
    first, second = printed.out.splitlines()
    assert first.startswith("proposals.csv: 4 designs by linear; the best row is row ")
    assert "; design 1 is predicted " in first
    assert "; trust: " in first
    assert second == "proposals.html: what changes against the best row, and how far to trust it"
    assert "note: Constant columns keep their value in every proposal: site." in printed.err
    assert printed.err.startswith("fitting linear to 60 rows, seed 0\n")
    assert "1 of 1 runs" in printed.err
    assert "checking linear: fitting without 12 rows\n" in printed.err


def test_parquet_is_read_and_written() -> None:
    table().to_parquet("rows.parquet")
    assert main(["rows.parquet", *QUICK, "--out", "new.parquet", "--no-check"]) == 0
    assert pd.read_parquet("new.parquet").columns.tolist() == [
        "a", "count", "metal", "site", *ADDED,
    ]  # fmt: skip
    assert "No check was made of how the model predicts" in Path("new.html").read_text()


def test_designs_are_written_in_the_form_of_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    form: dict[str, str] = {"sep": ";", "decimal": ",", "encoding": "cp1252"}
    rows = table().rename(columns={"a": "a [°C]"})
    rows.to_csv("rows.csv", index=False, **form)  # type: ignore[call-overload]
    assert main(["rows.csv", *QUICK, "--no-check", "--minimize", "--same"]) == 0
    note = "note: Read with columns separated by semicolons, decimal commas, encoding cp1252."
    assert note in capsys.readouterr().err
    written = pd.read_csv("proposals.csv", **form)  # type: ignore[call-overload]
    assert written["a [°C]"].dtype == np.float64
    assert written["predicted"].is_monotonic_increasing
    given = ["--sep", ";", "--decimal", ",", "--encoding", "latin-1", "--out", "new.tsv"]
    assert main(["rows.csv", *QUICK, "--no-check", *given]) == 0
    assert "a [°C]\t" in Path("new.tsv").read_text(encoding="latin-1")


def test_levels_and_linear_constraints_are_options() -> None:
    words = ["--levels", "a=0,0.5", "--continuous", "count", "--constraint", "a + 0.1 count <= 1"]
    assert main(["rows.csv", *QUICK, *words, "--min-distance", "0.1", "--no-check"]) == 0
    written = pd.read_csv("proposals.csv")
    assert set(written["a"]) <= {0, 0.5}
    assert (written["a"] + 0.1 * written["count"] <= 1 + 1e-9).all()


def test_a_best_row_that_is_handed_back_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    table().iloc[:30].to_csv("rows.csv", index=False)
    assert main(["rows.csv", "--target", "y"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("proposals.csv: no new design: auto hands back the best row; the")
    assert "warning: auto trusts none of its candidates on these rows (fewer than" in printed.err


def test_constraints_are_options() -> None:
    words = ["--bounds", "a=:0.25", "--bounds", "count=1:3", "--fixed", "metal=tin", "--minimise"]
    assert main(["rows.csv", *QUICK, *words, "--drop", "site", "--no-check"]) == 0
    written = pd.read_csv("proposals.csv")
    assert written["a"].max() <= 0.25
    assert written["count"].between(1, 3).all()
    assert set(written["metal"]) == {"tin"}
    assert "site" not in written
    assert written["predicted"].is_monotonic_increasing


def test_several_seeds_are_compared() -> None:
    assert main(["rows.csv", *QUICK, "--seed", "0-1", "--inside", "--no-check"]) == 0
    written = pd.read_csv("proposals.csv")
    assert {"predicted_sd", "seed"} <= set(written)
    assert (written["columns_outside"] == 0).all()


def test_rows_of_a_task_can_be_written_as_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--example", "chain", "d=7", "n=30", "--out", "try.csv", "--seed", "2"]) == 0
    assert capsys.readouterr().out == "try.csv: 30 rows of chain, columns x0 to x6 and y\n"
    import ddobench

    expected = ddobench.example_table("chain", d=7, n=30, seed=2)
    np.testing.assert_array_equal(pd.read_csv("try.csv").to_numpy(), expected.to_numpy())


HALFWAY = """\
from dataclasses import dataclass
from ddobench.contracts import OneSeedMethod


@dataclass(kw_only=True)
class Halfway(OneSeedMethod):
    def fit_one(self, x, y, space, rng):
        self.best = x[y.argmax()]

    def propose_one(self, starts, rng):
        yield starts + 0.5 * (self.best - starts)
"""


def test_a_method_of_a_plug_in_can_propose(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DDOBENCH_CONFIG_DIR", "to be restored")
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = Path("my plug-in")
    (folder / "method").mkdir(parents=True)
    (folder / "halfway_module.py").write_text(HALFWAY)
    (folder / "method" / "halfway.yaml").write_text("_target_: halfway_module.Halfway\n")
    words = ["rows.csv", "--target", "y", "--method", "halfway", "--k", "3", "--no-check"]
    assert main([*words, "--config-dir", str(folder)]) == 0
    assert len(pd.read_csv("proposals.csv")) == 3


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give a table and its value column, as in: python -m ddobench.propose table.csv"),
        (["rows.csv"], "give a table and its value column, as in: python -m ddobench.propose tab"),
        (["none.csv", "--target", "y"], "there is no file none.csv; give the path of a table"),
        (["rows.csv", "--target", "z"], "there is no column 'z'; the columns are a, count, metal"),
        (["rows.csv", *QUICK, "--out", "rows.csv"], "--out would overwrite the table rows.csv; "),
        (["rows.csv", *QUICK, "--out", "new.txt"], "--out must end in .csv or .tsv or .parquet"),
        (["rows.csv", *QUICK, "--bounds", "a=1"], "--bounds must be NAME=LOW:HIGH, got 'a=1'"),
        (["rows.csv", *QUICK, "--fixed", "a"], "--fixed must be NAME=ENTRY, got 'a'"),
        (["rows.csv", *QUICK, "--fixed", "a=x"], "--fixed a must be a number, got 'x'"),
        (
            ["rows.csv", "--target", "y", "--method", "gaa"],
            "there is no method 'gaa' (did you mean 'ga'?)",
        ),
        (["rows.csv", *QUICK, "--k", "3"], "--k is given twice; keep one"),
        (["rows.csv", *QUICK, "--target", "y"], "--target is given twice; keep one"),
        (["rows.csv", *QUICK, "--inside", "--insi"], "--inside is given twice; keep one"),
        (["rows.csv", *QUICK, "--no-check", "--no-check"], "--no-check is given twice; keep one"),
        (["rows.csv", *QUICK, *["--minimise"] * 2], "--minimise is given twice; keep one"),
        (["rows.csv", *QUICK, *["--out", "o.csv"] * 2], "--out is given twice; keep one"),
        (["rows.csv", *QUICK, *["--seed", "0"] * 2], "--seed is given twice; keep one"),
        (["rows.csv", *QUICK, *["--config-dir", "."] * 2], "--config-dir is given twice; keep one"),
        ([*["--example", "chain"] * 2], "--example is given twice; keep one"),
        (["rows.csv", *QUICK, "--bounds", "a=0:1", "--bounds", "a=0:2"], "--bounds a is given twi"),
        (["rows.csv", *QUICK, "--fixed", "a=0", "--fixed", "a=1"], "--fixed a is given twice; kee"),
        (["rows.csv", *QUICK, "--drop", "a", "--drop", "a"], "--drop a is given twice; keep one"),
        (["rows.csv", *QUICK, *["--whole", "a"] * 2], "--whole a is given twice; keep one"),
        (["rows.csv", *QUICK, *["--categorical", "a"] * 2], "--categorical a is given twice; kee"),
        (["rows.csv", *QUICK, *["--continuous", "a"] * 2], "--continuous a is given twice; keep o"),
        (["rows.csv", *QUICK, *["--levels", "a"] * 2], "--levels a is given twice; keep one"),
        (["rows.csv", *QUICK, *["--constraint", "a<=1"] * 2], "--constraint a<=1 is given twice; "),
        (["rows.csv", *QUICK, "--levels", "z"], "there is no column 'z'; the columns are a, count"),
        (
            ["rows.csv", *QUICK, "--levels", "a=x"],
            "--levels must be NAME or NAME=0,10,20, got 'a=x",
        ),
        (
            ["rows.csv", *QUICK, "--constraint", "b<=1"],
            "--constraint 'b<=1': there is no column 'b'",
        ),
        (["rows.csv", *QUICK, "--minimise", "--minimize"], "--minimise is given twice; keep one"),
        (
            ["rows.csv", *QUICK, "--same", "--min-distance", "1"],
            "same (--same) has no least distan",
        ),
        (["rows.csv", *QUICK, "--sep", "ab"], "--sep must be one character or tab, got 'ab'"),
        (["rows.csv", *QUICK, "--sep", "tab"], "there is no column 'y'; the columns are a,count"),
        (["rows.csv", *QUICK, "--bounds", "a=5:9", "--inside"], "the bounds of 'a', 5 to 9, are o"),
        (["rows.csv", "--target", "y", "--k", "1000000000"], "k must be at most 10000, as every "),
        (["rows.csv", *QUICK, "--fixed", "metal=\x1b"], "column 'metal' can only be fixed at an"),
        (["rows.csv", *QUICK, "--\x1b[31m"], "unrecognized arguments: --\\x1b[31m; --help"),
        (["\x1b[31m.csv", *QUICK], "there is no file \\x1b[31m.csv; give the path of a tab"),
        (["rows.csv", *QUICK, "--out", "a\0.csv"], "--out must be a file name of at most 200 byt"),
        (["rows.csv", *QUICK, "--out", "a" * 300 + ".csv"], "--out must be a file name of at most"),
        (["rows.csv", *QUICK, "--config-dir", "a" * 300], "a" * 300 + " cannot be used: File name"),
        (["--example", "chain", "d=5", "d=7"], "d is given twice, d=5 and d=7; keep one"),
        (
            ["--example", "chain", "--seed", "0-4"],
            "--example writes the rows of one seed, got --se",
        ),
        (["--example", "chain", "seed=3"], "seed cannot be an override here, got seed=3; use --se"),
        (
            ["--example", "chain", "--k", "4"],
            "--example only writes a table, got --k; leave one of",
        ),
        (["--example", "chain", "--drop", "a"], "--example only writes a table, got --drop; leave"),
        (
            ["--example", "chain", "d=7", "n=1000000000000000"],
            "there is not enough memory for so many",
        ),
        (["rows.csv", "--targt", "y"], "unrecognized arguments: --targt"),
        (["rows.csv", *QUICK, "--config-dir", "gone"], "the folder given by --config-dir does not"),
        (["--example", "chian"], "there is no task 'chian' (did you mean 'chain'?); there are "),
    ],
)
def test_an_invalid_request_is_one_sentence_and_exit_code_2(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    printed = capsys.readouterr()
    assert printed.err.startswith(f"ddobench: {sentence}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert {path.name for path in Path().iterdir()} == {"rows.csv"}


def test_a_folder_in_the_place_of_a_file_is_found_before_anything_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("proposals.html").mkdir()
    with pytest.raises(SystemExit, match="2"):
        main(["rows.csv", *QUICK])
    assert capsys.readouterr().err == (
        "ddobench: proposals.html would be written, but is a folder; give another --out\n"
    )
    with pytest.raises(SystemExit, match="2"):
        main(["rows.csv", *QUICK, "--out", "rows.csv/new.csv"])
    assert "rows.csv cannot be written: File exists; " in capsys.readouterr().err
    assert {path.name for path in Path().iterdir()} == {"rows.csv", "proposals.html"}


def test_an_entry_is_fixed_as_the_table_writes_it(capsys: pytest.CaptureFixture[str]) -> None:
    dry = pd.Series([True, False, None] * 20, dtype=object)
    rows = table().assign(dry=dry).rename(columns={"a": "a=b"})
    rows.to_csv("rows.csv", index=False)
    fixed = ["--fixed", "dry=true", "--fixed", "a=b=1", "--fixed", "count=3.0"]
    assert main(["rows.csv", *QUICK, *fixed, "--no-check"]) == 0
    written = pd.read_csv("proposals.csv")
    assert set(written["dry"]) == {True}
    assert set(written["a=b"]) == {1.0}
    assert set(written["count"]) == {3}
    capsys.readouterr()
    with pytest.raises(SystemExit, match="2"):
        main(["rows.csv", *QUICK, "--fixed", "dry=maybe"])
    assert "an entry of the rows (False, True), got 'maybe'" in capsys.readouterr().err


def test_control_characters_are_written_and_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    rows = table().rename(columns={"site": "s\x1b[31m", "y": "\x1b[1my"})
    rows["metal"] = rows["metal"].replace("zinc", "\x1b[2mzinc")
    rows.to_csv("\x1b[3m.csv", index=False)
    words = ["--target", "\x1b[1my", *QUICK[2:], "--out", "\x1b[4m\n.csv"]
    assert main(["\x1b[3m.csv", *words, "--same"]) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err
    assert "every proposal: s\\x1b[31m." in printed.err
    assert printed.out.startswith("\\x1b[4m\\n.csv: 4 designs by linear")
    written = pd.read_csv("\x1b[4m\n.csv")
    assert "s\x1b[31m" in written
    assert "\x1b[2mzinc" in set(written["metal"])


def test_a_closed_pipe_ends_the_program_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", buffering=1) as closed:
        monkeypatch.setattr(sys, "stdout", closed)
        monkeypatch.setattr(sys, "stderr", closed)
        with pytest.raises(SystemExit, match=r"^141$"):
            main(["rows.csv", "--target", "z"])


@pytest.mark.filterwarnings("ignore:'ddobench.propose.__main__' found in sys.modules")
def test_the_package_runs_as_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["propose", "rows.csv", *QUICK, "--no-check", "--same"])
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("ddobench.propose", run_name="__main__")
    assert len(pd.read_csv("proposals.csv")) == 4

"""Promises of the type of every table: its files are well formed with any names."""

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.claims import read_claims
from ddobench.report.tables.formatting import (
    Column,
    Group,
    Table,
    escape_latex,
    escape_markdown,
    file_stem,
    format_change,
    format_p,
    format_ranges,
    name_runs,
    row_stem,
    to_latex,
)
from ddobench.report.verdicts import judge_all
from ddobench.report.writer import make_tables
from tests.support.pages import DASH, MINUS, SCRIPT
from tests.support.synthetic_runs import data_of, failed_row, run_row, sweep

NASTY = rf"50% of $x_i$ & {{a}} #1 ~ ^ \input <b> | † ‡ § ¶ {MINUS} {DASH} ✓ ✗ …"
NAME = Column("name", lambda row: str(row["name"]), words=True)
VALUE = Column("mean", lambda row: f"{row['x']:.1f}", lambda row: row["x"], over="value")


def group_of(*rows: dict[str, Any], stem: str = "mine-a", **changes: Any) -> Group:
    """Return rows with a name and a number under a heading."""
    return Group("a & b", stem, rows, [NAME, VALUE], **changes)


def check_well_formed(text: str) -> int:
    """Check a tabular as TeX would, and return its number of rows without the header."""
    body = re.sub(r"(?m)^%.*$", "", text)
    bare = re.sub(r"\\[&%$#_{}]", "", body)  # what is escaped has no meaning
    depth = 0
    for sign in bare:
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0, "a brace is closed that was not opened"
    assert depth == 0, "a brace is opened and not closed"
    assert bare.count("$") % 2 == 0
    for sign in "%#_~^":
        assert sign not in bare
    (columns,) = re.findall(r"\\begin\{tabular\}\{(.*)\}\n", text)
    count = len(re.sub(r"p\{[^}]*\}", "p", columns))
    rows = [line for line in bare.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") + 1 for row in rows} == {count}, "a row has too few or too many cells"
    assert [line for line in bare.split("\n") if line.startswith("[")] == []
    order = [text.index(f"\\{rule}") for rule in ("toprule", "midrule", "bottomrule")]
    assert order == sorted(order)
    return len(rows) - 1


def test_a_table_has_all_digits_in_its_csv_and_the_same_texts_in_other_files() -> None:
    frame = pd.DataFrame({"name": ["a_b"], "x": [1 / 3]})
    group = group_of(*frame.to_dict("records"), note="mind <this>")  # type: ignore[arg-type]
    files = Table("mine", "Mine", "", frame, [group]).files()
    assert files["mine.csv"] == "name,x\na_b,0.3333333333\n"
    assert files["mine.md"].splitlines() == [
        "# Mine", "", "## a &amp; b", "", "mind &lt;this&gt;", "", "| name | value, mean |",
        "| :--- | ---: |", "| a_b | 0.3 |",
    ]  # fmt: skip
    assert "a\\_b & 0.3 \\\\" in files["mine-a.tex"]
    assert group.cells() == [[(NAME, "a_b", None, ""), (VALUE, "0.3", 1 / 3, "")]]


def test_a_group_without_a_stem_has_no_file_and_an_empty_table_has_its_title() -> None:
    frame = pd.DataFrame(columns=["name"])
    table = Table("mine", "Mine", "", frame, [group_of(stem="", task="a"), group_of(task="b")])
    assert set(table.files()) == {"mine.csv", "mine.md", "mine-a.tex"}
    assert table.of_task("b") == [table.groups[1]]
    assert Table("mine", "Mine", "", frame).files() == {"mine.csv": "name\n", "mine.md": "# Mine\n"}


def test_special_characters_of_latex_and_markdown_are_escaped() -> None:
    assert escape_latex("a_b & 5% <x>") == r"a\_b \& 5\% \textless{}x\textgreater{}"
    assert escape_latex("\\~^{}$#") == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\$\#"
    )
    assert escape_latex(f"{MINUS}1 {DASH} FGM†") == r"$-$1 -- FGM$\dagger$"
    assert escape_latex("two\nlines\tand  gaps 5\u00a0%") == r"two lines and gaps 5~\%"
    assert [escape_latex(text) for text in ("[1, 2]", "*")] == ["{}[1, 2]", "{}*"]  # after a \\
    assert escape_markdown("a|b\nc & <i>") == "a\\|b c &amp; &lt;i&gt;"


def test_a_tabular_is_well_formed_and_the_check_finds_broken_ones() -> None:
    wide = Column("name", NAME.text, words=True, width=0.4)
    rows = [{"name": NASTY, "x": 1.0}, {"name": "[", "x": 2.0}]
    text = to_latex(Group("", "mine", rows, [wide, VALUE]))
    assert check_well_formed(text) == 2
    assert r"\begin{tabular}{p{0.4\linewidth}r}" in text
    assert r"\toprule" in to_latex(group_of())
    with pytest.raises(AssertionError, match="a row has too few or too many cells"):
        check_well_formed(text.replace("& 2.0", ""))
    with pytest.raises(AssertionError, match="a brace is opened and not closed"):
        check_well_formed(text.replace("{tabular}", "{tabular", 1))


def test_every_table_of_a_report_is_well_formed_and_escaped() -> None:
    rows = sweep(seeds=3)
    for row in rows:
        row |= {"label": f"{row['label']} {NASTY} {SCRIPT}", "privileges": ""}
    data = data_of([*rows, failed_row(d=10, seed=4) | {"reason": SCRIPT}])
    tables = make_tables(data, judge_all(data.runs, read_claims()))
    files = {name: text for table in tables.values() for name, text in table.files().items()}
    counts = {name.removesuffix(".tex"): check_well_formed(text)
              for name, text in files.items() if name.endswith(".tex")}  # fmt: skip
    assert {"claims-paper", "claims-ours", "readings"} <= set(counts)
    assert counts["scores-quadratic"] == 6
    assert counts["pairs-quadratic"] == 3
    assert counts["standings-1"] == 2
    assert len([name for name in files if name.endswith(".md")]) == len(tables)
    assert not [name for name, text in files.items() if name.endswith(".md") and "<script" in text]


def test_p_values_are_never_zero_and_changes_of_shares_are_in_points() -> None:
    assert [format_p(p) for p in (0.0625, 1.0, 0.004, 1e-5, np.nan)] == [
        ".06", "1.00", ".004", "< .001", DASH,
    ]  # fmt: skip
    ends: dict[Any, Any] = {"difference": -0.25, "difference_low": -0.5, "difference_high": 0.0}
    assert format_change({"score": "invalid_final", **ends}) == f"{MINUS}25.0 [{MINUS}50.0, 0.0]"
    assert format_change({"score": "final_model", **ends, "difference_low": np.nan}) == (
        f"{MINUS}0.25"
    )
    assert format_ranges(range(0, 200, 2)).endswith(", 78, …")


def test_files_and_headings_name_what_differs_from_the_default() -> None:
    usual = run_row("naive", 10)
    assert name_runs(usual, "n", "d") == "quadratic, n = 100, d = 10"
    assert row_stem("scores", usual, "d", "n") == "scores-quadratic-d10-n100"
    other = usual | {"task_variant": "noise=0.1", "budget": "tiny"}
    assert name_runs(other) == "quadratic, noise=0.1, budget tiny"
    assert row_stem("choices", other, method="my pick") == (
        "choices-quadratic-noise-0.1-my-pick-tiny"
    )


@pytest.mark.parametrize("words", [("..", "/"), ("",), ("../../etc/passwd",), ("x" * 300,)])
def test_a_file_name_is_safe_and_short(words: tuple[str, ...]) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,79}", file_stem(*words))

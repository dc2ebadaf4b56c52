"""Promises of the tables for papers: they are well formed, whatever the names in them."""

import re
from pathlib import Path

import pytest

from ddobench.report import write_report
from ddobench.report.figures import gallery
from ddobench.report.output.latex import escape_latex, latex_table
from tests.support.pages import DASH, MINUS
from tests.support.synthetic_runs import sweep
from tests.support.synthetic_stores import Fill

NASTY = rf"50% of $x_i$ & {{a}} #1 ~ ^ \input <b> | † ‡ § {MINUS} {DASH} ✓ ✗ …"


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
        assert sign not in bare.replace("\u00a0", "")
    (columns,) = re.findall(r"\\begin\{tabular\}\{(.*)\}\n", text)
    count = len(re.sub(r"p\{[^}]*\}", "p", columns))
    rows = [line for line in bare.splitlines() if line.endswith(r"\\")]
    assert {row.count("&") + 1 for row in rows} == {count}, "a row has too few or too many cells"
    assert [line for line in bare.split("\n") if line.startswith("[")] == []
    order = [text.index(f"\\{rule}") for rule in ("toprule", "midrule", "bottomrule")]
    assert order == sorted(order)
    return len(rows) - 1


def test_every_sign_that_tex_would_act_upon_is_escaped() -> None:
    assert escape_latex("a_b & 5% <x>") == r"a\_b \& 5\% \textless{}x\textgreater{}"
    assert escape_latex("\\~^{}$#") == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\$\#"
    )
    assert escape_latex(f"{MINUS}1 {DASH} FGM†") == r"$-$1 -- FGM$\dagger$"
    assert escape_latex("two\nlines\tand  gaps") == "two lines and gaps"


@pytest.mark.parametrize("start", ["[0.1, 0.2]", "*"])
def test_no_row_begins_with_what_a_line_break_would_swallow(start: str) -> None:
    assert escape_latex(start) == "{}" + start


def test_a_table_has_as_many_cells_as_columns_and_balanced_braces() -> None:
    text = latex_table(["name", "value"], [[NASTY, "1"], ["[", "}"]], [0], {0: 0.4})
    assert check_well_formed(text) == 2
    assert r"\begin{tabular}{p{0.4\linewidth}r}" in text


def test_a_broken_table_would_be_noticed() -> None:
    with pytest.raises(AssertionError, match="a row has too few or too many cells"):
        check_well_formed(latex_table(["a", "b"], [["1"]], []))
    with pytest.raises(AssertionError, match="a brace is opened and not closed"):
        check_well_formed(latex_table(["a"], [["1"]], []).replace("{tabular}", "{tabular", 1))


def test_every_table_of_a_report_is_written_and_well_formed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Fill
) -> None:
    monkeypatch.setattr(gallery, "FIGURES", {})  # they take their time
    rows = sweep(seeds=3)
    for row in rows:
        row["label"] = f"{row['label']} {NASTY}"
        row["privileges"] = ""
    write_report(fill(rows), tmp_path / "report")
    files = {path.stem: path.read_text(encoding="utf-8")
             for path in (tmp_path / "report" / "tables").glob("*.tex")}  # fmt: skip
    claims = {"claims-paper", "claims-ours"}
    assert {"scores-quadratic", "pairs-quadratic", "standings-1", *claims} <= set(files)
    counts = {name: check_well_formed(text) for name, text in files.items()}
    assert counts["scores-quadratic"] == 6
    assert counts["pairs-quadratic"] == 3
    assert counts["standings-1"] == 2

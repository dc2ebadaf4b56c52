"""Promises of the controls: variants of a method against its default."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.report import write_report
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures import gallery
from ddobench.report.figures.controls import variant_controls
from ddobench.report.tables.comparisons import comparison_markdown, format_rows, header
from ddobench.report.tables.differences import format_p
from ddobench.scores import contrasted_scores
from ddobench.stats.samples import holm, paired_difference
from tests.support.drawn import only, overflow
from tests.support.pages import MINUS, OUR_SCRIPTS, SCRIPT, open_page
from tests.support.synthetic_runs import Row, climb, curve_of, data_with
from tests.support.synthetic_stores import stored_with

GAINS = {"": 0.0, "graph=empty": -0.5, "graph=permuted": 0.25}


def variants(seeds: int = 5, gains: dict[str, float] = GAINS) -> list[Row]:
    """Return runs of one method whose variants differ by a gain that varies with the seed."""
    return [
        climb(method_variant=variant, seed=seed, final_model=seed + gain * (1 + seed),
              best_oracle=6.0 + gain, invalid_final=0.5 - gain / 10)
        for variant, gain in gains.items()
        for seed in range(seeds)
    ]  # fmt: skip


def evidence_of_variants(rows: list[Row]) -> ReportData:
    """Return the report data of these runs with a curve each."""
    return data_with(rows, [curve_of(row) for row in rows])


def test_every_variant_is_compared_with_the_default_on_the_same_seeds() -> None:
    rows = variants()
    del rows[0]  # the default lacks seed 0
    table = evidence_of_variants(rows).comparisons
    final = table[table["score"] == "final_model"].set_index("method_variant")
    assert final["seeds"].tolist() == [4, 5, 5]
    assert final["difference"].isna().tolist() == [True, False, False]
    for variant in ("graph=empty", "graph=permuted"):
        expected = paired_difference(GAINS[variant] * np.arange(2, 6), np.zeros(4))
        assert final.loc[variant, "pairs"] == 4
        assert final.loc[variant, "difference"] == pytest.approx(expected.mean)
        assert final.loc[variant, "difference_low"] == pytest.approx(expected.interval.low)
        assert final.loc[variant, "difference_interval"] == "t"
        assert final.loc[variant, "p"] == expected.p
        assert final.loc[variant, "improvement"] == expected.improvement
    assert final["p_holm"].dropna().tolist() == holm(final["p"].dropna()).tolist()


def test_methods_without_variants_and_tasks_without_steps_have_no_controls() -> None:
    plain = [climb(m, seed=s) for m in ("fgm", "ga") for s in range(2)]
    assert list(variant_controls(evidence_of_variants(plain))) == []
    rows = variants(seeds=2)
    still = data_with(rows, [curve_of(row, steps=0) for row in rows])
    assert list(variant_controls(still)) == []
    assert still.comparisons.empty


def test_without_a_default_the_plainest_variant_stands_in_first() -> None:
    gains = {"graph=empty prior=0.1": 1.0, "graph=true": 0.0}
    table = evidence_of_variants(variants(gains=gains)).comparisons
    assert set(table["reference"]) == {"graph=true"}
    assert table["method_variant"].iloc[0] == "graph=true"


def test_variants_without_a_common_seed_are_shown_but_not_compared() -> None:
    rows = [row for row in variants() if (row["seed"] < 2) == (row["method_variant"] == "")]
    table = evidence_of_variants(rows).comparisons
    assert set(table["pairs"].dropna()) == {0}
    assert table["p_holm"].isna().all()
    assert len(list(variant_controls(evidence_of_variants(rows)))) == 1


def test_the_figure_has_a_row_per_variant_and_says_how_little_few_seeds_show() -> None:
    figure = only(variant_controls, evidence_of_variants(variants()))
    panels = dict(zip(contrasted_scores(), figure.drawing.axes, strict=True))
    left, right = panels["final_model"], panels["invalid_final"]
    assert [text.get_text() for text in left.get_yticklabels()] == [
        "FGM", "FGM, graph=empty", "FGM, graph=permuted",
    ]  # fmt: skip
    assert "sd" in left.get_xlabel()
    assert "%" in right.get_xlabel()
    marks = {round(float(np.asarray(line.get_xdata())[0]), 9) for line in right.get_lines()}
    assert marks == {50.0, 55.0, 47.5}
    assert "with 5 pairs no p falls below .06, and none below .12" in figure.caption.lower()
    assert "oracle" in figure.caption
    assert overflow(figure) <= 0


def test_each_method_of_a_cell_is_compared_with_its_own_default_in_one_figure() -> None:
    rows = [row | {"method": m, "digest": f"{m}{row['digest']}", "label": ""}
            for m in ("mine", "yours") for row in variants()]  # fmt: skip
    figure = only(variant_controls, evidence_of_variants(rows))
    assert "4 comparisons" in figure.caption
    own = figure.data[figure.data["score"] == "final_model"]
    assert own["difference"].count() == 4
    heights = figure.drawing.axes[0].get_yticks()
    assert np.diff(heights).tolist() == [1.0, 1.0, 1.5, 1.0, 1.0]


def test_a_row_for_people_has_every_score_its_difference_and_its_adjusted_p() -> None:
    default, empty, _ = format_rows(evidence_of_variants(variants()).comparisons)
    assert len(default) == len(empty) == len(header())
    assert default[:4] == ["FGM", "2.00", "\u2013", "\u2013"]
    assert empty[0] == "FGM, graph=empty"
    assert empty[2].startswith(f"{MINUS}1.50 [{MINUS}")
    assert empty[3] == ".12"
    assert empty[7:9] == ["55 %", "5.0 [5.0, 5.0]"]
    assert empty[-1] == "5"


@pytest.mark.parametrize(
    ("p", "text"), [(0.0625, ".06"), (1.0, "1.00"), (0.004, ".004"), (1e-5, "< .001")]
)
def test_a_p_value_is_spelled_and_never_as_zero(p: float, text: str) -> None:
    assert format_p(p) == text


@pytest.mark.slow
def test_the_tables_and_the_page_show_the_controls_and_keep_markup_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "FIGURES", {variant_controls: True})  # the others take their time
    rows = variants(seeds=2, gains={"": 0.0, f"graph={SCRIPT}": 0.5})
    for row in rows:
        row["digest"] = f"d{len(row['method_variant'])}"  # it names a folder
    stored_with(tmp_path / "runs", [(row, {}) for row in rows])
    written = write_report(tmp_path / "runs", tmp_path / "report")
    page = open_page(written.page)
    assert "Controls: chain, n = 100, d = 11" in page.text
    assert f"FGM, graph={SCRIPT}" in page.text
    assert page.scripts == OUR_SCRIPTS
    markdown = (tmp_path / "report" / "tables" / "controls.md").read_text(encoding="utf-8")
    assert "<script" not in markdown
    assert "p (Holm)" in markdown
    table = pd.read_csv(tmp_path / "report" / "tables" / "controls.csv")
    assert len(table) == 2 * len(contrasted_scores())
    assert "controls-chain-d11-n100" in {path.stem for path in written.files}


def test_an_empty_table_is_spelled_as_its_heading() -> None:
    plain = [climb(seed=s) for s in range(2)]
    assert comparison_markdown(evidence_of_variants(plain).comparisons) == "# Controls\n"

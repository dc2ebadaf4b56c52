"""Promises of the matrix of a suite: methods in cells, marked, ranked and put in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml

from ddobench import registry
from ddobench.report import readme_tables
from ddobench.report.answers import answer
from ddobench.report.data import ReportData, find_origins
from ddobench.report.figures.matrix_figures import color_cell, suite_figures
from ddobench.report.markdown import write_readme
from ddobench.report.page import Contents, render_page
from ddobench.report.tables.matrix import (
    BEST_VISIBLE_ROW,
    Matrix,
    describe_cell,
    describe_matrix,
    format_cell,
    read_suite,
)
from ddobench.report.tables.select import BY_SIZE
from ddobench.report.tables.styles import find_remarks
from ddobench.report.verdicts import Judgement
from ddobench.report.writer import make_tables
from tests.support.drawn import draw, overflow
from tests.support.pages import SCRIPT, Page
from tests.support.synthetic_runs import Row, run_row

SUITE = read_suite("ddobench-1-lite")
CHAIN, SURFACE, NK, TFBIND8 = SUITE.cells
VISIBLE = 0.5  # the share of the best visible design
CONF = Path(__file__).parents[2] / "conf"


def rows_of(method: str, shares: Any, seeds: Any = range(10), **changes: Any) -> list[Row]:
    """Return the runs of a method: a share for each cell, or one for all; None is not run."""
    each = shares if isinstance(shares, list) else [shares] * len(SUITE.cells)
    return [
        run_row(
            method, seed=seed, **dict(zip(BY_SIZE, size, strict=True)), label=method.title(),
            privileges="", optimum=4.0, best_visible=4.0 * VISIBLE, digest=f"{method}-{cell}",
            final_model=4.0 * share + 0.01 * (seed % 3), regret_final=0.0, seconds_cpu=2.0,
            normalised_p100=share, normalised_p50=share,
        ) | changes
        for (cell, size), share in zip(SUITE.cells.items(), each, strict=True)
        if share is not None
        for seed in seeds
    ]  # fmt: skip


def declined(cell: str, method: str, reason: str) -> list[Row]:
    """Return declined runs of a method in one cell."""
    size = dict(zip(BY_SIZE, SUITE.cells[cell], strict=True))
    lost: Row = {**size, "status": "declined", "reason": reason, "final_model": np.nan}
    return [run_row(method, seed=seed, **lost, digest=f"{method}-{cell}", privileges="")
            for seed in range(10)]  # fmt: skip


def data_of(*groups: list[Row], **remarks: tuple[str, ...]) -> ReportData:
    """Return report data; `remarks` are by digest."""
    return ReportData.of(pd.DataFrame([row for rows in groups for row in rows]), remarks=remarks)


def matrix_of(*groups: list[Row], **remarks: tuple[str, ...]) -> Matrix:
    """Return the matrix of runs."""
    matrix = data_of(*groups, **remarks).matrix
    assert matrix is not None
    return matrix


def cell_of(matrix: Matrix, method: str, cell: str) -> "pd.Series[Any]":
    """Return a method in a cell."""
    cells = matrix.cells
    return cells[(cells["method"] == method) & (cells["cell"] == cell)].iloc[0]


def test_there_is_a_matrix_only_if_a_method_was_tried_in_every_cell() -> None:
    holed = rows_of("ga", [0.7, 0.7, 0.7, None])
    assert data_of(holed, rows_of("naive", VISIBLE)).matrix is None
    assert data_of(holed, declined(TFBIND8, "ga", "no")).matrix is not None
    assert data_of(rows_of("ga", 0.7, budget="tiny")).matrix is None
    assert data_of(rows_of("ga", 0.7, method_variant="search.steps=3")).matrix is None
    assert data_of(rows_of("ga", 0.7, seeds=range(10, 20))).matrix is None


def test_methods_and_the_best_visible_design_are_ranked_in_every_cell() -> None:
    matrix = matrix_of(rows_of("ga", 0.7), rows_of("linear", [0.9, 0.1, 0.1, 0.1]))
    assert list(matrix.table["method"]) == ["ga", BEST_VISIBLE_ROW, "linear"]
    assert list(matrix.table["rank"]) == [1.25, 2.25, 2.5]
    assert list(matrix.table["family"]) == ["network", "reference", "regression"]
    best = cell_of(matrix, "linear", CHAIN)
    assert best["share"] == pytest.approx(0.9, abs=0.01)
    assert best["low"] <= best["share"] <= best["high"]
    assert best["gain_low"] > 0
    assert (best["rank"], best["seeds"], best["seconds"]) == (1.0, 10, 2.0)
    assert format_cell(best) == "90"
    assert cell_of(matrix, BEST_VISIBLE_ROW, NK)["share"] == VISIBLE


def test_the_true_value_of_the_best_visible_design_counts_where_values_are_noisy() -> None:
    matrix = matrix_of(rows_of("ga", 0.7), rows_of("naive", 0.3))
    assert "naive" not in set(matrix.methods)
    assert cell_of(matrix, BEST_VISIBLE_ROW, NK)["share"] == pytest.approx(0.3, abs=0.01)


def test_who_uses_more_or_has_the_form_of_the_task_is_shown_and_not_ranked_there() -> None:
    graph = [row | ({"privileges": "graph"} if row["task"] == "nk" else {})
            for row in rows_of("fgm", 0.9)]  # fmt: skip
    matrix = matrix_of(graph, rows_of("units", 0.8), rows_of("ga", 0.7),
                       **{f"units-{CHAIN}": ("has the form",)})  # fmt: skip
    assert [format_cell(cell_of(matrix, "fgm", cell)) for cell in (NK, CHAIN)] == ["90†", "90"]
    assert format_cell(cell_of(matrix, "units", CHAIN)) == "80¶"
    assert np.isnan(cell_of(matrix, "fgm", NK)["rank"])
    assert cell_of(matrix, "units", NK)["rank"] == 1.0
    assert cell_of(matrix, "ga", CHAIN)["rank"] == 2.0
    assert "not ranked: uses the true graph" in describe_cell(cell_of(matrix, "fgm", NK))
    assert "not ranked: has the form" in describe_cell(cell_of(matrix, "units", CHAIN))


def test_declined_and_missing_cells_are_holes_with_their_reason() -> None:
    matrix = matrix_of(rows_of("ga", 0.7), rows_of("linear", [0.9, None, None, 0.9]),
                       declined(NK, "linear", "needs numbers"))  # fmt: skip
    assert format_cell(cell_of(matrix, "linear", NK)) == "\u00d7"
    assert describe_cell(cell_of(matrix, "linear", NK)) == "Linear on nk: declines: needs numbers"
    assert describe_cell(cell_of(matrix, "linear", SURFACE)) == "Linear on surface: not run"
    assert cell_of(matrix, "ga", NK)["rank"] == 1.0
    assert color_cell(float("nan")) != color_cell(0.0)


def test_a_method_in_few_cells_has_no_mean_rank_and_comes_last() -> None:
    matrix = matrix_of(rows_of("ga", 0.7), rows_of("linear", [1.0, None, None, None]))
    assert matrix.table["method"].iloc[-1] == "linear"
    assert np.isnan(matrix.table["rank"].iloc[-1])
    assert matrix.table["ranked"].iloc[-1] == 1
    assert "linear" not in matrix.ranking.means.index


def test_of_two_versions_of_a_method_the_last_one_run_counts() -> None:
    old, new = rows_of("ga", 0.9, digest="old"), rows_of("ga", 0.6, digest="new", finished="2026")
    matrix = matrix_of(old, new, rows_of("linear", 0.7))
    assert list(matrix.table["label"]) == ["Linear", "Ga", BEST_VISIBLE_ROW]
    assert cell_of(matrix, "ga", NK)["share"] == pytest.approx(0.6, abs=0.01)


def test_other_seeds_are_only_used_to_test_the_ranking() -> None:
    both = [rows_of("ga", 0.7), rows_of("linear", 0.6)]
    later = [rows_of("ga", 0.3, seeds=range(10, 20)), rows_of("linear", 0.4, seeds=range(10, 20))]
    matrix = matrix_of(*both, *later)
    pd.testing.assert_frame_equal(matrix.table, matrix_of(*both).table)
    tested = matrix.stability.set_index("change")
    assert tested["tau"]["seeds 10-19"] < 0
    assert "seeds 10-19" not in set(matrix_of(*both).stability["change"])
    assert {"without chain", "seeds 0-4", "seeds 5-9"} <= set(tested.index)
    assert tested["tau"]["without chain"] == 1.0


def test_a_score_that_few_cells_have_is_compared_with_the_ranking_in_these() -> None:
    none = [row | ({} if row["task"] == "tfbind8" else {"normalised_p100": np.nan})
            for row in [*rows_of("ga", [0.9, 0.9, 0.9, 0.6]), *rows_of("linear", 0.7)]]  # fmt: skip
    matrix = matrix_of(none)
    assert matrix.table["label"].iloc[0] == "Ga"
    tested = matrix.stability.set_index("change")
    change = "best of 128 designs, normalised by all data (1 of 4 cells)"
    assert (tested["tau"][change], tested["best"][change]) == (1.0, "Linear")


def test_the_answer_names_the_best_the_families_the_invalid_and_the_cheapest() -> None:
    matrix = matrix_of(rows_of("ga", 0.9), rows_of("linear", 0.7, invalid_final=0.2),
                       rows_of("coms", [0.4, 0.4, 0.6, 0.4], seconds_cpu=9.0))  # fmt: skip
    texts = [one.text for one in answer(matrix)]
    assert texts[0].startswith("Best across 4 cells: Ga, mean rank 1.0 [1.0, 1.0] of 4")
    assert texts[1].startswith("The ranking is stable, by Kendall's tau: without single cells")
    assert "of 4: network 4, regression 4, guarded network 1." in texts[2]
    assert "Linear 20 %; below 1 % for 3." in texts[3]
    assert texts[4].startswith("Cheapest within one rank of the best: Ga, mean rank 1.0, 2 CPU")
    assert texts[5].startswith("With correlated columns: Ga has 90 % of the optimum, shown to beat")
    assert answer(matrix)[5].cells == (SURFACE,)


def test_the_best_method_is_said_to_be_ranked_in_fewer_cells() -> None:
    mine = rows_of("fgm", 0.9)
    for row in mine:
        row["privileges"] = "graph" if row["task"] == "nk" else ""
    texts = [one.text for one in answer(matrix_of(mine, rows_of("ga", 0.2)))]
    assert any("Fgm, mean rank 1.0 [1.0, 1.0] of 3 in the 3 where it is ranked" in t for t in texts)


def test_a_method_that_is_first_in_several_cells_is_named_beside_the_best() -> None:
    suite = replace(SUITE, readers={"any rows": [*SUITE.cells]})
    for shares, named in (([None, 0.9, 0.9, 0.9], True), ([None, 0.9, None, None], False)):
        matrix = matrix_of(rows_of("ga", 0.7), rows_of("linear", shares))
        texts = [one.text for one in answer(replace(matrix, suite=suite))]
        assert texts[-1].startswith("With any rows: Ga has 70 % of the optimum")
        assert texts[-1].endswith(" Linear is first in 3 of these cells.") == named


def test_the_first_sentence_says_if_the_ranking_is_not_stable_or_nothing_helps() -> None:
    shaky = matrix_of(rows_of("ga", 0.9, normalised_p50=0.1), rows_of("linear", 0.7))
    assert answer(shaky)[0].text == (
        "The ranking is not stable under other scores: Kendall's tau is \u22121.00 after the worst "
        "change (median of 128 designs, normalised by all data). It is stable without single cells "
        "(1.00 or more), with half of the seeds (1.00 or more)."
    )
    poor = [one.text for one in answer(matrix_of(rows_of("ga", 0.2)))]
    assert any(text.startswith("No ranked method is better than") for text in poor)


def test_every_method_has_one_family() -> None:
    families = yaml.safe_load((CONF / "families.yaml").read_text(encoding="utf-8"))
    members = [method for own in families.values() for method in own]
    assert sorted(members) == [entry.name for entry in registry.entries("method")]


def test_a_published_score_is_marked_by_the_settings_of_its_files() -> None:
    declared = yaml.safe_load((CONF / "report.yaml").read_text(encoding="utf-8"))["method_remarks"]
    plain = {"task": "chain", "task_variant": "", "method_variant": "", "surrogate": "units"}
    rows = [
        plain | {"method": "units", "digest": "a"},
        plain | {"method": "units", "digest": "b", "task_variant": "bump=laplace"},
        plain | {"method": "units", "digest": "c", "method_variant": "surrogate.form=network"},
        plain | {"method": "auto", "digest": "d", "surrogate": None},
        plain | {"method": "ga", "digest": "e", "surrogate": "mlp"},
    ]
    assert set(find_remarks(pd.DataFrame(rows), {}, declared)) == {"a", "d"}


def test_figures_and_tables_of_a_suite_are_drawn() -> None:
    data = data_of(rows_of("ga", 0.9), rows_of("linear", -0.2), declined(NK, "coms", "no"),
                   rows_of("coms", [0.8, 0.8, None, None]), rows_of("forest", 0.6))  # fmt: skip
    figures = list(suite_figures(data))
    assert [figure.kind for figure in figures] == ["suite", "ranks", "suite_costs"]
    for figure in figures:
        assert overflow(draw(figure)) <= 0, figure.name
        assert figure.commands
    assert data.matrix is not None
    files = describe_matrix(data.matrix).files()
    assert {"suite.csv", "suite.md", "suite-ddobench-1-lite.tex"} == set(files)
    assert f"| \u2212{20} |" in files["suite.md"]


def test_the_matrix_is_the_first_thing_on_the_page_and_its_texts_are_escaped() -> None:
    data = data_of(rows_of("ga", 0.9), declined(NK, "linear", SCRIPT),
                   rows_of("linear", [0.2, 0.2, None, 0.2]))  # fmt: skip
    tables, judged = make_tables(data, Judgement()), Judgement()
    contents = Contents(
        data, [], {}, tables, find_origins(data), {}, "runs", "python -m it", judged
    )
    text = render_page(contents)
    assert SCRIPT not in text
    assert text.index('id="matrix"') < text.index('id="summary"')
    cells = [attributes for tag, attributes in Page(text).tags
             if tag == "td" and "cell" in (attributes.get("class") or "").split()]  # fmt: skip
    assert len(cells) == 3 * 4
    assert any("CPU s; 10 seeds" in (cell["title"] or "") for cell in cells)


def test_the_documentation_shows_the_answers_and_the_matrix_once_they_are_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readme_tables, "PUBLISHED", tmp_path)
    monkeypatch.setattr(readme_tables, "SUITE", SUITE.name)
    assert [*readme_tables.suite()] == [readme_tables.NO_SUITE]
    data = data_of(rows_of("ga", 0.9), rows_of("linear", 0.2))
    tables = make_tables(data, Judgement())
    (tmp_path / "tables").mkdir()
    for name, text in (tables["suite"].files() | tables["leaderboard"].files()).items():
        (tmp_path / "tables" / name).write_text(text, encoding="utf-8")
    page = write_readme(data, [], tables, Judgement(), "")
    (tmp_path / "README.md").write_text(page, encoding="utf-8")
    text = "\n".join(readme_tables.suite())
    assert text.startswith("- Best across 4 cells: Ga")
    assert "\n- With categories: Ga has 90" in text
    assert text.count("\n| Ga |") == text.count("\n| Linear |") == 1
    (drawn,) = [figure for figure in suite_figures(data) if figure.kind == "suite"]
    assert f"figures/{drawn.name}.svg)" in text
    readme_tables.places.cache_clear()
    won = readme_tables.where("ga")
    readme_tables.places.cache_clear()
    assert won == "**Wins** on chain, nk, surface, tfbind8 six6."

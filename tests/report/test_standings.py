"""Promises of the standings across tasks, their tests, and the figures of both."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.profiles import performance_profiles
from ddobench.report.figures.rank_diagrams import mean_rank_diagrams
from ddobench.report.tables.ranks import FEWEST, critical_difference, rank_methods
from ddobench.report.tables.standings import (
    explain_left_out,
    explain_standings,
    standing_cells,
    standing_markdown,
)
from tests.support.drawn import overflow
from tests.support.synthetic_runs import Row, evidence_of, failed_row, run_row

MERIT = {"fgm": 3.0, "ga": 2.0, "naive": 0.0}


def league(
    tasks: tuple[str, ...] = ("chain", "rbf"),
    dimensions: tuple[int, ...] = (10, 20, 40),
    seeds: int = 3,
    merit: dict[str, float] = MERIT,
    **changes: Any,
) -> list[Row]:
    """Return runs where the same method is best everywhere."""
    same = {"privileges": "", "optimum": 4.0, "best_visible": 1.0, "label": ""} | changes
    return [
        run_row(method, d, seed, task=task, digest=f"{task}-{method}-{d}",
                **same | {"final_model": gain + 0.01 * seed})
        for task in tasks
        for method, gain in merit.items()
        for d in dimensions
        for seed in range(seeds)
    ]  # fmt: skip


def test_mean_ranks_share_ties_and_are_tested_over_blocks() -> None:
    scores = pd.DataFrame({"a": [3.0] * 6, "b": [2.0] * 5 + [3.0], "c": [1.0] * 6})
    found = rank_methods(scores)
    assert found.means.to_dict() == pytest.approx({"a": 6.5 / 6, "b": 11.5 / 6, "c": 3.0})
    assert found.p < 0.01
    assert found.groups == (("a", "b"), ("b", "c"))


def test_the_critical_difference_is_that_of_the_table_of_demsar() -> None:
    # Demšar 2006, table 5: q = 2.343 for three classifiers and 2.728 for five.
    assert critical_difference(3, 1) == pytest.approx(2.343 * np.sqrt(2), abs=2e-3)
    assert critical_difference(5, 14) == pytest.approx(2.728 * np.sqrt(30 / 84), abs=2e-3)


def test_without_a_difference_everybody_is_joined() -> None:
    rng = np.random.default_rng(0)
    found = rank_methods(pd.DataFrame(rng.normal(size=(8, 4)), columns=list("abcd")))
    assert found.p > 0.05
    assert [set(group) for group in found.groups] == [set("abcd")]
    tied = rank_methods(pd.DataFrame(np.ones((8, 3)), columns=list("abc")))
    assert (tied.p, set(tied.means)) == (1.0, {2.0})


@pytest.mark.parametrize("shape", [(FEWEST - 1, 3), (9, 2)])
def test_too_few_blocks_or_methods_are_ranked_but_not_tested(shape: tuple[int, int]) -> None:
    found = rank_methods(pd.DataFrame(np.arange(shape[0] * shape[1]).reshape(shape)))
    assert np.isnan([found.p, found.critical]).all()
    assert found.groups == ()
    assert len(found.means) == shape[1]


def test_a_block_is_a_cell_and_not_a_seed() -> None:
    (lineup,) = evidence_of(league(seeds=7)).lineups
    assert lineup.means.shape == (6, 3)


def test_cells_where_a_method_is_absent_are_left_out_and_said_to_be() -> None:
    rows = [row for row in league() if (row["method"], row["task"]) != ("naive", "rbf")]
    three, two = evidence_of(rows).lineups
    assert three.methods == ("fgm", "ga", "naive")
    assert set(three.runs["task"]) == {"chain"}
    assert set(three.left_out["reason"]) == {"no score of naive"}
    assert two.methods == ("fgm", "ga")
    assert len(two.means) == 6
    table = evidence_of(rows).standings
    own = table[table["lineup"] == "fgm, ga, naive"]
    told = "Left out: rbf, n = 100, d = 10, 20, 40 (no score of naive)."
    assert explain_left_out(own) == told
    assert told in standing_markdown(table)
    assert f"fewer than {FEWEST} cells nothing is tested" in explain_standings(own)


def test_means_are_over_the_seeds_that_all_methods_have() -> None:
    rows = [row for row in league(seeds=3) if row["method"] != "ga" or row["seed"] < 2]
    table = evidence_of(rows).standings.set_index("method")
    assert table["seeds"].tolist() == [12, 12, 12]
    assert table["missing"].to_dict() == {"fgm": 0, "ga": 6, "naive": 0}
    assert table["unshared"].to_dict() == {"fgm": 6, "ga": 0, "naive": 6}
    (cells, *_) = standing_cells(evidence_of(rows).standings)
    assert cells[-1][0] == "12, 6 not shared"


def test_methods_that_share_no_seed_are_not_compared() -> None:
    stored = evidence_of([run_row("fgm", seed=0), run_row("naive", seed=1)])
    assert stored.lineups == []
    assert stored.standings.empty


def test_failed_runs_are_counted() -> None:
    rows = league()
    lost = rows.pop(0)
    same = {"task": "chain", "digest": lost["digest"], "privileges": ""}
    rows.append(failed_row(method="fgm", d=10, seed=0, **same))
    table = evidence_of(rows).standings.set_index("method")
    assert table.loc["fgm", "failed"] == 1
    assert table.loc["ga", "unshared"] == 1


def test_the_score_is_a_share_of_the_optimum_and_needs_one() -> None:
    table = evidence_of(league(seeds=1)).standings.set_index("method")
    assert table["share_iqm"].to_dict() == pytest.approx({"fgm": 0.75, "ga": 0.5, "naive": 0.0})
    unknown = evidence_of(league(optimum=float("nan"))).standings
    assert unknown["share_iqm"].isna().all()
    assert set(unknown["without_optimum"]) == {18}
    assert "18 without optimum" in standing_markdown(unknown)


def test_runs_that_were_told_more_take_no_part() -> None:
    rows = league()
    for row in rows:
        row["privileges"] = "graph" if (row["method"], row["task"]) == ("fgm", "rbf") else ""
    table = evidence_of(rows).standings
    with_fgm = table[table["lineup"].str.contains("fgm")]
    assert set(with_fgm["tasks"]) == {"chain"}
    assert "rbf" in " ".join(table["tasks"])  # the others meet there


def test_budgets_are_never_mixed() -> None:
    rows = league(tasks=("chain",)) + league(tasks=("chain",), budget="tiny")
    lineups = evidence_of([row | {"digest": f"{row['digest']}-{row['budget']}"} for row in rows])
    assert [(lineup.budget, len(lineup.means)) for lineup in lineups.lineups] == [
        ("full", 3), ("tiny", 3),
    ]  # fmt: skip


def figures(function: Any, stored: ReportData) -> list[Figure]:
    """Return the figures of a function, which must not be absences."""
    found = list(function(stored))
    assert all(isinstance(item, Figure) for item in found)
    return found


def test_the_diagram_shows_every_method_the_bars_and_the_critical_difference() -> None:
    (figure,) = figures(mean_rank_diagrams, evidence_of(league()))
    (axes,) = figure.drawing.axes
    texts = [text.get_text() for text in axes.texts]
    assert {"fgm  1.00", "ga  2.00", "naive  3.00"} <= set(texts)
    assert "critical difference 1.35" in texts
    bars = [line for line in axes.get_lines() if line.get_linewidth() > 3]
    assert len(bars) == 2
    assert figure.task == ""
    assert "not shown to differ" in figure.caption
    assert overflow(figure) <= 0


def test_the_diagram_of_few_cells_draws_no_conclusion() -> None:
    (figure,) = figures(mean_rank_diagrams, evidence_of(league(tasks=("chain",))))
    (axes,) = figure.drawing.axes
    assert not [text for text in axes.texts if "critical" in text.get_text()]
    assert "too few cells" in figure.caption
    assert overflow(figure) <= 0


def test_the_best_of_methods_that_all_lose_to_doing_nothing_is_not_crowned() -> None:
    rows = league(merit={"fgm": 0.5, "ga": 0.2, "coms": 0.1})  # the best visible design has 1
    (figure,) = figures(mean_rank_diagrams, evidence_of(rows))
    texts = [text.get_text() for text in figure.drawing.axes[0].texts]
    assert {"best visible design  1.00", "fgm  2.00"} <= set(texts)
    assert "at 1.00; every method is behind it" in figure.caption
    assert overflow(figure) <= 0


def test_the_diagram_says_who_ranks_behind_doing_nothing() -> None:
    rows = league(merit={"fgm": 2.0, "naive": 1.0, "ga": 0.2})
    (figure,) = figures(mean_rank_diagrams, evidence_of(rows))
    texts = [text.get_text() for text in figure.drawing.axes[0].texts]
    assert not [text for text in texts if "best visible" in text]  # naive is in it already
    assert "at 2.00; behind it: ga." in figure.caption


def test_a_line_up_within_a_larger_one_on_the_same_tasks_has_no_diagram() -> None:
    merit = {"fgm": 3.0, "ga": 2.0, "naive": 1.0}
    both = [*league(merit=merit | {"coms": 0.5}), *league(dimensions=(11,), merit=merit)]
    (figure,) = figures(mean_rank_diagrams, evidence_of(both))
    assert "4-methods" in figure.name
    wider = [*both, *league(tasks=("nk",), merit=merit)]
    names = {figure.name for figure in figures(mean_rank_diagrams, evidence_of(wider))}
    assert names == {"ranks-chain-rbf-4-methods", "ranks-chain-nk-rbf-3-methods"}


def test_two_methods_have_no_diagram() -> None:
    assert figures(mean_rank_diagrams, evidence_of(league(merit={"fgm": 1.0, "ga": 0.0}))) == []


def test_profiles_fall_from_all_runs_to_those_that_reach_the_optimum() -> None:
    first, second = figures(performance_profiles, evidence_of(league(seeds=4)))
    assert (first.task, second.task) == ("chain", "rbf")
    fgm = first.data[first.data["method"] == "fgm"]
    assert fgm["share"].iloc[0] == 1.0
    assert fgm["share"].iloc[-1] == 0.0
    assert (np.diff(fgm["share"]) <= 0).all()
    assert fgm.loc[fgm["threshold"] < 0.75, "share"].min() == 1.0
    visible = first.data[first.data["method"] == ""]
    assert visible.loc[visible["threshold"] <= 0.25, "share"].min() == 1.0
    assert "small sample" in first.caption
    assert overflow(first) <= 0


def test_profiles_of_variants_of_a_task_are_panels_of_one_figure() -> None:
    rows = league(tasks=("chain",), seeds=4)
    rows += [row | {"task_variant": "noise=1.0", "digest": f"{row['digest']}-n"} for row in rows]
    (figure,) = figures(performance_profiles, evidence_of(rows))
    titles = [axes.get_title(loc="left") for axes in figure.drawing.axes]
    assert titles == ["chain", "chain, noise=1.0"]
    assert overflow(figure) <= 0


def test_tasks_without_an_optimum_or_with_a_handful_of_runs_have_no_profile() -> None:
    unknown = evidence_of(league(seeds=4, optimum=float("nan")))
    assert figures(performance_profiles, unknown) == []
    assert figures(performance_profiles, evidence_of(league(seeds=3))) == []

"""Promises of the score table and the leaderboard."""

from collections.abc import Sequence

import numpy as np
import pytest

from ddobench.report.tables.formatting import Group
from ddobench.report.tables.leaderboard import (
    describe_leaderboard,
    describe_scores,
    position_of,
    score_columns,
)
from ddobench.report.tables.select import BY_SIZE
from ddobench.stats.samples import interquartile_mean, mean_interval
from tests.support.synthetic_runs import (
    Row,
    climb,
    curve_of,
    data_of,
    data_with,
    failed_row,
    run_row,
)

ROWS = [climb(seed=s, final_model=float(s * s), final_oracle=5.0 + s) for s in range(5)]


def test_the_value_has_every_estimate_that_the_regret_has() -> None:
    table = data_of(ROWS).scores
    assert table.columns.tolist() == score_columns()
    (row,) = table.to_dict("records")
    values = [float(s * s) for s in range(5)]
    assert row["value_mean"] == 6.0
    interval = mean_interval(values)
    assert (row["value_low"], row["value_high"]) == (interval.low, interval.high)
    assert row["value_interval"] == "t"
    assert row["value_iqm"] == interquartile_mean(values)
    assert row["value_iqm_low"] <= row["value_iqm"] <= row["value_iqm_high"]
    value, regret = (
        {str(name).removeprefix(score) for name in row if str(name).startswith(score)}
        for score in ("value_", "regret_")
    )
    assert value == regret - {"unit"}
    assert row["oracle_final_mean"] == pytest.approx(7.0)
    assert row["oracle_best_mean"] == pytest.approx(3.0)
    assert row["oracle_final_low"] < 7.0 < row["oracle_final_high"]


def test_percentiles_are_of_the_last_iteration_and_left_out_without_curves() -> None:
    curves = [curve_of(row).assign(median=lambda c: c["iteration"] + 0.5, best=9.0)
              for row in ROWS]  # fmt: skip
    curves = [curve.sample(frac=1, random_state=0) for curve in curves]  # in any order
    (row,) = data_with(ROWS, curves).scores.to_dict("records")
    assert (row["p50_mean"], row["p100_mean"]) == (5.5, 9.0)
    without = data_with(ROWS, [curve_of(row) for row in ROWS]).scores
    assert without[["p50_mean", "p100_mean"]].isna().all(axis=None)
    (group,) = describe_scores(without, []).groups
    assert "median design" not in [column.heading for column in group.columns]


def test_scores_of_other_benchmarks_have_their_own_table() -> None:
    old = data_of([row | {"optimum": np.nan} for row in ROWS]).scores
    assert describe_scores(old, [], "protocol").groups == []
    new = data_of([{**row, "soo_oi": 1.25, "novelty": 0.5} for row in ROWS]).scores
    (group,) = describe_scores(new, [], "protocol").groups
    assert [column.heading for column in group.columns] == [
        "n", "d", "method", "of the optimum", "OI", "novelty", "seeds",
    ]  # fmt: skip
    assert group.texts()[0][3:6] == ["60 %", "1.25", "0.50"]


def test_seeds_that_most_methods_have_can_be_missing_and_those_of_a_control_cannot() -> None:
    seeds = {"fgm": range(6), "naive": range(6), "ga": range(4), "rwr": range(4), "coms": range(3)}
    rows = [run_row(method, seed=seed) for method, own in seeds.items() for seed in own]
    rows += [run_row("fgm", seed=seed, method_variant="graph=empty") for seed in range(4, 8)]
    scores = data_of(rows).scores.set_index(["method", "method_variant"])["missing"]
    assert scores.to_dict() == {
        ("coms", ""): 1, ("fgm", ""): 0, ("fgm", "graph=empty"): 0, ("ga", ""): 0,
        ("naive", ""): 0, ("rwr", ""): 0,
    }  # fmt: skip


def test_lost_seeds_are_counted_by_reason() -> None:
    rows = [run_row("ga", seed=seed) for seed in range(2)]
    rows += [failed_row(method="ga", seed=2), run_row("ga", seed=3, status="declined")]
    rows += [run_row("ga", seed=4, final_model=np.nan, regret_final=np.nan)]
    (group,) = describe_scores(data_of(rows).scores, []).groups
    assert group.texts()[0][-1] == "2, 1 declined, 1 failed, 1 unscored"


def test_the_gain_is_over_the_best_visible_design_of_the_same_seed() -> None:
    rows = [run_row("ga", seed=s, best_visible=2.0 + s, final_model=3.0 + 2 * s) for s in range(3)]
    (row,) = data_of(rows).scores.to_dict("records")
    expected = mean_interval([1.0, 2.0, 3.0])
    assert (row["gain_mean"], row["gain_pairs"]) == (2.0, 3)
    assert (row["gain_low"], row["gain_high"]) == (expected.low, expected.high)
    ends = [(0.1, 2.0), (-2.0, -0.1), (0.0, 0.0), (-1.0, 1.0), (np.nan, 1.0)]
    assert [position_of(*both) for both in ends] == ["above", "below", "open", "open", ""]


def ranked(*rows: Row) -> dict[str, tuple[float, bool]]:
    """Return the rank of each label, and whether it is shared."""
    board = data_of([*rows]).board
    return {row["label"]: (row["rank"], row["tied"]) for _, row in board.iterrows()}


def boards(rows: list[Row]) -> Sequence[Group]:
    """Return the groups of the leaderboard."""
    data = data_of(rows)
    return describe_leaderboard(data.board, data.scores).groups


def test_equal_means_share_a_rank_and_privileged_methods_have_none() -> None:
    found = ranked(
        run_row("a", regret_final=1.0), run_row("b", regret_final=0.5),
        run_row("c", regret_final=0.5), run_row("fgm", regret_final=0.0),
    )  # fmt: skip
    assert [*found] == ["b", "c", "a", "FGM†"]
    assert [found[name] for name in "bca"] == [(1, True), (1, True), (3, False)]
    assert np.isnan(found["FGM†"][0])


def test_without_regret_the_value_ranks_and_without_value_the_hidden_rows() -> None:
    blind: Row = {"regret_final": np.nan, "optimum": np.nan}
    found = ranked(*(run_row(m, final_model=x, **blind) for m, x in (("a", 1.0), ("b", 2.0))))
    assert [*found] == ["b", "a"]
    rows = [run_row(m, final_model=np.nan, held_out_rank=x, **blind)
            for m, x in (("a", 0.9), ("b", 0.2))]  # fmt: skip
    assert [*ranked(*rows)] == ["a", "b"]
    (group,) = boards(rows)
    assert "ranked by the order of hidden rows" in group.note


def test_the_leading_size_has_most_methods_not_most_variants() -> None:
    rows = [run_row(method, d) for method in ("fgm", "ga", "naive") for d in (10, 20)]
    rows += [run_row("fgm", 10, method_variant=f"graph={i}", digest=f"v{i}") for i in range(4)]
    board = data_of(rows).board
    assert set(board.loc[board["lead"] > 0, "d"]) == {20}
    assert set(board["d"]) == {10, 20}


def test_every_method_of_a_task_is_in_a_leading_size() -> None:
    rows = [climb(method, 11) for method in ("ga", "naive", "coms")]
    rows += [climb(method, 21) for method in ("ga", "naive")]
    rows += [climb("fgm", 41, budget="tiny"), climb("ga", 41, budget="tiny")]
    rows += [run_row("rwr", 10)]
    board = data_of(rows).board
    lead = board[board["lead"] > 0].drop_duplicates(BY_SIZE)
    assert lead[["task", "lead", "d", "budget"]].to_numpy().tolist() == [
        ["chain", 1, 11, "full"], ["chain", 2, 41, "tiny"], ["quadratic", 1, 10, "full"],
    ]  # fmt: skip
    shown = board[board["lead"] > 0].groupby("task")["method"].agg(set)
    assert shown.to_dict() == {"chain": {"coms", "fgm", "ga", "naive"}, "quadratic": {"rwr"}}
    groups = boards(rows)
    assert [bool(group.stem) for group in groups] == [True, True, True, False]


def test_a_gain_below_the_best_visible_design_is_marked() -> None:
    rows = [climb(m, seed=s, final_model=x + 0.1 * s) for m, x in (("ga", 1.0), ("rwr", 6.0))
            for s in range(3)]  # fmt: skip
    (group,) = boards(rows)
    texts = {line[1]: line[-2] for line in group.texts()}
    assert texts["ga"].endswith(", below")
    assert texts["rwr"].startswith("2.10 [")
    assert "below" not in texts["rwr"]


def test_a_method_that_only_failed_is_listed_without_a_rank() -> None:
    (row,) = data_of([failed_row(privileges="")]).board.to_dict("records")
    assert np.isnan(row["rank"])
    assert (row["seeds"], row["failed"], row["lead"]) == (0, 1, 1)
    assert data_of([]).board.empty

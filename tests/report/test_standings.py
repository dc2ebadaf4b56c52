"""Promises of the standings across tasks and of their tests."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.figures.row_figures import mean_ranks
from ddobench.report.tables.standings import (
    FEWEST,
    critical_difference,
    describe_standings,
    rank_methods,
)
from tests.support.synthetic_runs import Row, data_of, failed_row, run_row

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


def test_without_a_difference_all_methods_are_one_group() -> None:
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


def test_a_block_is_a_size_and_not_a_seed() -> None:
    (lineup,) = data_of(league(seeds=7)).lineups
    assert lineup.means.shape == (6, 3)


def test_sizes_without_a_score_of_a_method_are_left_out_and_listed() -> None:
    rows = [row for row in league() if (row["method"], row["task"]) != ("naive", "rbf")]
    three, two = data_of(rows).lineups
    assert three.methods == ("fgm", "ga", "naive")
    assert set(three.runs["task"]) == {"chain"}
    assert set(three.left_out["reason"]) == {"no score of naive"}
    assert two.methods == ("fgm", "ga")
    assert len(two.means) == 6
    table = data_of(rows).standings
    own = table[table["lineup"] == "fgm, ga, naive"]
    (group,) = describe_standings(own).groups
    assert "Left out: rbf, n = 100, d = 10, 20, 40 (no score of naive)." in group.note
    assert f"Fewer than {FEWEST} sizes are not tested" in group.note


def test_means_are_over_the_seeds_that_all_methods_have() -> None:
    rows = [row for row in league(seeds=3) if row["method"] != "ga" or row["seed"] < 2]
    table = data_of(rows).standings.set_index("method")
    assert table["seeds"].tolist() == [12, 12, 12]
    assert table["missing"].to_dict() == {"fgm": 0, "ga": 6, "naive": 0}
    assert table["unshared"].to_dict() == {"fgm": 6, "ga": 0, "naive": 6}
    (group,) = describe_standings(table.reset_index()).groups
    assert group.texts()[0][-1] == "12, 6 not shared"


def test_with_one_seed_a_size_the_sizes_are_the_repeats() -> None:
    rows = league(seeds=1)
    for place, row in enumerate(row for row in rows if row["method"] == "ga"):
        row["final_model"] += 0.3 * place  # the best at some sizes
    table = data_of(rows).standings.set_index("method")
    assert (table["share_low"] < table["share_high"])["ga"]
    assert (table["mean_rank_low"] <= table["mean_rank"]).all()
    assert (table["mean_rank_low"] < table["mean_rank_high"])["ga"]


def test_ranks_over_many_sizes_are_drawn_beside_more_methods_at_one_of_them() -> None:
    rows = league(tasks=("chain",))
    rows.append(run_row("ram", 10, task="chain", digest="ram", final_model=1.0))
    (figure,) = mean_ranks(data_of(rows))
    assert figure.title == "Mean ranks over 3 sizes: chain"


def test_methods_that_share_no_seed_are_not_compared() -> None:
    stored = data_of([run_row("fgm", seed=0), run_row("naive", seed=1)])
    assert stored.lineups == []
    assert stored.standings.empty


def test_failed_runs_are_counted() -> None:
    rows = league()
    lost = rows.pop(0)
    same = {"task": "chain", "digest": lost["digest"], "privileges": ""}
    rows.append(failed_row(method="fgm", d=10, seed=0, **same))
    table = data_of(rows).standings.set_index("method")
    assert table.loc["fgm", "failed"] == 1
    assert table.loc["ga", "unshared"] == 1


def test_the_score_is_a_share_of_the_optimum_and_needs_one() -> None:
    table = data_of(league(seeds=1)).standings.set_index("method")
    assert table["share_iqm"].to_dict() == pytest.approx({"fgm": 0.75, "ga": 0.5, "naive": 0.0})
    unknown = data_of(league(optimum=float("nan"))).standings
    assert unknown["share_iqm"].isna().all()
    assert set(unknown["without_optimum"]) == {18}
    (group,) = describe_standings(unknown).groups
    assert group.texts()[0][-1] == "18, 18 without optimum"


def test_privileged_runs_are_left_out() -> None:
    rows = league()
    for row in rows:
        row["privileges"] = "graph" if (row["method"], row["task"]) == ("fgm", "rbf") else ""
    table = data_of(rows).standings
    with_fgm = table[table["lineup"].str.contains("fgm")]
    assert set(with_fgm["tasks"]) == {"chain"}
    assert "rbf" in " ".join(table["tasks"])  # the others meet there


def test_budgets_are_never_mixed() -> None:
    rows = league(tasks=("chain",)) + league(tasks=("chain",), budget="tiny")
    lineups = data_of([row | {"digest": f"{row['digest']}-{row['budget']}"} for row in rows])
    assert [(lineup.budget, len(lineup.means)) for lineup in lineups.lineups] == [
        ("full", 3), ("tiny", 3),
    ]  # fmt: skip


def test_only_the_plainest_variant_counts_and_is_named_by_its_method() -> None:
    rows = [row | {"method_variant": "prior=1", "digest": f"{row['digest']}-p"}
            for row in league() if row["method"] == "ga"]  # fmt: skip
    rows += [row for row in league() if row["method"] != "ga"]
    assert set(data_of(rows).standings["label"]) == {"fgm", "ga", "naive"}


def test_a_tested_line_up_has_its_p_and_its_critical_difference() -> None:
    stored = data_of(league())
    (group,) = describe_standings(stored.standings).groups
    assert [line[:3] for line in group.texts()] == [
        ["1", "fgm", "1.00 [1.00, 1.00]"], ["2", "ga", "2.00 [2.00, 2.00]"],
        ["3", "naive", "3.00 [3.00, 3.00]"],
    ]  # fmt: skip
    assert "p = .002" in group.note  # of Friedman's test
    assert "1.35 (Nemenyi)" in group.note
    two = data_of(league(merit={"fgm": 1.0, "ga": 0.0})).standings
    assert "Two methods are not tested here" in describe_standings(two).groups[0].note

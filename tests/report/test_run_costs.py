"""Promises of the costs of runs, of failed runs, and of the command that repeats a run."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.single_runs import run_command
from ddobench.report.tables.run_costs import (
    command_table,
    cpu_table,
    describe_commands,
    describe_cpu,
    describe_problems,
    problem_table,
)
from tests.support.pages import DASH
from tests.support.synthetic_runs import Row, climb, data_of, failed_row, run_row, sweep


def test_cpu_seconds_are_tabled_by_method_and_size_the_cheapest_first() -> None:
    rows = [
        climb(method, d, seed, seconds_cpu=seconds + seed, label=method.upper())
        for method, seconds in (("dear", 30.0), ("cheap", 0.01))
        for d in (11, 21)
        for seed in (0, 1)
        if (method, d) != ("cheap", 21)
    ]
    stored = data_of([*rows, climb("untimed", label="UNTIMED")])
    table = cpu_table(stored.runs, stored.styles)
    assert table[["method", "d", "mean", "most"]].to_numpy().tolist() == [
        ["cheap", 11, 0.51, 1.01],
        ["dear", 11, 30.5, 31.0],
        ["dear", 21, 30.5, 31.0],
    ]
    (group,) = describe_cpu(table).groups
    assert [column.heading for column in group.columns] == [
        "method", "d = 11, n = 100", "d = 21, n = 100",
    ]  # fmt: skip
    assert group.texts() == [["CHEAP", "0.5", DASH], ["DEAR", "30", "30"]]
    quick = data_of([climb(seconds_cpu=0.0123)])
    (group,) = describe_cpu(cpu_table(quick.runs, quick.styles)).groups
    assert group.texts()[0][1] == "< 0.1"  # no irreproducible digits


def test_the_costliest_command_comes_first_and_runs_without_a_cost_are_counted() -> None:
    rows = [run_row("ga", seed=seed, command="a", seconds_cpu=1800.0) for seed in range(2)]
    rows += [run_row("rwr", command="b", seconds_cpu=7200.0), run_row("naive", command="b")]
    rows += [run_row("old", command="")]
    table = command_table(data_of(rows).runs)
    assert table.to_dict("list") == {
        "command": ["b", "a", ""], "runs": [2, 2, 1], "cpu_hours": [2.0, 1.0, 0.0],
        "without_cost": [1, 0, 1],
    }  # fmt: skip
    described = describe_commands(table)
    assert "5 runs took 3.00 CPU hours" in described.note
    assert "2 of them recorded no cost" in described.note
    assert described.groups[0].texts()[-1][0] == "not recorded"


def test_commands_of_a_series_are_listed_once() -> None:
    stored = data_of(sweep(seeds=2))
    drawn = stored.scores[stored.scores["method"] == "naive"]
    assert stored.commands(drawn) == ("python -m ddobench method=naive",)
    assert len(stored.commands(stored.scores)) == 2


def test_problems_with_the_same_reason_are_one_line_and_the_csv_has_all_runs() -> None:
    rows = [run_row("naive"), run_row("naive", seed=9, status="declined", reason="")]
    rows += [failed_row(d=d, seed=seed) for d in (10, 20) for seed in (0, 1, 3)]
    stored = data_of(rows)
    table = problem_table(stored.runs)
    assert table["status"].value_counts().to_dict() == {"failed": 6, "declined": 1}
    (group,) = describe_problems(table, stored.styles).groups
    where = f"quadratic; n = 100; d = 10, 20; seeds 0{DASH}1, 3"
    assert group.texts() == [
        ["FGM†", "failed", "6", "LinAlgError: no convergence", where],
        ["Naive", "declined", "1", "no reason was recorded", "quadratic; n = 100; d = 10; seeds 9"],
    ]
    assert describe_problems(table.head(0), stored.styles).groups == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "d=10 n=100 budget=full"),
        ({"task_variant": "noise=0.1 map=None"}, "budget=full task.noise=0.1 task.map=null"),
        ({"method_variant": "graph=true", "graph": "true"}, "budget=full \"graph='true'\""),
        ({"method_variant": "graph.alpha=0.1", "graph": "stein"}, "budget=full graph.alpha=0.1"),
        ({"method_variant": "prior=1 digest=abc"}, "budget=full method.prior=1"),
        ({"method_variant": "a=[1, 2]"}, "budget=full 'method.a=[1, 2]'"),
    ],
)
def test_a_run_is_repeated_by_one_command_in_another_folder(
    changes: dict[str, Any], words: str
) -> None:
    row: Row = run_row("ga", **{"graph": np.nan, **changes})
    command = run_command(pd.Series(row))
    assert command.startswith("python -m ddobench task=quadratic method=ga d=10 n=100")
    assert command.endswith(f"{words} results_dir=results/again")


def test_a_command_has_the_changed_settings_of_the_budget() -> None:
    assert " budget=full budget.top=3 " in run_command(pd.Series(run_row("ga")), {"top": 3})
    theirs = pd.Series(run_row("ga", budget="theirs"))
    assert " budget=theirs budget.mine=3 " in run_command(theirs, {"mine": 3})

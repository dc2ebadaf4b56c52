"""Promises of what a reader sees first: who is best, who proposes nonsense, what claims came to."""

from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure as Drawing

from ddobench.report.claims.claims import parse_claims
from ddobench.report.claims.verdicts import judge
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.output.readme import write_readme
from ddobench.report.page.answers import find_answers
from ddobench.report.page.leading import choose_leading
from ddobench.report.tables.command_costs import cost_table, describe_costs
from ddobench.report.tables.scores import lead_studies, leaderboard
from tests.support.synthetic_runs import Row, evidence_of, run_row

VALUES = {"naive": 2.0, "good": 3.0, "bad": 1.0, "told": 4.0}
BETTER: dict[str, Any] = {
    "kind": "difference", "task": "quadratic", "n": 100, "d": 10, "score": "final_model",
    "first": "bad", "second": "naive", "above": 0,
}  # fmt: skip


def contest(values: dict[str, float] | None = None, **changes: Any) -> list[Row]:
    """Return runs of methods that end at these values, one of them told the graph."""
    return [
        run_row(method, 10, seed, label=method, final_model=value + 0.01 * seed * (i + 1),
                regret_final=4.0 - value, privileges="graph" if method == "told" else "",
                invalid_final=0.9 if method == "bad" else 0.0, **changes)
        for i, (method, value) in enumerate((values or VALUES).items())
        for seed in range(4)
    ]  # fmt: skip


def remarked(rows: list[Row], method: str) -> ReportData:
    """Return report data in which a method has a remark."""
    return ReportData.of(pd.DataFrame(rows), remarks={f"{method}-10": ("it knows the form",)})


def test_the_best_method_that_was_told_nothing_is_named_with_its_share_and_that_of_nothing() -> (
    None
):
    found = find_answers(evidence_of(contest()), [])
    assert found.best.startswith("Told nothing but the visible table, some method beats doing")
    assert "nothing on 1 of 1 task." in found.best
    (line,) = found.by_task
    assert "good with 76\u00a0% of the optimum; doing nothing has 50\u00a0%" in line
    assert "told" not in line


def test_where_nothing_is_better_that_is_said() -> None:
    found = find_answers(evidence_of(contest({"naive": 2.0, "bad": 1.0})), [])
    assert "on 0 of 1 task" in found.best
    assert "no method tried (bad) is above doing nothing, which has 50" in found.by_task[0]
    many = dict.fromkeys(["naive", *"abcde"], 2.0)
    found = find_answers(evidence_of(contest(many | {"naive": 3.0})), [])
    assert "none of 5 methods tried is above doing nothing" in found.by_task[0]


def test_a_task_whose_designs_nobody_can_value_is_not_answered_for() -> None:
    unknown = [
        row
        | {"task": "table"}
        | ({} if row["method"] == "naive" else {"final_model": float("nan")})
        for row in contest()
    ]
    answers = find_answers(evidence_of([*contest(), *unknown]), ())
    assert len(answers.by_task) == 1
    assert "of 1 task" in answers.best


def test_the_best_without_a_remark_is_named_beside_one_with() -> None:
    values = {"naive": 2.0, "units": 3.5, "good": 3.0}
    found = find_answers(remarked(contest(values), "units"), [])
    assert "units\u00b6 with" in found.by_task[0]
    assert "the best without \u00b6 is good with" in found.by_task[0]
    assert "on 1 of 1 task, also without those marked \u00b6 (explained below" in found.best
    alone = find_answers(remarked(contest({"naive": 2.0, "units": 3.5}), "units"), [])
    assert "without those marked \u00b6 (explained below the figure) on 0." in alone.best


def test_invalid_designs_are_told_by_method_and_only_where_there_are_any() -> None:
    told = find_answers(evidence_of(contest()), []).invalid
    assert "bad 90\u00a0%; none or hardly any by good" in told
    clean = evidence_of(contest({"naive": 2.0, "good": 3.0}))
    assert find_answers(clean, []).invalid == "No method proposed an invalid design."


def test_claims_are_counted_by_whose_they_are() -> None:
    elsewhere = {**BETTER, "task": "none"}
    claims = [{"id": "a", "text": "a", "source": "paper", "test": BETTER},
              {"id": "b", "text": "b", "source": "ours", "test": elsewhere}]  # fmt: skip
    stored = evidence_of(contest())
    verdicts = judge(stored.runs, parse_claims({"claims": claims}))
    assert find_answers(stored, verdicts).claims == (
        "Of the paper's 1 claims 1 fails; of our own 1 claims 1 has no runs here."
    )


def test_who_was_told_more_has_no_rank_and_who_is_below_doing_nothing_says_so() -> None:
    board = leaderboard(evidence_of(contest()).scores).set_index("method")
    assert board["rank"].to_dict() == pytest.approx(
        {"good": 1, "naive": 2, "bad": 3, "told": float("nan")}, nan_ok=True
    )
    assert board.index[-1] == "told"
    gains = board[["gain_low", "gain_mean", "gain_high"]].astype(float).T.to_dict("list")
    assert gains["bad"][2] < 0 < gains["good"][0]
    assert gains["naive"] == [0, 0, 0]


def test_without_runs_that_do_nothing_the_best_visible_design_stands_in() -> None:
    board = leaderboard(evidence_of(contest({"good": 3.0})).scores)
    assert board["gain_mean"].iloc[0] == pytest.approx(1.015)


def test_a_variant_that_was_told_nothing_is_ranked_beside_one_that_was() -> None:
    rows = contest() + [
        row | {"method_variant": "graph=pairs", "privileges": "", "digest": "pairs-10"}
        for row in contest()
        if row["method"] == "told"
    ]
    board = leaderboard(evidence_of(rows).scores)
    told = board[board["method"] == "told"].set_index("method_variant")
    assert told.loc["graph=pairs", "rank"] == 1
    assert told["rank"].isna().tolist() == [False, True]


def test_the_plainest_study_of_a_task_leads() -> None:
    rows = contest() + contest(task_variant="noise=1.0")
    board = lead_studies(leaderboard(evidence_of(rows).scores))
    assert set(board["task_variant"]) == {""}


def _figure(name: str, rows: int = 1, methods: int = 1, task: str = "t") -> Figure:
    data = pd.DataFrame({"method": [f"m{i % methods}" for i in range(rows)]})
    return Figure(name=name, title=name, caption="c", task=task, data=data, commands=(),
                  drawing=Drawing(), subject="methods")  # fmt: skip


def test_at_most_ten_figures_lead_the_headline_first_and_every_kind_has_its_turn() -> None:
    names = [f"value-{i}" for i in range(9)] + ["regret-a", "marginals-a", "share-b", "headline"]
    found = [figure.name for figure in choose_leading([_figure(name) for name in names])]
    assert found[:4] == ["headline", "share-b", "regret-a", "value-0"]
    assert len(found) == 10
    assert "marginals-a" not in found
    wide = [_figure("share-a", 2), _figure("share-b", 5)]
    assert [figure.name for figure in choose_leading(wide)] == ["share-b", "share-a"]


def test_the_figure_with_more_methods_leads_and_regret_takes_the_task_that_shares_do_not() -> None:
    figures = [
        _figure("share-long", 9, methods=2, task="long"),
        _figure("share-many", 5, methods=5, task="many"),
        _figure("regret-many", 9, methods=9, task="many"),
        _figure("regret-long", 2, methods=2, task="long"),
    ]
    assert [figure.name for figure in choose_leading(figures, 2)] == ["share-many", "regret-long"]


def test_the_readme_has_answers_claims_failures_with_their_control_board_and_cost() -> None:
    worse = {key: value for key, value in BETTER.items() if key != "above"} | {"below": 0}
    control = {"id": "why", "text": "It is so.", "test": worse}
    claim = {"id": "a", "text": "Bad is good.", "source": "paper", "test": BETTER,
             "explained_by": ["why"]}  # fmt: skip
    stored = evidence_of([row | {"seconds_cpu": 1800.0} for row in contest()])
    verdicts = judge(stored.runs, parse_claims({"claims": [claim, control]}))
    text = write_readme(stored, [_figure("share-a")], verdicts, "python -m it")
    assert "![share-a](figures/share-a.svg)" in text
    assert "- Bad is good. It fails: difference" in text
    assert "  - Control: It is so. That holds: difference" in text
    assert "| 1 | good |" in text
    assert ", below |" in text
    assert "16 runs took 8.00 CPU hours" in text
    assert "python -m it" in text


def test_costs_are_by_command_the_costliest_first() -> None:
    rows = [run_row(seed=s, command=f"run {s}", seconds_cpu=3600.0 * (s + 1)) for s in range(2)]
    table = cost_table(evidence_of([*rows, run_row(seed=2, command="run 2")]).runs)
    assert table["command"].tolist() == ["run 1", "run 0", "run 2"]
    assert describe_costs(table).endswith(
        "3.00 CPU hours to fit and propose, without 1 that recorded no cost."
    )

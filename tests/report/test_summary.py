"""Promises of the first screen: the best methods, invalid designs and the results of claims."""

from typing import Any

import pandas as pd

from ddobench.report.claims import parse_claims
from ddobench.report.data import ReportData
from ddobench.report.figures.line_figures import regret
from ddobench.report.markdown import write_readme
from ddobench.report.summary import summarise
from ddobench.report.verdicts import Judgement, judge_all
from ddobench.report.writer import make_tables
from tests.support.synthetic_runs import Row, data_of, run_row, sweep

VALUES = {"naive": 2.0, "good": 3.0, "bad": 1.0, "knowing": 4.0}
BETTER: dict[str, Any] = {
    "kind": "difference", "task": "quadratic", "n": 100, "d": 10, "score": "final_model",
    "first": "bad", "second": "naive", "above": 0,
}  # fmt: skip
NONE = Judgement()


def contest(values: dict[str, float] | None = None, **changes: Any) -> list[Row]:
    """Return runs of methods that end at these values, one of which knows the graph."""
    return [
        run_row(method, 10, seed, label=method, final_model=value + 0.01 * seed * (i + 1),
                regret_final=4.0 - value, privileges="graph" if method == "knowing" else "",
                invalid_final=0.9 if method == "bad" else 0.0, **changes)
        for i, (method, value) in enumerate((values or VALUES).items())
        for seed in range(4)
    ]  # fmt: skip


def remarked(values: dict[str, float], method: str) -> ReportData:
    """Return report data in which a method has a remark."""
    rows = pd.DataFrame(contest(values))
    return ReportData.of(rows, remarks={f"{method}-10": ("it knows the form",)})


def judged(stored: ReportData, *claims: dict[str, Any]) -> Judgement:
    """Return the judgement of claims about these runs."""
    return judge_all(stored.runs, parse_claims({"claims": [*claims]}))


def test_the_best_unprivileged_method_is_named_beside_the_best_visible_design() -> None:
    found = summarise(data_of(contest()), NONE)
    assert "on 1 of 1 task." in found.best
    (line,) = found.by_task
    assert "good with 76\u00a0% of the optimum; the best visible design has 50\u00a0%" in line
    assert "knowing" not in line


def test_no_method_above_the_best_visible_design_is_reported() -> None:
    found = summarise(data_of(contest({"naive": 2.0, "bad": 1.0})), NONE)
    assert "on 0 of 1 task" in found.best
    assert "no method (bad) is above the best visible design, which has" in found.by_task[0]
    many = dict.fromkeys([*"abcde"], 2.0) | {"naive": 3.0}
    found = summarise(data_of(contest(many)), NONE)
    assert "none of 5 methods is above" in found.by_task[0]


def test_a_task_without_measured_designs_is_left_out() -> None:
    lost = {"task": "table", "final_model": float("nan")}
    unknown = [row | (lost if row["method"] != "naive" else {"task": "table"}) for row in contest()]
    found = summarise(data_of([*contest(), *unknown]), NONE)
    assert len(found.by_task) == 1
    assert "of 1 task" in found.best


def test_the_best_method_without_a_remark_is_named_too() -> None:
    found = summarise(remarked({"naive": 2.0, "units": 3.5, "good": 3.0}, "units"), NONE)
    assert "units\u00b6 with" in found.by_task[0]
    assert "the best without \u00b6 is good with" in found.by_task[0]
    assert ", and on the same tasks without methods marked \u00b6" in found.best
    alone = summarise(remarked({"naive": 2.0, "units": 3.5}, "units"), NONE)
    assert ", and on 0 without methods marked \u00b6" in alone.best


def test_invalid_designs_are_counted_by_method_where_there_are_any() -> None:
    invalid = summarise(data_of(contest()), NONE).invalid
    assert "bad 90\u00a0%; below 1\u00a0% for good" in invalid
    clean = data_of(contest({"naive": 2.0, "good": 3.0}))
    assert summarise(clean, NONE).invalid == "No method proposed an invalid design."


def test_claims_are_counted_by_source() -> None:
    stored = data_of(contest())
    paper = {"id": "a", "text": "a", "source": "paper", "test": BETTER}
    ours = {"id": "b", "text": "b", "source": "ours", "test": {**BETTER, "task": "none"}}
    text = summarise(stored, judged(stored, paper, ours)).claims
    assert text.startswith("Of the paper's 1 claims, 1 is refuted")
    assert "Of our own 1 claims, 1" in text
    assert summarise(stored, NONE).claims == "No claims were tested."


def test_the_readme_has_summary_leaderboard_failed_claims_with_controls_and_cost() -> None:
    below = {key: value for key, value in BETTER.items() if key != "above"} | {"below": 0}
    claim = {"id": "a", "text": "Bad is good.", "source": "paper", "test": BETTER,
             "explained_by": ["why"]}  # fmt: skip
    control = {"id": "why", "text": "It is so.", "test": below}
    stored = data_of([row | {"seconds_cpu": 1800.0} for row in contest()])
    found = judged(stored, claim, control)
    figures = list(regret(data_of(sweep(seeds=2))))
    text = write_readme(stored, figures, make_tables(stored, found), found, "python -m it")
    parts = ["1. From the visible table alone", f"](figures/{figures[0].name}.svg)",
             "## Leaderboard", "| 1 | good |", "- Bad is good. This claim fails: difference",
             "  - Control: It is so. This claim holds: difference", "16 runs took 8.00 CPU hours",
             "python -m it"]  # fmt: skip
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)

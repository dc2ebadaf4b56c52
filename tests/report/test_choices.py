"""Promises of the table of choices among candidates."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench.report.data import ReportData
from ddobench.report.single_runs import collect_judgements
from ddobench.report.tables.choices import describe_choices
from tests.support.synthetic_runs import climb, data_of
from tests.support.synthetic_stores import Details, stored_with

NAN = float("nan")


def judge(chosen: str, **ranks: float) -> Details:
    """Return the diagnostics of a run that judged candidates by the order of the best rows."""
    return {
        "chosen": chosen,
        "candidates": [
            {"candidate": name, "held_out_top_rank": rank, "held_out_error": 1 - rank,
             "reason": "it predicts nothing" if np.isnan(rank) else "", "chosen": name == chosen}
            for name, rank in ranks.items()
        ],
    }  # fmt: skip


def choosing(folder: Path, *stored: Details) -> ReportData:
    """Return runs of a method that chooses, one seed each, and one that does not."""
    runs = [(climb("picker", seed=s, label="Picker"), one) for s, one in enumerate(stored)]
    return stored_with(folder, [*runs, (climb("plain"), {"units": 3})])


def test_the_table_counts_choices_and_averages_their_criteria(tmp_path: Path) -> None:
    stored = choosing(
        tmp_path, judge("a", a=0.8, b=0.2), judge("a", a=0.6, b=0.5), judge("b", a=0.1, b=0.5)
    )
    table = stored.choices
    assert table["candidate"].tolist() == ["a", "b"]
    assert table["chosen"].tolist() == [2, 1]
    assert table["rank"].tolist() == pytest.approx([0.5, 0.4])
    assert table["error"].tolist() == pytest.approx([0.5, 0.6])
    assert set(table["seeds"]) == {3}
    assert set(table["method"]) == {"picker"}
    (group,) = describe_choices(table).groups
    assert group.texts()[0][:5] == ["a", "2 of 3", "0.50", "0.50", "3"]


def test_a_candidate_that_was_not_judged_has_a_reason_and_is_not_averaged(tmp_path: Path) -> None:
    table = choosing(tmp_path, judge("a", a=0.8, b=NAN), judge("a", a=0.6, b=0.4)).choices
    second = table.iloc[1]
    assert (second["judged"], second["rank"]) == (1, pytest.approx(0.4))
    assert second["reason"] == "it predicts nothing"


def test_each_variant_has_its_own_choices(tmp_path: Path) -> None:
    chosen = {"": "a", "percentile=80": "b"}
    runs = [(climb("picker", seed=s, method_variant=v), judge(x, a=0.5, b=0.4))
            for v, x in chosen.items() for s in (0, 1)]  # fmt: skip
    assert stored_with(tmp_path, runs).choices["chosen"].tolist() == [2, 0, 0, 2]


def test_a_fallback_has_its_own_row(tmp_path: Path) -> None:
    table = choosing(tmp_path, judge("naive", a=0.01), judge("a", a=0.7)).choices
    assert table["candidate"].tolist() == ["a", "naive"]
    assert table["chosen"].tolist() == [1, 1]
    assert table["judged"].tolist() == [2, 0]
    (group,) = describe_choices(table).groups
    assert group.texts()[1][:2] == ["naive", "1 of 2"]


def test_each_run_of_the_page_has_its_own_candidates(tmp_path: Path) -> None:
    stored = choosing(tmp_path, judge("a", a=0.81234, b=NAN), judge("b", a=0.1, b=0.5))
    lists, places = collect_judgements(stored, stored.runs)
    own = dict(
        zip(zip(stored.runs["method"], stored.runs["seed"], strict=True), places, strict=True)
    )
    assert own["plain", 0] is None
    first, second = (lists[own["picker", seed] or 0] for seed in (0, 1))
    assert [one["chosen"] for one in first] == [True, False]
    assert first[0]["rank"] == 0.8123
    assert first[1]["rank"] is None
    assert first[1]["reason"] == "it predicts nothing"
    assert [one["chosen"] for one in second] == [False, True]


@pytest.mark.parametrize("odd", ["words", [1, 2], {"a": 1}, None, [], [{}]])
def test_invalid_candidates_do_not_break_the_table(tmp_path: Path, odd: Any) -> None:
    table = choosing(tmp_path, {"candidates": odd, "chosen": "a"}).choices
    shown = describe_choices(table).groups
    assert sum(len(group.texts()) for group in shown) == len(table)


def test_runs_without_files_have_no_choices() -> None:
    for stored in (data_of([climb("picker")]), data_of([])):
        assert describe_choices(stored.choices).groups == []

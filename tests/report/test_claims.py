"""Promises of the claims: what a file may contain, when a claim holds, and in which readings."""

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from ddobench.errors import UsageError
from ddobench.report import verdicts
from ddobench.report.claims import Question, parse_claims, read_claims
from ddobench.report.verdicts import Judgement, Verdict, format_numbers, format_reason, judge
from tests.support.pages import DASH, MINUS, SCRIPT
from tests.support.synthetic_runs import Row, data_of, failed_row, run_row

CONF = Path(__file__).parents[2] / "conf"
UP, DOWN, OPEN = [1.0, 1.1, 0.9], [-1.0, -1.1, -0.9], [1.0, -1.0, 0.1]
LEVEL = {"kind": "level", "first": None, "second": None, "of": "mine"}
ORACLE = {"name": "oracle", "score": "best_oracle"}


def entry(text: str = "mine ends above yours", **test: Any) -> dict[str, Any]:
    """Return a claim that the first method ends above the second, its test changed."""
    asked = {"kind": "difference", "task": "quadratic", "n": 100, "d": 10, "score": "final_model",
             "first": "mine", "second": "yours", "above": 0} | test  # fmt: skip
    return {"id": "one", "text": text, "source": "ours", "command": "run it",
            "test": {key: value for key, value in asked.items() if value is not None}}  # fmt: skip


def pairs(gaps: list[float], d: int = 10, **changes: Any) -> list[Row]:
    """Return runs of two methods that differ by these gaps, seed by seed."""
    return [
        run_row(method, d, seed, final_model=seed + gap * (method == "mine"), label="", **changes)
        for seed, gap in enumerate(gaps)
        for method in ("mine", "yours")
    ]


def judged(rows: list[Row], *claims: dict[str, Any]) -> list[Verdict]:
    """Return the verdicts of these runs."""
    return judge(data_of(rows).runs, parse_claims({"claims": [*claims]}).claims)


def variants(words: str) -> dict[str, Any]:
    """Return the two sides of a test in a variant."""
    return {side: {"method": name, "method_variant": words}
            for side, name in (("first", "mine"), ("second", "yours"))}  # fmt: skip


LATER = [2.0, 2.1, 2.0]
LOST = [*pairs([*UP, 1.2])[:-1], failed_row(method="yours", d=10, seed=3, label="")]
GROWING = [*pairs(UP), *pairs(LATER, d=20), *pairs([4.0, 4.1, 3.9], d=40)]
SHARES = [row | {"invalid_final": 0.2 if row["method"] == "mine" else 0.6} for row in pairs(UP)]
WORDS = [row | {"method_variant": "b=[1, 2] a=1"} for row in pairs(UP)]
HIGH = pairs([2.0, 2.0, 2.1], best_visible=9.0)
BETWEEN = {"above": None, "between": [0, 0.5]}
GROWTH = {"kind": "growth", "d": [10, 20, 40]}
BELOW = {"above": None, "below": 0}
OTHER_TASK = {"second": {"method": "yours", "task_variant": "noise=1"}}
OTHER_ROWS = {"second": {"method": "yours", "n": 500}}
CASES: dict[str, tuple[list[Row], dict[str, Any], str, str]] = {
    "above": (pairs([1.0, 1.1, 0.9, 1.2, 0.8]), {}, "holds",
              "difference 1.00 [0.80, 1.20] sd, 5 pairs (Student's t)"),
    "many seeds": (pairs(UP * 4), {}, "holds", "12 pairs (BCa bootstrap)"),
    "below": (pairs(DOWN), {}, "fails", ""),
    "across": (pairs(OPEN), {}, "undecided", "the interval includes 0"),
    "two seeds decide nothing": (pairs(UP[:2]), {}, "undecided", "fewer than 3 seeds at d = 10"),
    "on the bound": (pairs([0.0] * 5), {}, "undecided", "the interval includes 0"),
    "a lost seed is counted": (LOST, {}, "holds", "3 pairs, 1 lost"),
    "a seed that one side never tried is not": (LOST[:-1], {}, "holds", "3 pairs (Student's t)"),
    "nor is it of a slope": (pairs([*UP, 1.2]) + pairs(LATER, d=20), GROWTH | {"d": [10, 20]},
                             "holds", "3 pairs (Student's t)"),
    "its seeds": (pairs(UP + DOWN), {"seeds": "3-5"}, "fails", "3 pairs"),
    "other seeds": (pairs(UP), {"seeds": "6-9"}, "not run",
                    "no run of mine and yours at d = 10 with seeds 6-9"),
    "every place": (pairs(UP) + pairs(UP, d=20), {"d": [10, 20]}, "holds", "d = 20: difference"),
    "one open place": (pairs(UP) + pairs(OPEN, d=20), {"d": [10, 20]}, "undecided", "d = 10:"),
    "one bad place": (pairs(UP) + pairs(OPEN, d=20) + pairs(DOWN, d=40), {"d": [10, 20, 40]},
                      "fails", ""),
    "a slope": (GROWING, GROWTH, "holds", "slope 0.100 ["),
    "a slope of one method": (GROWING, GROWTH | {"second": None, "first": "yours"}, "undecided",
                              "sd per dimension, 3 seeds"),
    "a slope lacks a place": (GROWING, GROWTH | {"d": [10, 80]}, "not run",
                              "no run of mine and yours at d = 80"),
    "a level": (HIGH, LEVEL | BELOW, "fails", "mean 3.03"),
    "from a landmark": (HIGH, LEVEL | BELOW | {"minus": "best_visible"}, "holds", ""),
    "between, at the bound": (pairs([0.0] * 3), BETWEEN, "holds", ""),
    "between": (pairs([0.1, 0.2, 0.15]), BETWEEN, "holds", ""),
    "beyond": (pairs(UP), BETWEEN, "fails", ""),
    "across the upper bound": (pairs([0.4, 0.5, 0.6]), BETWEEN, "undecided", "includes 0.5"),
    "a difference of shares": (SHARES, BELOW | {"score": "invalid_final"}, "holds",
                               f"{MINUS}40.0 [{MINUS}40.0, {MINUS}40.0] percentage points"),
    "a share": (SHARES, LEVEL | {"score": "invalid_final"}, "holds",
                "mean 20.0 [20.0, 20.0] %, 3 seeds (all seeds agree)"),
    "words in any order": (WORDS, variants("a=1 b=[1, 2]"), "holds", ""),
    "another variant is not taken": (WORDS, {}, "not run", "no run of mine and yours at d = 10"),
    "another task": ([*pairs(UP), *pairs(DOWN, task_variant="noise=1")], OTHER_TASK, "holds",
                     "difference 1.00"),
    "other rows": ([*pairs(UP), *pairs(DOWN, n=500)], OTHER_ROWS, "holds", "difference 1.00"),
    "another task is named": (pairs(UP), OTHER_TASK, "not run", "no run of yours (noise=1) at"),
    "a variant is named": (pairs(UP), variants("a=1"), "not run", "no run of mine (a=1) and yours"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_interval_decides_and_the_numbers_are_shown(name: str) -> None:
    rows, test, result, text = CASES[name]
    (verdict,) = judged(rows, entry(**test))
    assert verdict.result == result
    assert text in f"{format_numbers(verdict)}; {format_reason(verdict)}"


def test_each_dimension_of_a_claim_is_a_row() -> None:
    table = verdicts.verdict_table(judged(pairs(UP), entry(d=[10, 20])))
    assert table["verdict"].tolist() == ["undecided", "undecided"]
    assert table["here"].tolist() == ["holds", "not run"]
    assert table["seeds"].tolist() == [3, 0]


ONE = entry()
MISTAKES: list[tuple[Any, str]] = [
    ([], "must have a list under the key claims"),
    ({"claims": [3]}, "claim number 1 must be a mapping"),
    ({"claims": [{"id": "one"}]}, "claim one must have id, text, test, got no text"),
    ({"claims": [ONE | {"verdict": "holds"}]}, "claim one may have .* got 'verdict'"),
    ({"claims": [ONE | {"source": "rumour"}]}, "must be one of paper, ours, got 'rumour'"),
    ({"claims": [ONE, ONE]}, "a unique id, got 'one' twice"),
    ({"claims": [ONE | {"declared": "soon"}]}, "must be a day such as .* got 'soon'"),
    ({"claims": [ONE | {"again": {"seeds": "10-19"}}]}, "got no declared"),
    ({"claims": [ONE | {"again": 3}]}, "again of claim one must be a mapping"),
    ({"claims": [ONE | {"explained_by": ["two"]}]}, "must be one of one, got 'two'"),
    ({"claims": [ONE | {"explained_by": "one"}]}, "must be a list of ids, got 'one'"),
    ({"claims": [], "reading": []}, "a file of claims may have .* got 'reading'"),
    ({"claims": [ONE], "conclusion": "two"}, "conclusion .* one of one, got 'two'"),
    ({"claims": [], "readings": "all"}, "readings .* must be a list, got 'all'"),
    ({"claims": [], "readings": [3]}, "a reading must be a mapping with name, got 3"),
    ({"claims": [], "readings": [{"n": 3}]}, "must have name, got no name"),
    ({"claims": [], "readings": [{"name": "a", "m": 1}]}, "reading a may have .* got 'm'"),
    ({"claims": [], "readings": [{"name": "a", "score": "fame"}]}, "score of reading a must"),
    ({"claims": [], "readings": [{"name": "a", "n": "many"}]}, "n of reading a .* 'many'"),
    ({"claims": [], "readings": [{"name": "a", "variants": "b"}]}, "map methods to .*, got 'b'"),
    ({"claims": [], "readings": [{"name": "a", "counts": "no"}]}, "counts of reading a .* 'no'"),
    *(({"claims": [entry(**change)]}, message) for change, message in (
        ({"kind": "hunch"}, "kind in the test of claim one must be one of level, difference"),
        ({"score": "fame"}, "score in the test of claim one must be one of final_model"),
        ({"n": None}, "test of claim one must have task, n, d, score, first, second, got no n"),
        ({"nn": 5}, "test of claim one may have .* got 'nn'"),
        ({"above": None}, "must have one of above, below, between, got none"),
        ({"below": 1}, "must have one of above, below, between, got above and below"),
        ({"above": "much"}, "above in the test of claim one must be a number, got 'much'"),
        ({"above": None, "between": 3}, "must be two numbers, .* got 3"),
        ({"d": "ten"}, "d in the test of claim one must be a whole number .* got 'ten'"),
        ({"kind": "growth"}, "must list two or more dimensions, got 10"),
        ({"first": {"name": "mine"}}, "first in the test of claim one must have method"),
        ({"first": {"method": "mine", "n": "few"}}, "n of first in the test .* got 'few'"),
        ({"first": 3}, "first in the test of claim one must be a mapping"),
        ({"minus": "optimum"}, "may have .* got 'minus'"),
        ({"seeds": "ten"}, "seeds in the test of claim one must be seeds such as 10-19"),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), MISTAKES)
def test_a_mistake_in_a_claim_or_a_reading_is_one_sentence(content: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_claims(content)
    assert "\n" not in str(caught.value)


def test_a_missing_or_broken_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"must be a readable file of claims, got .*gone\.yaml"):
        read_claims(tmp_path / "gone.yaml")
    (tmp_path / "broken.yaml").write_text("claims: [")
    with pytest.raises(UsageError, match=r"must be YAML, got .*broken\.yaml") as caught:
        read_claims(tmp_path / "broken.yaml")
    assert "\n" not in str(caught.value)


def test_the_packaged_claims_and_readings_name_what_exists() -> None:
    found = read_claims()
    assert {claim.source for claim in found.claims} == {"paper", "ours"}
    for claim in found.claims:
        named = re.search(r"experiment=(\w+)", claim.command)
        assert named, claim.id
        assert (CONF / "experiment" / f"{named[1]}.yaml").exists(), claim.id
        assert (CONF / "task" / f"{claim.question.task}.yaml").exists(), claim.id
    methods = {side.method for claim in found.claims for side in claim.question.sides}
    methods |= {method for reading in found.readings for method in reading.variants}
    assert [name for name in methods if not (CONF / "method" / f"{name}.yaml").exists()] == []
    assert len({reading.name for reading in found.readings}) == len(found.readings) >= 5
    for reading in found.readings:
        assert reading.score or reading.variants or reading.n, reading.name
    assert found.conclusion in [claim.id for claim in found.claims]


def test_verdicts_are_listed_by_source_and_markup_is_escaped() -> None:
    paper, ours = entry(SCRIPT, task="nowhere") | {"source": "paper"}, entry() | {"id": "two"}
    table = verdicts.describe_verdicts(judged(pairs(UP), ours, paper))
    assert [group.title for group in table.groups] == ["The paper's claims", "Our own claims"]
    ((verdict, claim, _, numbers),) = table.groups[1].texts()
    assert (verdict, claim) == ("✓ holds", "mine ends above yours")
    assert numbers.startswith("difference 1.00 [")
    files = table.files()
    assert "<script" not in files["claims.md"]
    assert r"\textless{}script" in files["claims-paper.tex"]
    assert verdicts.describe_verdicts([]).groups == []


def test_a_claim_about_seen_runs_is_repeated_on_fresh_seeds() -> None:
    again = {"seeds": "3-5", "declared": date(2026, 1, 5), "command": "run more"}
    claim = entry() | {"again": again, "declared": date(2026, 1, 1)}
    first, second = judged(pairs(UP + DOWN, finished="2026-01-06T00:00:00+00:00"), claim)
    assert (first.result, first.order) == ("holds", "after its runs were seen")
    assert (second.result, second.order) == ("fails", "before its runs")
    assert (second.claim.id, second.claim.command) == ("one-again", "run more")


@pytest.mark.parametrize(
    ("declared", "finished", "order"),
    [
        (date(2026, 1, 5), "2026-01-05T23:00:00+00:00", "after its runs"),  # a day is its end
        (date(2026, 1, 5), "2026-01-06T00:00:00+00:00", "before its runs"),
        (datetime(2026, 1, 5, 12, 0), "2026-01-05T12:30:00+00:00", "before its runs"),
        (datetime(2026, 1, 5, 12, 0), "2026-01-05T12:30:00+02:00", "after its runs"),
        (date(2026, 1, 5), "", "its runs have no date"),
        (None, "2026-01-06T00:00:00+00:00", ""),
    ],
)
def test_the_dates_of_the_runs_show_whether_a_claim_came_first(
    declared: date | None, finished: str, order: str
) -> None:
    (verdict,) = judged(pairs(UP, finished=finished), entry() | {"declared": declared})
    assert verdicts.verdict_table([verdict])["order"].tolist() == [order]
    assert verdicts.format_declared(verdict) == (f"2026-01-05, {order}" if declared else "")


def test_one_older_pair_precedes_a_claim_and_one_older_side_is_reported() -> None:
    rows = pairs(UP, finished="2026-01-06T00:00:00+00:00")
    orders = ("after the runs of one method, before those of the other", "after its runs")
    for row, order in zip(rows[:2], orders, strict=True):  # both of seed 0
        row["finished"] = "2025-12-31T00:00:00+00:00"
        (verdict,) = judged(rows, entry() | {"declared": date(2026, 1, 5)})
        assert verdict.order == order


def judged_paper(
    rows: list[Row], *claims: dict[str, Any], readings: Any = (ORACLE,), **changes: Any
) -> Judgement:
    """Return the judgement of claims of the paper in some readings."""
    put = [claim | {"source": "paper", "id": f"c{i}"} for i, claim in enumerate(claims)]
    content = {"claims": put, "readings": [*readings], **changes}
    return verdicts.judge_all(data_of(rows).runs, parse_claims(content))


@pytest.mark.parametrize(
    ("own", "oracles", "result", "robustness"),
    [
        (UP, UP, "holds", "robust"),
        (UP, DOWN, "holds", "depends on the reading"),
        (DOWN, UP, "fails", "depends on the reading"),
        (OPEN, UP, "undecided", "depends on the reading"),
        (DOWN, DOWN, "fails", "refuted"),
        (DOWN, OPEN, "fails", "refuted"),
        (OPEN, OPEN, "undecided", "undecided"),
        ([], [], "not run", "not run"),
    ],
)
def test_the_declared_reading_decides_and_other_readings_give_robustness(
    own: list[float], oracles: list[float], result: str, robustness: str
) -> None:
    rows = pairs(own)
    for row in rows:
        gap = oracles[row["seed"]] if row["method"] == "mine" else 0.0
        row["best_oracle"] = row["seed"] + gap
    (outcome,) = judged_paper(rows, entry(), entry(score="best_oracle")).outcomes
    assert outcome.verdict.claim.id == "c0"
    assert (outcome.verdict.result, outcome.robustness) == (result, robustness)


def test_a_reading_that_does_not_count_is_shown_alone() -> None:
    rows = pairs(UP)
    for row in rows:
        row["best_oracle"] = row["seed"] + (DOWN[row["seed"]] if row["method"] == "mine" else 0.0)
    apart = ORACLE | {"counts": False}
    (outcome,) = judged_paper(rows, entry(), readings=[apart]).outcomes
    assert [*outcome.readings.values()] == ["holds", "fails"]
    assert outcome.robustness == "robust"


def test_a_claim_with_more_rows_is_the_declared_reading_where_it_was_run() -> None:
    few, many = pairs(DOWN), pairs(UP, n=200)
    claims = [entry(), entry(n=200), entry(n=300)]
    readings = [{"name": "few", "n": 100}, {"name": "many", "n": 200}]
    (outcome,) = judged_paper([*few, *many], *claims, readings=readings).outcomes
    assert outcome.verdict.claim.question.n == 200
    assert [*outcome.readings.values()] == ["holds", "fails"]
    (alone,) = judged_paper(few, *claims, readings=readings).outcomes
    assert alone.verdict.claim.question.n == 100
    assert len(alone.readings) == 1  # nothing was run with more rows


def test_our_own_claims_have_one_reading_and_can_be_the_conclusion() -> None:
    content = {"claims": [entry()], "readings": [ORACLE], "conclusion": "one"}
    found = verdicts.judge_all(data_of(pairs(UP)).runs, parse_claims(content))
    assert found.outcomes == []
    assert found.conclusion is found.verdicts[0]
    assert judged_paper(pairs(UP), entry()).conclusion is None


def asked(rows: list[Row], reading: dict[str, Any], **test: Any) -> Question | None:
    """Return the question of a claim in another reading."""
    found = parse_claims({"claims": [entry(**test)], "readings": [{"name": "other"} | reading]})
    runs = data_of(rows).runs
    return verdicts.read_question(found.claims[0].question, found.readings[0], runs)


def test_another_number_of_rows_keeps_the_dimensions_that_were_run_there() -> None:
    more = {"n": 100_000}
    rows = [*pairs(UP), *pairs(UP, d=20), *pairs(UP, **more)]
    rows += [row for row in pairs(UP, d=20, **more) if row["method"] == "mine"]
    found = asked(rows, more, d=[10, 20])
    assert found is not None
    assert (found.n, found.d) == (100_000, (10,))
    assert asked(rows, more, d=[20, 40]) is None
    assert asked(rows, more, kind="growth", d=[10, 20]) is None  # a slope needs two
    rows += [row for row in pairs(UP, d=20, **more) if row["method"] == "yours"]
    grown = asked(rows, more, kind="growth", d=[10, 20, 40])
    assert grown is not None
    assert grown.d == (10, 20)
    other = [row | {"method_variant": "b=2 a=1"} for row in rows]  # in any order
    assert asked(other, more, **variants("a=1 b=2")) is not None


def test_another_score_replaces_only_the_final_value() -> None:
    found = asked([], ORACLE)
    assert found is not None
    assert found.score == "best_oracle"
    assert asked([], ORACLE, score="invalid_final") is None


@pytest.mark.parametrize(
    ("variant", "read"),
    [
        ("", "search=far"),
        ("prior=1", "prior=1 search=far"),
        ("search=near", "search=near"),
    ],
)
def test_another_variant_applies_to_the_named_methods_unless_they_set_the_same(
    variant: str, read: str
) -> None:
    found = asked([], {"variants": {"mine": "search=far"}}, **variants(variant))
    assert found is not None
    assert [side.method_variant for side in found.sides] == [read, variant]


def test_the_table_of_readings_has_a_column_for_each_reading() -> None:
    rows = [row | {"best_oracle": row["final_model"]} for row in pairs(UP)]
    claims = [entry(), entry(score="invalid_final"), entry(task="nowhere")]
    table = verdicts.describe_readings(judged_paper(rows, *claims, readings_note="read <so>"))
    assert table.frame["together"].tolist() == ["robust", "undecided", "not run"]
    (group,) = table.groups
    assert [line[1:] for line in group.texts()] == [
        ["holds", "holds", "robust"], ["undecided", DASH, "undecided"],
    ]  # fmt: skip
    assert "read &lt;so&gt;" in table.files()["readings.md"]


def test_results_are_counted() -> None:
    order = ("holds", "fails", "not run")
    assert verdicts.format_counts(["fails", "holds", "fails"], order) == "1 holds, 2 fail"
    assert verdicts.format_counts(["not run"], order) == "1 has no runs here"

"""Promises of the claims: what a file may say, and when a claim holds."""

import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from ddobench.errors import UsageError
from ddobench.report import write_report
from ddobench.report.claims.claims import parse_claims, read_claims
from ddobench.report.claims.outcomes import count_fates, find_outcomes, spell_fates
from ddobench.report.claims.verdicts import (
    Verdict,
    format_numbers,
    format_reason,
    format_verdicts,
    judge,
    verdict_markdown,
    verdict_table,
)
from ddobench.report.figures import gallery
from ddobench.report.page.sections import claim_section
from ddobench.stats.samples import mean_interval, t_interval
from tests.support.pages import MINUS, SCRIPT, open_page
from tests.support.synthetic_runs import Row, evidence_of, failed_row, run_row
from tests.support.synthetic_stores import Fill

ROOT = Path(__file__).parents[2]


def entry(**test: Any) -> dict[str, Any]:
    """Return a claim that the first method ends above the second, its test changed as told."""
    asked = {"kind": "difference", "task": "quadratic", "n": 100, "d": 10, "score": "final_model",
             "first": "mine", "second": "yours", "above": 0} | test  # fmt: skip
    return {"id": "one", "text": "mine ends above yours", "source": "ours", "command": "run it",
            "test": {key: value for key, value in asked.items() if value is not None}}  # fmt: skip


def match(gaps: list[float], d: int = 10, **changes: Any) -> list[Row]:
    """Return runs of two methods that differ by these gaps, seed by seed."""
    return [
        run_row(method, d, seed, final_model=seed + gap * (method == "mine"), label="", **changes)
        for seed, gap in enumerate(gaps)
        for method in ("mine", "yours")
    ]


def verdict_on(rows: list[Row], **test: Any) -> Verdict:
    """Return the verdict of these runs on one claim."""
    (verdict,) = judge(evidence_of(rows).runs, parse_claims({"claims": [entry(**test)]}))
    return verdict


@pytest.mark.parametrize(
    ("gaps", "word"),
    [
        ([1.0, 1.1, 0.9, 1.2, 0.8], "holds"),
        ([-1.0, -1.1, -0.9, -1.2, -0.8], "fails"),
        ([1.0, -1.1, 0.9, -1.2, 0.8], "undecided"),
        ([1.0, 1.1], "undecided"),
        ([0.0] * 5, "undecided"),
    ],
)
def test_the_interval_decides_and_few_seeds_never_do(gaps: list[float], word: str) -> None:
    assert verdict_on(match(gaps)).word == word


def test_the_reason_says_why_nothing_was_decided() -> None:
    assert format_reason(verdict_on(match([1.0, -1.1, 0.9]))) == "the interval includes 0"
    assert "fewer than 3 seeds" in format_reason(verdict_on(match([1.0, 1.1])))
    absent = verdict_on(match([1.0] * 3), second={"method": "yours", "method_variant": "graph=x"})
    assert format_numbers(absent) == "no run of yours (graph=x) at d = 10"
    assert absent.word == "not run"


def test_few_pairs_are_judged_by_students_interval_and_many_by_the_bootstrap() -> None:
    gaps = [1.0, 1.1, 0.9, 1.2, 0.8]
    few, many = verdict_on(match(gaps)), verdict_on(match(gaps * 2))
    assert few.findings[0].interval.low == pytest.approx(t_interval(gaps).low)
    assert many.findings[0].interval.low == pytest.approx(mean_interval(gaps * 2).low)
    assert format_numbers(few) == "difference 1.00 [0.80, 1.20] sd, 5 pairs (Student's t)"
    assert format_numbers(many).endswith("10 pairs (BCa bootstrap)")


def test_seeds_that_one_side_lost_are_counted() -> None:
    rows = match([1.0, 1.1, 0.9, 1.2])[:-1]
    rows.append(failed_row(method="yours", d=10, seed=3, label=""))
    assert "3 pairs, 1 lost" in format_numbers(verdict_on(rows))


def test_seeds_that_one_side_never_tried_are_not_lost() -> None:
    rows = match([1.0, 1.1, 0.9, 1.2, 1.0])
    fewer = [row for row in rows if row["method"] == "mine" or row["seed"] < 3]
    assert "3 pairs (Student's t)" in format_numbers(verdict_on(fewer))
    grown = verdict_on(rows + match([2.0, 2.1, 2.0], d=20), kind="growth", d=[10, 20])
    assert "3 pairs (Student's t)" in format_numbers(grown)


def test_a_place_without_runs_is_told_with_its_seeds() -> None:
    verdict = verdict_on(match([1.0, 1.1, 0.9]), seeds="10-19")
    assert format_numbers(verdict) == "no run of mine and yours at d = 10 with seeds 10-19"


def test_a_claim_about_several_places_needs_all_of_them_and_falls_with_any() -> None:
    good, bad, open_ = [1.0, 1.1, 0.9], [-1.0, -1.1, -0.9], [1.0, -1.0, 0.5]
    rows = match(good) + match(open_, d=20)
    assert verdict_on(match(good) + match(good, d=20), d=[10, 20]).word == "holds"
    assert verdict_on(rows, d=[10, 20]).word == "undecided"
    assert verdict_on(rows + match(bad, d=40), d=[10, 20, 40]).word == "fails"
    assert format_numbers(verdict_on(rows, d=[10, 20])).startswith("d = 10: difference 1.00")


def test_growth_is_the_slope_of_the_gaps_of_each_seed() -> None:
    rows = match([1.0, 1.1, 0.9]) + match([2.0, 2.1, 2.0], d=20) + match([4.0, 4.1, 3.9], d=40)
    verdict = verdict_on(rows, kind="growth", d=[10, 20, 40])
    assert verdict.word == "holds"
    assert verdict.findings[0].mean == pytest.approx(0.1, abs=2e-3)
    assert "sd per dimension, 3 pairs" in format_numbers(verdict)
    alone = verdict_on(rows, kind="growth", d=[10, 20, 40], second=None, first="yours")
    assert alone.word == "undecided"  # its value does not depend on d
    absent = verdict_on(rows, kind="growth", d=[10, 20, 80])
    assert format_numbers(absent) == "no run of mine and yours at d = 80"


def test_a_level_may_be_measured_from_the_best_visible_design() -> None:
    same = {"kind": "level", "first": None, "second": None, "of": "mine", "above": None}
    rows = match([2.0, 2.0, 2.1], best_visible=9.0)
    assert verdict_on(rows, **same | {"minus": "best_visible", "below": 0}).word == "holds"
    assert verdict_on(rows, **same | {"below": 0}).word == "fails"


def test_between_wants_the_whole_interval_inside_and_allows_the_bounds() -> None:
    inside = {"above": None, "between": [0, 0.5]}
    assert verdict_on(match([0.0] * 3), **inside).word == "holds"
    assert verdict_on(match([0.1, 0.2, 0.15]), **inside).word == "holds"
    assert verdict_on(match([2.0, 2.1, 2.2]), **inside).word == "fails"
    crossing = verdict_on(match([0.4, 0.5, 0.6]), **inside)
    assert (crossing.word, format_reason(crossing)) == ("undecided", "the interval includes 0.5")


def test_shares_are_spelled_in_percent_and_their_differences_in_points() -> None:
    rows = [row | {"invalid_final": 0.2 if row["method"] == "mine" else 0.6}
            for row in match([1.0] * 3)]  # fmt: skip
    apart = verdict_on(rows, score="invalid_final", above=None, below=0)
    assert apart.word == "holds"
    assert format_numbers(apart).startswith(
        f"difference {MINUS}40.0 [{MINUS}40.0, {MINUS}40.0] per"
    )
    level = verdict_on(
        rows, score="invalid_final", kind="level", of="mine", first=None, second=None
    )
    assert format_numbers(level) == "mean 20.0 [20.0, 20.0] %, 3 seeds (all seeds agree)"


def test_a_variant_is_found_whatever_the_order_of_its_words_and_never_in_place_of_another() -> None:
    rows = [row | {"method_variant": "b=[1, 2] a=1"} for row in match([1.0, 1.1, 0.9])]
    sides = {side: {"method": name, "method_variant": "a=1 b=[1, 2]"}
             for side, name in (("first", "mine"), ("second", "yours"))}  # fmt: skip
    assert verdict_on(rows, **sides).word == "holds"
    assert verdict_on(rows).word == "not run"


@pytest.mark.parametrize(
    ("change", "message"),
    [
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
        ({"first": 3}, "first in the test of claim one must be a mapping"),
        ({"minus": "optimum"}, "may have .* got 'minus'"),
        ({"seeds": "ten"}, "seeds in the test of claim one must be seeds such as 10-19, got 'ten'"),
    ],
)
def test_a_mistake_in_a_test_is_told_in_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        parse_claims({"claims": [entry(**change)]})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "must have a list under the key claims"),
        ({"claims": [3]}, "claim number 1 must be a mapping"),
        ({"claims": [{"id": "one"}]}, "claim one must have id, text, test, got no text"),
        ({"claims": [entry() | {"verdict": "holds"}]}, "claim one may have .* got 'verdict'"),
        ({"claims": [entry() | {"source": "rumour"}]}, "must be one of paper, ours, got 'rumour'"),
        ({"claims": [entry(), entry()]}, "an id of its own, got 'one' twice"),
        ({"claims": [entry() | {"declared": "soon"}]}, "must be a day such as .* got 'soon'"),
        ({"claims": [entry() | {"again": {"seeds": "10-19"}}]}, "got no declared"),
        ({"claims": [entry() | {"again": 3}]}, "again of claim one must be a mapping"),
        ({"claims": [entry() | {"explained_by": ["two"]}]}, "must be one of one, got 'two'"),
        ({"claims": [entry() | {"explained_by": "one"}]}, "must be a list of ids, got 'one'"),
    ],
)
def test_a_mistake_in_a_claim_is_told_in_one_sentence(content: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_claims(content)


def test_a_file_that_is_not_there_or_no_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.yaml which cannot be read"):
        read_claims(tmp_path / "gone.yaml")
    broken = tmp_path / "broken.yaml"
    broken.write_text("claims: [")
    with pytest.raises(UsageError, match=r"broken\.yaml which is not") as caught:
        read_claims(broken)
    assert "\n" not in str(caught.value)


def test_the_packaged_claims_name_experiments_methods_and_tasks_that_exist() -> None:
    claims = read_claims()
    assert len(claims) >= 20
    assert {claim.source for claim in claims} == {"paper", "ours"}
    for claim in claims:
        named = re.search(r"experiment=(\w+)", claim.command)
        assert named, claim.id
        assert (ROOT / "conf" / "experiment" / f"{named[1]}.yaml").exists(), claim.id
        assert (ROOT / "conf" / "task" / f"{claim.question.task}.yaml").exists(), claim.id
        for side in claim.question.sides:
            assert (ROOT / "conf" / "method" / f"{side.method}.yaml").exists(), claim.id


def test_a_verdict_is_a_word_and_a_sign_beside_its_numbers() -> None:
    held = verdict_on(match([1.0, 1.1, 0.9]))
    (line,) = format_verdicts([held])
    assert line[0] == "✓ holds"
    assert line[5] == "run it"
    (section,) = claim_section([held])
    assert section["summary"] == "1 claims: 1 holds."
    (part,) = section["claims"]
    assert (part["sign"], part["word"], part["seen"]) == ("✓", "holds", True)
    assert "✓ holds" in verdict_markdown([held])
    assert verdict_markdown([]) == "# Claims\n"
    table = verdict_table([verdict_on(match([1.0, 1.1, 0.9]), d=[10, 20])])
    assert table["verdict"].tolist() == ["undecided", "undecided"]
    assert table["here"].tolist() == ["holds", "not run"]
    assert table["seeds"].tolist() == [3, 0]


def test_a_test_looks_at_no_seeds_but_those_it_names() -> None:
    rows = match([1.0, 1.1, 0.9, -1.0, -1.1, -0.9])
    assert verdict_on(rows, seeds="0-2").word == "holds"
    assert verdict_on(rows, seeds="3-5").word == "fails"
    assert verdict_on(rows, seeds="6-9").word == "not run"


def test_a_claim_written_with_its_runs_in_view_is_tested_again_on_seeds_of_its_own() -> None:
    again = {"seeds": "3-5", "declared": date(2026, 1, 5), "command": "run more"}
    claims = parse_claims({"claims": [entry() | {"again": again, "declared": date(2026, 1, 1)}]})
    rows = match([1.0, 1.1, 0.9, -1.0, -1.1, -0.9], finished="2026-01-06T00:00:00+00:00")
    first, second = judge(evidence_of(rows).runs, claims)
    assert (first.word, first.order) == ("holds", "with its runs in view")
    assert (second.word, second.order) == ("fails", "before its runs")
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
def test_the_stamps_of_the_runs_say_whether_a_claim_came_first(
    declared: date | None, finished: str, order: str
) -> None:
    rows = match([1.0, 1.1, 0.9], finished=finished)
    claim = entry() | {"declared": declared}
    (verdict,) = judge(evidence_of(rows).runs, parse_claims({"claims": [claim]}))
    assert verdict.order == order
    assert verdict_table([verdict])["order"].tolist() == [order]


def test_one_older_pair_is_enough_to_come_before_a_claim_and_one_side_alone_is_told() -> None:
    rows = match([1.0, 1.1, 0.9], finished="2026-01-06T00:00:00+00:00")
    claim = entry() | {"declared": date(2026, 1, 5)}
    first = [row for row in rows if row["seed"] == 0]
    assert len(first) == 2
    for row, order in zip(
        first, ("after the runs of one method, before those of the other", "after its runs"),
        strict=True,
    ):  # fmt: skip
        row["finished"] = "2025-12-31T00:00:00+00:00"
        (verdict,) = judge(evidence_of(rows).runs, parse_claims({"claims": [claim]}))
        assert verdict.order == order


def test_the_claims_of_the_paper_and_ours_are_two_tables() -> None:
    paper, ours = entry() | {"source": "paper"}, entry() | {"id": "two"}
    text = verdict_markdown(judge(evidence_of([]).runs, parse_claims({"claims": [ours, paper]})))
    assert text.index("## The paper's claims") < text.index("## Claims of ours")
    assert "holds if it holds at each of them, fails if it fails at any" in text


@pytest.mark.parametrize(
    ("own", "oracles", "fate"),
    [(1.0, -1.0, "holds"), (-1.0, 1.0, "oracle"), (-1.0, -1.0, "fails")],
)
def test_a_claim_put_by_the_methods_and_by_an_oracles_choice_counts_once(
    own: float, oracles: float, fate: str
) -> None:
    rows = match([own, 1.1 * own, 0.9 * own])
    for row in rows:
        row["best_oracle"] = row["seed"] + oracles * (row["method"] == "mine")
    twins = [entry(), entry(score="best_oracle") | {"id": "two"}]
    verdicts = judge(evidence_of(rows).runs, parse_claims({"claims": twins}))
    (outcome,) = find_outcomes(verdicts)
    assert outcome.fate == fate
    assert count_fates([outcome]) == {fate: 1}
    alone = judge(evidence_of(rows).runs, parse_claims({"claims": twins[1:]}))
    assert [found.verdict.claim.id for found in find_outcomes(alone)] == ["two"]


def test_fates_are_counted_in_words() -> None:
    assert spell_fates({"holds": 1, "fails": 2}) == "1 holds, 2 fail"


def test_a_report_judges_the_claims_of_a_users_file_and_keeps_markup_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fill: Fill
) -> None:
    monkeypatch.setattr(gallery, "FIGURES", {})  # they take their time
    mine = entry() | {"text": f"mine {SCRIPT} ends above yours"}
    absent = entry(task="nowhere") | {"id": "two"}
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({"claims": [mine, absent]}))
    written = write_report(fill(match([1.0, 1.1, 0.9])), tmp_path / "report", claims=file)
    page = open_page(written.page)
    assert f"mine {SCRIPT} ends above yours" in page.text
    assert "holds" in page.text
    assert "1 claims about runs that are not here" in page.text
    assert "mine.yaml" in page.text  # in the command that writes the report again
    tables = tmp_path / "report" / "tables"
    assert pd.read_csv(tables / "claims.csv")["verdict"].tolist() == ["holds", "not run"]
    assert "<script" not in (tables / "claims.md").read_text(encoding="utf-8")
    assert r"\textless{}script" in (tables / "claims-ours.tex").read_text(encoding="utf-8")

"""Promises of the comparisons of methods with each other."""

from typing import Any

import numpy as np
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.lineups import plainest_variants
from ddobench.report.tables.pairs import MOST, explain_pairs, format_pairs, header, pair_markdown
from ddobench.stats.samples import holm, paired_difference
from tests.support.synthetic_runs import Row, evidence_of, failed_row, run_row

MERIT = {"best": 3.0, "middle": 1.0, "last": 0.0}


def contest(seeds: int = 5, merit: dict[str, float] = MERIT, **changes: Any) -> list[Row]:
    """Return runs of methods that differ by their merit and a bit that the seed decides."""
    return [
        run_row(method, 10, seed, final_model=gain + seed + 0.1 * gain * seed, label="",
                best_oracle=gain, invalid_final=0.5 - 0.1 * gain, **changes)
        for method, gain in merit.items()
        for seed in range(seeds)
    ]  # fmt: skip


def scored(stored: ReportData, score: str) -> Any:
    """Return the pairs of one score by their two methods."""
    table = stored.pairs
    return table[table["score"] == score].set_index(["first", "second"])


def test_every_pair_is_compared_on_the_seeds_both_have_the_better_method_first() -> None:
    rows = contest()
    del rows[0]  # the best method lacks seed 0
    pairs = scored(evidence_of(rows), "final_model")
    assert pairs.index.tolist() == [("best", "middle"), ("best", "last"), ("middle", "last")]
    seeds = np.arange(1, 5)
    expected = paired_difference(3 + 1.3 * seeds, 1 + 1.1 * seeds)
    found = pairs.loc[("best", "middle")]
    assert (found["pairs"], found["lost"]) == (4, 1)
    assert found["difference"] == pytest.approx(expected.mean)
    assert found["difference_low"] == pytest.approx(expected.interval.low)
    assert pairs["lost"].tolist() == [1, 1, 0]
    assert pairs["p_holm"].tolist() == holm(pairs["p"]).tolist()


def test_fewer_invalid_designs_are_an_improvement() -> None:
    pairs = scored(evidence_of(contest()), "invalid_final")
    assert pairs.loc[("best", "last"), "difference"] == pytest.approx(-0.3)
    assert pairs.loc[("best", "last"), "improvement"] == 1.0


def test_a_failed_run_is_no_pair_and_is_counted_as_lost() -> None:
    rows = [row for row in contest() if not (row["method"] == "last" and row["seed"] == 2)]
    rows.append(failed_row(method="last", d=10, seed=2, label=""))
    pairs = scored(evidence_of(rows), "final_model")
    assert pairs["lost"].tolist() == [0, 1, 1]
    lines = format_pairs(evidence_of(rows).pairs)
    assert [line[-1] for line in lines] == ["5", "4, 1 lost", "4, 1 lost"]
    assert "2 seeds are no pair" in explain_pairs(evidence_of(rows).pairs)


def test_a_crowd_is_compared_with_its_leader_only() -> None:
    merit = {f"m{i}": float(i) for i in range(MOST + 1)}
    pairs = scored(evidence_of(contest(3, merit)), "final_model")
    assert set(pairs.index.get_level_values("first")) == {f"m{MOST}"}
    assert len(pairs) == MOST


def test_only_the_plainest_variant_of_a_method_plays() -> None:
    rows = contest(2)
    for variant in ("graph=empty", "graph=empty prior=1"):
        rows += [row | {"method_variant": variant, "digest": variant} for row in contest(2)[:2]]
    runs = plainest_variants(evidence_of(rows).runs)
    assert set(runs["method_variant"]) == {""}
    without = [row for row in rows if row["method"] != "best" or row["method_variant"]]
    runs = plainest_variants(evidence_of(without).runs)
    assert set(runs.loc[runs["method"] == "best", "method_variant"]) == {"graph=empty"}


def test_few_pairs_are_shown_with_students_interval_and_many_with_the_bootstraps() -> None:
    for seeds, kind in ((5, "t"), (10, "bca")):
        table = evidence_of(contest(seeds)).pairs
        line = format_pairs(table)[0]
        assert len(line) == len(header())
        assert table["difference_interval"].iloc[0] == kind
        assert f"[{table['difference_low'].iloc[0]:.2f}, " in line[4]
    text = explain_pairs(evidence_of(contest(5)).pairs)
    assert "Student's t below 10 seeds, the BCa bootstrap from 10 on" in text
    assert "With 5 pairs no p falls below .06, and none below .19 once adjusted." in text


def test_one_method_alone_has_no_pairs() -> None:
    stored = evidence_of(contest(2, {"alone": 1.0}))
    assert stored.pairs.empty
    assert pair_markdown(stored.pairs) == "# Method against method\n"

"""Promises of differences on the same seeds: variants against a default, method against method."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data import ReportData
from ddobench.report.tables.paired import MOST, describe_controls, describe_pairs
from ddobench.report.tables.select import plainest_variants
from ddobench.scores import contrasted_scores
from ddobench.stats.samples import holm, paired_difference
from tests.support.pages import DASH, MINUS
from tests.support.synthetic_runs import (
    Row,
    climb,
    curve_of,
    data_of,
    data_with,
    failed_row,
    run_row,
)

GAINS = {"": 0.0, "graph=empty": -0.5, "graph=permuted": 0.25}
MERIT = {"best": 3.0, "middle": 1.0, "last": 0.0}


def variants(seeds: int = 5, gains: dict[str, float] = GAINS, method: str = "fgm") -> list[Row]:
    """Return runs of one method whose variants differ by a gain that varies with the seed."""
    return [
        climb(method, method_variant=variant, seed=seed, final_model=seed + gain * (1 + seed),
              best_oracle=6.0 + gain, invalid_final=0.5 - gain / 10)
        for variant, gain in gains.items()
        for seed in range(seeds)
    ]  # fmt: skip


def climbing(rows: list[Row], steps: int = 5) -> ReportData:
    """Return the report data of these runs with a curve each."""
    return data_with(rows, [curve_of(row, steps) for row in rows])


def contest(seeds: int = 5, merit: dict[str, float] = MERIT, **changes: Any) -> list[Row]:
    """Return runs of methods that differ by their merit and a bit that the seed decides."""
    return [
        run_row(method, 10, seed, final_model=gain + seed + 0.1 * gain * seed, label="",
                best_oracle=gain, invalid_final=0.5 - 0.1 * gain, **changes)
        for method, gain in merit.items()
        for seed in range(seeds)
    ]  # fmt: skip


def scored(table: pd.DataFrame, score: str, *names: str) -> Any:
    """Return the rows of one score by some names."""
    return table[table["score"] == score].set_index(list(names))


def test_every_variant_is_compared_with_the_default_on_the_same_seeds() -> None:
    rows = variants()
    del rows[0]  # the default lacks seed 0
    final = scored(climbing(rows).controls, "final_model", "method_variant")
    assert final["seeds"].tolist() == [4, 5, 5]
    assert final["difference"].isna().tolist() == [True, False, False]
    for variant in ("graph=empty", "graph=permuted"):
        expected = paired_difference(GAINS[variant] * np.arange(2, 6), np.zeros(4))
        found = final.loc[variant]
        assert found["pairs"] == 4
        assert found["difference"] == pytest.approx(expected.mean)
        assert found["difference_low"] == pytest.approx(expected.interval.low)
        assert found["difference_interval"] == "t"
        assert (found["p"], found["improvement"]) == (expected.p, expected.improvement)
    assert final["p_holm"].dropna().tolist() == holm(final["p"].dropna()).tolist()


def test_each_method_is_compared_with_its_own_default_and_all_variants_are_one_family() -> None:
    table = climbing([*variants(method="mine"), *variants(method="yours")]).controls
    final = scored(table, "final_model", "method", "method_variant")
    for method in ("mine", "yours"):
        assert final.loc[(method, "graph=empty"), "difference"] == pytest.approx(-1.5)
    assert final["p_holm"].dropna().tolist() == holm(final["p"].dropna()).tolist()
    (group,) = describe_controls(table).groups
    assert "the 4 comparisons of a score" in group.note


@pytest.mark.parametrize(
    ("rows", "steps"), [([climb(m, seed=s) for m in ("fgm", "ga") for s in (0, 1)], 5),
                        (variants(2), 0)], ids=["no variants", "no steps"],
)  # fmt: skip
def test_methods_without_variants_and_tasks_without_steps_have_no_controls(
    rows: list[Row], steps: int
) -> None:
    table = climbing(rows, steps).controls
    assert table.empty
    assert describe_controls(table).groups == []


def test_the_plainest_variant_replaces_a_missing_default_and_no_pairs_are_not_tested() -> None:
    gains = {"graph=empty prior=0.1": 1.0, "graph=true": 0.0}
    rows = [row for row in variants(gains=gains)
            if (row["seed"] < 2) == (row["method_variant"] == "graph=true")]  # fmt: skip
    table = climbing(rows).controls
    assert set(table["reference"]) == {"graph=true"}
    assert table["method_variant"].iloc[0] == "graph=true"
    assert set(table["pairs"].dropna()) == {0}
    (group,) = describe_controls(table).groups
    assert [line[2] for line in group.texts()] == [DASH] * 2


def test_a_control_has_every_score_its_difference_and_its_adjusted_p() -> None:
    (group,) = describe_controls(climbing(variants()).controls).groups
    default, empty, _ = group.texts()
    assert default[:4] == ["FGM", "2.00", DASH, DASH]
    assert empty[0] == "FGM, graph=empty"
    assert empty[2].startswith(f"{MINUS}1.50 [{MINUS}")
    assert empty[3] == ".12"
    assert empty[7:9] == ["55 %", "5.0 [5.0, 5.0]"]
    assert empty[-1] == "5"
    assert len(group.columns) == 2 + 3 * len(contrasted_scores())
    assert "With 5 pairs the smallest possible p is .06, and .12 after adjustment." in group.note
    assert group.stem == "controls-chain-d11-n100"


def test_every_pair_is_compared_on_the_seeds_both_have_the_better_method_first() -> None:
    rows = contest()
    del rows[0]  # the best method lacks seed 0
    pairs = scored(data_of(rows).pairs, "final_model", "first", "second")
    assert pairs.index.tolist() == [("best", "middle"), ("best", "last"), ("middle", "last")]
    seeds = np.arange(1, 5)
    expected = paired_difference(3 + 1.3 * seeds, 1 + 1.1 * seeds)
    found = pairs.loc[("best", "middle")]
    assert (found["pairs"], found["lost"]) == (4, 1)
    assert found["difference"] == pytest.approx(expected.mean)
    assert found["difference_low"] == pytest.approx(expected.interval.low)
    assert pairs["lost"].tolist() == [1, 1, 0]
    assert pairs["p_holm"].tolist() == holm(pairs["p"]).tolist()
    invalid = scored(data_of(rows).pairs, "invalid_final", "first", "second")
    assert invalid.loc[("best", "last"), "difference"] == pytest.approx(-0.3)
    assert invalid.loc[("best", "last"), "improvement"] == 1.0  # less is better


def test_a_failed_run_has_no_pair_and_counts_as_lost() -> None:
    rows = [row for row in contest() if not (row["method"] == "last" and row["seed"] == 2)]
    rows.append(failed_row(method="last", d=10, seed=2, label=""))
    (group,) = describe_pairs(data_of(rows).pairs).groups
    assert [line[-1] for line in group.texts()] == ["5", "4, 1 lost", "4, 1 lost"]
    assert "Over all rows, 2 seeds have no pair." in group.note


def test_many_methods_are_compared_with_the_leader_only() -> None:
    merit = {f"m{i}": float(i) for i in range(MOST + 1)}
    pairs = scored(data_of(contest(3, merit)).pairs, "final_model", "first", "second")
    assert set(pairs.index.get_level_values("first")) == {f"m{MOST}"}
    assert len(pairs) == MOST


def test_only_the_plainest_variant_of_a_method_is_in_a_pair() -> None:
    rows = contest(2)
    for variant in ("graph=empty", "graph=empty prior=1"):
        rows += [row | {"method_variant": variant, "digest": variant} for row in contest(2)[:2]]
    assert set(plainest_variants(data_of(rows).runs)["method_variant"]) == {""}
    without = [row for row in rows if row["method"] != "best" or row["method_variant"]]
    assert set(data_of(without).pairs["first_variant"]) == {"graph=empty", ""}


def test_few_pairs_have_a_t_interval_and_many_a_bootstrap_interval() -> None:
    for seeds, kind in ((5, "t"), (10, "bca")):
        table = data_of(contest(seeds)).pairs
        assert table["difference_interval"].iloc[0] == kind
        (group,) = describe_pairs(table).groups
        assert f"[{table['difference_low'].iloc[0]:.2f}, " in group.texts()[0][4]
        few = "the smallest possible p is .06, and .19 after adjustment." in group.note
        assert few == (kind == "t")
    assert describe_pairs(data_of(contest(2, {"alone": 1.0})).pairs).groups == []

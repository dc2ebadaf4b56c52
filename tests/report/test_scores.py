"""Promises of the score table beyond the headline."""

import numpy as np
import pytest

from ddobench.report.tables.formats import format_scores, score_header, score_markdown
from ddobench.report.tables.scores import leaderboard
from ddobench.stats.samples import interquartile_mean, mean_interval
from tests.support.pages import DASH
from tests.support.synthetic_runs import climb, curve_of, data_with, evidence_of, run_row

ROWS = [climb(seed=s, final_model=float(s * s), final_oracle=5.0 + s) for s in range(5)]


def test_the_value_has_every_estimate_that_the_regret_has() -> None:
    (row,) = evidence_of(ROWS).scores.to_dict("records")
    values = [float(s * s) for s in range(5)]
    assert row["value_mean"] == 6.0
    assert (row["value_low"], row["value_high"]) == (
        mean_interval(values).low, mean_interval(values).high,
    )  # fmt: skip
    assert row["value_interval"] == "t"
    assert row["value_iqm"] == interquartile_mean(values)
    assert row["value_iqm_low"] <= row["value_iqm"] <= row["value_iqm_high"]
    names = [str(name) for name in row]
    value, regret = (
        {name.removeprefix(score) for name in names if name.startswith(score)}
        for score in ("value_", "regret_")
    )
    assert value == regret - {"unit"}


def test_what_an_oracle_would_pick_is_told_for_the_last_and_the_best_iteration() -> None:
    (row,) = evidence_of(ROWS).scores.to_dict("records")
    assert row["oracle_final_mean"] == pytest.approx(7.0)
    assert row["oracle_best_mean"] == pytest.approx(3.0)
    assert row["oracle_final_low"] < 7.0 < row["oracle_final_high"]


def test_the_percentiles_are_those_of_the_last_iteration() -> None:
    curves = [curve_of(row).assign(median=lambda c: c["iteration"] + 0.5, best=9.0)
              for row in ROWS]  # fmt: skip
    curves = [curve.sample(frac=1, random_state=0) for curve in curves]  # in any order
    (row,) = data_with(ROWS, curves).scores.to_dict("records")
    assert row["p50_mean"] == 5.5
    assert row["p100_mean"] == 9.0


def test_curves_without_percentiles_leave_them_empty() -> None:
    (row,) = data_with(ROWS, [curve_of(row) for row in ROWS]).scores.to_dict("records")
    assert np.isnan([row["p50_mean"], row["p100_mean"]]).all()
    study = evidence_of(ROWS).scores
    (line,) = format_scores(study)
    header = score_header(study)
    assert len(line) == len(header)
    assert line[header.index("median design")] == DASH


def test_figures_of_the_field_have_a_table_of_their_own_which_old_runs_are_not_in() -> None:
    old = evidence_of(ROWS).scores
    assert "##" not in score_markdown(old, [], "protocol")
    new = evidence_of([{**row, "soo_oi": 1.25, "novelty": 0.5} for row in ROWS]).scores
    assert score_header(new, "protocol") == ["n", "d", "method", "OI", "novelty", "seeds"]
    assert format_scores(new, "protocol")[0][3:5] == ["1.25", "0.50"]
    assert score_header(new) == score_header(old)


def test_a_method_lacks_the_seeds_that_most_others_have_and_not_those_of_a_control() -> None:
    seeds = {"fgm": range(6), "naive": range(6), "ga": range(4), "rwr": range(4), "coms": range(3)}
    rows = [run_row(method, seed=seed) for method, own in seeds.items() for seed in own]
    rows += [run_row("fgm", seed=seed, method_variant="graph=empty") for seed in range(4, 8)]
    scores = evidence_of(rows).scores.set_index(["method", "method_variant"])["missing"]
    assert scores.to_dict() == {
        ("coms", ""): 1, ("fgm", ""): 0, ("fgm", "graph=empty"): 0, ("ga", ""): 0,
        ("naive", ""): 0, ("rwr", ""): 0,
    }  # fmt: skip


def test_the_board_is_of_the_size_with_most_methods_however_many_variants_another_has() -> None:
    rows = [run_row(method, d) for method in ("fgm", "ga", "naive") for d in (10, 20)]
    rows += [run_row("fgm", 10, method_variant=f"graph={i}", digest=f"v{i}") for i in range(4)]
    assert set(leaderboard(evidence_of(rows).scores)["d"]) == {20}

"""Promises of what is told of rules: what they lose against the oracle's choice, and when."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.rules import losses_by_rule
from ddobench.report.tables.rules import find_contests, rule_markdown
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import climb, evidence_of

VALUES: dict[str, tuple[float, ...]] = {
    "0.05": (5.0, 7.0),
    "0.01": (8.0, 6.0),
}  # of each rate, by seed; 0.05 is the first
CHOSEN: tuple[float, ...] = (5.0, 7.0)  # the rule takes 0.05 for both seeds


def contested(
    values: dict[str, tuple[float, ...]] = VALUES, chosen: tuple[float, ...] = CHOSEN
) -> ReportData:
    """Return the runs of a rule and of its candidates by themselves, with configurations."""
    rows, configs = [], {}
    candidates = {f"search.rate={rate}": {"search": {"rate": float(rate)}} for rate in VALUES}
    runs: dict[str, tuple[tuple[float, ...], dict[str, Any]]] = {
        "select=referee": (chosen, {"rule": "referee", "candidates": candidates})
    }
    for rate, worth in values.items():
        variant = "" if rate == "0.05" else f"search.rate={rate}"
        runs[variant] = (worth, {"search": {"rate": float(rate)}})
    for variant, (worth, method) in runs.items():
        rows += [climb("ga", seed=seed, method_variant=variant, final_model=value)
                 for seed, value in enumerate(worth)]  # fmt: skip
        configs[rows[-1]["digest"]] = {"method": {"card": {"label": variant}, **method}}
    return replace(evidence_of(rows), configs=configs)


def test_losses_are_what_is_less_than_the_best_candidate_of_each_seed() -> None:
    (row,) = contested().rules.to_dict("records")
    assert row["rule"] == "referee"
    assert row["oracle"] == pytest.approx((8.0 + 7.0) / 2)
    assert row["rule_loss"] == row["first_loss"] == pytest.approx((3.0 + 0.0) / 2)
    assert row["average_loss"] == pytest.approx((1.5 + 0.5) / 2)
    assert row["single_loss"] == pytest.approx((0.0 + 1.0) / 2)  # 0.01 is better on average
    assert row["nothing_loss"] == pytest.approx((4.0 + 3.0) / 2)
    assert (row["candidates"], row["seeds"]) == (2, 2)


def test_seeds_that_a_candidate_lacks_are_not_compared() -> None:
    stored = contested({"0.05": (5.0, 7.0), "0.01": (8.0,)})
    assert stored.rules["seeds"].tolist() == [1]
    assert stored.rules["rule_loss"].tolist() == [3.0]


def test_without_the_runs_of_every_candidate_nothing_is_told() -> None:
    stored = contested({"0.05": (5.0, 7.0)})
    assert find_contests(stored.runs, stored.configs) == []
    assert list(losses_by_rule(stored)) == []
    assert rule_markdown(stored.rules).startswith("# What a rule loses")


def test_a_run_with_another_setting_than_the_candidate_is_not_taken_for_it() -> None:
    stored = contested()
    configs = {digest: {**config} for digest, config in stored.configs.items()}
    for config in configs.values():
        if config["method"].get("search") == {"rate": 0.01}:
            config["method"] = {"search": {"rate": 0.01, "steps": 3}}
    assert find_contests(stored.runs, configs) == []


def test_the_figure_has_a_row_per_rule_with_doing_nothing_beside_it() -> None:
    figure = only(losses_by_rule, contested())
    (axes,) = figure.drawing.axes
    drawn = [float(np.asarray(line.get_xdata())[0]) for line in axes.get_lines()]
    assert {1.5, 1.0, 3.5} <= {*drawn}
    (legend,) = figure.drawing.legends
    assert "doing nothing" in [text.get_text() for text in legend.get_texts()]
    assert "chain, n = 100, d = 11: ga, referee" in axes.get_yticklabels()[0].get_text().replace(
        "\n", " "
    )
    assert overflow(figure) <= 0


def test_the_table_says_how_settings_were_chosen() -> None:
    text = rule_markdown(contested().rules)
    assert "| ga | referee | 1.50 [" in text
    assert "chosen how" in text

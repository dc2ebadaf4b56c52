"""Variants of a method's configuration that a rule chooses from."""

from typing import Any

import pytest

from ddobench.errors import UsageError
from ddobench.runner.spec import offer_candidates
from tests.support.catalogue import specification

METHOD: dict[str, Any] = {
    "_target_": "a.Method",
    "card": {"label": "A"},
    "search": {"_target_": "a.Search", "rate": 0.1, "steps": 5},
}


def make_select(grid: Any) -> dict[str, Any]:
    return {"_target_": "a.Rule", "rule": "rank", "grid": grid}


def test_every_combination_of_the_grid_is_a_candidate_that_says_what_it_is() -> None:
    offered = offer_candidates(
        METHOD, make_select({"search.rate": [0.1, 0.2], "search.steps": [5, None]})
    )
    assert list(offered["candidates"]) == [
        "search.rate=0.1 search.steps=5", "search.rate=0.1 search.steps=null",
        "search.rate=0.2 search.steps=5", "search.rate=0.2 search.steps=null",
    ]  # fmt: skip
    chosen = offered["candidates"]["search.rate=0.2 search.steps=null"]["search"]
    assert chosen == {"_target_": "a.Search", "rate": 0.2, "steps": None}


def test_the_method_stays_as_it_was_and_its_card_is_that_of_the_chooser() -> None:
    before = repr(METHOD)
    offered = offer_candidates(METHOD, make_select({"search.rate": [1, 2]}))
    assert repr(METHOD) == before
    assert offered["card"] == {"label": "A"}
    assert offered["rule"] == "rank"
    assert "grid" not in offered
    assert all("card" not in one for one in offered["candidates"].values())


def test_settings_that_a_method_does_not_have_are_left_out_and_null_drops_one() -> None:
    grid = {"surrogate.width": [1, 2], "search.rate": [1, 2], "search.steps": None}
    assert list(offer_candidates(METHOD, make_select(grid))["candidates"]) == [
        "search.rate=1",
        "search.rate=2",
    ]


@pytest.mark.parametrize(
    ("grid", "complaint"),
    [
        (
            {"surrogate.width": [1]},
            r"among values of surrogate\.width, which this method does not have",
        ),
        ({}, "among values of nothing"),
        ({"search.rate": 3}, r"select\.grid must list values of search\.rate, got 3"),
        ({"search.rate": []}, r"select\.grid must list values of search\.rate, got \[\]"),
        ([1], r"select\.grid must name settings and their values, got \[1\]"),
        ({"search.rate": list(range(101))}, "has 101 combinations; at most 100"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(grid: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        offer_candidates(METHOD, make_select(grid))


def test_a_rule_is_a_variant_of_the_method_with_a_digest_of_its_own() -> None:
    plain, chosen = specification("chain", "ga"), specification("chain", "ga", "select=heldout_top")
    assert chosen.method_variant == "select=heldout_top"
    assert chosen.card == plain.card
    assert chosen.parts == plain.parts
    assert chosen.digest != plain.digest
    assert len(chosen.config["method"]["candidates"]) == 8


def test_a_setting_that_is_added_to_the_grid_is_told() -> None:
    added = "+select.grid={search.root_d:[true,false]}"
    spec = specification("chain", "ga", "select=referee", added, "select.scouts=9")
    assert "select=referee" in spec.method_variant
    assert "select.scouts=9" in spec.method_variant
    assert "select.grid.search.root_d=" in spec.method_variant
    assert len(spec.config["method"]["candidates"]) == 16


def test_settings_that_are_typed_hold_for_all_candidates() -> None:
    spec = specification("chain", "ga", "select=heldout_error", "surrogate.width=7")
    widths = {one["surrogate"]["width"] for one in spec.config["method"]["candidates"].values()}
    assert widths == {7}
    assert spec.method_variant == "surrogate.width=7 select=heldout_error"

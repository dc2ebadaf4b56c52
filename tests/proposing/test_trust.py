"""Promises of the warnings: each says what was seen, and none is given without a reason."""

import numpy as np
import pytest

from ddobench.judging import HeldOut
from ddobench.proposing import trust
from ddobench.proposing.check import Check


def check(error: float, excess: float, rank: float = 0.9) -> Check:
    """Return how hidden rows were predicted."""
    return Check(
        hidden=np.ones(5, dtype=bool), predicted=np.zeros(5), chance=1.0, excess=excess,
        held_out=HeldOut(error=error, rank=rank, top=1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("excess", "words"),
    [
        (2.0, "by predicting too much: expect less than it promises"),
        (-2.0, "by predicting too little: it does not reach beyond what it has seen"),
        (0.3, "too much here and too little there: its values mean little"),
    ],
)
def test_an_error_on_hidden_rows_is_told_with_its_side(excess: float, words: str) -> None:
    (sentence,) = trust.warn_of_check(check(error=2.5, excess=excess))
    assert "2.5 standard deviations of the rest, " + words in sentence


def test_a_model_that_did_well_on_hidden_rows_is_no_warning() -> None:
    assert list(trust.warn_of_check(check(error=0.5, excess=0.4))) == []
    assert list(trust.warn_of_check(None)) == []


def test_an_order_no_better_than_chance_is_a_warning() -> None:
    (sentence,) = trust.warn_of_check(check(error=0.5, excess=0.0, rank=float("nan")))
    assert "hardly ranks these: rank correlation nan" in sentence


def test_predictions_below_the_best_row_are_an_order_and_no_numbers() -> None:
    y = np.array([0.0, 1.0, 2.0])
    (sentence,) = trust.warn_of_promises(np.array([1.5, 1.2]), y)
    assert "predicts less of its proposals than the best row has" in sentence
    assert list(trust.warn_of_promises(np.array([2.5]), y)) == []
    assert list(trust.warn_of_promises(np.array([np.nan]), y)) == []


def test_proposals_that_are_nearly_one_design_are_a_warning() -> None:
    (sentence,) = trust.warn_of_likeness(spread=0.2, typical=2.0)
    assert "0.2 standard deviations apart, neighbouring rows 2; measure a few" in sentence
    assert list(trust.warn_of_likeness(spread=1.0, typical=2.0)) == []
    assert list(trust.warn_of_likeness(spread=0.0, typical=2.0)) == []  # a single one


def test_proposals_that_are_rows_already_are_counted() -> None:
    told = list(trust.warn_of_distance(np.array([0.0, 0.5, 0.0]), np.zeros(3)))
    assert told == ["2 of 3 proposals are rows of the table already."]


def judged(name: str, rank: float, reason: str = "", chosen: bool = False) -> dict[str, object]:
    """Return what is told of a candidate."""
    return {"candidate": name, "held_out_top_rank": rank, "reason": reason, "chosen": chosen}


def test_a_choice_of_nobody_names_the_best_and_how_good_it_was() -> None:
    told = [judged("units", float("nan"), "it predicts the same"), judged("additive", 0.31)]
    (sentence,) = trust.warn_of_candidates("auto", told)
    assert "(the best of them, additive, puts the best rows in order with a rank" in sentence
    assert "0.31, which may be chance), so that it proposes nothing beyond them" in sentence
    assert list(trust.warn_of_candidates("auto", [judged("units", 0.9, chosen=True)])) == []
    assert list(trust.warn_of_candidates("ga", [])) == []

"""Each warning is given where it has a reason, and only there."""

import numpy as np
import pandas as pd
import pytest

from ddobench.judging import HeldOut
from ddobench.propose import trust
from ddobench.propose.fitting import HeldOutCheck
from ddobench.propose.proposals import Options, find_proposals


def check(error: float, bias: float, rank: float = 0.9) -> HeldOutCheck:
    """Return how held-out rows were predicted."""
    return HeldOutCheck(
        hidden=np.ones(5, dtype=bool), predicted=np.zeros(5), chance=1.0, bias=bias,
        held_out=HeldOut(error=error, rank=rank, top=1.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bias", "direction"),
    [
        (2.0, "mostly too optimistic, so expect less than it predicts"),
        (-2.0, "mostly too pessimistic, as it does not extrapolate"),
        (0.3, "some too optimistic and some too pessimistic, so its values mean"),
    ],
)
def test_a_large_error_on_held_out_rows_comes_with_its_direction(
    bias: float, direction: str
) -> None:
    (sentence,) = trust.warn_check(check(error=2.5, bias=bias))
    assert f"2.5 standard deviations of the other rows: {direction}" in sentence


def test_a_rank_correlation_near_chance_is_a_warning_and_a_good_check_is_not() -> None:
    (sentence,) = trust.warn_check(check(error=0.5, bias=0.0, rank=float("nan")))
    assert "hardly ranks them: the rank correlation is nan" in sentence
    assert list(trust.warn_check(check(error=0.5, bias=0.4))) == []
    assert list(trust.warn_check(None)) == []


def test_predictions_worse_than_the_best_row_are_a_warning() -> None:
    y = np.array([0.0, 1.0, 2.0])
    (sentence,) = trust.warn_predicted(np.array([1.5, 1.2]), y)
    assert "All proposals are predicted to be worse than the best row" in sentence
    assert list(trust.warn_predicted(np.array([2.5]), y)) == []
    assert list(trust.warn_predicted(np.array([np.nan]), y)) == []


def test_designs_far_from_all_rows_and_far_better_predictions_are_warnings() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(40, 8))).assign(y=lambda x: x.sum(axis=1))
    options = Options(method="linear", overrides=["search.steps=500", "search.rate=1"])
    sentences = " ".join(find_proposals(rows, "y", options).warnings)
    assert "standard deviations better than the best row" in sentences
    assert "times as far from the nearest row" in sentences
    assert "leave the range of the rows" in sentences


def test_nearly_equal_proposals_are_a_warning() -> None:
    (sentence,) = trust.warn_similar(median=0.2, typical=2.0)
    assert "0.2 standard deviations apart, neighbouring rows 2; measure a few" in sentence
    assert list(trust.warn_similar(median=1.0, typical=2.0)) == []
    assert list(trust.warn_similar(median=0.0, typical=2.0)) == []  # a single design


def test_a_method_that_chooses_no_candidate_names_the_best_one() -> None:
    candidates = [
        {"candidate": "units", "held_out_top_rank": float("nan"), "reason": "no", "chosen": False},
        {"candidate": "additive", "held_out_top_rank": 0.31, "reason": "", "chosen": False},
    ]
    (sentence,) = trust.warn_candidates("auto", candidates)
    assert "(the best of them, additive, ranks the best rows with a rank correlation" in sentence
    assert "of 0.31, which may be chance), so it proposes only the best row" in sentence
    assert list(trust.warn_candidates("auto", [{**candidates[1], "chosen": True}])) == []
    assert list(trust.warn_candidates("ga", [])) == []

"""Trust follows from distances and held-out errors; each warning has a reason, and only then."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ddobench.propose import trust
from ddobench.propose.fitting import HeldOutCheck
from ddobench.propose.proposals import Options, find_proposals
from ddobench.propose.ranking import EncodedRows, RankedDesigns
from ddobench.propose.trust import Trust, judge_designs
from ddobench.tabular.encodings import Encoding, describe_columns
from ddobench.tabular.rows import gather_rows

LINE = pd.DataFrame({"x": np.arange(10.0), "y": np.arange(10.0)})
CHECK = HeldOutCheck(
    method="linear", rows=np.array([0, 9]), fitted=np.arange(1, 9), best=np.array([False, True]),
    predicted=np.array([0.0, 9.0]), rank=0.9, best_rank=0.9, explained=0.9, error=0.5,
)  # fmt: skip


def judge(
    x: float,
    predicted: float,
    off: float = 0.5,
    check: HeldOutCheck | None = CHECK,
    reference: float = 9.0,
) -> Trust:
    """Judge one design for rows on a line; a model predicts `reference` for the best of them."""
    rows = gather_rows(LINE, "y")
    visible = EncodedRows.of(Encoding(describe_columns(rows)), rows.designs)
    distance = visible.nearest(np.array([[x]]))
    ranked = RankedDesigns(
        designs=pd.DataFrame({"x": [x]}),
        codes=np.array([[x]]),
        assessment=pd.DataFrame(
            {
                "predicted": [predicted],
                "distance": distance,
                "distance_ratio": distance / visible.typical,
                "off_surface": [off],
            }
        ),
        median_distance=0.0,
        agreement=float("nan"),
    )
    return judge_designs(ranked, visible, rows.y, reference, check, minimise=False)


def test_an_interval_is_the_held_out_error_and_grows_with_both_distances() -> None:
    assert judge(9.5, 9.8).columns.iloc[0, :3].tolist() == pytest.approx([0.8, 0.3, 1.3])
    assert judge(12.0, 9.8).columns["gain_low"][0] == pytest.approx(0.8 - 3 * 0.5)
    assert judge(9.5, 9.8, off=4.0).columns["gain_high"][0] == pytest.approx(0.8 + 4 * 0.5)
    assert "gain_low" not in judge(9.5, 9.8, check=None).columns


def test_a_model_that_predicts_too_little_for_the_best_row_may_do_so_for_designs() -> None:
    assert judge(9.5, 8.0, reference=5.0).columns.iloc[0, :3].tolist() == [-1.0, -1.5, 3.0]


@pytest.mark.parametrize(
    ("found", "word", "reason"),
    [
        (judge(9.5, 9.8), "high", "the gain exceeds the error on held-out rows"),
        (judge(9.5, 9.4), "some", "the gain is within the error on held-out rows"),
        (judge(9.5, 8.0), "little", "the model expects no gain"),
        (judge(9.5, 8.0, reference=7.0), "little", "it is predicted worse than the best row was"),
        (judge(9.5, 9.8, check=None), "little", "the model was not checked on held-out rows"),
        (judge(13.0, 11.0), "little", "it is 4.0 times as far from the nearest row as rows usual"),
        (judge(9.5, 9.8, off=2), "little", "it is 2.0 times as far off the surface of the rows as"),
        (judge(9.5, 9.8, off=52), "none", "it is 52 times as far off the surface of the rows as"),
        (judge(9.5, 702), "none", "it promises 241.3 standard deviations more than the best row"),
        (judge(9.5, np.nan), "none", "the method has no model of the values"),
        (judge(9.5, 9.8, check=replace(CHECK, rank=0.1)), "none", "the model hardly ranks held-ou"),
        (judge(9.5, 9.8, check=replace(CHECK, rank=np.nan)), "none", "the model hardly ranks held"),
        (judge(9.5, 9.8, check=replace(CHECK, explained=0.0)), "none", "the model predicts held-o"),
        (judge(9.5, 9.8, check=replace(CHECK, best_rank=0.1)), "some", "the model hardly ranks th"),
        (judge(9.0, 9.0), "high", "it is the best row itself, which was measured"),
    ],
)
def test_trust_is_one_word_with_its_reason(found: Trust, word: str, reason: str) -> None:
    assert found.columns["trust"].tolist() == [word]
    assert found.reasons[0].startswith(reason)


def test_the_best_row_itself_gains_nothing() -> None:
    assert judge(9.0, np.nan).columns.iloc[0, :3].tolist() == [0.0, 0.0, 0.0]


def test_predictions_far_above_the_best_row_are_a_warning() -> None:
    y = np.array([0.0, 1.0, 2.0])
    (sentence,) = trust.warn_predicted(np.array([9.5, 1.2]), y)
    assert "standard deviations better than the best row" in sentence
    assert list(trust.warn_predicted(np.array([2.5]), y)) == []
    assert list(trust.warn_predicted(np.array([np.nan]), y)) == []


def test_designs_off_the_surface_are_a_warning_with_both_distances() -> None:
    ratios, inside = np.array([1.0, 14.0]), np.zeros(2)
    (sentence,) = trust.warn_distance(ratios, np.array([0.4, 52.1]), inside)
    assert sentence.startswith(
        "1 of 2 proposals are off the surface that the rows lie on, up to 52.1 "
    )
    assert "and up to 14 times as far from the nearest row" in sentence
    assert list(trust.warn_distance(np.ones(2), np.array([0.4, np.nan]), inside)) == []


def test_designs_far_from_all_rows_and_far_better_predictions_are_warnings() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(40, 8))).assign(y=lambda x: x.sum(axis=1))
    options = Options(method="linear", overrides=["search.steps=500", "search.rate=1"], check=False)
    found = find_proposals(rows, "y", options)
    sentences = " ".join(found.warnings)
    assert "standard deviations better than the best row" in sentences
    assert "times as far from the nearest row" in sentences
    assert "leave the range of the rows" in sentences
    assert found.trust.columns["trust"][0] == "none"


def test_nearly_equal_proposals_are_a_warning() -> None:
    (sentence,) = trust.warn_similar(median=0.2, typical=2.0)
    assert "0.2 standard deviations apart, neighbouring rows 2; measure a few" in sentence
    assert list(trust.warn_similar(median=1.0, typical=2.0)) == []
    assert list(trust.warn_similar(median=0.0, typical=2.0)) == []  # a single design


def test_a_method_that_chooses_no_candidate_says_why() -> None:
    candidates = [
        {"candidate": "units", "held_out_top_rank": 0.2, "reason": "", "chosen": False},
        {"candidate": "additive", "held_out_top_rank": 0.31, "reason": "", "chosen": False},
    ]
    sentence = trust.warn_candidates("auto", candidates)
    assert "(the best of them, additive, ranks the best rows with a rank correlation" in sentence
    assert "of 0.31, which may be chance), so it proposes only the best row" in sentence
    reasons = [candidates[0] | {"reason": "It is far."}, candidates[1] | {"reason": "It is off."}]
    sentence = trust.warn_candidates("auto", reasons)
    assert "(units: It is far; additive: It is off), so it proposes" in sentence

"""Promises of the page beside the proposals: readable anywhere, plain about what is not known."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from ddobench.proposing.page import render_page
from ddobench.proposing.propose import Options, Proposals, work_out
from tests.proposing.test_propose import TINY, table
from tests.support.pages import SCRIPT, Page


def worked_out(rows: pd.DataFrame | None = None, method: str = "linear") -> Proposals:
    """Propose for some rows, with the check."""
    options = Options(method=method, k=4, overrides=TINY, check=True)
    return work_out(table() if rows is None else rows, "y", options)


def page_of(found: Proposals) -> tuple[str, Page]:
    """Return the page as text, and as a browser would take it."""
    text = render_page(found, "rows.csv", "proposals.csv", "python -m ddobench.propose rows.csv")
    return text, Page(text)


def test_a_page_needs_nothing_but_itself() -> None:
    text, page = page_of(worked_out())
    assert page.scripts == []
    assert "default-src 'none'" in text
    assert "http://www.w3.org" in text  # names of formats, never fetched
    links = [attributes.get("href") for tag, attributes in page.tags if tag in ("a", "link")]
    assert all(str(link).startswith(("#", "data:")) for link in links)
    assert not re.search(r'(?:src|href)="https?:', text)


def test_what_was_chosen_and_how_far_to_trust_it_is_told() -> None:
    found = worked_out()
    _, page = page_of(found)
    assert found.check is not None
    assert "None of them was measured" in page.text
    assert "fitted without the best rows, those beyond percentile 80" in page.text
    assert f"{found.check.held_out.rank:.4g}".replace("-", "\u2212") in page.text
    for sentence in found.warnings:
        assert sentence in page.text
    assert "python -m ddobench.propose rows.csv" in page.text


def test_candidates_that_a_method_compared_are_a_table() -> None:
    candidates = (
        {"candidate": "units", "held_out_error": 0.5, "held_out_top_rank": 0.7, "chosen": True},
        {"candidate": "ridge", "held_out_error": 2.0, "held_out_top_rank": -0.1, "chosen": False},
    )
    _, page = page_of(replace(worked_out(), candidates=candidates, check=None))
    for word in ("Squared error", "Rank correlation", "units", "0.7", "yes", "\u22120.1", "no"):
        assert word in page.text
    assert "which chose units, from 60 rows" in page.text
    assert "Why not" not in page.text


def test_what_people_name_their_columns_is_text() -> None:
    rows = table().rename(columns={"a": SCRIPT, "metal": "$x_1$ & <b>"})
    text, page = page_of(worked_out(rows))
    assert page.scripts == []
    assert SCRIPT not in text
    assert SCRIPT in page.text


@pytest.mark.parametrize("method", ["naive", "random"])
def test_a_method_without_a_model_has_a_page_too(method: str) -> None:
    _, page = page_of(worked_out(method=method))
    assert "has no model of the value" in page.text


@pytest.mark.parametrize("rows", [2, 3, 40])
def test_the_smallest_tables_have_a_page_too(rows: int) -> None:
    x = np.arange(rows, dtype=float)
    _, page = page_of(worked_out(pd.DataFrame({"x": x, "y": x**2})))
    assert "Proposals for y" in page.text


def test_a_method_that_trusts_nobody_says_why_not() -> None:
    few = table().iloc[:30]
    _, page = page_of(worked_out(few, method="auto"))
    assert "1 design by Auto from 30 rows" in page.text
    assert "none did so better than chance may, and the best row is handed back" in page.text
    assert "Why not" in page.text
    assert "fewer than 20 rows to judge by" in page.text


def test_a_promise_beyond_all_rows_is_a_warning() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(40, 8))).assign(y=lambda x: x.sum(axis=1))
    options = Options(method="linear", overrides=["search.steps=500", "search.rate=1"])
    sentences = " ".join(work_out(rows, "y", options).warnings)
    assert "standard deviations more than the best row has" in sentences
    assert "times as far from every row" in sentences
    assert "leave the range" in sentences

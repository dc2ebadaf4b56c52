"""The page beside the proposals: self-contained, with the warnings and the check."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

from ddobench.propose import proposal_page
from ddobench.propose.proposal_page import compare_columns, find_directions, render_page
from ddobench.propose.proposals import Options, Proposals, find_proposals
from tests.propose.test_propose import TINY, table
from tests.support.pages import SCRIPT, Page


def find(rows: pd.DataFrame, method: str = "linear") -> Proposals:
    """Propose for some rows, with the check."""
    return find_proposals(rows, "y", Options(method=method, k=4, overrides=TINY, check=True))


@cache
def usual() -> Proposals:
    """Return the proposals for rows of every kind."""
    return find(table())


def render(found: Proposals) -> tuple[str, Page]:
    """Return the page as text, and parsed."""
    text = render_page(found, "rows.csv", "proposals.csv", "python -m ddobench.propose rows.csv")
    return text, Page(text)


def test_a_page_is_self_contained_and_shows_warnings_and_check() -> None:
    found = usual()
    text, page = render(found)
    assert page.scripts == []
    assert "default-src 'none'" in text
    links = [attributes.get("href") for tag, attributes in page.tags if tag in ("a", "link")]
    assert all(str(link).startswith(("#", "data:")) for link in links)
    assert not re.search(r'(?:src|href)="https?:', text)
    assert "None of the designs was measured" in page.text
    assert "Fitted without 12 rows, half of them the best, linear predicts them" in page.text
    assert found.check is not None
    assert f"{found.check.rank:.4g}".replace("-", "\u2212") in page.text
    said = (*found.notes, *found.warnings)
    assert [sentence for sentence in said if sentence not in page.text] == []
    assert "python -m ddobench.propose rows.csv" in page.text


def test_the_candidates_that_a_method_compared_are_a_table() -> None:
    candidates = (
        {"candidate": "units", "held_out_error": 0.5, "held_out_top_rank": 0.7, "chosen": True},
        {"candidate": "ridge", "held_out_error": 2.0, "held_out_top_rank": -0.1, "chosen": False},
    )
    _, page = render(replace(usual(), candidates=candidates, check=None))
    for word in ("squared error", "rank correlation", "units", "0.7", "yes", "\u22120.1", "no"):
        assert word in page.text
    assert "which chose units" in page.text
    assert "why not" not in page.text


def test_the_page_answers_first_and_shows_what_changes_against_the_best_row() -> None:
    found = usual()
    _, page = render(found)
    best = found.rows.y.max()
    answer = f"Best row: row {found.best + 1} of rows.csv (60 usable rows), y = {best:.4g}; larger"
    assert answer in page.text
    places = [
        page.text.index(word)
        for word in (
            answer,
            "Trust in it: ",
            "What changes against",
            "Rows that were not fitted",
            "Where the proposals lie",
        )
    ]
    assert places == sorted(places)
    changes = {one.name: one for one in compare_columns(found, 4)}
    row = found.rows.designs.iloc[found.best]
    for name, one in changes.items():
        assert name != "site"  # it is constant
        equal = (found.ranked.designs[name].iloc[:4] == row[name]).tolist()
        assert [change == "" for change in one.changes] == equal
    sizes = [one.size for one in compare_columns(found, 4)]
    assert sizes == sorted(sizes, reverse=True)


def test_a_method_that_chooses_no_candidate_gives_its_reasons() -> None:
    _, page = render(find(table().iloc[:30], method="auto"))
    handed_back = page.text.index("No new design: auto hands back the best row.")
    assert handed_back < page.text.index("Best row: row")
    assert "why not" in page.text
    assert "What changes against the best row" not in page.text
    assert "fewer than 20 rows to judge by" in page.text


def test_column_names_are_text_and_never_markup() -> None:
    rows = table().rename(columns={"a": SCRIPT, "metal": "$x_1$ & <b>"})
    text, page = render(find(rows))
    assert page.scripts == []
    assert SCRIPT not in text
    assert SCRIPT in page.text


@pytest.mark.filterwarnings("error")
def test_names_that_the_font_cannot_draw_cause_no_warnings() -> None:
    odd = {"a": "\u6e29\u5ea6", "count": "a\x1b[31m\nb", "metal": "long" * 500}
    _, page = render(find(table().rename(columns=odd)))
    assert re.search("horizontally .*\u6e29\u5ea6", page.text)


def test_file_names_that_are_not_unicode_are_escaped() -> None:
    text = render_page(usual(), "\udcff.csv", "\udcfe.csv", "propose \udcff.csv")
    assert text.encode()
    assert "<code>\\udcff.csv</code>" in text


def test_many_columns_need_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proposal_page, "SLOPE_NUMBERS", 10**5)
    rows = np.random.default_rng(0).normal(size=(30, 100))
    asked = []

    def predict(x: np.ndarray) -> np.ndarray:
        asked.append(x.size)
        values: np.ndarray = 3 * x[:, 0]
        return values

    found = find_directions(rows, predict)
    assert max(asked) <= 10**5
    assert np.abs(found.axes[0, 0]) == pytest.approx(1)
    monkeypatch.setattr(proposal_page, "SLOPE_NUMBERS", 1)
    assert not find_directions(rows, predict).by_model


def test_a_method_without_a_model_has_a_page_too() -> None:
    _, page = render(find(table(), method="random"))
    assert "Trust in it: none, because the method has no model of the values." in page.text
    assert "No check was made of how the model predicts" in page.text


@pytest.mark.parametrize("rows", [2, 40])
def test_the_smallest_tables_have_a_page_too(rows: int) -> None:
    x = np.arange(rows, dtype=float)
    _, page = render(find(pd.DataFrame({"x": x, "y": x**2})))
    assert "Proposals for y" in page.text


def test_directions_are_those_in_which_the_model_changes() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 5)) * [1, 100, 1, 1, 1]
    found = find_directions(rows, lambda x: 3 * x[:, 0] + x[:, 3] ** 2 / 4)
    assert found.by_model
    assert np.abs(found.axes[:, 0]) == pytest.approx([1, 0, 0, 0, 0], abs=0.05)
    assert np.abs(found.axes[:, 1]) == pytest.approx([0, 0, 0, 1, 0], abs=0.05)
    assert found.shares.sum() == pytest.approx(1)
    assert found.label(0, list("abcde")).startswith("+1.00 a")


@pytest.mark.parametrize("model", [lambda _: None, lambda x: np.zeros(len(x))])
def test_without_a_model_directions_are_those_in_which_the_rows_vary(
    model: Callable[[np.ndarray], np.ndarray | None],
) -> None:
    line = np.random.default_rng(0).normal(size=(50, 1)) * [1.0, 1.0, 0.0]
    found = find_directions(line, model)
    assert not found.by_model
    assert np.abs(found.axes[:, 0]) == pytest.approx([0.5**0.5, 0.5**0.5, 0], abs=1e-6)
    assert found.project(line).shape == (50, 2)

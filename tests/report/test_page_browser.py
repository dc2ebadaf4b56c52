"""Promises of the page in a real browser: sorting, filters, single runs, and no requests."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.chromium import PATIENCE_OF_A_PAGE, find_chromium, start_chromium
from tests.support.pages import DASH, HOSTILE
from tests.support.varied_store import VariedReport

pytestmark = pytest.mark.slow  # a real browser

BOARD = "#leaderboard-table"
GA, FGM = "ga-chain-11-400--", "fgm-chain-11-100--"  # digests
Open = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests."""
    with start_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def report(browser: Browser, request: pytest.FixtureRequest) -> Path:
    """Return the page of runs that finished, failed and declined, some with hostile texts."""
    del browser  # without one the tests are skipped before a report is written
    varied: VariedReport = request.getfixturevalue("varied")
    return varied.written.page


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Open]:
    """Return a function that opens the page, and check that it logs and requests nothing."""
    pages: list[Page] = []
    logged: list[str] = []
    requests: list[str] = []

    def open_page(address: str = "", **looks: Any) -> Page:
        page = browser.new_context(**looks).new_page()
        page.set_default_timeout(1e3 * PATIENCE_OF_A_PAGE)
        page.on("console", lambda message: logged.append(message.text))
        page.on("pageerror", lambda error: logged.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(f"{report.as_uri()}{address}")
        pages.append(page)
        return page

    yield open_page
    assert logged == []
    assert [url for url in requests if not url.startswith(report.parent.as_uri())] == []
    for page in pages:
        assert page.evaluate("window.broken") is None
        expect(page.locator("img[src=x]")).to_have_count(0)
        page.context.close()


def chain_methods(page: Page) -> list[str]:
    """Return the methods of the first group of the leaderboard, in the order shown."""
    names = page.locator(f"{BOARD} tbody").first.locator("th[scope=row]").all_text_contents()
    return [name.split()[0] for name in names]


def head(page: Page, name: str) -> Locator:
    """Return a column of the leaderboard by the name in its head."""
    return page.locator(f"{BOARD} thead th").filter(has_text=re.compile(f"^{name}$"))


def panel(page: Page) -> Locator:
    """Return the part of the page that shows one run."""
    return page.locator("#single-runs .panel")


def test_a_column_sorts_up_down_and_back_with_missing_values_last(visit: Open) -> None:
    page = visit()
    groups = page.locator(f"{BOARD} th[scope=rowgroup]").all_text_contents()
    column = head(page, "Regret")
    ranked = ["UNITS", "FGM", "GA", "NAIVE", "COMS"]
    assert chain_methods(page) == ranked
    down = ["NAIVE", "GA", "FGM", "UNITS", "COMS"]
    for direction, order in (("ascending", ranked), ("descending", down)):
        column.get_by_role("button").click()
        assert chain_methods(page) == order
        expect(column).to_have_attribute("aria-sort", direction)
    head(page, "Method").get_by_role("button").click()
    assert chain_methods(page) == sorted(ranked)
    expect(page.locator(f"{BOARD} [aria-sort]")).to_have_count(1)
    column.get_by_role("button").click(click_count=3)
    assert chain_methods(page) == ranked
    assert page.locator(f"{BOARD} th[scope=rowgroup]").all_text_contents() == groups


def test_the_leaderboard_is_filtered_and_the_address_keeps_the_filter(visit: Open) -> None:
    page = visit()
    page.locator("#leaderboard summary", has_text="Filter").click()
    form = page.locator("form.filter")
    rows = page.locator(f"{BOARD} tr[data-task]:visible")
    total = rows.count()
    form.get_by_label("Task").select_option("chain")
    expect(rows).to_have_count(5)
    expect(form.get_by_role("status")).to_have_text(f"5 of {total} rows shown")
    form.get_by_label("Search").fill("chain uni")
    expect(rows).to_have_count(1)
    again = visit(page.evaluate("location.hash"))
    expect(again.locator("form.filter")).to_be_visible()
    expect(again.locator(f"{BOARD} tr[data-task]:visible")).to_have_count(1)
    form.get_by_label("Method").select_option("ga")
    expect(form.get_by_role("status")).to_have_text("No row matches.")
    form.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(total)


def test_a_part_of_the_appendix_loads_when_it_is_opened_or_addressed(visit: Open) -> None:
    page = visit()
    block = page.locator("#task-chain")
    expect(block.locator("table")).to_have_count(0)
    block.locator("summary").first.click()
    expect(block.get_by_text("One bump per clique.").first).to_be_visible()
    assert block.locator("table button.sort").count() > 0
    again = visit("#task-chain")
    expect(again.locator("#task-chain").get_by_text("One bump per clique.").first).to_be_visible()
    expect(again.locator("#task-chain > summary")).to_be_in_viewport()


def test_a_run_is_chosen_step_by_step_and_has_an_address(visit: Open) -> None:
    page = visit("#single-runs")
    form = page.get_by_role("form", name="Choose a run")
    form.get_by_label("Task").select_option("chain")
    form.get_by_label("Method").select_option("COMS")
    assert form.locator("[name=d] option").all_text_contents() == ["11"]
    form.get_by_label("Method").select_option("GA")
    form.locator("[name=d]").select_option("11")
    form.locator("[name=n]").select_option("400")
    form.get_by_label("Seed").select_option("2")
    title = panel(page).locator("h3")
    expect(title).to_contain_text("GA on chain, d = 11, n = 400, seed 2")
    form.get_by_role("button", name="Previous seed").click()
    expect(title).to_contain_text("seed 1")
    assert page.evaluate("location.hash") == f"#run={GA}/1"
    page.locator(f"{BOARD} tr[data-method=units] a.look").first.click()
    expect(title).to_contain_text("UNITS on chain, d = 11, n = 400, seed 0")
    page.go_back()
    expect(title).to_contain_text("GA on chain, d = 11, n = 400, seed 1")
    for address in ("#run=nowhere/7", f"#run={GA}", "#run=%E0%A4%A/1"):
        page.evaluate("hash => { location.hash = hash }", address)
        status = page.locator("#single-runs [role=status]:not(form *)")
        expect(status).to_have_text("No run on this page has this address.")


def test_a_finished_run_shows_scores_curve_graph_configuration_and_command(visit: Open) -> None:
    shown = panel(visit(f"#run={FGM}/0"))
    for text in ("Regret", "python -m ddobench task=chain method=fgm d=11 n=100", "rate: 0.005",
                 "torch: 2.13.0"):  # fmt: skip
        expect(shown).to_contain_text(text)
    for name in ("value_model", "predicted", "invalid"):
        assert (shown.locator(f"svg path.{name}").get_attribute("d") or "").count("L") == 4, name
    shown.locator("figure.curve > svg").first.hover(position={"x": 56, "y": 60})
    expect(shown.locator(".readout")).to_contain_text("Iteration 0: ranked by the method 0")
    graphs = shown.locator(".graphs figure")
    expect(graphs.nth(0).locator("path.edge")).to_have_count(2)  # discovered
    expect(graphs.nth(1).locator("path.edge")).to_have_count(15)  # true


def test_candidates_and_reasons_of_runs_are_shown_as_text(visit: Open) -> None:
    page = visit("#run=units-chain-7-100--/0")
    table = panel(page).get_by_role("region", name="Choice among candidates")
    chosen, other = table.locator("tbody tr").all()
    expect(chosen.locator("th, td")).to_have_text(["units", "chosen", "0.875", "0.25", ""])
    expect(other.locator("th, td")).to_have_text([HOSTILE, "", DASH, DASH, HOSTILE])
    for run, status, reason in (
        ("naive-quadratic-10/3", "declined", "too large"),
        ("odd-quadratic-10/3", "failed", HOSTILE),
    ):
        page.evaluate("hash => { location.hash = hash }", f"#run={run}")
        expect(panel(page).locator(".tag")).to_have_text(status)
        expect(panel(page).locator(".reason")).to_have_text(reason)
        assert "NaN" not in panel(page).inner_html()


def test_hostile_texts_are_inert_in_every_part_of_the_page(visit: Open) -> None:
    page = visit("#run=odd-quadratic-10/0")
    expect(panel(page).locator("h3")).to_contain_text(HOSTILE)
    for block in page.locator("details.block").all():
        block.locator("summary").first.click()
    expect(page.locator("#problems tbody")).to_contain_text(HOSTILE)
    expect(page.locator("script")).to_have_count(2)  # the data and ours


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_never_scrolls_sideways(visit: Open, width: int) -> None:
    page = visit(viewport={"width": width, "height": 844})
    for address in ("", f"#run={FGM}/0", "#run=odd-quadratic-10/0", "#task-chain"):
        page.evaluate("hash => { location.hash = hash }", address)
        if "run=" in address:
            method = "FGM" if "fgm" in address else HOSTILE
            expect(panel(page).locator("h3")).to_contain_text(method)
        if address == "#task-chain":
            expect(page.locator("#task-chain table").first).to_be_attached()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, address
    room, wanted = page.locator(BOARD).evaluate("t => [t.parentElement.clientWidth, t.scrollWidth]")
    assert wanted <= room  # a phone has fewer columns


def test_without_javascript_the_leaderboard_is_readable(visit: Open) -> None:
    page = visit(java_script_enabled=False)
    expect(page.locator(BOARD)).to_be_visible()
    expect(page.locator("form:visible, a.look:visible")).to_have_count(0)
    expect(page.locator("#single-runs")).to_contain_text("This needs JavaScript.")


@pytest.mark.parametrize("required", ["", "CI", "DDOBENCH_BROWSER"])
def test_a_missing_browser_fails_only_if_one_is_required(
    monkeypatch: pytest.MonkeyPatch, required: str
) -> None:
    for name in ("CI", "DDOBENCH_BROWSER"):
        monkeypatch.setenv(name, "required" if name == required else "")
    monkeypatch.setenv("PATH", "")
    outcome = pytest.fail.Exception if required else pytest.skip.Exception
    with pytest.raises(outcome, match="no Chromium is installed"):
        find_chromium()

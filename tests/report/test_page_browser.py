"""Promises of the page in a real browser: sorting, filters, single runs, and nobody is called."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from ddobench.report.data.origins import find_origins
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.regret import regret_by_dimension
from ddobench.report.page.page import Contents, render_page
from ddobench.store.atomic import write_whole
from ddobench.store.records import Portrait, Record
from ddobench.store.runs import Store
from tests.support.chromium import PATIENCE_OF_A_PAGE, find_chromium, is_required, start_chromium
from tests.support.synthetic_runs import Row, failed_row, run_row
from tests.support.synthetic_stores import PROVENANCE, place_of

pytestmark = pytest.mark.slow  # a real browser

HOSTILE = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 2'>"
EDGES = [(0, 1), (1, 2), (2, 3)]
JUDGED: dict[str, Any] = {
    "chosen": "units",
    "candidates": [
        {"candidate": "units", "held_out_top_rank": 0.875, "held_out_error": 0.25, "chosen": True},
        {"candidate": HOSTILE, "held_out_top_rank": None, "reason": HOSTILE, "chosen": False},
    ],
}
PHONE = {"width": 390, "height": 844}
LEADERBOARD = "#leaderboard-table"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return one browser for all tests."""
    with start_chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def report(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of runs that finished, failed and declined, hostile words among them."""
    del browser  # without one, there is no need to write
    folder = tmp_path_factory.mktemp("page")
    _fill(Store(folder / "runs"))
    stored = ReportData.read(folder / "runs")
    drawn = [item for item in regret_by_dimension(stored) if isinstance(item, Figure)]
    contents = Contents(
        stored=stored,
        drawn=drawn,  # one kind stands for all: drawing takes longer than the rest
        svgs={item.name: item.render("svg").decode() for item in drawn},
        origins=find_origins(stored),
        remarks={"chain": [{"text": "Mind the gap."}]},
        source="runs",
        command="python -m ddobench.report",
    )
    return write_whole(folder / "index.html", render_page(contents))


def _fill(store: Store) -> None:
    for d in (4, 6):
        for seed in range(3):
            _store(store, _chain_row("fgm", d, seed, 9.5 - d, graph="stein", latent="identity"))
            _store(store, _chain_row("ga", d, seed, 3.0 + seed))
            _store(store, _chain_row("rwr", d, seed, 10.0))
    lost = dict.fromkeys(("final_model", "best_visible", "optimum"), np.nan)
    _store(store, _chain_row("coms", 6, 0, np.nan, **lost))
    _store(store, run_row("odd", 6, label=HOSTILE, command=HOSTILE, method_variant=f"x={HOSTILE}"))
    _store(store, run_row("naive", 6))
    _store(store, run_row("naive", 6, 1, status="declined", reason="too large for me"))
    broken = failed_row(method="odd", d=6, seed=1, label=HOSTILE, method_variant=f"x={HOSTILE}")
    store.write_failure(place_of(store, broken), broken | {"reason": HOSTILE}, "Traceback")
    portrait = Portrait("chain", "", 4, 100, 0, "chain", "f", "text", EDGES, [[0.0] * 4], None, [0])
    store.write_portrait(store.portrait("chain", "p"), portrait)


def _chain_row(method: str, d: int, seed: int, regret: float, **changes: Any) -> Row:
    return run_row(
        method, d, seed, task="chain", regret_final=regret, regret_unit="sd", label=method.upper(),
        **changes,
    )  # fmt: skip


def _store(store: Store, row: Row) -> None:
    steps = np.arange(6.0)
    values = {"value_model": steps, "value_oracle": steps + 1, "predicted": 2 * steps}
    if np.isnan(row["final_model"]):
        values = dict.fromkeys(values, np.full(6, np.nan))
    curves = {"iteration": steps, **values, "invalid": steps / 10}
    graph = {
        "edges": [*EDGES, (0, 3)],
        "cliques": 4,
        "graph_recovery": {"precision": 0.75, "recall": 1},
    }
    config = {"method": {"rate": 0.25, "note": HOSTILE if row["method"] == "odd" else "plain"}}
    told: dict[str, Any] = {"fgm": graph, "ga": JUDGED}.get(row["method"], {})
    record = Record(row, config, PROVENANCE, curves, diagnostics=told)
    store.write(place_of(store, row), record)


@dataclass
class Visit:
    """An open page, and what it complained about or asked for."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Visit]


@pytest.fixture
def visit(browser: Browser, report: Path) -> Iterator[Open]:
    """Return a function that opens the page, and check that it neither complains nor calls."""
    visits: list[Visit] = []

    def open_page(address: str = "", **looks: Any) -> Visit:
        page = browser.new_context(**looks).new_page()
        page.set_default_timeout(1e3 * PATIENCE_OF_A_PAGE)
        found = Visit(page)
        page.on("console", lambda message: found.complaints.append(message.text))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("request", lambda request: found.requests.append(request.url))
        page.goto(f"{report.as_uri()}{address}")
        visits.append(found)
        return found

    yield open_page
    for found in visits:
        assert found.complaints == []
        assert {url.split("#")[0] for url in found.requests} == {report.as_uri()}
        assert found.page.evaluate("window.broken") is None
        found.page.context.close()


def chain_methods(page: Page) -> list[str]:
    """Return the methods of the first group of the leaderboard, in the order shown."""
    body = page.locator(f"{LEADERBOARD} tbody").first
    return [text.strip() for text in body.locator("th[scope=row]").all_text_contents()]


def head(page: Page, name: str) -> Locator:
    """Return a column of the leaderboard by the name in its head."""
    return page.locator(f"{LEADERBOARD} thead th").filter(has_text=re.compile(f"^{name}$"))


def panel(page: Page) -> Locator:
    """Return the part of the page that shows one run."""
    return page.locator("#single-runs .panel")


def test_a_column_sorts_up_down_and_back_with_missing_values_last(visit: Open) -> None:
    page = visit().page
    before = chain_methods(page)
    column = head(page, "Regret")
    assert before == ["GA", "RWR", "COMS"]  # by rank
    column.get_by_role("button").click()
    assert chain_methods(page) == ["GA", "RWR", "COMS"]
    expect(column).to_have_attribute("aria-sort", "ascending")
    column.get_by_role("button").click()
    assert chain_methods(page) == ["RWR", "GA", "COMS"]
    expect(column).to_have_attribute("aria-sort", "descending")
    column.get_by_role("button").click()
    assert chain_methods(page) == before
    assert column.get_attribute("aria-sort") is None


def test_sorting_compares_numbers_as_numbers_and_leaves_the_groups_in_place(visit: Open) -> None:
    page = visit().page
    groups = page.locator(f"{LEADERBOARD} th[scope=rowgroup]").all_text_contents()
    head(page, "Regret").get_by_role("button").click()
    texts = page.locator(f"{LEADERBOARD} tbody").first.locator("td:nth-of-type(4)")
    found = [text.split(" ")[0] for text in texts.all_text_contents()]
    assert found == ["4.00", "10.00", "–"]  # noqa: RUF001 - the dash of the page
    assert page.locator(f"{LEADERBOARD} th[scope=rowgroup]").all_text_contents() == groups
    first = page.locator(f"{LEADERBOARD} tbody tr:first-child th[scope=rowgroup]")
    expect(first).to_have_count(len(groups))


def test_only_one_column_is_marked_as_sorted(visit: Open) -> None:
    page = visit().page
    head(page, "Regret").get_by_role("button").click()
    head(page, "Method").get_by_role("button").click()
    expect(page.locator(f"{LEADERBOARD} [aria-sort]")).to_have_count(1)
    assert chain_methods(page) == ["COMS", "GA", "RWR"]


def test_a_table_is_sorted_with_the_keyboard_alone(visit: Open) -> None:
    page = visit().page
    wanted = head(page, "Regret").get_by_role("button")
    for _ in range(60):
        page.keyboard.press("Tab")
        if wanted.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    assert chain_methods(page)[0] == "RWR"
    assert wanted.evaluate("button => getComputedStyle(button).outlineStyle") != "none"


def test_the_leaderboard_is_filtered_by_words_task_and_method(visit: Open) -> None:
    page = visit().page
    page.locator("#leaderboard summary", has_text="Filter").click()
    form = page.locator("form.filter")
    rows = page.locator(f"{LEADERBOARD} tr[data-task]:visible")
    total = rows.count()
    form.get_by_label("Task").select_option("chain")
    expect(rows).to_have_count(4)
    expect(form.get_by_role("status")).to_have_text(f"4 of {total} rows shown")
    expect(page.locator(f"{LEADERBOARD} tbody:visible")).to_have_count(2)  # the told ones apart
    form.get_by_label("Search").fill("chain rw")
    expect(rows).to_have_count(1)
    form.get_by_label("Method").select_option("ga")
    expect(rows).to_have_count(0)
    expect(form.get_by_role("status")).to_have_text("No row matches.")
    form.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(total)


def test_the_address_keeps_the_filter(visit: Open) -> None:
    page = visit().page
    page.locator("#leaderboard summary", has_text="Filter").click()
    page.locator("form.filter").get_by_label("Method").select_option("ga")
    again = visit(page.evaluate("location.hash")).page
    expect(again.locator("form.filter")).to_be_visible()
    expect(again.locator(f"{LEADERBOARD} tr[data-task]:visible")).to_have_count(1)


def test_a_run_is_chosen_step_by_step_and_each_choice_leaves_only_what_exists(visit: Open) -> None:
    page = visit("#single-runs").page
    form = page.get_by_role("form", name="Choose a run")
    form.get_by_label("Task").select_option("chain")
    form.get_by_label("Method").select_option("COMS")
    assert form.locator("[name=d]").locator("option").all_text_contents() == ["6"]
    assert form.get_by_label("Seed").locator("option").all_text_contents() == ["0"]
    form.get_by_label("Method").select_option("GA")
    form.locator("[name=d]").select_option("4")
    form.get_by_label("Seed").select_option("2")
    expect(panel(page).locator("h3")).to_contain_text("GA on chain, d = 4, n = 100, seed 2")
    form.get_by_role("button", name="Previous seed").click()
    expect(panel(page).locator("h3")).to_contain_text("seed 1")
    assert page.evaluate("location.hash") == "#run=ga-4/1"


def test_a_run_has_an_address_and_the_way_back_works(visit: Open) -> None:
    page = visit("#run=ga-6/2").page
    title = panel(page).locator("h3")
    expect(title).to_contain_text("GA on chain, d = 6, n = 100, seed 2")
    expect(title).to_be_in_viewport()
    expect(page.get_by_role("form", name="Choose a run").get_by_label("Seed")).to_have_value("2")
    page.locator(f"{LEADERBOARD} tr[data-method=rwr] a.look").click()
    expect(title).to_contain_text("RWR on chain, d = 6, n = 100, seed 0")
    page.go_back()
    expect(title).to_contain_text("GA on chain, d = 6, n = 100, seed 2")


@pytest.mark.parametrize("address", ["#run=nowhere/7", "#run=ga-6", "#run=%E0%A4%A/1"])
def test_an_address_without_a_run_is_said_to_be_none(visit: Open, address: str) -> None:
    page = visit(address).page
    status = page.locator("#single-runs [role=status]:not(form *)")
    expect(status).to_have_text("No run of this page has that address.")


def test_a_finished_run_shows_scores_curve_graph_configuration_and_command(visit: Open) -> None:
    page = visit("#run=fgm-4/0").page
    shown = panel(page)
    expect(shown).to_contain_text("Regret at the end")
    expect(shown).to_contain_text("python -m ddobench task=chain method=fgm d=4 n=100 budget=full")
    expect(shown).to_contain_text("rate: 0.25")
    expect(shown).to_contain_text("torch: 2.13.0")
    for name in ("value_model", "value_oracle", "predicted", "invalid"):
        path = shown.locator(f"svg path.{name}").get_attribute("d")
        assert path is not None
        assert path.count("L") == 5, name
    expect(shown.locator("svg .name")).to_have_text(
        ["value [sd of visible values]", "invalid [%]", "iteration"]
    )
    shown.locator("figure.curve > svg").first.hover(position={"x": 56, "y": 60})
    expect(shown.locator(".readout")).to_contain_text("Iteration 0: ranked by the method 0,")
    graphs = shown.locator(".graphs figure")
    expect(graphs).to_have_count(2)
    expect(graphs.nth(0).locator("path.edge")).to_have_count(4)
    expect(graphs.nth(0).locator("path.wrong")).to_have_count(1)
    expect(graphs.nth(1).locator("path.edge")).to_have_count(3)
    expect(graphs.nth(0)).to_contain_text("4 edges, 4 cliques")


def test_a_run_that_chose_among_candidates_shows_what_and_by_what(visit: Open) -> None:
    shown = panel(visit("#run=ga-4/0").page)
    expect(shown).to_contain_text("What it chose, and why")
    told = shown.get_by_role("region", name="What it chose, and why")
    chosen, other = told.locator("tbody tr").all()
    expect(chosen.locator("th")).to_have_text("units")
    expect(chosen.locator("td")).to_have_text(["chosen", "0.875", "0.25", ""])
    expect(other.locator("th")).to_have_text(HOSTILE)
    expect(other.locator("td")).to_have_text(["", "–", "–", HOSTILE])  # noqa: RUF001


def test_a_run_without_any_value_is_shown_with_what_it_has(visit: Open) -> None:
    shown = panel(visit("#run=coms-6/0").page)
    expect(shown.locator("h3")).to_contain_text("COMS on chain")
    expect(shown.locator("path.value_model, path.invalid")).to_have_count(0)  # nothing to draw
    assert "NaN" not in shown.inner_html()


def test_declined_and_failed_runs_are_there_with_their_reason(visit: Open) -> None:
    page = visit("#run=naive-6/1").page
    expect(panel(page).locator(".tag")).to_have_text("declined")
    expect(panel(page).locator(".reason")).to_have_text("too large for me")
    page.locator("#problems > summary").click()
    page.locator("#problems tr").filter(has_text="failed").locator("a.look").click()
    expect(panel(page).locator(".tag")).to_have_text("failed")
    expect(panel(page).locator(".reason")).to_have_text(HOSTILE)


def test_hostile_words_in_label_command_and_configuration_stay_words(visit: Open) -> None:
    page = visit("#run=odd-6/0").page
    expect(panel(page).locator("h3")).to_contain_text(HOSTILE)
    expect(panel(page).locator("pre").nth(1)).to_contain_text("window.broken = 1")
    expect(page.locator("img")).to_have_count(0)
    expect(page.locator("script")).to_have_count(2)  # the data and ours


@pytest.mark.parametrize("address", ["", "#run=fgm-4/0", "#run=ga-4/0"])
def test_a_phone_never_scrolls_the_page_sideways(visit: Open, address: str) -> None:
    page = visit(address, viewport=PHONE).page
    if address:
        expect(panel(page)).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    text = page.locator(f"{LEADERBOARD} th[scope=row]").first.bounding_box()
    assert text is not None
    assert text["x"] >= 0


def test_a_phone_shows_rank_method_value_and_invalid_without_scrolling(visit: Open) -> None:
    page = visit(viewport=PHONE).page
    table = page.locator(LEADERBOARD)
    room, wanted = table.evaluate("t => [t.parentElement.clientWidth, t.scrollWidth]")
    assert wanted <= room
    shown = [text.strip() for text in table.locator("thead th:visible").all_text_contents()]
    assert shown == ["Rank", "Method", "Value, sd", "Invalid"]


def test_the_answers_come_first_then_one_figure_then_the_leaderboard(visit: Open) -> None:
    page = visit().page
    order = (".answers", "#answers figure", "#leaderboard", "#appendix", "#single-runs")
    places = [page.locator(name).first.bounding_box() for name in order]
    tops = [place["y"] for place in places if place]
    assert len(tops) == 5
    assert tops == sorted(tops)
    expect(page.locator(".answers > li")).to_have_count(3)
    expect(page.locator("figure svg:visible")).to_have_count(1)


def test_privileged_runs_stand_apart_without_a_rank(visit: Open) -> None:
    page = visit().page
    row = page.locator(f"{LEADERBOARD} tr[data-method=fgm]").first
    expect(row.locator("td.rank")).to_have_text("–")  # noqa: RUF001 - the dash of the page
    expect(row.locator("xpath=..").locator("th[scope=rowgroup]")).to_contain_text("no rank")
    expect(page.locator(f"{LEADERBOARD} tr[data-method=ga] td.rank")).to_have_text("1")


def test_a_part_of_the_appendix_loads_when_it_is_opened_or_addressed(visit: Open) -> None:
    page = visit().page
    block = page.locator("#task-chain")
    expect(block.locator("table")).to_have_count(0)
    block.locator("summary").first.click()
    expect(block).to_contain_text("Mind the gap.")
    assert block.locator("table button.sort").count() > 0
    again = visit("#task-chain").page
    expect(again.locator("#task-chain")).to_contain_text("Mind the gap.")
    expect(again.locator("#task-chain > summary")).to_be_in_viewport()


def contrast(locator: Locator, ink: str = "color") -> float:
    """Return the contrast ratio of an element's ink to the panel behind it, after WCAG."""
    look = "(e, ink) => getComputedStyle(e)[ink]"
    behind = "e => getComputedStyle(e.closest('.panel')).backgroundColor"
    inks = locator.evaluate(look, ink), locator.evaluate(behind)
    lights = []
    for text in inks:
        channels = np.array([int(part) for part in re.findall(r"\d+", text)[:3]]) / 255
        linear = np.where(
            channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
        )
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]) + 0.05)
    return max(lights) / min(lights)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_is_readable_in_light_and_in_the_dark(visit: Open, scheme: str) -> None:
    page = visit("#run=fgm-4/0", color_scheme=scheme).page
    shown = panel(page)
    expect(shown).to_be_visible()
    background = shown.evaluate("e => getComputedStyle(e).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    for name in ("h3", "dt", ".tag", "summary"):
        assert contrast(shown.locator(name).first) >= 4.5, name
    assert contrast(shown.locator("svg text").first, "fill") >= 4.5
    for name in ("value_model", "value_oracle", "predicted", "invalid", "edge"):
        assert contrast(shown.locator(f"path.{name}").first, "stroke") >= 3, name


def test_print_has_the_tables_and_none_of_the_controls(visit: Open) -> None:
    page = visit("#run=fgm-4/0").page
    expect(panel(page)).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator("form:visible, nav:visible, a.look:visible")).to_have_count(0)
    expect(panel(page)).to_be_visible()
    expect(page.locator(LEADERBOARD)).to_be_visible()
    arrow = head(page, "Regret").locator("button")
    assert arrow.evaluate("e => getComputedStyle(e, '::after').content") == "none"


def test_without_javascript_everything_but_the_single_runs_is_readable(visit: Open) -> None:
    page = visit(java_script_enabled=False).page
    expect(page.locator(LEADERBOARD)).to_be_visible()
    expect(page.locator("form:visible, a.look:visible")).to_have_count(0)
    expect(page.locator("#single-runs")).to_contain_text("This needs JavaScript.")


def test_a_missing_browser_fails_only_where_one_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not is_required({})
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("DDOBENCH_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium is installed"):
        find_chromium()
    for name, value in (("CI", "true"), ("DDOBENCH_BROWSER", "required")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            with pytest.raises(pytest.fail.Exception, match="must not be skipped"):
                find_chromium()

"""Promises of reports of few or failed runs."""

from pathlib import Path

import pandas as pd
import pytest

from ddobench.report import Written, write_report
from ddobench.report.figures import figure
from ddobench.report.tables.styles import paper_of
from tests.support.pages import OUR_SCRIPTS, PAPERS, Page, open_page
from tests.support.synthetic_runs import climb, failed_row, run_row
from tests.support.synthetic_stores import store_rows, stored_with


@pytest.fixture(autouse=True)
def one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw in this process, where warnings are errors."""
    monkeypatch.setattr(figure, "_count_cores", lambda: 1)


def report_of(folder: Path) -> tuple[Written, Page]:
    """Write the report of a store without claims and check what every page promises."""
    (folder / "claims.yaml").write_text("claims: []")
    written = write_report(folder / "runs", folder / "report", claims=folder / "claims.yaml",
                           formats="svg,csv")  # fmt: skip
    page = open_page(written.page)
    page.text = " ".join(page.text.split())
    files = [link for _, a in page.tags for key in ("src", "href")
             if (link := a.get(key)) and not link.startswith(("#", "data:", PAPERS))]  # fmt: skip
    assert [link for link in files if not (written.page.parent / link).is_file()] == []
    assert (written.page.parent / "README.md").read_text()
    return written, page


def test_an_empty_store_has_a_page_with_the_first_command(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    written, page = report_of(tmp_path)
    assert "nothing is stored yet" in written.message
    assert "No run is stored" in page.text
    assert "python -m ddobench -m" in page.text
    assert page.scripts == []


def test_one_run_has_a_mean_without_an_interval_and_no_figure(tmp_path: Path) -> None:
    store_rows(tmp_path / "runs", [run_row("naive", 10)])
    written, page = report_of(tmp_path)
    assert written.message.endswith(", 0 figures")
    assert "1 finished, 0 declined, 0 failed" in page.text
    assert "few" in page.text
    scores = pd.read_csv(tmp_path / "report" / "tables" / "scores.csv")
    assert scores["regret_interval"].tolist() == ["none"]
    assert scores["regret_low"].isna().all()


def test_runs_that_all_failed_are_reported_with_their_reasons(tmp_path: Path) -> None:
    rows = [failed_row(d=d, seed=seed, digest=f"f{d}") for d in (10, 20) for seed in (0, 1)]
    store_rows(tmp_path / "runs", rows)
    written, page = report_of(tmp_path)
    assert "0 finished, 0 declined, 4 failed" in page.text
    assert "LinAlgError: no convergence" in page.text
    assert "0 figures" in written.message
    assert page.scripts == OUR_SCRIPTS


def climbs(methods: tuple[str, ...], seeds: int, folder: Path) -> None:
    """Store runs of methods that climb, at two sizes."""
    rows = [climb(m, d, s) for m in methods for d in (11, 21) for s in range(seeds)]
    stored_with(folder / "runs", [(row, {}) for row in rows])


def test_one_seed_is_drawn_as_a_small_sample(tmp_path: Path) -> None:
    climbs(("ga", "naive"), 1, tmp_path)
    _, page = report_of(tmp_path)
    assert "1 seed per method and d, a small sample." in page.text
    points = pd.read_csv(tmp_path / "report" / "figures" / "value-chain-n100.csv")
    assert points[["low", "high"]].isna().all(axis=None)


def test_without_a_run_that_returns_it_the_best_visible_design_is_drawn(
    tmp_path: Path,
) -> None:
    climbs(("ga", "coms"), 3, tmp_path)
    _, page = report_of(tmp_path)
    papers = {link for _, a in page.tags if (link := a.get("href") or "").startswith(PAPERS)}
    assert papers == {paper_of("coms").link}  # the methods that have one are linked to it
    assert "the best visible design" in page.text
    points = pd.read_csv(tmp_path / "report" / "figures" / "headline.csv")
    assert points["best_visible"].tolist() == [0.4] * 4

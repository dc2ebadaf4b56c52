"""Promises of the report, on stores of synthetic runs written by the real store."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.offsetbox import AnnotationBbox

from ddobench.errors import UsageError
from ddobench.records import Record
from ddobench.report import Written, write_report
from ddobench.report.__main__ import spell_filter
from ddobench.report.commands import portable
from ddobench.report.evidence import Evidence
from ddobench.report.figures import Absence, Figure
from ddobench.report.files import write_atomically
from ddobench.report.gallery import draw_all
from ddobench.report.labels import spread
from ddobench.report.manifest import clear_stale
from ddobench.report.origins import find_origins
from ddobench.report.regret import regret_by_dimension, regret_by_rows
from ddobench.report.scores import leaderboard
from ddobench.report.styles import assign_styles
from ddobench.report.tables import format_estimate, format_number, format_percent, format_ranges
from ddobench.statistics import mean_interval
from ddobench.store import Store, load

Row = dict[str, Any]
SCRIPT = "<script>alert('x')</script>"
PROVENANCE = {"python": "3.11", "packages": {"torch": "2.13.0"}, "revision": "a" * 40}
MINUS, DASH = "\u2212", "\u2013"
NAIVE = {10: 2.3, 20: 7.8, 40: 20.0}


def run_row(method: str = "fgm", d: int = 10, seed: int = 0, **changes: Any) -> Row:
    """Return the row of one finished run; naive's regret grows with d, the others' is 0."""
    noise = np.random.default_rng([seed, d]).normal() if method == "naive" else 0.0
    regret = max(0.0, NAIVE.get(d, 0.3 * d) + noise) if method == "naive" else 0.0
    row: Row = {
        "task": "quadratic", "task_variant": "", "method": method, "method_variant": "",
        "d": d, "n": 100, "seed": seed, "budget": "full", "digest": f"{method}-{d}",
        "status": "ok", "reason": "", "privileges": "graph" if method == "fgm" else "",
        "label": {"fgm": "FGM", "naive": "Naive"}.get(method, ""),
        "color": {"fgm": "#0072B2", "naive": "#E69F00"}.get(method, ""),
        "best_visible": 2.0, "optimum": 4.0, "final_model": 4.0 - regret, "regret_final": regret,
        "regret_unit": "raw", "invalid_final": 0.0,
        "command": f"python -m ddobench method={method}",
    }  # fmt: skip
    return row | changes


def failed_row(**changes: Any) -> Row:
    """Return the row a run leaves that broke down."""
    scores = ("final_model", "regret_final", "invalid_final", "best_visible", "optimum")
    row = run_row(status="failed", reason="LinAlgError: no convergence", **changes)
    return {name: value for name, value in row.items() if name not in scores}


def sweep(
    methods: Iterable[str] = ("fgm", "naive"),
    dimensions: Iterable[int] = (10, 20, 40),
    seeds: int = 12,
    **changes: Any,
) -> list[Row]:
    """Return the rows of a small sweep."""
    return [
        run_row(method, d, seed, **changes)
        for method in methods
        for d in dimensions
        for seed in range(seeds)
    ]


def evidence_of(rows: list[Row]) -> Evidence:
    """Return the evidence of rows that were never stored."""
    return Evidence.of(pd.DataFrame(rows))


def store_rows(folder: Path, rows: list[Row]) -> Path:
    """Write rows into a store, with the provenance of a run each."""
    folder.mkdir(exist_ok=True)
    store = Store(folder)
    for row in rows:
        place = store.place("task", "method", row["d"], row["n"], row["digest"])
        if row["status"] == "failed":
            store.write_failure(place, row, "Traceback")
        else:
            curves = {"iteration": np.zeros(1), "value_model": np.zeros(1)}
            store.write(place, Record(row=row, provenance=PROVENANCE, curves=curves))
    return folder


Fill = Callable[[list[Row]], Path]


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Return a function that stores rows and returns the folder."""
    return lambda rows: store_rows(tmp_path / "runs", rows)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return the report of a small sweep, written once for all tests that only read it."""
    folder = tmp_path_factory.mktemp("plain")
    return write_report(store_rows(folder / "runs", sweep()), folder / "report")


class Page(HTMLParser):
    """Collects what a browser would act upon."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data


def open_page(path: Path) -> Page:
    """Read a written page."""
    return Page(path.read_text(encoding="utf-8"))


def test_a_report_has_every_promised_file_and_nothing_half_written(plain: Written) -> None:
    report = plain.page.parent
    names = {str(path.relative_to(report)) for path in plain.files}
    figures = ("figures/regret-quadratic-n100", "figures/landmarks-quadratic-n100")
    assert names == {
        "index.html", "manifest.json", "tables/scores.csv", "tables/scores.md",
        "tables/problems.csv", "tables/controls.csv", "tables/controls.md",
        *(f"{figure}.{end}" for figure in figures for end in ("png", "pdf", "svg", "csv")),
    }  # fmt: skip
    on_disk = {path for path in report.rglob("*") if path.is_file()}
    assert on_disk == set(plain.files)
    assert (report / f"{figures[0]}.png").read_bytes().startswith(b"\x89PNG")
    assert (report / f"{figures[0]}.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_runs_give_the_same_bytes(plain: Written, tmp_path: Path) -> None:
    again = write_report(plain.page.parent.parent / "runs", tmp_path / "again")
    for one, other in zip(plain.files, again.files, strict=True):
        if one != plain.page:  # the page says when it was written
            assert one.read_bytes() == other.read_bytes(), one.name


def test_the_page_needs_nothing_but_itself(plain: Written) -> None:
    page = open_page(plain.page)
    links = [a[key] for _, a in page.tags for key in ("src", "href") if a.get(key)]
    assert not [link for link in links if re.match(r"https?:|//", link or "")]
    relative = {link for link in links if link and not link.startswith(("#", "data:"))}
    assert relative
    assert all((plain.page.parent / link).is_file() for link in relative)
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in links if link and link.startswith("#")}
    assert anchors <= set(ids)


def test_the_page_says_what_was_run_and_how_to_repeat_it(plain: Written) -> None:
    page = open_page(plain.page)
    for text in (
        "72 finished, 0 declined, 0 failed", "torch 2.13.0", "aaaaaaaaaaaa", "FGM†",
        "† knows the true graph", "python -m ddobench method=naive", "python -m ddobench.report",
        "None: every run finished", "proves little by itself", "experiment=peak",
    ):  # fmt: skip
        assert text in page.text, text


def test_markup_in_any_stored_text_stays_text(fill: Fill, tmp_path: Path) -> None:
    hostile = dict.fromkeys(
        ("task", "task_variant", "method", "method_variant", "label", "command", "color"), SCRIPT
    )
    rows = [
        run_row(d=d, seed=seed, budget=SCRIPT, privileges=SCRIPT, digest=f"h{d}", **hostile)
        for d in (10, 20)
        for seed in (0, 1)
    ]
    rows.append(failed_row(d=10, seed=2, digest="h10") | hostile | {"reason": SCRIPT})
    written = write_report(fill(rows), tmp_path / "report", remarks={SCRIPT: [{"text": SCRIPT}]})
    page = open_page(written.page)
    assert "script" not in {tag for tag, _ in page.tags}
    assert SCRIPT in page.text
    assert not [name for _, a in page.tags for name in a if name.startswith("on")]
    assert "<script" not in (tmp_path / "report" / "tables" / "scores.md").read_text()
    assert all(path.is_relative_to(tmp_path / "report") for path in written.files)
    for svg in (tmp_path / "report" / "figures").glob("*.svg"):
        assert "<script" not in svg.read_text(encoding="utf-8")


def test_a_label_with_dollar_signs_is_not_taken_for_mathematics() -> None:
    rows = sweep(methods=["fgm"], seeds=2, label=r"$\frac{", task_variant=r"price=$\oops")
    figures = [item for item in draw_all(evidence_of(rows)) if isinstance(item, Figure)]
    assert len(figures) == 2
    assert all(figure.render("svg") for figure in figures)


def test_a_figure_draws_the_numbers_it_returns() -> None:
    evidence = evidence_of(sweep())
    (figure,) = regret_by_dimension(evidence)
    assert isinstance(figure, Figure)
    runs = evidence.runs
    for row in figure.data.to_dict("records"):
        cell = runs[(runs["method"] == row["method"]) & (runs["d"] == row["d"])]["regret_final"]
        interval = mean_interval(cell)
        assert row["regret_mean"] == pytest.approx(cell.mean())
        assert (row["regret_low"], row["regret_high"]) == (interval.low, interval.high)
    lines = [np.asarray(line.get_ydata(), float) for line in figure.drawing.axes[0].get_lines()]
    for _, series in figure.data.groupby("method"):
        means = series.sort_values("d")["regret_mean"].to_numpy(float)
        assert any(len(line) == len(means) and np.allclose(line, means) for line in lines)


def test_a_curve_at_zero_is_inside_the_axes_and_every_label_on_the_page() -> None:
    (figure,) = regret_by_dimension(evidence_of(sweep(methods=["fgm", "naive", "mine", "yours"])))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    bottom, top = axes.get_ylim()
    assert bottom < -0.01 * top
    width, height = figure.drawing.get_size_inches()
    outer = figure.drawing.get_tightbbox()
    assert outer.x0 >= 0
    assert outer.y0 >= 0
    assert outer.x1 <= width
    assert outer.y1 <= height
    boxes = [
        label.offsetbox.get_window_extent()  # without the leader lines
        for label in axes.artists
        if isinstance(label, AnnotationBbox)
    ]
    inside = axes.get_window_extent()
    assert len(boxes) == 4
    assert all(box.x0 >= inside.x1 for box in boxes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def test_the_axes_are_named_with_their_units_and_the_caption_counts_the_seeds() -> None:
    (figure,) = regret_by_dimension(evidence_of(sweep()))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    assert "dimension" in axes.get_xlabel()
    assert "raw units" in axes.get_ylabel()
    assert "12 seeds" in figure.caption
    assert "bootstrap" in figure.caption
    assert "† knows the true graph." in figure.caption


def test_failed_declined_and_missing_seeds_are_counted_and_never_averaged() -> None:
    rows = sweep(seeds=10)
    rows = [row for row in rows if (row["method"], row["d"], row["seed"]) != ("naive", 20, 9)]
    for row in rows:
        if row["method"] == "naive" and row["d"] == 20 and row["seed"] < 2:
            row |= {"status": "failed", "regret_final": 1e6, "final_model": -1e6}
        if row["method"] == "naive" and row["d"] == 20 and row["seed"] == 2:
            row |= {"status": "declined", "regret_final": np.nan, "final_model": np.nan}
    evidence = evidence_of(rows)
    scores = evidence.scores
    (found,) = scores[(scores["method"] == "naive") & (scores["d"] == 20)].to_dict("records")
    counts = {name: found[name] for name in ("seeds", "ok", "declined", "failed", "missing")}
    assert counts == {"seeds": 6, "ok": 6, "declined": 1, "failed": 2, "missing": 1}
    assert found["regret_mean"] < 10
    (figure,) = regret_by_dimension(evidence)
    assert isinstance(figure, Figure)
    assert "1 declined, 2 failed, 1 missing" in figure.caption
    hollow = [
        line for line in figure.drawing.axes[0].get_lines() if line.get_markerfacecolor() == "white"
    ]
    assert len(hollow) == 1


def test_a_finished_run_without_a_value_is_counted_as_unscored() -> None:
    rows = sweep(methods=["fgm"], seeds=3)
    rows[0] |= {"final_model": np.nan, "regret_final": np.nan}
    first = evidence_of(rows).scores.iloc[0]
    assert (first["ok"], first["seeds"], first["unscored"]) == (3, 2, 1)


def test_look_alike_runs_of_another_configuration_are_kept_apart() -> None:
    rows = sweep(methods=["fgm"], seeds=3) + [
        row | {"digest": "newer", "regret_final": 5.0}
        for row in sweep(methods=["fgm"], dimensions=[10], seeds=3)
    ]
    scores = evidence_of(rows).scores
    at_ten = scores[scores["d"] == 10]
    assert sorted(at_ten["regret_mean"]) == [0.0, 5.0]
    assert at_ten["method_variant"].str.startswith("digest=").all()
    assert (at_ten["seeds"] == 3).all()


def test_variants_sizes_and_budgets_get_figures_of_their_own() -> None:
    rows = [
        *sweep(seeds=2),
        *sweep(seeds=2, n=300),
        *sweep(seeds=2, task_variant="signs=random"),
        *sweep(seeds=2, task_variant="signs:random"),
        *sweep(seeds=2, budget="tiny"),
    ]
    found = [item.name for item in draw_all(evidence_of(rows)) if isinstance(item, Figure)]
    assert {name for name in found if name.startswith("regret")} == {
        "regret-quadratic-n100",
        "regret-quadratic-n100-tiny",
        "regret-quadratic-n300",
        "regret-quadratic-signs-random-n100",
        "regret-quadratic-signs-random-n100-2",
        "regret-quadratic-d40",
    }
    assert len(found) == len(set(found))


def peak_rows() -> list[Row]:
    """Return runs of two variants at four numbers of rows, with a peak of one of them."""
    return [
        row | {"method_variant": variant, "regret_final": regret, "digest": f"{n}{variant}"}
        for variant in ("", "ridge=1.0")
        for n, regret in ((150, 2.0), (200, 40.0 if not variant else 1.0), (250, 0.0), (300, 0.0))
        for row in sweep(methods=["fgm"], dimensions=[100], seeds=2, n=n)
    ]


def test_regret_against_visible_rows_draws_each_variant_as_a_series() -> None:
    evidence = evidence_of(peak_rows())
    assert list(regret_by_dimension(evidence)) == []  # neither a curve nor a complaint
    (figure,) = regret_by_rows(evidence)
    assert isinstance(figure, Figure)
    assert figure.name == "regret-quadratic-d100"
    axes = figure.drawing.axes[0]
    assert "visible rows" in axes.get_xlabel()
    lines = [list(np.asarray(line.get_ydata(), float)) for line in axes.get_lines()]
    assert [2.0, 40.0, 0.0, 0.0] in lines
    assert [2.0, 1.0, 0.0, 0.0] in lines


def test_rows_of_very_different_number_get_a_logarithmic_axis() -> None:
    rows = [
        row | {"digest": f"{n}"}
        for n in (100, 1000, 10000)
        for row in sweep(methods=["naive"], dimensions=[10, 20], seeds=2, n=n)
    ]
    (figure,) = regret_by_rows(evidence_of(rows))
    assert isinstance(figure, Figure)
    axes = figure.drawing.axes[0]
    assert axes.get_xscale() == "log"
    assert list(axes.get_xticks()) == [100, 1000, 10000]
    assert "for d = 10 as well" in figure.caption


def test_an_existing_but_empty_store_gives_a_page_that_says_what_to_do(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill([]), tmp_path / "report")
    assert "nothing is stored yet" in written.message
    text = open_page(written.page).text
    assert "No run is stored" in text
    assert "python -m ddobench -m" in text


def test_a_missing_store_is_one_sentence_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist; make one with: python -m ddobench"):
        write_report(tmp_path / "nowhere", tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_one_run_is_reported_without_an_interval_and_without_a_figure(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill([run_row("naive", 10)]), tmp_path / "report")
    text = open_page(written.page).text
    assert "only d = 10 has a regret, and a curve needs a second d or a second n" in text
    scores = pd.read_csv(tmp_path / "report" / "tables" / "scores.csv")
    assert scores["regret_interval"].tolist() == ["none"]
    assert scores["regret_low"].isna().all()


def test_a_store_of_nothing_but_failures_is_reported_with_reasons(
    fill: Fill, tmp_path: Path
) -> None:
    rows = [failed_row(d=d, seed=seed, digest=f"f{d}") for d in (10, 20) for seed in (0, 1, 3)]
    written = write_report(fill(rows), tmp_path / "report")
    text = " ".join(open_page(written.page).text.split())
    assert "0 finished, 0 declined, 6 failed" in text
    assert "LinAlgError: no convergence" in text
    assert f"d = 10, 20; seeds 0{DASH}1, 3" in text


def test_a_torn_file_is_left_out_and_the_rest_is_reported(
    fill: Fill, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = fill(sweep(dimensions=[10], seeds=2))
    torn = next(folder.rglob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:40])
    written = write_report(folder, tmp_path / "report")
    assert "3 runs" in written.message
    assert torn.name in caplog.text


def test_a_task_without_a_known_optimum_is_ranked_by_value() -> None:
    rows = [
        row | {"regret_final": np.nan, "final_model": 1.0 + (row["method"] == "naive")}
        for row in sweep(seeds=3)
    ]
    evidence = evidence_of(rows)
    assert list(regret_by_dimension(evidence)) == []
    board = leaderboard(evidence.scores)
    assert board["method"].tolist() == ["naive", "fgm"]


def test_the_leaderboard_shares_ranks_and_takes_the_largest_common_dimension() -> None:
    rows = sweep(methods=["fgm", "mine", "naive"], dimensions=[10, 20], seeds=3)
    rows += sweep(methods=["fgm"], dimensions=[40], seeds=3)
    board = leaderboard(evidence_of(rows).scores)
    assert board["d"].unique().tolist() == [20]
    assert board.set_index("method")["rank"].to_dict() == {"fgm": 1, "mine": 1, "naive": 3}
    assert board.set_index("method")["tied"].to_dict() == {
        "fgm": True,
        "mine": True,
        "naive": False,
    }


def test_the_leaderboard_compares_a_sweep_over_rows_at_the_most_of_them() -> None:
    board = leaderboard(evidence_of(peak_rows()).scores)
    assert board["n"].unique().tolist() == [300]
    assert board["method_variant"].tolist() == ["", "ridge=1.0"]


def test_filters_take_one_value_or_several_and_refuse_what_is_not_stored() -> None:
    stored = pd.DataFrame(sweep(seeds=4))
    kept = Evidence.of(stored, {"method": "fgm", "d": [10, 20], "seed": "0-1", "n": None}).runs
    assert len(kept) == 4
    assert set(kept["method"]) == {"fgm"}
    spelled = Evidence.of(stored, {"seed": ["0-1", 3]}).runs
    assert set(spelled["seed"]) == {0, 1, 3}
    with pytest.raises(UsageError, match=r"method must be one of fgm, naive, .* got fgmm"):
        Evidence.of(stored, {"method": "fgmm"})


def test_an_unknown_filter_is_refused(fill: Fill, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a filter must be one of task, .* got 'colour'"):
        write_report(fill([]), tmp_path / "report", filters={"colour": "red"})


def test_filters_are_spelled_so_that_hydra_takes_them_for_values() -> None:
    assert spell_filter("method=fgm,naive") == "only.method=[fgm,naive]"
    assert spell_filter("d=20") == "only.d=20"
    assert spell_filter("only.n=[100,300]") == "only.n=[100,300]"
    assert spell_filter("results_dir=a,b") == "results_dir=a,b"


def test_a_method_looks_the_same_in_every_report() -> None:
    alone = assign_styles(evidence_of(sweep(methods=["fgm"])).runs)
    among = assign_styles(evidence_of(sweep(methods=["a", "b", "fgm", "naive"])).runs)
    assert alone["quadratic", "fgm", ""] == among["quadratic", "fgm", ""]
    assert alone["quadratic", "fgm", ""].color == "#0072b2"


def test_methods_without_a_usable_colour_get_distinct_ones() -> None:
    rows = sweep(methods=["a", "b", "c"], seeds=1, color="no colour") + sweep(seeds=1)
    styles = assign_styles(evidence_of(rows).runs)
    assert len({style.color for style in styles.values()}) == 5
    assert len({style.marker for style in styles.values()}) == 5
    assert styles["quadratic", "a", ""].label == "a"


def test_variants_of_a_method_share_its_colour_and_differ_in_marker() -> None:
    rows = sweep(methods=["fgm"], seeds=1) + sweep(
        methods=["fgm"], seeds=1, method_variant="ridge=1.0"
    )
    styles = assign_styles(evidence_of(rows).runs)
    plain, ridge = styles["quadratic", "fgm", ""], styles["quadratic", "fgm", "ridge=1.0"]
    assert plain.color == ridge.color
    assert plain.marker != ridge.marker
    assert ridge.label == "FGM†, ridge=1.0"


def test_a_privilege_is_marked_only_on_the_task_where_it_was_used() -> None:
    told = sweep(methods=["fgm"], seeds=1)
    untold = [{**row, "task": "chain", "privileges": ""} for row in told]
    styles = assign_styles(evidence_of(told + untold).runs)
    assert styles["quadratic", "fgm", ""].label == "FGM†"
    assert styles["chain", "fgm", ""].label == "FGM"


def test_two_methods_with_one_label_are_told_apart_by_name() -> None:
    styles = assign_styles(evidence_of(sweep(seeds=1, label="Best")).runs)
    assert {style.label for style in styles.values()} == {"Best (fgm)†", "Best (naive)"}


def test_crowded_labels_are_moved_apart_and_lonely_ones_stay() -> None:
    heights = [0.1, 0.1, 0.1, 0.1]
    places = spread([0.0, 0.01, 0.02, 0.9], heights)
    assert places == pytest.approx([-0.09, 0.01, 0.11, 0.9])


def test_numbers_are_spelled_for_people() -> None:
    assert [format_number(x) for x in (0.0, 3e-15, 0.004, 20.036, -1.5, np.nan)] == [
        "0", "0", "0.004", "20.04", f"{MINUS}1.50", DASH,
    ]  # fmt: skip
    assert format_estimate(1.0, 0.5, 1.5) == "1.00 [0.50, 1.50]"
    assert format_estimate(1.0, np.nan, np.nan) == "1.00"
    assert [format_percent(x) for x in (0.0, 0.001, 0.5, np.nan)] == ["0 %", "< 1 %", "50 %", DASH]
    assert format_ranges([3, 0, 1, 2, 7]) == f"0{DASH}3, 7"
    assert format_ranges([]) == ""


def test_an_absence_names_a_command_that_would_help() -> None:
    rows = sweep(dimensions=[20], seeds=1, task_variant="signs=random d_obs=None", budget="tiny")
    (absence,) = regret_by_dimension(evidence_of(rows))
    assert isinstance(absence, Absence)
    assert absence.remedy == (
        "python -m ddobench -m task=quadratic d=20 n=100,200,400 task.signs=random "
        "task.d_obs=null budget=tiny method=fgm,naive seed=0-49"
    )


TWICE = """
import runpy, sys
runpy.run_module("ddobench.report", run_name="__main__")
assert "torch" not in sys.modules
sys.argv[-1] = "method=mine"
runpy.run_module("ddobench.report", run_name="__main__")
"""


def test_the_command_line_says_where_the_report_is_or_what_is_wrong_and_never_imports_torch(
    fill: Fill, tmp_path: Path
) -> None:
    fill(sweep(dimensions=[10], seeds=2))
    words = ["results_dir=runs", "report_dir=out", "seed=0-0", "method=fgm,naive"]
    done = subprocess.run(
        [sys.executable, "-c", TWICE, *words], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(Path(__file__).parent.parent), "PATH": ""}, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["out/index.html: 2 of 4 runs, 0 figures"], done.stderr
    assert done.stderr.splitlines() == [
        "ddobench: method must be one of fgm, naive, which is what is stored, got mine"
    ]
    assert done.returncode == 2
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "out"}


def test_the_report_loads_what_the_store_promises(fill: Fill) -> None:
    runs = Evidence.of(load(fill([run_row(), failed_row(seed=1)]))).runs
    assert runs["status"].tolist() == ["ok", "failed"]
    assert runs["regret_final"].isna().tolist() == [False, True]


def test_runs_tell_when_and_by_which_revision_they_were_made(fill: Fill) -> None:
    rows = [
        run_row(seed=0, revision="b" * 40, finished="2024-02-03T23:59:00+00:00"),
        run_row(seed=1, revision="c" * 40, finished="2024-03-01T01:00:00+00:00"),
    ]
    folder = fill(rows)
    told = find_origins(Evidence.read(folder))
    assert told.stored == "2024-02-03 to 2024-03-01"
    assert {"b" * 12, "c" * 12} <= set(told.revisions)


def test_an_older_run_that_does_not_tell_is_dated_by_its_file(fill: Fill) -> None:
    folder = fill([run_row()])
    for path in folder.rglob("*.parquet"):
        os.utime(path, (0, 0))
    told = find_origins(Evidence.read(folder))
    assert told.stored == "1970-01-01"
    assert told.revisions == ("a" * 12,)


def test_a_report_clears_away_what_an_earlier_one_left_and_nothing_else(tmp_path: Path) -> None:
    figures, tables = tmp_path / "figures", tmp_path / "tables"
    ours = {figures / "old.svg": b"old", figures / "edited.svg": b"ours", tables / "a.csv": b"a"}
    for path, content in ours.items():
        write_atomically(path, content)
    clear_stale(tmp_path, ours)
    (figures / "edited.svg").write_bytes(b"theirs")
    (figures / "notes.svg").write_bytes(b"theirs")
    clear_stale(tmp_path, {tables / "a.csv": b"a"})
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert left == {"figures/edited.svg", "figures/notes.svg", "tables/a.csv", "manifest.json"}


@pytest.mark.parametrize(
    "listed", ["no JSON", "[]", '{"../victim": "%s"}', '{"figures/../victim": "%s"}']
)
def test_a_strange_manifest_deletes_nothing(tmp_path: Path, listed: str) -> None:
    victim, report = tmp_path / "victim", tmp_path / "report"
    victim.write_bytes(b"precious")
    (report / "figures").mkdir(parents=True)
    (report / "victim").write_bytes(b"precious")
    (report / "manifest.json").write_text(listed.replace("%s", sha256(b"precious").hexdigest()))
    clear_stale(report, {})
    assert victim.exists()
    assert (report / "victim").exists()


def test_a_command_is_repeated_without_the_folder_of_one_machine() -> None:
    typed = "python -m ddobench -m 'method=glob(*)' seed=0-4 'results_dir=/mnt/my runs'"
    assert portable(typed) == "python -m ddobench -m 'method=glob(*)' seed=0-4"
    assert portable("python -m ddobench 'half") == "python -m ddobench 'half"

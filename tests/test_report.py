"""Promises of the report, on stores of synthetic runs written by the real store."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Text

from ddobench.errors import UsageError
from ddobench.records import Record
from ddobench.report import write_report
from ddobench.report.__main__ import spell_filter
from ddobench.report.evidence import Evidence
from ddobench.report.figures import Absence, Figure, draw_all, regret_by_dimension
from ddobench.report.labels import spread
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


Fill = Callable[[list[Row]], Path]


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Return a function that stores rows and returns the folder."""

    def store_rows(rows: list[Row]) -> Path:
        folder = tmp_path / "runs"
        folder.mkdir(exist_ok=True)
        store = Store(folder)
        for row in rows:
            place = store.place("task", "method", row["d"], row["n"], row["digest"])
            if row["status"] == "failed":
                store.write_failure(place, row, "Traceback")
            else:
                curves = {"iteration": np.zeros(1), "value_model": np.zeros(1)}
                provenance = {
                    "python": "3.11",
                    "packages": {"torch": "2.13.0"},
                    "revision": "a" * 40,
                }
                store.write(place, Record(row=row, provenance=provenance, curves=curves))
        return folder

    return store_rows


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


def test_a_report_has_every_promised_file_and_nothing_half_written(
    fill: Fill, tmp_path: Path
) -> None:
    written = write_report(fill(sweep()), tmp_path / "report")
    names = {str(path.relative_to(tmp_path / "report")) for path in written.files}
    figure = "figures/regret-quadratic-n100"
    assert names == {
        "index.html", "tables/scores.csv", "tables/scores.md", "tables/problems.csv",
        *(f"{figure}.{end}" for end in ("png", "pdf", "svg", "csv")),
    }  # fmt: skip
    on_disk = {path for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert on_disk == set(written.files)
    assert (tmp_path / "report" / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "report" / f"{figure}.pdf").read_bytes().startswith(b"%PDF")


def test_the_same_runs_give_the_same_bytes(fill: Fill, tmp_path: Path) -> None:
    folder = fill(sweep(seeds=3))
    first, second = (write_report(folder, tmp_path / name) for name in ("a", "b"))
    for one, other in zip(first.files, second.files, strict=True):
        if one != first.page:  # the page says when it was written
            assert one.read_bytes() == other.read_bytes(), one.name


def test_the_page_needs_nothing_but_itself(fill: Fill, tmp_path: Path) -> None:
    page = open_page(write_report(fill(sweep()), tmp_path / "report").page)
    links = [a[key] for _, a in page.tags for key in ("src", "href") if a.get(key)]
    assert not [link for link in links if re.match(r"https?:|//", link or "")]
    relative = {link for link in links if link and not link.startswith(("#", "data:"))}
    assert relative
    assert all((tmp_path / "report" / link).is_file() for link in relative)
    ids = [a["id"] for _, a in page.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    anchors = {link[1:] for link in links if link and link.startswith("#")}
    assert anchors <= set(ids)


def test_the_page_says_what_was_run_and_how_to_repeat_it(fill: Fill, tmp_path: Path) -> None:
    page = open_page(write_report(fill(sweep()), tmp_path / "report").page)
    for text in (
        "72 finished, 0 declined, 0 failed", "torch 2.13.0", "aaaaaaaaaaaa", "FGM†",
        "† knows the true graph", "python -m ddobench method=naive", "python -m ddobench.report",
        "None: every run finished", "proves little by itself",
    ):  # fmt: skip
        assert text in page.text, text


def test_markup_in_any_stored_text_stays_text(fill: Fill, tmp_path: Path) -> None:
    hostile = dict.fromkeys(
        ("task", "task_variant", "method", "method_variant", "label", "command", "color"), SCRIPT
    )
    rows = sweep(methods=["fgm"], seeds=2) + [
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
    (figure,) = draw_all(evidence_of(rows))
    assert isinstance(figure, Figure)
    assert figure.render("svg")


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
    boxes = [Text.get_window_extent(text) for text in axes.texts]  # without the leader lines
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


def test_variants_sizes_and_budgets_get_figures_of_their_own(fill: Fill, tmp_path: Path) -> None:
    rows = [
        *sweep(seeds=2),
        *sweep(seeds=2, n=300),
        *sweep(seeds=2, task_variant="signs=random"),
        *sweep(seeds=2, task_variant="signs:random"),
        *sweep(seeds=2, budget="tiny"),
    ]
    for i, row in enumerate(rows):
        row["digest"] = f"{row['digest']}-{i // 12}"
    written = write_report(fill(rows), tmp_path / "report")
    assert {path.name for path in written.files if path.suffix == ".svg"} == {
        "regret-quadratic-n100.svg",
        "regret-quadratic-n100-tiny.svg",
        "regret-quadratic-n300.svg",
        "regret-quadratic-signs-random-n100.svg",
        "regret-quadratic-signs-random-n100-2.svg",
    }


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
    assert "only d = 10 has a regret, and a curve needs two" in text
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
    folder = fill(sweep(seeds=2))
    torn = next(folder.rglob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:40])
    written = write_report(folder, tmp_path / "report")
    assert "11 runs" in written.message
    assert torn.name in caplog.text


def test_a_task_without_a_known_optimum_is_ranked_by_value() -> None:
    rows = [
        row | {"regret_final": np.nan, "final_model": 1.0 + (row["method"] == "naive")}
        for row in sweep(seeds=3)
    ]
    evidence = evidence_of(rows)
    assert draw_all(evidence) == []
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
    assert alone["fgm", ""] == among["fgm", ""]
    assert alone["fgm", ""].color == "#0072b2"


def test_methods_without_a_usable_colour_get_distinct_ones() -> None:
    rows = sweep(methods=["a", "b", "c"], seeds=1, color="no colour") + sweep(seeds=1)
    styles = assign_styles(evidence_of(rows).runs)
    assert len({style.color for style in styles.values()}) == 5
    assert len({style.marker for style in styles.values()}) == 5
    assert styles["a", ""].label == "a"


def test_variants_of_a_method_share_its_colour_and_differ_in_marker() -> None:
    rows = sweep(methods=["fgm"], seeds=1) + sweep(
        methods=["fgm"], seeds=1, method_variant="ridge=1.0"
    )
    styles = assign_styles(evidence_of(rows).runs)
    plain, ridge = styles["fgm", ""], styles["fgm", "ridge=1.0"]
    assert plain.color == ridge.color
    assert plain.marker != ridge.marker
    assert ridge.label == "FGM†, ridge=1.0"


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
    (absence,) = regret_by_dimension(evidence_of(sweep(dimensions=[20])))
    assert isinstance(absence, Absence)
    assert "task=quadratic n=100 d=" in absence.remedy


def test_the_command_line_writes_the_report_and_says_where_it_is(
    fill: Fill, tmp_path: Path
) -> None:
    fill(sweep(seeds=2))
    command = [sys.executable, "-m", "ddobench.report", "results_dir=runs", "report_dir=out"]
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [*command, "method=fgm,naive", "d=10,20"], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(root), "PATH": ""}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["out/index.html: 8 of 12 runs, 1 figure"]
    refused = subprocess.run(
        [*command, "method=mine"], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(root), "PATH": ""}, check=False,
    )  # fmt: skip
    assert refused.returncode != 0
    assert refused.stderr.splitlines() == [
        "ddobench: method must be one of fgm, naive, which is what is stored, got mine"
    ]
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "out"}


def test_a_report_never_imports_torch() -> None:
    code = "import sys, ddobench.report; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_report_loads_what_the_store_promises(fill: Fill) -> None:
    runs = Evidence.of(load(fill([run_row(), failed_row(seed=1)]))).runs
    assert runs["status"].tolist() == ["ok", "failed"]
    assert runs["regret_final"].isna().tolist() == [False, True]

"""Promises of the declared scores: a new one needs nothing but its declaration."""

import base64
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench import scores
from ddobench.compare.__main__ import main as compare
from ddobench.judging import LastDesigns, RunEnd, Spread
from ddobench.report.claims import parse_claims
from ddobench.report.tables.leaderboard import describe_leaderboard
from ddobench.report.writer import write_report
from ddobench.runner.batches import execute
from ddobench.scores import SHARE, Curve, Score
from ddobench.store.runs import Store, load, load_curves
from tests.support.fakes import Climb, specify_fake
from tests.support.pages import open_page
from tests.support.synthetic_runs import data_of, run_row

ROOT = Path(__file__).parent.parent
EVERY = (*scores.LANDMARKS, *scores.SCORES, *scores.COSTS)
GOOD = Curve(
    "promising",
    "The share of the designs above the visible mean.",
    lambda run: (run.punished > 0).mean(axis=1),
    unit=SHARE,
    line="above the mean",
)
GOOD_FINAL = Score(
    "promising_final",
    "The share of the last designs that are above the visible mean.",
    "designs above the mean",
    GOOD,
    unit=SHARE,
    key="promising",
    heading="above the mean",
    leaderboard="Above the mean",
    standings=True,
    contrast="above the mean",
)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a curve and its score."""
    monkeypatch.setattr(scores, "CURVES", (*scores.CURVES, GOOD))
    monkeypatch.setattr(scores, "SCORES", (*scores.SCORES, GOOD_FINAL))


@pytest.mark.usefixtures("declared")
@pytest.mark.slow
def test_a_new_score_is_stored_and_shown_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "runs"
    slower = replace(specify_fake(Climb, rate=0.05), method_departures={"rate": "0.05"})
    for spec in (specify_fake(Climb), slower):
        execute(spec, [0, 1, 2], Store(folder))

    rows, points = load(folder), load_curves(folder)
    last = points.groupby(["digest", "seed"])["promising"].last()
    stored = rows.set_index(["digest", "seed"])["promising_final"]
    assert stored.between(0, 1).all()
    assert stored.sort_index().tolist() == last.sort_index().tolist()

    report = tmp_path / "report"
    write_report(folder, report, formats="svg")
    tables = report / "tables"
    assert "promising_mean" in (tables / "scores.csv").read_text().splitlines()[0].split(",")
    assert "| above the mean |" in (tables / "scores.md").read_text()
    assert GOOD_FINAL.name in (tables / "controls.csv").read_text()
    assert "| above the mean, difference |" in (tables / "controls.md").read_text()
    page = (report / "index.html").read_text()
    assert "Above the mean" in open_page(report / "index.html").text
    packed = re.search(r'id="run-data"[^>]*>([^<]+)<', page)
    assert packed is not None
    data = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    shown = next(one for one in data["scores"] if one[0] == GOOD_FINAL.name)
    assert shown[1:] == ["Designs above the mean", "share", GOOD_FINAL.meaning]
    assert sorted(data["runs"]["scores"][GOOD_FINAL.name]) == pytest.approx(
        sorted(stored), abs=1e-3
    )
    assert [GOOD.name, GOOD.line] in data["shares"]
    assert len(data["curves"][GOOD.name]) == len(points)

    assert compare([str(folder), str(folder), "--score", GOOD_FINAL.name, "--all"]) == 0
    assert f"Differences in {GOOD_FINAL.name}" in capsys.readouterr().out
    test = {"kind": "level", "task": "sum", "n": 9, "d": 2, "of": "climb", "above": 0.5}
    claim = {"id": "good", "text": "Most are good.", "test": test | {"score": GOOD_FINAL.name}}
    assert parse_claims({"claims": [claim]}).claims[0].question.score == GOOD_FINAL.name


@pytest.mark.usefixtures("declared")
def test_a_new_column_of_the_leaderboard_is_in_all_its_files() -> None:
    data = data_of([run_row(m, promising_final=0.25) for m in ("fgm", "naive")])
    table = describe_leaderboard(data.board, data.scores)
    files = table.files()
    heading = GOOD_FINAL.leaderboard
    for group in table.groups:
        assert heading in [column.heading for column in group.columns]
        assert f"& {heading} &" in files[f"{group.stem}.tex"]
    assert f"| {heading} |" in files["leaderboard.md"]
    assert "| 25.00 |" in files["leaderboard.md"]
    assert "promising_mean" in files["leaderboard.csv"].splitlines()[0].split(",")


@pytest.mark.parametrize("declared", [scores.CURVES, EVERY], ids=["curves", "scores"])
def test_names_are_unique_and_meanings_are_sentences(declared: Sequence[Curve | Score]) -> None:
    names = [one.name for one in declared]
    assert len(set(names)) == len(names)
    for one in declared:
        assert re.fullmatch(r"[A-Z].*\.", one.meaning), one.name


def test_the_headings_and_columns_of_a_table_are_unique() -> None:
    prefixes = [score.prefix for score in scores.tabled_scores()]
    headings = [heading for score in scores.tabled_scores() for heading in score.headings]
    assert len(set(prefixes)) == len(prefixes)
    assert len(set(headings)) == len(headings)


def ending_at(values: Sequence[float] = (), **changes: Any) -> RunEnd:
    """Return the end of a run with these last designs, and easy curves and landmarks."""
    ending = RunEnd(
        {name: np.array([9.0, 1.0, 3.0]) for name in scores.curve_names()},
        optimum=6.0,
        regret_scale=2.0,
        worst=-1.0,
        best=3.0,
        last=LastDesigns(np.asarray(values, dtype=float), low=-2.0, high=8.0),
    )
    return replace(ending, **changes)


def test_scores_are_taken_at_the_end_at_the_best_iteration_or_from_the_optimum() -> None:
    found = scores.compute_scores(ending_at())
    assert found["final_model"] == found["final_oracle"] == 3.0
    assert found["best_oracle"] == 9.0
    assert found["regret_final"] == 2.0 * (6.0 - 3.0)
    assert found["optimum_share"] == pytest.approx(0.5)
    for optimum in (np.nan, -1.0):
        assert np.isnan(scores.compute_scores(ending_at(optimum=optimum))["optimum_share"])


def test_percentiles_are_of_the_designs_ranked_first_and_normalised_by_all_data() -> None:
    ending = ending_at([0.0, 1.0, 3.0])
    found = scores.compute_scores(ending)
    assert (found["top_p100"], found["top_p50"]) == (3.0, 1.0)
    assert found["normalised_p100"] == pytest.approx(0.5)
    assert np.isnan(scores.compute_scores(ending_at())["top_p50"])
    unknown = scores.compute_scores(replace(ending, last=LastDesigns(np.ones(3))))
    assert np.isnan(unknown["normalised_p50"])


def test_stability_is_measured_above_the_worst_visible_value_and_after_the_start() -> None:
    def indicators(values: Sequence[float]) -> list[float]:
        found = scores.compute_scores(ending_at(curves=ending_at().curves | {
            "value_model": np.array(values)}))  # fmt: skip
        return [found[name] for name in ("soo_oi", "soo_si", "soo_so")]

    assert indicators([9.0, 1.0, 3.0]) == pytest.approx([3 / 4, 3 / 4, 3 / 4])
    assert indicators([1.0])[0] == pytest.approx(0.5)
    assert np.isnan(indicators([-1.0, -1.0])[1])


def test_scores_of_other_benchmarks_have_their_own_table() -> None:
    ours, theirs = ({s.name for s in scores.tabled_scores(t)} for t in ("scores", "protocol"))
    assert {"soo_oi", "normalised_p50", "optimum_share"} < theirs
    assert not ours & theirs


def test_a_batch_has_its_best_its_mean_and_its_distances() -> None:
    batch = np.array([3.0, 5.0, 1.0])
    spread = Spread(off_surface=7.0, batch_least=0.1, batch_mean=0.4)
    found = scores.compute_scores(ending_at(last=LastDesigns(batch, batch, spread=spread)))
    names = ("batch_best", "batch_value", "batch_least_distance", "batch_distance")
    assert [found[name] for name in names] == [5.0, 3.0, 0.1, 0.4]
    assert found["off_surface_ratio"] == 7.0
    unknown = scores.compute_scores(ending_at())
    assert all(np.isnan(unknown[name]) for name in (*names, "off_surface_ratio"))


def test_a_score_that_is_not_stored_must_be_the_end_of_a_curve() -> None:
    with pytest.raises(ValueError, match="must be stored"):
        Score("peak", "A peak.", "peak", GOOD, lambda _: 0.0, stored=False)


def test_no_other_module_contains_the_name_of_a_score() -> None:
    names = [score.name for score in scores.SCORES if "_" in score.name]
    found = re.compile("|".join(rf"\b{name}\b" for name in names))
    readers = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "ddobench").rglob("*"))
        if path.suffix in (".py", ".html", ".js", ".css")
        and not any(parent.is_symlink() for parent in path.parents)
        and path.parent.name not in ("parts", "propose")  # diagnostics, which may have such names
        and found.search(path.read_text())
    ]
    assert readers == ["ddobench/scores.py"]

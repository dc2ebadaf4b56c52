"""Promises of the declared scores: one declaration is all that a new one takes."""

import base64
import gzip
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ddobench import scores
from ddobench.compare.__main__ import main as compare
from ddobench.judging import Ending, LastDesigns
from ddobench.report.claims import parse_claims
from ddobench.report.tables.scores import describe_leaderboard
from ddobench.report.writer import write_report
from ddobench.runner.execute import execute
from ddobench.scores import (
    SHARE,
    Curve,
    Largest,
    Last,
    OfLastDesigns,
    OfStability,
    Score,
    ShareOfOptimum,
    Shortfall,
    Tabled,
)
from ddobench.store.runs import Store, load, load_curves
from tests.support.fakes import Climb, specify_fake
from tests.support.pages import open_page
from tests.support.synthetic_runs import evidence_of, run_row

ROOT = Path(__file__).parent.parent
EVERY = (*scores.LANDMARKS, *scores.SCORES, *scores.COSTS)
GOOD = Curve(
    name="promising",
    meaning="The share of the designs above the visible mean.",
    unit=SHARE,
    compute=lambda run: (run.punished > 0).mean(axis=1),
    line="above the mean",
)
GOOD_FINAL = Score(
    name="promising_final",
    meaning="The share of the last designs that are above the visible mean.",
    unit=SHARE,
    better="higher",
    lines=("designs above", "the mean"),
    take=Last(GOOD.name),
    table=Tabled("promising", {"above the mean": "estimate"}),
    board={"Above the mean": "estimate"},
    standings=True,
    contrast="above the mean",
    page="Designs above the mean at the end",
    claims=True,
    compare=True,
)


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Declare a made-up curve and its score, and nothing else."""
    monkeypatch.setattr(scores, "CURVES", (*scores.CURVES, GOOD))
    monkeypatch.setattr(scores, "SCORES", (*scores.SCORES, GOOD_FINAL))


@pytest.mark.usefixtures("declared")
@pytest.mark.slow
def test_a_new_score_arrives_everywhere_by_its_declaration_alone(
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
    write_report(folder, report)
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
    label, unit, meaning = next(told[1:] for told in data["scores"] if told[0] == GOOD_FINAL.name)
    assert (label, unit, meaning) == (GOOD_FINAL.page, "share", GOOD_FINAL.meaning)
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
def test_a_new_column_of_the_leaderboard_is_in_all_of_its_files() -> None:
    data = evidence_of([run_row(m, promising_final=0.25) for m in ("fgm", "naive")])
    table = describe_leaderboard(data.board, data.scores)
    files = table.files()
    (heading,) = GOOD_FINAL.board
    for group in table.groups:
        assert heading in [column.heading for column in group.columns]
        assert f"& {heading} &" in files[f"{group.stem}.tex"]
    assert f"| {heading} |" in files["leaderboard.md"]
    assert "| 25.00 |" in files["leaderboard.md"]
    assert "promising_mean" in files["leaderboard.csv"].splitlines()[0].split(",")


@pytest.mark.parametrize("declared", [scores.CURVES, EVERY], ids=["curves", "scores"])
def test_every_number_of_a_run_has_a_name_of_its_own_and_a_sentence(
    declared: Sequence[Curve | Score],
) -> None:
    names = [one.name for one in declared]
    assert len(set(names)) == len(names)
    for one in declared:
        assert re.fullmatch(r"[A-Z].*\.", one.meaning), one.name


def test_every_score_of_a_curve_names_one_that_is_declared() -> None:
    for score in scores.SCORES:
        assert score.take is not None
        if hasattr(score.take, "curve"):
            assert score.take.curve in scores.curve_names()


def test_the_headings_of_a_table_differ_from_each_other() -> None:
    keys = [table.key for _, table in scores.tabled_scores()]
    headings = [heading for _, table in scores.tabled_scores() for heading in table.cells]
    assert len(set(keys)) == len(keys)
    assert len(set(headings)) == len(headings)


def test_scores_are_taken_at_the_end_at_the_best_iteration_or_from_the_optimum() -> None:
    ending = Ending({"a": np.array([1.0, 5.0, 3.0])}, optimum=10.0, regret_scale=2.0)
    assert Last("a")(ending) == 3.0
    assert Largest("a")(ending) == 5.0
    assert Shortfall("a")(ending) == 14.0


def ending_at(values: Sequence[float]) -> Ending:
    last = LastDesigns(np.asarray(values), low=-2.0, high=8.0)
    curves = {"a": np.array([9.0, 1.0, 3.0])}
    return Ending(curves, optimum=6.0, regret_scale=1.0, worst=-1.0, best=3.0, last=last)


def test_percentiles_are_of_the_designs_ranked_first_and_normalised_by_all_data() -> None:
    ending = ending_at([0.0, 1.0, 3.0])
    assert OfLastDesigns(100)(ending) == 3.0
    assert OfLastDesigns(50)(ending) == 1.0
    assert OfLastDesigns(100, normalised=True)(ending) == pytest.approx(0.5)
    assert np.isnan(OfLastDesigns(50)(ending_at([])))
    unknown = replace(ending, last=LastDesigns(np.ones(3)))
    assert np.isnan(OfLastDesigns(50, normalised=True)(unknown))


def test_stability_is_measured_above_the_worst_visible_value_and_after_the_start() -> None:
    ending = ending_at([1.0])
    gained, steady = 3.0 / 4.0, 3.0 / 4.0  # the mean of 2 and 4, by 3 - (-1), and by 4
    assert OfStability("a", "oi")(ending) == pytest.approx(gained)
    assert OfStability("a", "si")(ending) == pytest.approx(steady)
    assert OfStability("a", "so")(ending) == pytest.approx(0.75)
    alone = replace(ending, curves={"a": np.array([1.0])})
    assert OfStability("a", "oi")(alone) == pytest.approx(0.5)
    hopeless = replace(ending, curves={"a": np.array([-1.0, -1.0])})
    assert np.isnan(OfStability("a", "si")(hopeless))


def test_the_share_of_the_optimum_is_that_of_the_standings() -> None:
    ending = ending_at([1.0])
    assert ShareOfOptimum("a")(ending) == pytest.approx(0.5)
    for optimum in (np.nan, -1.0):
        assert np.isnan(ShareOfOptimum("a")(replace(ending, optimum=optimum)))


def test_figures_of_the_field_are_in_a_table_of_their_own() -> None:
    ours, theirs = (
        {score.name for score, _ in scores.tabled_scores(sheet)} for sheet in ("scores", "protocol")
    )
    assert theirs == {score.name for score in scores.PROTOCOL}
    assert not ours & theirs
    assert all(score.rare for score in scores.PROTOCOL)  # runs stored before do not have them


def test_a_score_that_is_not_stored_can_only_be_the_end_of_a_curve() -> None:
    with pytest.raises(ValueError, match="must be stored"):
        Score("peak", "A peak.", SHARE, "higher", take=Largest("invalid"), stored=False)


def test_no_other_module_spells_the_name_of_a_score() -> None:
    taken = [score for score in scores.SCORES if "_" in score.name]
    spelled = re.compile("|".join(rf"\b{score.name}\b" for score in taken))
    readers = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "ddobench").rglob("*"))
        if path.suffix in (".py", ".html", ".js", ".css")
        and not any(parent.is_symlink() for parent in path.parents)
        and spelled.search(path.read_text())
    ]
    assert readers == ["ddobench/scores.py"]

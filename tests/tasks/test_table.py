"""A file of rows as a task: the best are hidden, and new designs have no value."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import ddobench
from ddobench.cli.hooks import specify_points
from ddobench.errors import UsageError
from ddobench.report import write_report
from ddobench.tasks.table import Table, TableProblem
from tests.support.pages import open_page

ROWS = 50


def table() -> pd.DataFrame:
    """Return rows whose value is a plane, so that a linear model predicts all of it."""
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=["a", "b", "c"])
    return x.assign(strength=2 * x["a"] - x["b"] + 0.5 * x["c"])


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return where the rows are."""
    table().to_csv(tmp_path / "mine.csv", index=False)
    return str(tmp_path / "mine.csv")


def build(file: str, /, **settings: Any) -> Table:
    """Build the task; 40 rows are visible by default."""
    asked: dict[str, Any] = {"file": file, "target": "strength", "d": 3, "n": 40} | settings
    return Table(**asked)


def problem_of(task: Table) -> TableProblem:
    """Draw two seeds."""
    drawn = task.problem((0, 1))
    assert isinstance(drawn, TableProblem)
    return drawn


def plane(designs: pd.DataFrame) -> Any:
    """Return the true values of designs: a user's oracle."""
    return (2 * designs["a"] - designs["b"] + 0.5 * designs["c"]).to_numpy()


def test_the_best_rows_are_hidden_and_the_others_shown(file: str) -> None:
    drawn = problem_of(build(file))
    y = np.sort(table()["strength"].to_numpy())
    assert drawn.held_out is not None
    for seed in (0, 1):
        np.testing.assert_array_equal(drawn.data.y[seed].sort().values, y[:40])
        np.testing.assert_array_equal(drawn.held_out.y[seed].sort().values, y[40:])
    assert not drawn.measures


def test_the_smallest_are_hidden_if_smaller_is_better(file: str) -> None:
    drawn = problem_of(build(file, minimise=True))
    y = np.sort(table()["strength"].to_numpy())
    assert drawn.held_out is not None
    np.testing.assert_array_equal(drawn.held_out.y[0].sort().values, -y[:10][::-1])


def test_fewer_rows_are_a_choice_of_each_seed(file: str) -> None:
    drawn = problem_of(build(file, n=7))
    assert drawn.data.x.shape == (2, 7, 3)
    assert not torch.equal(drawn.data.y[0].sort().values, drawn.data.y[1].sort().values)


def test_without_an_oracle_only_rows_have_values(file: str) -> None:
    drawn = problem_of(build(file))
    designs = drawn.data.x.clone()
    torch.testing.assert_close(drawn.evaluate(designs), drawn.data.y)
    designs[0, 0, 0] += 1e-9
    assert drawn.evaluate(designs).isnan().sum() == 1


@pytest.mark.parametrize("minimise", [False, True])
def test_a_users_oracle_evaluates_new_designs(file: str, minimise: bool) -> None:
    task = build(file, oracle="tests.tasks.test_table:plane", minimise=minimise, hide=100, n=50)
    drawn = problem_of(task)
    assert drawn.measures
    assert drawn.held_out is None
    sign = -1.0 if minimise else 1.0
    x = torch.tensor([[[1.0, 0.0, 2.0]], [[0.0, 1.0, 0.0]]], dtype=torch.float64)
    assert drawn.evaluate(x).tolist() == [[3.0 * sign], [-1.0 * sign]]
    assert "valued by tests.tasks.test_table:plane" in task.describe().text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"d": 4}, r"^d must be 3, the columns of .*mine\.csv, got 4; leave d out$"),
        ({"n": 41}, r"^n must be at most 40, the rows visible, got 41$"),
        ({"hide": 0}, r"^hide must be a percentile above 0 and up to 100, got 0$"),
        ({"hide": 100, "n": 50}, r"^hide=100 hides no row, so that methods cannot be judged; "),
        ({"hide": 1}, r"^hide=1 leaves 1 of 50 rows visible; hide fewer$"),
        ({"target": "speed"}, r"^there is no column 'speed'; the columns are a, b, c, strength$"),
        ({"file": "gone.csv"}, r"^there is no file gone\.csv; "),
        ({"content": "0123"}, r"mine\.csv has changed since this run was planned; start it again$"),
        ({"oracle": "plane"}, r"^oracle must be MODULE:FUNCTION, got 'plane'$"),
        ({"oracle": "no.module:f"}, r"^the oracle no\.module:f cannot be imported: "),
        ({"oracle": "tests.tasks.test_table:none"}, r"^the oracle .*:none cannot be imported: "),
        ({"oracle": "tests.tasks.test_table:ROWS"}, r"^the oracle .*:ROWS must be a function, got"),
    ],
)
def test_invalid_settings_are_refused(
    file: str, settings: Mapping[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        build(file, **settings)


def test_an_oracle_with_the_wrong_number_of_values_is_an_error(
    file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.tasks.test_table.plane", lambda designs: designs.to_numpy())
    drawn = problem_of(build(file, oracle="tests.tasks.test_table:plane"))
    with pytest.raises(
        ValueError, match=re.escape("the oracle must return 40 values, got (40, 3)")
    ):
        drawn.evaluate(drawn.data.x)


def test_a_digest_depends_on_the_content_and_not_on_the_path(file: str, tmp_path: Path) -> None:
    other = tmp_path / "moved" / "same.csv"
    other.parent.mkdir()
    other.write_bytes(Path(file).read_bytes())
    asked = ["task=table", "method=linear", "target=strength"]
    one, same = specify_points([[*asked, f"file={path}"] for path in (file, other)])
    assert (one.digest, one.task_digest) == (same.digest, same.task_digest)
    assert (one.d, one.n) == (3, 40)
    assert set(one.task_departures) == {"file", "content", "target"}
    table().iloc[1:].to_csv(file, index=False)
    (changed,) = specify_points([[*asked, f"file={file}"]])
    assert changed.digest != one.digest


def test_an_error_in_the_file_is_said_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"there is no file gone\.csv; give the path of a table"):
        specify_points([["task=table", "file=gone.csv"]])


@pytest.mark.slow
def test_methods_are_judged_by_the_hidden_rows_also_in_a_report(file: str, tmp_path: Path) -> None:
    runs = ddobench.run(
        ["linear", "naive", "random"], "table", seed="0-2", results_dir=tmp_path / "runs",
        overrides=[f"file={file}", "target=strength", "budget=tiny"],
    ).set_index(["method", "seed"])  # fmt: skip
    assert set(runs["status"]) == {"ok"}
    linear = runs.loc["linear"]
    assert (linear["held_out_rank"] > 0.99).all()
    assert (linear["held_out_error"] < 0.2).all()
    assert runs.loc["naive"]["held_out_rank"].isna().all()
    assert (
        runs[["final_model", "regret_final", "invalid_final", "best_oracle"]].isna().all(axis=None)
    )

    page = open_page(write_report(tmp_path / "runs", tmp_path / "report", formats="svg").page)
    assert "Hidden rows, rank" in page.text
    assert "No new design was measured: ranked by the order of hidden rows" in page.text
    assert "Regret in" not in page.text
    scores = (tmp_path / "report" / "tables" / "scores.md").read_text()
    assert "hidden rows, rank" in scores


def test_the_example_of_the_package_is_the_default() -> None:
    (spec,) = specify_points([["task=table", "method=naive"]])
    assert (spec.d, spec.n, spec.task_departures) == (7, 320, {})
    task, _ = spec.build()
    assert "New designs have no value" in task.describe().text

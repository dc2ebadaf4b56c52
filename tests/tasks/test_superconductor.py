"""SuperConductor: the split of Design-Bench, and an oracle that is fitted again."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ddobench import datasets
from ddobench.contracts import Problem
from ddobench.errors import UsageError
from ddobench.tasks.superconductor import SuperConductor

pytest.importorskip("sklearn")
GIVEN = os.environ.get(datasets.FOLDER, "")  # a folder with the real file


def rows() -> str:
    """Return 60 compositions of three elements; more copper is better."""
    rng = np.random.default_rng(0)
    amounts = rng.integers(0, 5, size=(60, 3)) / 2
    amounts[:, 0] += 0.5
    lines = [f'{h},{o},{cu},{20 * cu + h},"H{h}O{o}Cu{cu}"' for h, o, cu in amounts.tolist()]
    return "\n".join(['"H","O","Cu","critical_temp","material"', *lines, ""])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a small file in the format of the real one."""
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    text = rows()
    (tmp_path / "unique_m.csv").write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    one = replace(datasets.SETS["superconductor"], sha256=digest)
    monkeypatch.setitem(datasets.SETS, "superconductor", one)


def build(**settings: Any) -> SuperConductor:
    """Build the task with a small oracle."""
    return SuperConductor(**{"d": 3, "n": 40, "oracle_rows": 30, **settings})


def evaluate(problem: Problem, *designs: list[float]) -> list[float]:
    """Return the values of designs."""
    return problem.evaluate(torch.tensor([designs], dtype=torch.float64))[0].tolist()


def test_visible_values_are_measured_and_at_most_the_percentile() -> None:
    task = build()
    drawn = task.problem((0, 1))
    assert not drawn.exact
    assert torch.equal(drawn.data.y, 20 * drawn.data.x[..., 2] + drawn.data.x[..., 0])
    assert float(drawn.data.y.max()) <= float(task._measurements().y.quantile(0.8))


def test_the_range_is_of_all_rows_and_the_bound_is_what_a_row_attains() -> None:
    task = build()
    drawn = task.problem((0, 1))
    assert drawn.optimum is None
    assert drawn.lower_bound is not None
    assert drawn.full_range is not None
    y = task._measurements().y
    assert drawn.full_range[1].tolist() == [float(y.min()), float(y.max())]
    attained = drawn.evaluate(task._measurements().x.repeat(2, 1, 1)).max(dim=1)[0]
    assert torch.equal(attained, drawn.lower_bound)


def test_an_oracle_is_determined_by_its_seed_and_its_rows() -> None:
    x = torch.tensor([[[1.0, 1.0, 0.7], [2.0, 0.0, 1.2]]])
    values = [
        build(**settings).problem((7,)).evaluate(x).tolist()
        for settings in ({}, {"n": 20}, {"oracle_seed": 1}, {"oracle_rows": 20})
    ]
    assert values[0] == values[1]
    assert values[2] != values[0] != values[3]


def test_a_composition_needs_an_element_and_no_negative_amount() -> None:
    designs = ([1.0, 0.0, 1.0], [1.0, -0.1, 1.0], [0.0, 0.0, 0.0], [-1.0, -1.0, -1.0])
    strict = evaluate(build().problem((0,)), *designs)
    assert np.isnan(strict).tolist() == [False, True, True, True]
    lenient = evaluate(build(negative="zero").problem((0,)), *designs)
    assert np.isnan(lenient).tolist() == [False, False, True, True]
    assert lenient[0] == lenient[1] == strict[0]


def test_the_largest_amounts_have_a_value() -> None:
    assert np.isfinite(evaluate(build().problem((0,)), [1e300, 0.0, 1.0])).all()


def test_the_description_says_that_the_oracle_is_not_the_published_one() -> None:
    text = build().describe().text
    assert "not that of Design-Bench" in text
    assert "30 rows drawn by seed 0" in text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"oracle_rows": 31}, "task.oracle_rows must be at most 30, half of the rows"),
        ({"oracle_rows": 1}, "task.oracle_rows must be a whole number of at least 2"),
        ({"oracle_seed": -1}, "task.oracle_seed must be a whole number of at least 0"),
        ({"negative": "odd"}, "task.negative must be one of invalid, zero"),
        ({"d": 4}, "d must be 3"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        build(**settings)


@pytest.mark.skipif(not GIVEN, reason="needs the real file")
def test_the_real_split_is_that_of_design_bench(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real file and its hash
    task = SuperConductor(d=86, n=17_014)
    y = task._measurements().y
    best = float(y[task._visible()].max())
    assert best == 74.0
    assert (best - float(y.min())) / float(y.max() - y.min()) == pytest.approx(0.400, abs=5e-4)
    assert 0.88 < task._fit().rank < 0.94  # .9155 is published for Design-Bench's own

"""Measured tables: read, split, and proposals moved to the nearest measured design by the rule."""

import hashlib
import itertools
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from ddobench import datasets
from ddobench.cli.hooks import specify_points
from ddobench.datasets import DataSet, Part
from ddobench.errors import UsageError
from ddobench.tasks.measured import Measured, MeasuredProblem, Measurements, cell_of

GIVEN = os.environ.get(datasets.FOLDER, "")  # a folder with the real files
NUMBERS = "a,b,label,cost\n" + "".join(
    f"{a},{b},n{a},{(a - 3) ** 2 + b}\n" for a, b in itertools.product(range(5), (0.0, 0.5))
)
WORDS = "variant,count,fitness\nAC,1,0.5\nCA,2,2.0\nAA,3,1.0\nNA,4,4.0\n"  # NA is no gap
REAGENTS = "base,solvent,yield\n" + "".join(
    f"{base},{solvent},{3 * i + j}\n"
    for (i, base), (j, solvent) in itertools.product(enumerate("xyz"), enumerate(["p", "None"]))
)
SETTINGS: dict[str, dict[str, Any]] = {
    "numbers": {"target": "cost", "drop": ["label"], "minimise": True, "d": 2, "n": 4},
    "words": {"target": "fitness", "drop": ["count"], "letters": True, "d": 2, "n": 2},
    "reagents": {"target": "yield", "d": 2, "n": 3},
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write and register three small tables, one of each kind."""
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    for name, text in {"numbers": NUMBERS, "words": WORDS, "reagents": REAGENTS}.items():
        (tmp_path / f"{name}.csv").write_text(text)
        digest = hashlib.sha256(text.encode()).hexdigest()
        one = DataSet(name, f"{name}.csv", digest, "MIT", "us", (Part("http://x", None),))
        monkeypatch.setitem(datasets.SETS, name, one)
    return tmp_path


def build(data: str, **settings: Any) -> Measured:
    """Build the task of a small table."""
    return Measured(**{"data": data, **SETTINGS[data], **settings})


def problem_of(data: str, **settings: Any) -> MeasuredProblem:
    """Draw two seeds."""
    drawn = build(data, **settings).problem((0, 1))
    assert isinstance(drawn, MeasuredProblem)
    return drawn


@pytest.mark.parametrize("data", SETTINGS)
def test_visible_designs_have_their_measured_values_and_the_best_are_hidden(data: str) -> None:
    drawn = problem_of(data)
    assert torch.equal(drawn.evaluate(drawn.data.x), drawn.data.y)
    assert drawn.optimum is not None
    assert float(drawn.optimum[0]) == float(drawn.measurements.y.max())
    assert (drawn.data.y <= drawn.measurements.y.quantile(0.5)).all()
    assert all((moved == 0).all() for moved in drawn.measure(drawn.data.x).values())


def test_values_that_should_be_small_are_negated() -> None:
    drawn = problem_of("numbers")
    assert drawn.optimum is not None
    assert drawn.optimum.tolist() == [0.0, 0.0]  # at a = 3, b = 0
    assert float(drawn.evaluate(torch.tensor([[[0.0, 0.5]]] * 2))[0, 0]) == -9.5


def test_numbers_are_moved_to_the_nearest_row_in_standard_deviations() -> None:
    drawn = problem_of("numbers")
    sd = drawn.measurements.x.std(dim=0)
    # b differs by 0.2 of 0.26, a by 0.4 of 1.5: each to its nearest level
    x = torch.tensor([[3.4, 0.2], [1e300, -1e300]], dtype=torch.float64).repeat(2, 1, 1)
    assert drawn.evaluate(x)[0].tolist() == [0.0, -1.0]
    moved = drawn.measure(x)
    assert moved.keys() == {"moved"}
    expected = float((torch.tensor([0.4, 0.2]) / sd).square().sum().sqrt())
    assert float(moved["moved"][0, 0]) == pytest.approx(expected)
    assert torch.isfinite(moved["moved"]).all()


def test_the_nearest_row_is_that_of_a_search_through_all_rows() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 4, dtype=torch.float64, generator=generator)
    table = Measurements.average(x, x.sum(dim=1))
    asked = torch.randn(600, 4, dtype=torch.float64, generator=generator)
    row, distance = table.find_nearest(asked)
    all_distances = ((asked[:, None] - table.x) / x.std(dim=0)).square().sum(dim=2).sqrt()
    least, place = all_distances.min(dim=1)
    assert torch.equal(row, place)
    assert torch.allclose(distance, least)


def test_a_gap_is_moved_to_the_nearest_variant_and_counted() -> None:
    drawn = problem_of("words")  # letters A, C, N and A, C: CC and NC were not measured
    assert drawn.data.space.sizes == (3, 2)
    gaps = torch.tensor([[[1.0, 1.0], [2.0, 1.0], [2.0, 0.0]]] * 2, dtype=torch.float64)
    # CC: AC comes before CA; NC: AC comes before NA
    assert drawn.evaluate(gaps)[0].tolist() == [0.5, 0.5, 4.0]
    assert drawn.measure(gaps)["unknown"][0].tolist() == [1.0, 1.0, 0.0]
    assert drawn.measure(gaps)["moved"][0].tolist() == [1.0, 1.0, 0.0]


def test_wide_gaps_take_the_nearest_variant_by_the_number_of_changes() -> None:
    x = torch.tensor([[0.0, 0.0, 0.0], [1.0, 2.0, 2.0]])
    table = Measurements(x, torch.tensor([1.0, 2.0]), (3, 3, 3))
    states = torch.tensor(list(itertools.product(range(3), repeat=3)), dtype=torch.float64)
    row, distance = table.find_nearest(states)
    changes = (states[:, None] != x).sum(dim=2)  # (27, 2)
    assert torch.equal(distance, changes.min(dim=1)[0].to(torch.float64))
    assert torch.equal(changes.gather(1, row[:, None])[:, 0], changes.min(dim=1)[0])


def test_a_complete_table_of_categories_measures_nothing_further() -> None:
    drawn = problem_of("reagents")
    assert drawn.data.space.sizes == (3, 2)
    assert drawn.measure(drawn.data.x) == {}
    assert sorted(drawn.measurements.y.tolist()) == [0, 1, 3, 4, 6, 7]


def test_repeated_designs_have_the_mean_of_their_values() -> None:
    x = torch.tensor([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0], [1.0, 2.0]])
    table = Measurements.average(x, torch.tensor([1.0, 5.0, 3.0, 5.0]))
    assert table.x.tolist() == [[0.0, 0.0], [1.0, 2.0]]
    assert table.y.tolist() == [5.0, 3.0]
    assert table.repeated == 1
    assert table.spread == pytest.approx(2.0)


def test_the_number_of_a_combination_is_its_place_in_their_order() -> None:
    states = torch.tensor(list(itertools.product(range(3), range(2))))
    assert cell_of(states, (3, 2)).tolist() == list(range(6))


def test_the_description_has_the_facts_of_the_table() -> None:
    text = build("words").describe().text
    assert "2 of 2 visible designs, those up to percentile 50 of the 4 values" in text
    assert "Nobody has measured 2 of the combinations" in text
    assert "the optimum, 4, is the largest" in text


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"d": 3}, "d must be 2, the variables measured, got 3"),
        ({"n": 9}, "n must be at most 6, the rows visible, got 9"),
        ({"target": "price"}, "must have a column 'price', got a, b, label, cost"),
        ({"drop": []}, "all designs numbers or all categories"),
        ({"drop": ["label", "none"]}, "must have a column 'none'"),
        ({"truncate": 100.0}, "task.truncate must be a percentile"),
        ({"data": "nothing"}, "there is no data set 'nothing'"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        Measured(**{"data": "numbers", **SETTINGS["numbers"], **settings})


def test_an_edited_row_is_refused_or_becomes_part_of_the_digest(folder: Path) -> None:
    edited = folder / "edited.csv"
    edited.write_text(NUMBERS.replace("0,0.0,n0,9.0", "0,0.0,n0,8.0"))
    with pytest.raises(UsageError, match=r"edited\.csv is not the published file of numbers"):
        build("numbers", file=str(edited))
    assert "was not verified" in build("numbers", file=str(edited), verify=False).describe().text

    def digest(*words: str) -> str:
        shared = ("task=oer", "method=naive", "task.data=numbers", "d=2", "n=2")
        return specify_points([[*shared, *words]])[0].digest

    given = f"task.file={edited}"
    assert digest(given) == digest()
    assert digest(given, "task.verify=false") != digest()
    before = digest(given, "task.verify=false")
    edited.write_text(NUMBERS)
    assert digest(given, "task.verify=false") != before


REAL = {
    "oer": (2121, 1061, -0.3402), "suzuki": (3696, 1848, 100.0), "buchwald": (3960, 1980, 100.0),
    "gb1": (149_361, 145_627, 8.7620), "superconductor_exact": (15_309, 12_252, 143.0),
}  # fmt: skip


@pytest.mark.skipif(datasets.FOLDER not in os.environ, reason="needs the real files")
@pytest.mark.parametrize("task", REAL)
def test_the_real_tables_are_as_published(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(datasets.FOLDER, GIVEN)
    built = specify_points([[f"task={task}", "method=naive"]])[0].build_task()
    assert isinstance(built, Measured)
    rows, visible, best = REAL[task]
    values = built._measurements().y
    assert (len(values), int(built._visible().sum())) == (rows, visible)
    assert float(values.max()) == pytest.approx(best, abs=5e-5)

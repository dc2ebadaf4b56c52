"""Promises of the RNA task: with ViennaRNA the numbers of FLEXS, and without it with a stand-in."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks import duplexes, rna
from ddobench.tasks.rna import LETTERS, RNA, TARGETS, Binding, RNAProblem, complement

needs_viennarna = pytest.mark.skipif(
    find_spec("RNA") is None, reason="needs ViennaRNA: pip install 'ddobench[rna]'"
)
STAND_IN = '''
"""Energies of a toy: minus the most letters that pair anywhere along the target."""
from types import SimpleNamespace

calls = []

def duplexfold(target, strand):
    calls.append(strand)
    other = strand[::-1].translate(str.maketrans("ACGU", "UGCA"))
    if len(other) > len(target):
        target, other = other, target
    places = range(len(target) - len(other) + 1)
    return SimpleNamespace(energy=-max(
        float(sum(a == b for a, b in zip(target[i:], other))) for i in places))
'''


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Replace ViennaRNA by a toy, here and in other processes, and return it."""
    (tmp_path / "RNA.py").write_text(STAND_IN)
    toy = ModuleType("RNA")
    exec(STAND_IN, vars(toy))
    monkeypatch.setitem(sys.modules, "RNA", toy)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(duplexes, "_known", {})
    monkeypatch.setattr(rna, "PILOT", 50)
    return toy


def problem_of(seeds: tuple[int, ...] = (0, 1), **settings: Any) -> RNAProblem:
    """Draw instances; d is 8 and n is 20 by default."""
    problem = RNA(**{"d": 8, "n": 20, **settings}).problem(seeds)
    assert isinstance(problem, RNAProblem)
    return problem


@pytest.mark.usefixtures("stand_in")
def test_no_optimum_is_known_and_a_piece_of_the_complement_is_a_lower_bound() -> None:
    problem = problem_of()
    assert problem.optimum is None
    assert problem.lower_bound is not None
    piece = torch.tensor([LETTERS.index(letter) for letter in complement(TARGETS[0])[20:28]])
    assert problem.evaluate(piece.expand(2, 1, 8)).flatten().tolist() == [1.0, 1.0]
    assert problem.lower_bound.tolist() == [1.0, 1.0]
    assert "at least 1.000" in RNA(d=8, n=20).describe().text


@pytest.mark.usefixtures("stand_in")
def test_strands_are_uniform_and_their_values_are_true() -> None:
    problem = problem_of(n=250)
    assert problem.data.space.sizes == (4,) * 8
    for state in range(4):
        assert 0.22 < float((problem.data.x == state).double().mean()) < 0.28
    assert torch.equal(problem.evaluate(problem.data.x), problem.data.y)
    assert problem.evaluate(problem.data.x[:, :0]).shape == (2, 0)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("truncate", [None, 50.0])
def test_fewer_rows_are_the_first_of_more_rows(truncate: float | None) -> None:
    few = problem_of(n=10, truncate=truncate).data
    many = problem_of(n=80, truncate=truncate).data
    assert torch.equal(few.x, many.x[:, :10])
    assert torch.equal(few.y, many.y[:, :10])


def test_an_energy_is_computed_once(stand_in: ModuleType) -> None:
    first = duplexes.find_energies("ACGUACGU", ["ACG", "CCC", "ACG"], 1)
    assert stand_in.calls == ["ACG", "CCC"]
    assert duplexes.find_energies("ACGUACGU", ["CCC", "ACG"], 1) == [first[1], first[0]]
    assert stand_in.calls == ["ACG", "CCC"]


@pytest.mark.slow
def test_several_processes_find_what_one_finds(
    stand_in: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    strands = [f"{a}{b}{c}GAU" for a in LETTERS for b in LETTERS for c in LETTERS]
    alone = duplexes.find_energies("ACGUACGUAA", strands, 1)
    duplexes._known.clear()
    monkeypatch.setattr(duplexes, "MANY", 10)
    asked = len(stand_in.calls)
    assert duplexes.find_energies("ACGUACGUAA", strands, 3) == alone
    assert len(stand_in.calls) == asked  # others were


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
def test_a_failed_process_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "RNA.py").write_text("raise SystemExit(3)")
    monkeypatch.setattr(duplexes, "MANY", 1)
    with pytest.raises(RuntimeError, match=r"^a process that computes energies of duplexes failed"):
        duplexes.find_energies("ACGU", ["ACG", "CCC"], 2)


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"d": 4}, "d must be a whole number of at least 5, got 4; shorter strands hardly bind"),
        ({"d": 101}, "d must be at most 100, the letters of a target, got 101"),
        ({"target": 5}, "task.target must be from 1 to 4, got 5"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def test_the_complement_is_read_backwards() -> None:
    assert complement("AACGU") == "ACGUU"
    assert all(len(target) == 100 and set(target) == set(LETTERS) for target in TARGETS)


@needs_viennarna
@pytest.mark.parametrize(("d", "bound"), [(14, 1.055), (50, 1.088)])
def test_the_lower_bound_is_that_of_the_energy_model(d: int, bound: float) -> None:
    binding = Binding(TARGETS[0])
    best = float(binding.of_strands(binding.complements(d), d).max())
    assert best == pytest.approx(bound, abs=1e-3)


@needs_viennarna
def test_uniform_strands_bind_as_published() -> None:
    y = problem_of((0,), d=14, n=500).data.y
    assert float(y.mean()) == pytest.approx(0.30, abs=0.03)
    assert 0.55 < float(y.max()) < 0.95

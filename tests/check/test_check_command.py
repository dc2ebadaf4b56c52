"""`python -m ddobench.check` lists the promises that a plug-in breaks, one line each."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddobench.check.__main__ import main
from tests.support.processes import PATIENCE

ONE_SEED = """
from dataclasses import dataclass
from ddobench.contracts import OneSeedMethod

@dataclass(kw_only=True)
class Mine(OneSeedMethod):
    step: float = 0.1

    def fit_one(self, x, y, space, rng):
        self.best = x[y.argmax()]

    def propose_one(self, starts, rng):
        yield starts
        yield starts + self.step * (self.best - starts)
"""
LATENT = """
from dataclasses import dataclass
from typing import ClassVar
from ddobench.parts.latents import Codes, Identity

@dataclass(kw_only=True)
class Halved(Identity):
    name: ClassVar[str] = "halved"

    def encode(self, x):
        return Codes(super().encode(x).mean / 2)

    def decode(self, z):
        return super().decode(2 * z)
"""
TASK = """
from dataclasses import dataclass
import torch
from ddobench.contracts import Dataset, Description, Problem, Space, Task

class Valley(Problem):
    def _evaluate(self, x):
        return -x.square().sum(dim=-1)

@dataclass(frozen=True, kw_only=True)
class Mine(Task):
    optimum: float = 0.0

    def describe(self):
        return Description("valley", "f(x) = -x^2", "a task of my own")

    def _draw(self, rng):
        x = rng.child("designs").normal(self.n, self.d, dtype=torch.float64)
        best = torch.full((len(rng.seeds),), self.optimum, dtype=torch.float64)
        data = Dataset(x=x, y=-x.square().sum(dim=-1), space=Space(self.d))
        return Valley(data=data, optimum=best, graphs=None)
"""
YAML = {
    "method/mine.yaml": "_target_: plugin_one_seed.Mine\nstep: 0.1\n",
    "latent/halved.yaml": "# Half of the designs.\n_target_: plugin_latent.Halved\n",
    "task/mine.yaml": "# @package _global_\n# Mine.\nd: 3\nn: 50\ntask:\n"
    "  _target_: plugin_task.Mine\n  d: ${d}\n  n: ${n}\n  optimum: 0.0\n",
}
CODE = {"plugin_one_seed.py": ONE_SEED, "plugin_latent.py": LATENT, "plugin_task.py": TASK}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return the folder of a plug-in with a method, a part and a task."""
    monkeypatch.setenv("DDOBENCH_CONFIG_DIR", "to be restored")
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("DDOBENCH_CONFIG_DIR")
    for name, text in {**YAML, **CODE}.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    yield tmp_path
    for name in CODE:
        sys.modules.pop(name.removesuffix(".py"), None)


def check(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, list[str]]:
    """Run the command line and return its exit code and what it printed."""
    code = main([str(word) for word in words])
    return code, capsys.readouterr().out.splitlines()


def test_a_method_is_checked_on_every_task(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(capsys, "method=mine", "--config-dir", folder)
    assert code == 0
    assert "mine on quadratic d=7 n=60: 8 kept" in lines
    assert "mine on toy3d d=3 n=60: 8 kept" in lines  # at the size of its own file
    assert lines[-1] == f"all {8 * (len(lines) - 1)} promises are kept"


def test_a_part_is_checked_in_a_method(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("method=ga", "latent=halved", "task=chain", "search.rate=0.02")
    code, lines = check(capsys, *words, "--config-dir", folder)
    title = "ga on chain d=7 n=60 latent=halved search.rate=0.02"
    assert (code, lines) == (0, [f"{title}: 8 kept", "all 8 promises are kept"])


def test_an_exception_in_a_part_is_reported_with_its_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "plugin_latent.py").write_text(LATENT.replace("mean / 2", "middle"))
    code, lines = check(capsys, "method=ga", "latent=halved", "task=chain", "--config-dir", folder)
    assert code == 1
    assert lines[0] == "ga on chain d=7 n=60 latent=halved: 1 broken, 7 not checked"
    assert "'Codes' object has no attribute 'middle' (at " in lines[1]
    assert "plugin_latent.py:11); fix: " in lines[1]


def test_a_task_is_checked_by_itself_and_with_methods(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = check(capsys, "task=mine", "--config-dir", folder)
    assert code == 0
    assert lines == [
        "task mine d=7 n=60: 19 kept", "random on mine d=7 n=60: 2 kept",
        "ga on mine d=7 n=60: 2 kept", "all 23 promises are kept",
    ]  # fmt: skip


def test_a_broken_promise_is_one_line_and_the_exit_code_is_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("task=mine", "task.optimum=-9", "d=2", "--all", "--config-dir", folder)
    code, lines = check(capsys, *words)
    assert code == 1
    assert lines[0] == "task mine d=2 n=60 optimum=-9: 18 kept, 1 broken"
    assert lines[1].startswith("  kept: x is (S, N, d)")
    (line,) = [line for line in lines if line.startswith("  broken: no visible value exceeds")]
    assert "found: seed 0 has a visible value of -" in line
    assert "fix: set optimum to the largest value that any valid design has, or to None" in line


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "give what to check, method=NAME or task=NAME; --help shows examples"),
        (["d=7"], "give what to check"),
        (["method=none"], "there is no method 'none'"),
        (["method=ga", "seed=3"], "a check chooses its own seeds"),
        (["method=ga", "isolate=true"], "a check watches the method in its own process"),
        (["method=ga", "-m"], "a check takes --config-dir, --all and key=value, got '-m'"),
        (["task=quadratic", "d=2"], "d must be a whole number of at least 4"),
        (["method=ga", "task=chain", "search.speed=1"], "there is no key 'search.speed'"),
    ],
)
def test_an_invalid_request_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: list[str], sentence: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(words)
    printed = capsys.readouterr()
    assert printed.err.startswith(f"ddobench: {sentence}")
    assert printed.err.count("\n") == 1
    assert printed.out == ""


def test_help_shows_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "python -m ddobench.check method=NAME" in capsys.readouterr().out


@pytest.mark.slow
def test_the_package_runs_as_a_program_and_writes_nothing(folder: Path) -> None:
    (folder / "plugin_one_seed.py").write_text(ONE_SEED.replace("y.argmax()", "y.nonsense()"))
    place = folder / "here"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "ddobench.check", "method=mine", "task=quadratic", "--config-dir",
         str(folder)],
        cwd=place, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "AttributeError: 'Tensor' object has no attribute 'nonsense'" in done.stdout
    assert "plugin_one_seed.py:10)" in done.stdout
    assert "7 not checked" in done.stdout
    assert list(place.iterdir()) == []
    assert done.stderr == ""

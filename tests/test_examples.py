"""Every example runs as it is, and is shown on a page."""

import re
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ddobench
from ddobench.check.__main__ import main as check
from ddobench.cli.main import use_plugins
from ddobench.report import write_report

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
FOLDERS = sorted({path.parent.name for path in EXAMPLES.glob("*/*.py")})
PAGES = (ROOT / "docs" / "own_method.md", ROOT / "docs" / "own_task.md")
SHOWN = re.compile(
    r'^\[(\S+)\]\(../examples/\1\):\n\n```(?:python|yaml)\n--8<-- "examples/\1"$', re.MULTILINE
)
BLOCK = re.compile(r"^```python\n(?!--8<--)(.*?)^```$", re.MULTILINE | re.DOTALL)
WORDS = re.compile(r"^python -m ddobench (--config-dir .*)$", re.MULTILINE)

Use = Callable[[str], list[str]]


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Iterator[Use]:
    """Return a function that makes the folder of an example a plug-in."""
    for name in ("DDOBENCH_CONFIG_DIR", "PYTHONPATH"):
        monkeypatch.setenv(name, "to be restored")
        monkeypatch.delenv(name)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the folder is part of the repository

    def use_example(folder: str) -> list[str]:
        words = ["--config-dir", str(EXAMPLES / folder)]
        use_plugins(words)
        return words

    yield use_example
    for path in EXAMPLES.glob("*/*.py"):
        sys.modules.pop(path.stem, None)


def test_every_file_of_an_example_is_on_a_page() -> None:
    files = {
        path.relative_to(EXAMPLES).as_posix()
        for folder in FOLDERS
        for ending in ("py", "yaml")
        for path in (EXAMPLES / folder).rglob(f"*.{ending}")
    }
    assert files == {name for page in PAGES for name in SHOWN.findall(page.read_text())}


@pytest.mark.slow
def test_the_python_on_the_pages_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    others = (ROOT / "docs" / "own_rows.md", ROOT / "docs" / "python.md")
    blocks = [
        block.replace("k=16", 'k=2, method="additive"').replace(  # quicker than auto
            'suite="ddobench-1"', 'suite="ddobench-1-lite", seed=0'
        )
        for page in (ROOT / "README.md", *PAGES, *others)
        for block in BLOCK.findall(page.read_text())
    ]
    assert len(blocks) == 6
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks:
        exec(block, namespace)
    runs = ddobench.load(tmp_path / "results" / "runs")
    assert set(runs["method"]) == {"mine", "RandomForestRegressor", "linear", "naive", "fgm"}
    assert set(runs["status"]) == {"ok"}


@pytest.mark.parametrize(
    "line", [line for page in PAGES for line in WORDS.findall(page.read_text())]
)
def test_a_command_on_a_page_runs(use: Use, tmp_path: Path, line: str) -> None:
    words = shlex.split(line)
    use(words[1])
    keys = dict(word.split("=", 1) for word in words[2:] if word != "-m")
    methods = keys.pop("method").split(",")
    settings: dict[str, Any] = {"budget": "tiny", **keys, "seed": 0}
    runs = ddobench.run(method=methods, results_dir=tmp_path, **settings)
    assert runs["status"].tolist() == ["ok"] * len(methods)


def test_the_example_method_proposes_valid_designs_and_improves_them(
    use: Use, tmp_path: Path
) -> None:
    use("one_seed_method")
    runs = ddobench.run("towards_best", seed="0-4", budget="tiny", results_dir=tmp_path)
    assert (runs["invalid_final"] == 0).all()
    curves = ddobench.load_curves(tmp_path)
    first, last = (curves[curves["iteration"] == i]["value_model"].mean() for i in (0, 1))
    assert last > first


def test_a_task_around_a_simulator_has_values_but_no_regret(use: Use, tmp_path: Path) -> None:
    use("simulator_task")
    (run,) = ddobench.run("naive", "throw", results_dir=tmp_path).to_dict("records")
    assert run["final_model"] > 0
    assert run["regret_final"] != run["regret_final"]  # NaN: the optimum is not known


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        ("one_seed_method", ["method=towards_best", "task=quadratic"]),
        ("stacked_method", ["method=uphill", "task=chain"]),
        ("parts", ["method=inside_trial", "task=chain"]),
        ("known_optimum_task", ["task=rope"]),
        ("simulator_task", ["task=throw"]),
    ],
)
def test_an_example_keeps_every_promise(
    use: Use, folder: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = check([*words, *use(folder)])
    assert code == 0, capsys.readouterr().out


def test_every_example_folder_is_checked() -> None:
    (marked,) = test_an_example_keeps_every_promise.pytestmark  # type: ignore[attr-defined]
    checked = [folder for folder, _ in marked.args[1]]
    assert sorted([*checked, "submission"]) == FOLDERS  # which tests/check examines


@pytest.mark.slow
def test_a_report_shows_a_plug_in_method_with_its_label(use: Use, tmp_path: Path) -> None:
    use("one_seed_method")
    runs = tmp_path / "runs"
    ddobench.run(["towards_best", "naive"], d=6, seed="0-1", budget="tiny", results_dir=runs)
    write_report(runs, tmp_path / "report", formats="svg")
    assert "Towards the best" in (tmp_path / "report" / "index.html").read_text()


def test_a_plug_in_method_can_propose_designs_for_a_table(use: Use) -> None:
    use("one_seed_method")
    rows = ddobench.example_table("chain", d=7, n=60)
    designs = ddobench.propose(rows, "y", method="towards_best", k=5)
    assert len(designs) == 5
    assert set(rows.columns) - {"y"} <= set(designs.columns)

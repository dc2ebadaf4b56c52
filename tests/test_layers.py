"""Who may import whom: the contracts in pyproject.toml hold, and a few things happen only once."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def modules(folder: str) -> list[Path]:
    """Return the Python files of a folder, its packages included, without what links lead to."""
    return sorted(
        path
        for path in (ROOT / folder).rglob("*.py")
        if not any(parent.is_symlink() for parent in path.parents)
    )


def test_the_contracts_about_imports_hold() -> None:
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command as main; main()",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr


@pytest.mark.parametrize("folder", ["ddobench", "tasks", "baselines", "tests", "benchmarks"])
def test_tasks_and_baselines_are_never_import_names_of_the_top_level(folder: str) -> None:
    offenders = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in modules(folder)
        for line in path.read_text().splitlines()
        if line.startswith(("import tasks", "from tasks", "import baselines", "from baselines",
                            "import conf", "from conf", "from ."))
    ]  # fmt: skip
    assert offenders == []


@pytest.mark.parametrize(
    ("word", "owner"),
    [
        ("instantiate(", "ddobench/runner/build.py"),
        (".evaluate(", "ddobench/runner/run.py"),
        ("_raise_if_final(", "ddobench/runner/batches.py"),
        ("pq.ParquetWriter(", "ddobench/store/parquet.py"),
        ("= to_stored(record", "ddobench/store/runs.py"),
    ],
)
def test_what_one_module_does_no_other_does(word: str, owner: str) -> None:
    users = {
        str(path.relative_to(ROOT))
        for folder in ("ddobench", "baselines")
        for path in modules(folder)
        if word in path.read_text() and path.parent.name != "check"  # which tries what they do
    }
    assert users == {owner}

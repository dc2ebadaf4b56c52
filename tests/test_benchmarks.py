"""What `make bench` runs: each starts by itself and needs nothing but the project."""

import ast
import re
import runpy
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"
BENCHMARKS = sorted(FOLDER.glob("*.py"))
each = pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)


def test_there_are_benchmarks() -> None:
    assert BENCHMARKS


@each
def test_a_benchmark_says_how_to_run_it_and_needs_no_argument(path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    (line,) = re.findall(r"^Run: python benchmarks/(.*)$", said, re.MULTILINE)
    assert re.sub(r" \[[^]]*\]", "", line) == path.name  # what is in brackets may be left out


@each
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    assert "main" in runpy.run_path(str(path), run_name="not main")

"""ARCHITECTURE.md describes the code: its layers, packages, parts and files."""

import re
import tomllib
from pathlib import Path

import pytest

from ddobench.parts.__main__ import write_options

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]


def packages() -> list[str]:
    """Return every package that is installed, without the one that holds them all."""
    listed = PROJECT["setuptools"]["packages"]
    return [name.removeprefix("ddobench.") for name in listed if name != "ddobench"]


def test_the_layers_are_those_that_lint_enforces() -> None:
    contracts = PROJECT["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c.get("containers") == ["ddobench"])
    (block,) = re.findall(r"```\n(__main__.*?)\n```", PAGE, re.DOTALL)
    assert block.splitlines() == layers


@pytest.mark.parametrize("package", [name for name in packages() if "." not in name])
def test_every_package_is_in_the_table(package: str) -> None:
    assert re.search(rf"^\| `{package}` \|", PAGE, re.MULTILINE)


def test_every_folder_with_modules_is_one_of_these_packages() -> None:
    found = {path.parent for path in (ROOT / "ddobench").rglob("__init__.py")}
    links = {path for path in (ROOT / "ddobench").iterdir() if path.is_symlink()}
    names = {".".join(path.relative_to(ROOT / "ddobench").parts) for path in found | links}
    assert names - {""} == set(packages())


def test_the_table_of_parts_lists_every_option() -> None:
    assert write_options(PAGE) == PAGE, "write it again: make tables"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+/[\w-]+\.(?:py|yaml|json|md))`", text))
    lost = [name for name in named if "NAME" not in name and not _exists(name)]
    assert lost == []


def _exists(name: str) -> bool:
    """Return whether a file exists in the tree or in the package; capitals stand for any name."""
    if re.search(r"\b[A-Z]{2,}\b", name):
        return True
    return any((folder / name).exists() for folder in (ROOT, ROOT / "ddobench"))

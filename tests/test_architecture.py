"""The picture in ARCHITECTURE.md is that of the code: all packages, and exactly their imports."""

import re
import tomllib
from functools import cache
from pathlib import Path

import grimp
import pytest

from ddobench.parts.__main__ import write_options

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ARROW = re.compile(r"(\w+)(?:\[.*?\])? (-->|-\.->)(?:\|[^|]*\|)? (\w+)(?:\[.*?\])?")


@cache
def diagram() -> str:
    """Return the text of the only diagram."""
    (found,) = re.findall(r"```mermaid\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def arrows(kind: str) -> set[tuple[str, str]]:
    """Return the pairs that the diagram joins by a kind of arrow."""
    return {(start, end) for start, sign, end in ARROW.findall(diagram()) if sign == kind}


def drawn() -> set[str]:
    """Return what the diagram has a box for."""
    return {box for pair in arrows("-->") | arrows("-.->") for box in pair}


@cache
def imports() -> set[tuple[str, str]]:
    """Return who imports whom, each named by its first name below the package."""
    graph = grimp.build_graph("ddobench", cache_dir=None)
    pairs = {
        (importer.split(".")[1], imported.split(".")[1])
        for importer in graph.modules
        for imported in graph.find_modules_directly_imported_by(importer)
        if importer.count(".") and imported.count(".")
    }
    return {(importer, imported) for importer, imported in pairs if importer != imported}


def packages() -> list[str]:
    """Return every package that is installed, without the one that holds them all."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    return [name.removeprefix("ddobench.") for name in listed if name != "ddobench"]


def test_every_line_of_the_diagram_is_understood() -> None:
    first, *rest = diagram().strip().splitlines()
    assert first.startswith("flowchart")
    assert [line for line in rest if not ARROW.fullmatch(line.strip())] == []


@pytest.mark.parametrize("package", packages())
def test_every_package_is_named_in_the_diagram(package: str) -> None:
    assert re.search(rf"\b{package.split('.')[-1]}\b", diagram())


def test_every_folder_with_modules_is_one_of_these_packages() -> None:
    found = {path.parent for path in (ROOT / "ddobench").rglob("__init__.py")}
    links = {path for path in (ROOT / "ddobench").iterdir() if path.is_symlink()}
    names = {".".join(path.relative_to(ROOT / "ddobench").parts) for path in found | links}
    assert names - {""} == set(packages())


def test_every_box_of_the_diagram_exists() -> None:
    for box in drawn():
        package, module = ROOT / "ddobench" / box, ROOT / "ddobench" / f"{box}.py"
        assert (package / "__init__.py").exists() or module.exists(), box


def test_the_arrows_are_the_imports_between_the_boxes() -> None:
    assert arrows("-->") == {pair for pair in imports() if set(pair) <= drawn()}


def test_what_is_loaded_by_name_is_not_imported() -> None:
    assert arrows("-.->") & imports() == set()


def test_the_table_of_parts_lists_every_option() -> None:
    assert write_options(PAGE) == PAGE, "write it again: python -m ddobench.parts"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"])
def test_the_files_that_a_page_names_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+/[\w-]+\.(?:py|yaml|json|md))`", text))
    lost = [name for name in named if "NAME" not in name and not _exists(name)]
    assert lost == []


def _exists(name: str) -> bool:
    """Tell whether a file is there, in the tree or in the package; capitals stand for any name."""
    if re.search(r"\b[A-Z]{2,}\b", name):
        return True
    return any((folder / name).exists() for folder in (ROOT, ROOT / "ddobench"))

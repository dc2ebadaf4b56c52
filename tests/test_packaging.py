"""What is installed is what was written, and nothing takes a name of the top level."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from tests.support.processes import PATIENCE

ROOT = Path(__file__).parent.parent


def project() -> dict[str, Any]:
    """Return what the project says of itself."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    """Return the name of a distribution without its version."""
    return re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")


def imported_by(path: Path) -> set[str]:
    """Return the top-level names that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(str(node.module).split(".")[0])
    return names


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a source distribution, and a wheel from that alone; no network is needed."""
    folder = tmp_path_factory.mktemp("built")
    unwanted = shutil.ignore_patterns(
        "results", "build", "dist", "site", "*.egg-info", "__pycache__"
    )
    hidden = shutil.ignore_patterns(".venv*", ".git", ".*_cache", ".hypothesis")
    shutil.copytree(
        ROOT, folder / "source", symlinks=True,
        ignore=lambda *given: unwanted(*given) | hidden(*given),
    )  # fmt: skip
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder)]
    subprocess.run(
        [*command, str(folder / "source")], check=True, capture_output=True, timeout=PATIENCE
    )
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> list[str]:
    """Return the names in the wheel."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return archive.namelist()


@pytest.mark.slow
def test_the_source_distribution_has_all_that_its_tests_need(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    source = built / "source"
    links = {source / "ddobench" / name for name in ("tasks", "baselines", "conf")}  # by make setup
    lost = [
        str(file.relative_to(source))
        for file in source.rglob("*")
        if file.is_file() and not links & {*file.parents}
        and str(file.relative_to(source)) not in inside
    ]  # fmt: skip
    assert [name for name in lost if "egg-info" not in name] == []


@pytest.mark.slow
def test_the_wheel_takes_no_top_level_name_but_its_own(wheel: list[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"ddobench"}


def test_every_module_every_configuration_and_all_data_are_in_the_wheel(wheel: list[str]) -> None:
    for folder in ("tasks", "baselines", "conf"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in {".py", ".yaml"} or path.parent.name == "data":
                assert f"ddobench/{path.relative_to(ROOT)}" in wheel
    for path in (ROOT / "ddobench").rglob("*"):
        inside_link = any(parent.is_symlink() for parent in path.parents)
        if path.is_file() and not inside_link and "__pycache__" not in path.parts:
            assert str(path.relative_to(ROOT)) in wheel


def test_no_test_and_no_result_is_in_the_wheel(wheel: list[str]) -> None:
    assert not [name for name in wheel if "test" in Path(name).name or "results" in name]


def test_the_three_links_lead_to_the_three_folders() -> None:
    for name in ("tasks", "baselines", "conf"):
        link = ROOT / "ddobench" / name
        assert link.is_symlink()
        assert str(link.readlink()) == f"../{name}"


def test_one_command_installs_every_extra() -> None:
    (listed,) = re.findall(r"^EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    apart = {"test", "docs", "ray"}  # by make setup, make docs and in an environment of its own
    extras = project()["project"]["optional-dependencies"]
    assert set(listed.split(",")) == {*extras} - apart


def test_every_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    (block,) = re.findall(r"^dependencies = \[\n(.+?)^\]", text, re.MULTILINE | re.DOTALL)
    assert [line for line in block.splitlines() if not re.search(r'", # \w+', line)] == []


def test_the_tests_bring_along_what_builds_the_wheel() -> None:
    builds = project()["build-system"]["requires"]
    assert set(builds) <= set(project()["project"]["optional-dependencies"]["test"])


BROUGHT_BY_EXTRAS = {
    "botorch": {"botorch", "gpytorch"},
    "data": {"pooch"},
    "sklearn": {"sklearn"},
    "slurm": {"submitit"},
}  # imported only where they are used


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    folders = ("ddobench", "tasks", "baselines")
    files = {path.resolve() for folder in folders for path in (ROOT / folder).rglob("*.py")}
    imported = {name for path in files for name in imported_by(path)}
    foreign = imported - set(sys.stdlib_module_names) - {"ddobench"}
    for extra, modules in BROUGHT_BY_EXTRAS.items():
        assert modules <= foreign
        assert extra in project()["project"]["optional-dependencies"]
        foreign -= modules
    providers = packages_distributions()
    found = {name_of(distribution) for name in foreign for distribution in providers[name]}
    assert found == {name_of(word) for word in project()["project"]["dependencies"]}


def test_every_dependency_is_pinned_for_set_up() -> None:
    extras = project()["project"]["optional-dependencies"]
    others = [word for extra in extras if extra not in ("docs", "ray") for word in extras[extra]]
    wanted = {name_of(word) for word in [*project()["project"]["dependencies"], *others]}
    assert wanted - {"ddobench", *read_pins("constraints.txt")} == set()


def test_the_environment_of_ray_is_pinned_and_differs_only_where_it_must() -> None:
    project_, extras = project()["project"], project()["project"]["optional-dependencies"]
    usual, ray = (read_pins(name) for name in ("constraints.txt", "constraints-ray.txt"))
    assert {name_of(word) for word in [*project_["dependencies"], *extras["ray"]]} <= {*ray}
    differing = {name for name in usual if name in ray and usual[name] != ray[name]}
    assert differing == {"cloudpickle", "python-dateutil"}


def test_the_lowest_versions_are_those_of_the_ranges() -> None:
    lowest = read_pins("constraints-lowest.txt")
    ranges = {name_of(word): re.findall(r">=([\d.]+)", word)[0]
              for word in project()["project"]["dependencies"]}  # fmt: skip
    del ranges["torch"]  # of which no old build for a CPU is on the index
    for name, version in ranges.items():
        assert Version(lowest[name].split()[0]) == Version(version), name


def read_pins(file: str) -> dict[str, str]:
    """Return the exact version of each package in a file of constraints."""
    lines = [line for line in (ROOT / file).read_text().splitlines() if "==" in line]
    return {name_of(line): line.partition("==")[2] for line in lines}


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path: Path) -> None:
    (tmp_path / "ddobench").mkdir()  # as in the parent folder of a clone
    command = [sys.executable, "-c", "import ddobench; print(ddobench.__file__)"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    found = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip().endswith("__init__.py")

"""The tables, links, commands and versions in the README match the files."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from ddobench.cli.hooks import specify_points
from ddobench.propose import __main__ as propose_command
from ddobench.report.readme_tables import TABLES, find_table

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


@pytest.mark.parametrize("name", TABLES)
def test_a_generated_table_is_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = find_table(name).findall(README.read_text(encoding="utf-8"))
    command = "run python -m ddobench.report.readme_tables"
    assert found == ["\n".join(TABLES[name]()) + "\n"], command


def test_links_to_files_exist() -> None:
    pages = [README, *(ROOT / "examples").glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for page in pages:
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == []


def test_links_to_headings_exist() -> None:
    for link, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", README.read_text(encoding="utf-8")):
        page = ROOT / link if link else README
        headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert place in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]


def test_the_citation_matches_the_files() -> None:
    text = README.read_text(encoding="utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    paper = cited["references"][0]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version["version"] == cited["version"]
    assert f"version = {{{cited['version']}}}" in text
    assert f"title     = {{{paper['title']}}}" in text
    assert f"pages     = {{{paper['start']}--{paper['end']}}}" in text
    assert f"volume    = {{{paper['volume']}}}" in text
    for author in paper["authors"]:
        assert f"{author['family-names']}, {author['given-names']}" in text


def commands(program: str) -> list[list[str]]:
    """Return the words of every line of the pages that runs a program."""
    pages = [README, *(ROOT / "examples").glob("*.md")]
    found = [
        re.findall(rf"^{re.escape(program)} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in pages
    ]
    return [shlex.split(line, comments=True) for lines in found for line in lines]


def test_every_run_and_sweep_on_a_page_can_be_composed() -> None:
    points = []
    for words in commands("python -m ddobench"):
        keys = [word for word in words if "=" in word and not word.startswith("-")]
        if "--config-dir" in words or not keys or "file=table.csv" in keys:
            continue  # run by test_examples, or need a file
        points.append([re.sub(r"=glob\(\*\)|,[^,]+|=0-\d+", "", word) for word in keys])
    points = [[word for word in words if "=" in word] for words in points]
    assert len(points) >= 5
    assert len(specify_points(points)) == len(points)


def test_every_option_of_propose_on_a_page_exists() -> None:
    lines = commands("python -m ddobench.propose")
    assert len(lines) >= 3
    for words in lines:
        options = propose_command._parser().parse_intermixed_args(words)
        assert options.words or options.example
    shown = set(re.findall(r"`(--[a-z-]+)", README.read_text(encoding="utf-8")))
    known = propose_command._parser().format_help()
    assert {one for one in shown if one not in known} <= {"--fail-on-change"}


def test_versions_on_a_page_are_the_pinned_ones() -> None:
    (torch,) = re.findall(r"pip install (torch==[\d.]+)", README.read_text(encoding="utf-8"))
    assert torch in (ROOT / "constraints.txt").read_text().splitlines()

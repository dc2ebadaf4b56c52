"""The tables, links, commands and versions in the README and in docs match the files."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from ddobench import registry, scores
from ddobench.cli.hooks import specify_points
from ddobench.propose import __main__ as propose_command
from ddobench.report.readme_tables import TABLES, find_table
from ddobench.store.runs import load
from tests.support.processes import PATIENCE
from tests.support.records import PUBLISHED, needs_published

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
DOCS = ROOT / "docs"
PAGES = [README, ROOT / "examples" / "README.md", *DOCS.glob("*.md")]


OF_RESULTS = ("short", "cards", "suite", "few", "chains", "tfbind8", "trust", "controls", "paper")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_published if name in OF_RESULTS else ()) for name in TABLES],
)
def test_a_generated_table_is_current(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page, lines = TABLES[name]
    found = find_table(name).findall(page.read_text(encoding="utf-8"))
    command = "run python -m ddobench.report.readme_tables"
    assert found == ["\n".join(lines()) + "\n"], command


def test_the_readme_has_two_screens() -> None:
    assert len(README.read_bytes()) <= 9_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    lost = [link for link in links if not (page.parent / link).exists()]
    if not PUBLISHED.exists():  # in a source distribution
        lost = [link for link in lost if "results/paper/" not in link]
    assert lost == []
    shown = re.findall(r"^--8<-- \"(.+)\"$", text, re.MULTILINE)
    assert [name for name in shown if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_headings_exist(page: Path) -> None:
    for link, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        if "results/paper/" in link and not PUBLISHED.exists():
            continue  # in a source distribution
        headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), re.MULTILINE)
        assert place in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_images_have_alternative_text(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"!\[\s*\]\(.*|<img(?![^>]*alt=\"\w).*", text) == []


def entries_of(page: str, pattern: str) -> list[str]:
    """Return the names that begin the rows or sections of a page."""
    return re.findall(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_method_task_part_and_score_has_its_entry() -> None:
    methods = entries_of("method_cards.md", r"^`method=(\w+)`")
    assert methods == [entry.name for entry in registry.entries("method")]
    tasks = entries_of("tasks.md", r"^`task=(\w+)`")
    assert tasks == [entry.name for entry in registry.entries("task")]
    parts = entries_of("methods.md", r"^\| \[`(\w+=\w+)`\]")
    assert parts == [f"{g}={one.name}" for g in registry.PARTS for one in registry.entries(g)]
    shown = entries_of("glossary.md", r"^\| `(\w+)` \|")
    assert shown == [one.name for one in (*scores.LANDMARKS, *scores.SCORES, *scores.COSTS)]


def test_every_page_is_in_the_navigation_and_in_the_readme() -> None:
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    readme = README.read_text(encoding="utf-8")
    for page in DOCS.glob("*.md"):
        assert f": {page.name}\n" in config
        assert f"docs/{page.name})" in readme


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
    found = [
        re.findall(rf"^{re.escape(program)} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in PAGES
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
    shown = set(re.findall(r"`(--[a-z-]+)", (DOCS / "own_rows.md").read_text(encoding="utf-8")))
    assert len(shown) > 10
    known = propose_command._parser().format_help()
    assert [one for one in shown if one not in known] == []


def test_versions_on_a_page_are_the_pinned_ones() -> None:
    (torch,) = re.findall(r"pip install (torch==[\d.]+)", README.read_text(encoding="utf-8"))
    assert torch in (ROOT / "constraints.txt").read_text().splitlines()


def test_every_target_of_make_on_a_page_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"^(\w+):.*##", makefile, re.MULTILINE)
    pages = [*PAGES, ROOT / "CONTRIBUTING.md"]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    named = {
        name for text in texts for name in re.findall(r"(?:^|`)make (\w+)", text, re.MULTILINE)
    }
    assert {"demo", "test"} <= named
    assert named - set(targets) == set()


QUICK = {"seed=0-49": "seed=0", "seed=0-9": "seed=0", "seed=0-4": "seed=0", "seed=0-2": "seed=0"}


def run_quickly(line: str, folder: Path, *added: str) -> str:
    """Run a line of a page as it stands, but with one seed and more words; return its output."""
    words = [QUICK.get(word, word) for word in shlex.split(line, comments=True)]
    assert words[:2] == ["python", "-m"]
    done = subprocess.run(
        [sys.executable, *words[1:], *added], cwd=folder, capture_output=True, text=True,
        check=False, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, f"{line}: {done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_command_in_the_readme_runs(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    lines = re.findall(r"^python -m ddobench.*$", text, re.MULTILINE)
    assert len(lines) == 7
    for line in lines:
        program, added = line.split()[2], []
        if program == "ddobench" and "--help" not in line:
            added = ["budget=tiny", *([] if "n=" in line else ["n=500"])]
        elif program == "ddobench.report":
            added = ["formats=[svg]", "method=naive"]
        elif "--target" in line:
            added = ["budget=tiny", "--method", "linear", "--no-check"]
        run_quickly(line, tmp_path, *added)
    made = ("results/report/index.html", "proposals.csv", "proposals.html")
    assert [name for name in made if not (tmp_path / name).is_file()] == []
    assert set(load(tmp_path / "results" / "runs")["status"]) == {"ok"}


@pytest.mark.slow
def test_the_commands_of_the_demo_run(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (recipe,) = re.findall(r"^demo: setup ##.*\n((?:\t.+\n)+)", makefile, re.MULTILINE)
    lines = [line.strip().replace("$(BIN)/", "").replace("$(DEMO)", "demo")
             for line in recipe.splitlines()]  # fmt: skip
    assert [line.split()[2] for line in lines] == ["ddobench", "ddobench", "ddobench.report"]
    run_quickly(lines[0], tmp_path, "d=4,8", "budget=tiny")
    run_quickly(re.sub(r"method=\S+", "method=naive,linear", lines[1]), tmp_path)
    run_quickly(lines[2], tmp_path, "formats=[svg]", "task=quadratic")
    assert (tmp_path / "demo" / "report" / "index.html").is_file()
    assert "results/demo/report/index.html" in README.read_text(encoding="utf-8")

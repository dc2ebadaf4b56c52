"""What the README says of tasks, methods, parts and results is what their files say.

Its tables are written again by: python -m tests.test_readme
"""

import functools
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import yaml

from ddobench import registry
from ddobench.cli.composition import specify_points
from ddobench.cli.published_costs import read_published
from ddobench.proposing import command_line
from ddobench.report.tables.formats import MINUS
from ddobench.store.runs import load

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PUBLISHED = ROOT / "results" / "paper"
_QUESTION = re.compile(r"^\| `(\w+)` \| ([^|]+\?) \|", re.MULTILINE)


def tasks() -> Iterator[str]:
    """Yield a line for each task."""
    yield "| task | what it is |\n|---|---|"
    for entry in registry.entries("task"):
        yield f"| `{entry.name}` | {entry.summary} |"


def methods() -> Iterator[str]:
    """Yield a line for each method: those made of parts first."""
    lineups = {entry.name: registry.line_up(entry.name) for entry in registry.entries("method")}
    yield f"| method | what it is | {' | '.join(registry.PARTS)} |"
    yield "|---" * (2 + len(registry.PARTS)) + "|"
    for entry in sorted(registry.entries("method"), key=lambda entry: not lineups[entry.name]):
        parts = lineups[entry.name]
        cells = [parts.get(name, "") for name in registry.PARTS]
        yield f"| `{entry.name}` | {entry.summary} | {' | '.join(cells)} |"


def parts() -> Iterator[str]:
    """Yield a line for each group of parts, with the question that ARCHITECTURE has it answer."""
    questions = dict(_QUESTION.findall((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")))
    yield "| part | question | choices |\n|---|---|---|"
    for group in registry.PARTS:
        choices = ", ".join(f"`{entry.name}`" for entry in registry.entries(group))
        yield f"| `{group}` | {questions[group]} | {choices} |"


@functools.cache
def default_scores() -> pd.DataFrame:
    """Return the published scores at full budget, of plain tasks."""
    scores = pd.read_csv(PUBLISHED / "tables" / "scores.csv", keep_default_na=False)
    return scores[(scores["budget"] == "full") & (scores["task_variant"] == "")]


_SIZES = ((11, 2000), (21, 2000), (41, 10_000))  # of the chain: d and N
_SHOWN_SEEDS = range(10)  # those that all methods have


@functools.cache
def chain_runs() -> pd.DataFrame:
    """Return the published runs on plain chains at full budget."""
    runs = load(PUBLISHED / "records")
    return runs[(runs["task"] == "chain") & (runs["task_variant"] == "")
                & (runs["budget"] == "full") & (runs["status"] == "ok")]  # fmt: skip


def chains() -> Iterator[str]:
    """Yield a line for each method that ran on the chains: its values, invalid designs and cost."""
    runs = chain_runs()
    runs = runs[(runs["method_variant"] == "") & runs["seed"].isin(_SHOWN_SEEDS)]
    wanted = ["final_model", "optimum", "invalid_final"]
    cells = [runs[(runs["d"] == d) & (runs["n"] == n)] for d, n in _SIZES]
    means = [own.groupby("method")[wanted].mean() for own in cells]
    labels = {row["method"]: row["label"] for row in default_scores().to_dict("records")
              if row["task"] == "chain" and row["method_variant"] == ""}  # fmt: skip
    costs = {one.method: one.cpu for one in read_published()
             if (one.task, one.budget, one.d, one.n) == ("chain", "full", *_SIZES[-1])}  # fmt: skip
    heads = [f"d={d}, N={n:,}" if n >= 10_000 else f"d={d}, N={n}" for d, n in _SIZES]
    yield f"| method | {' | '.join(heads)} | invalid there | CPU s a seed |"
    yield "|---" * (3 + len(heads)) + "|"
    optima = [f"{own['optimum'][own['method'] == 'naive'].mean():.2f}" for own in cells]
    yield f"| *optimum, exact* | {' | '.join(optima)} | | |"
    shared = set.intersection(*(set(table.index) for table in means))
    for method in means[-1]["final_model"].sort_values(ascending=False, kind="stable").index:
        if method in shared:
            assert all(own["method"].eq(method).sum() == len(_SHOWN_SEEDS) for own in cells)
            idle = method == "naive"
            name = "*best visible design (doing nothing)*" if idle else labels[method]
            values = [f"{table.loc[method, 'final_model']:.2f}" for table in means]
            invalid = means[-1].loc[method, "invalid_final"]
            cost = f"{costs[method]:.1g}" if costs[method] < 1 else f"{costs[method]:.0f}"
            told = [*values, f"{100 * invalid:.0f} %", "0" if costs[method] < 0.01 else cost]
            yield f"| {name} | {' | '.join(told)} |".replace("| -", f"| {MINUS}")


_FRESH_SEEDS = range(10, 20)  # of the controls
_CONTROLS = {  # what FGM is given, and how that is asked for
    "the codes of a VAE, edges that it finds": "",
    "the same edges among other codes": "graph=permuted",
    "no edges": "graph=empty",
    "normal scores instead of a VAE, edges that it finds": "latent=scores",
    "normal scores, no edges": "latent=scores graph=empty",
    "the hidden coordinates, edges that it finds": "latent=oracle",
    "the hidden coordinates, no edges": "latent=oracle graph=empty",
    "the hidden coordinates and the true edges": "latent=oracle graph=true",
}


def controls() -> Iterator[str]:
    """Yield a line for each control of FGM: its own choice, an oracle's, invalid designs."""
    runs = chain_runs()
    runs = runs[(runs["d"] == 21) & (runs["n"] == 10_000) & runs["seed"].isin(_FRESH_SEEDS)]
    yield "| FGM is given | value | by an oracle's choice | invalid |\n|---|---|---|---|"
    wanted = ["final_model", "best_oracle", "invalid_final"]
    given = {told: ("fgm", variant) for told, variant in _CONTROLS.items()}
    for told, key in ({"*doing nothing*": ("naive", "")} | given).items():
        own = runs[(runs["method"] == key[0]) & (runs["method_variant"] == key[1])]
        assert len(own) == len(_FRESH_SEEDS)
        value, best, invalid = own[wanted].mean()
        line = f"| {told} | {value:.2f} | {best:.2f} | {100 * invalid:.0f} % |"
        yield line.replace("| -", f"| {MINUS}")


_ELSEWHERE = {  # RaM's tables (ICLR 2025), best and median; FGM's are those of the paper's notebook
    "fgm": "0.811, 0.540 (the paper's notebook)", "ga": "0.969, 0.582",
    "ensemble_mean": "0.985, 0.630", "ensemble_min": "0.979, 0.628", "cma": "0.944, 0.539",
    "reinforce": "0.935, 0.466", "ram": "0.981, 0.552", "coms": "0.953, 0.513", "naive": "0.439",
}  # fmt: skip


def tfbind8() -> Iterator[str]:
    """Yield a line for each method on TFBind8: its best and its median design, and elsewhere."""
    yield "| method | best of 128 | median of 128 | published: best, median |\n|---|---|---|---|"
    scores = default_scores()
    own = scores[scores["task"] == "tfbind8"].astype({"normalised_p100": float})
    ordered = own.sort_values("normalised_p100", ascending=False, kind="stable")
    for row in ordered.to_dict("records"):
        name = "*best visible design*" if row["method"] == "naive" else row["label"]
        found = f"{row['normalised_p100']:.3f} | {float(row['normalised_p50']):.3f}"
        yield f"| {name} | {found} | {_ELSEWHERE.get(row['method'], '')} |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "tasks": tasks, "methods": methods, "parts": parts, "chains": chains, "tfbind8": tfbind8,
    "controls": controls,
}  # fmt: skip


def between(name: str) -> re.Pattern[str]:
    """Return what finds the place of a table."""
    start = rf"<!-- {name}: written by python -m tests\.test_readme -->\n"
    return re.compile(rf"(?<={start}).+?(?=<!-- end -->)", re.DOTALL)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_files(name: str) -> None:
    found = between(name).findall(README.read_text(encoding="utf-8"))
    assert found == ["\n".join(TABLES[name]()) + "\n"], "run python -m tests.test_readme"


def test_every_folder_and_file_that_a_page_links_to_exists() -> None:
    pages = [README, *(ROOT / "examples").glob("*.md")]
    for page in pages:
        links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_place_on_a_page_that_is_linked_to_exists() -> None:
    for link, place in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", README.read_text(encoding="utf-8")):
        page = ROOT / link if link else README
        headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert place in [re.sub(r"[^\w -]", "", one).lower().replace(" ", "-") for one in headings]


def test_what_is_cited_is_what_the_files_say() -> None:
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
    """Return the words of every line of the pages that calls a program."""
    pages = [README, *(ROOT / "examples").glob("*.md")]
    found = [
        re.findall(rf"^{re.escape(program)} (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        for page in pages
    ]
    return [shlex.split(line, comments=True) for lines in found for line in lines]


def test_every_run_and_sweep_that_a_page_shows_can_be_composed() -> None:
    points = []
    for words in commands("python -m ddobench"):
        keys = [word for word in words if "=" in word and not word.startswith("-")]
        if "--config-dir" in words or not keys or "file=table.csv" in keys:
            continue  # these are run by test_examples, or want a file
        points.append([re.sub(r"=glob\(\*\)|,[^,]+|=0-\d+", "", word) for word in keys])
    points = [[word for word in words if "=" in word] for words in points]
    assert len(points) >= 5
    assert len(specify_points(points)) == len(points)


def test_every_option_of_propose_that_a_page_shows_is_one() -> None:
    lines = commands("python -m ddobench.propose")
    assert len(lines) >= 3
    for words in lines:
        options = command_line._parser().parse_intermixed_args(words)
        assert options.words or options.example
    shown = set(re.findall(r"`(--[a-z-]+)", README.read_text(encoding="utf-8")))
    known = command_line._parser().format_help()
    assert {one for one in shown if one not in known} <= {"--fail-on-change"}


def test_versions_that_are_told_are_those_that_are_pinned() -> None:
    (torch,) = re.findall(r"pip install (torch==[\d.]+)", README.read_text(encoding="utf-8"))
    assert torch in (ROOT / "constraints.txt").read_text().splitlines()


def write_tables() -> None:
    """Write the tables as the files have them now."""
    text = README.read_text(encoding="utf-8")
    for name, lines in TABLES.items():
        place = between(name).search(text)
        assert place is not None, f"there is no place for {name} in the README"
        text = "".join([text[: place.start()], "\n".join(lines()), "\n", text[place.end() :]])
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()

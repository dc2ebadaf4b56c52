"""Writes the generated tables of README.md and docs: `python -m ddobench.report.readme_tables`.

Tables of tasks, methods and parts come from their files, tables of results from `results/paper`.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench import registry
from ddobench.cli.plan import read_published
from ddobench.datasets import SETS
from ddobench.report.claims import read_claims
from ddobench.report.tables.formatting import DASH, MINUS, escape_markdown, file_stem
from ddobench.report.tables.leaderboard import position_of
from ddobench.report.tables.matrix import BEST_VISIBLE_ROW, name_cell, read_suite
from ddobench.report.tables.select import BY_SIZE, is_best_visible
from ddobench.report.tables.styles import REMARK_SIGN, SIGNS
from ddobench.scores import (
    BEST_ORACLE,
    COSTS,
    HEADLINE,
    INVALID_FINAL,
    LANDMARKS,
    NORMALISED_BEST,
    SCORES,
)
from ddobench.store.runs import load

README, DOCS = Path("README.md"), Path("docs")
PUBLISHED = Path("results/paper")
_QUESTION = re.compile(r"^\| `(\w+)` \| ([^|]+\?) \|", re.MULTILINE)
_MARK = "<!-- {name}: written by python -m ddobench.report.readme_tables -->\n"


_PLAIN = ("identity", "complete")  # parts that do nothing


def tasks() -> Iterator[str]:
    """Yield a line for each task."""
    yield "| task | what it is |\n|---|---|"
    for entry in registry.entries("task"):
        yield f"| [`{entry.name}`](#{entry.name}) | {entry.summary} |"


def task_cards() -> Iterator[str]:
    """Yield a section for each task: what it is, where its values come from, its settings."""
    for entry in registry.entries("task"):
        card = registry.read_choice("task", entry.name)["card"]
        yield f"### {entry.name}\n\n`task={entry.name}`: {entry.summary}.\n"
        source = card.get("source", "computed; MIT")
        if "data" in card:
            found = SETS[card["data"]]
            source = f"{found.citation}; {found.licence}. Fetched by `python -m ddobench.data`"
        if "install" in card:
            source += f". Needs `pip install '{card['install']}'`"
        yield f"Source and licence: {source}.\n"
        yield _settings(f"conf/task/{entry.name}.yaml")


def methods() -> Iterator[str]:
    """Yield a line for each method, those made of parts first."""
    lineups = {entry.name: registry.line_up(entry.name) for entry in registry.entries("method")}
    yield "| method | what it is | parts |\n|---|---|---|"
    for entry in sorted(registry.entries("method"), key=lambda entry: not lineups[entry.name]):
        parts = [f"`{k}={v}`" for k, v in lineups[entry.name].items() if v not in _PLAIN]
        yield f"| `{entry.name}` | {entry.summary} | {' '.join(parts)} |"


def parts() -> Iterator[str]:
    """Yield a table for each group of parts, under its question in ARCHITECTURE.md."""
    questions = dict(_QUESTION.findall(Path("ARCHITECTURE.md").read_text(encoding="utf-8")))
    for group in registry.PARTS:
        yield f"\n### {group}: {questions[group]}\n\n| part | what it is |\n|---|---|"
        for entry in registry.entries(group):
            file = f"conf/{group}/{entry.name}.yaml"
            yield f"| [`{group}={entry.name}`](../{file}) | {entry.summary} |"
    yield ""


def scores() -> Iterator[str]:
    """Yield a line for each score."""
    yield "| score | what it is | unit |\n|---|---|---|"
    for score in (*LANDMARKS, *SCORES, *COSTS):
        unit = score.unit.name if score.unit.name != "regret" else "that of the task"
        yield f"| `{score.name}` | {escape_markdown(score.meaning)} | {unit} |"


def cards() -> Iterator[str]:
    """Yield a section for each method: its paper, how near it is to it, its settings."""
    for entry in registry.entries("method"):
        card = registry.read_choice("method", entry.name)["card"]
        yield f"## {entry.label}\n\n`method={entry.name}`: {entry.summary}.\n"
        said = ["Ours."] if entry.fidelity == "own" else [] if "paper" not in card else [
            f"{_FIDELITY[entry.fidelity]} {escape_markdown(card['paper'])}".strip()
            + (f", [doi:{card['doi']}](https://doi.org/{card['doi']})." if "doi" in card else ".")
        ]  # fmt: skip
        file = f"conf/method/{entry.name}.yaml"
        sources = re.findall(r"see (?:`\w+` in )?(\S+\.py)", Path(file).read_text())[:1]
        said += [f"How it works, and what differs: [{one}](../{one})." for one in sources]
        if said:
            yield f"{' '.join(said)}\n"
        yield f"{where(entry.name)}\n"
        yield _settings(file)


_SIGNS = (*SIGNS.values(), REMARK_SIGN)
_ENOUGH = 5  # ranked methods at a place, for the first of them to be named


@functools.cache
def places() -> pd.DataFrame:
    """Return the published leaderboard of methods in their default settings, each place named.

    Where a suite is published these are its cells, else all published sizes of all tasks.
    """
    board = pd.read_csv(PUBLISHED / "tables" / "leaderboard.csv", keep_default_na=False)
    board = board[board["method_variant"] == ""].assign(place="`" + board["task"] + "`")
    if _published_matrix().exists():
        cells = {size: name_cell(cell) for cell, size in read_suite(SUITE).cells.items()}
        names = pd.Series([*board[BY_SIZE].itertuples(index=False, name=None)], board.index)
        board = board.assign(place=names.map(cells)).dropna(subset="place")
    numbers = ["rank", "gain_low", "gain_high"]
    board[numbers] = board[numbers].apply(pd.to_numeric, errors="coerce")
    return board.assign(
        position=[*map(position_of, board["gain_low"], board["gain_high"])],
        compared=board.groupby(BY_SIZE)["rank"].transform("count") >= _ENOUGH,
    )


def where(method: str) -> str:
    """Say where a method beats the best visible design, where it is worse, and where first."""
    own = places()[places()["method"] == method]
    if is_best_visible(method):
        return "It is what the others are compared with."
    if own.empty:
        return "No published runs in these settings."
    known, compared = own[own["position"] != ""], own[own["compared"]]
    parts = [
        f"{words} {_list_places(pool, chosen)}"
        for words, pool, chosen in (
            ("**Wins** on", known, known["position"] == "above"),
            ("**Loses** on", known, known["position"] == "below"),
            ("**No difference shown** on", known, known["position"] == "open"),
            ("**First** on", compared, compared["rank"] == 1),
        )
        if chosen.any()
    ]
    return f"{'. '.join(parts)}." if parts else "Its published runs are of single seeds."


def _list_places(pool: pd.DataFrame, chosen: pd.Series) -> str:
    """List the places that are chosen, and how many cases of how many if there are several."""
    names = []
    for place, own in pool.groupby("place", sort=True):
        if count := int(chosen[own.index].sum()):
            signs = "".join(s for s in _SIGNS if own["label"].str.contains(s, regex=False).any())
            cases = f" ({count} of {len(own)})" if len(own) > 1 else ""
            names.append(f"{place}{signs}{cases}")
    return ", ".join(names)


SUITE = "ddobench-1"
NO_SUITE = "The runs of all methods on this suite are not published yet."


def _published_matrix() -> Path:
    return PUBLISHED / "tables" / "suite.md"


def cells() -> Iterator[str]:
    """Yield a line for each cell of the suite: task, sizes, settings, and who has such rows."""
    suite, lite = (registry.read_choice("suite", name) for name in (SUITE, f"{SUITE}-lite"))
    yield "| cell | task | d | n | settings | rows with | lite |\n|---|---|---|---|---|---|---|"
    for cell, size in suite["cells"].items():
        settings = ", ".join(f"`{key}={str(value).lower() if value is True else value}`"
                             for key, value in size.items() if key.startswith("task."))  # fmt: skip
        readers = ", ".join(name for name, own in suite["readers"].items() if cell in own)
        shown = f"[`{size['task']}`](tasks.md#{size['task']}) | {size['d']} | {size['n']:,}"
        mark = "\u2713" if cell in lite["cells"] else ""
        yield f"| {name_cell(cell)} | {shown} | {settings} | {readers} | {mark} |"


def suite() -> Iterator[str]:
    """Yield what the published runs of the suite show: answers, and the matrix twice."""
    if not _published_matrix().exists():
        yield NO_SUITE
        return
    yield from _answers()
    picture = f"../{PUBLISHED / 'figures' / file_stem('suite', SUITE)}.svg"
    yield f"\n![Share of the optimum of every method in every cell of {SUITE}]({picture})\n"
    title, _, table = _published_matrix().read_text(encoding="utf-8").partition("\n\n")
    assert title.startswith(f"# {SUITE}")
    yield table.strip()
    shown = set(_suite_cells()["label"]) | {"Naive"}
    lacking = [one.label for one in registry.entries("method") if one.label not in shown]
    if lacking:
        yield f"\nNot run on the suite yet: {', '.join(lacking)}."


_FIRST = 6  # methods that are shown in one cell


def _answers() -> list[str]:
    """Return what the published matrix shows in words, a line each."""
    report = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    return re.findall(r"^- .*", report.partition("\n1. ")[0], re.MULTILINE)


def few() -> Iterator[str]:
    """Yield a line for each of the first methods in the cell with few rows of categories."""
    own = _suite_cells().query("cell == 'quadratic' and state == '' and sign == ''")
    own = own.sort_values("share", ascending=False, kind="stable")
    own = pd.concat([own.head(_FIRST), own[own["method"] == BEST_VISIBLE_ROW]])
    yield "| method | share of the optimum |\n|---|---|"
    for row in own.to_dict("records"):
        yield f"| {row['label']} | {100 * row['share']:.0f} % |"


def _suite_cells() -> pd.DataFrame:
    """Return the published methods and cells of the suite."""
    table = pd.read_csv(PUBLISHED / "tables" / "suite.csv", keep_default_na=False)
    numbers = ["share", "gain_low", "invalid", "seconds"]
    table[numbers] = table[numbers].apply(pd.to_numeric, errors="coerce")
    return table


def _settings(file: str) -> str:
    """Return a block to unfold that shows a file."""
    return f'??? note "Settings"\n\n    ```yaml\n    --8<-- "{file}"\n    ```\n'


_FIDELITY = {
    "faithful": "The method of",
    "adaptation": "An adaptation of",
    "": "",
}


@functools.cache
def default_scores() -> pd.DataFrame:
    """Return the published scores at full budget, of plain tasks."""
    scores = pd.read_csv(PUBLISHED / "tables" / "scores.csv", keep_default_na=False)
    return scores[(scores["budget"] == "full") & (scores["task_variant"] == "")]


_SIZES = ((11, 2000), (21, 2000), (41, 10_000))  # of the chain: d and n
_SHOWN_SEEDS = range(10)  # those that all methods have


@functools.cache
def chain_runs() -> pd.DataFrame:
    """Return the published runs on plain chains at full budget."""
    runs = load(PUBLISHED / "records")
    return runs[(runs["task"] == "chain") & (runs["task_variant"] == "")
                & (runs["budget"] == "full") & (runs["status"] == "ok")]  # fmt: skip


def chains() -> Iterator[str]:
    """Yield a line for each method on the chains: values, invalid designs and cost."""
    runs = chain_runs()
    runs = runs[(runs["method_variant"] == "") & runs["seed"].isin(_SHOWN_SEEDS)]
    # of several versions of a method the first one, which was run at all of these sizes
    runs = runs.sort_values("finished").drop_duplicates(["method", "d", "n", "seed"])
    wanted = [HEADLINE.name, "optimum", INVALID_FINAL.name]
    cells = [runs[(runs["d"] == d) & (runs["n"] == n)] for d, n in _SIZES]
    means = [own.groupby("method")[wanted].mean() for own in cells]
    labels = {row["method"]: row["label"] for row in default_scores().to_dict("records")
              if row["task"] == "chain" and row["method_variant"] == ""}  # fmt: skip
    costs = {one.method: one.cpu for one in read_published()
             if (one.task, one.budget, one.d, one.n) == ("chain", "full", *_SIZES[-1])}  # fmt: skip
    heads = [f"d={d}, n={n:,}" if n >= 10_000 else f"d={d}, n={n}" for d, n in _SIZES]
    yield f"| method | {' | '.join(heads)} | invalid, d=41 | CPU s per seed, d=41 |"
    yield "|---" * (3 + len(heads)) + "|"
    optima = [f"{own['optimum'][own['method'] == 'naive'].mean():.2f}" for own in cells]
    yield f"| *optimum, exact* | {' | '.join(optima)} | | |"
    shared = set.intersection(*(set(table.index) for table in means))
    for method in means[-1][HEADLINE.name].sort_values(ascending=False, kind="stable").index:
        if method in shared:
            assert all(own["method"].eq(method).sum() == len(_SHOWN_SEEDS) for own in cells)
            best_visible = method == "naive"
            name = "*best visible design*" if best_visible else labels[method]
            values = [f"{table.loc[method, HEADLINE.name]:.2f}" for table in means]
            invalid = means[-1].loc[method, INVALID_FINAL.name]
            cost = f"{costs[method]:.1g}" if costs[method] < 1 else f"{costs[method]:.0f}"
            cells_shown = [*values, f"{100 * invalid:.0f} %", "0" if costs[method] < 0.01 else cost]
            yield f"| {name} | {' | '.join(cells_shown)} |".replace("| -", f"| {MINUS}")


_LEADING = 4  # methods that the README shows, by their mean rank
_FAMILIAR = (BEST_VISIBLE_ROW, "FGM", "COMs", "GA")  # shown too


def short() -> Iterator[str]:
    """Yield the first methods of the suite, the best visible design and the familiar methods."""
    text = _published_matrix().read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    ranked = {row[0]: row[2:4] for row in lines[2:] if row[2] != DASH}
    table = _suite_cells()
    yield from (line for line in _answers() if re.match(r"- (The ranking|Best|No ranked)", line))
    yield "\n| method | mean rank | IQM of shares, % | wins | invalid | CPU s per seed |"
    yield "|---|---|---|---|---|---|"
    for place, (label, (rank, middle)) in enumerate(ranked.items()):
        if place >= _LEADING and label not in _FAMILIAR:
            continue
        own = table[(table["label"] == label) & (table["state"] == "")]
        gains = own[own["sign"] == ""]["gain_low"]  # in the cells where it is ranked
        seconds = own["seconds"].mean()
        cells = [f"*{label}*", rank, middle, "", "0 %", "0"] if label == BEST_VISIBLE_ROW else [
            label, rank, middle, f"{(gains > 0).sum()} of {len(gains)}",
            f"{100 * own['invalid'].mean():.0f} %", f"{seconds:.{0 if seconds >= 1 else 1}f}",
        ]  # fmt: skip
        yield f"| {' | '.join(cells)} |"


_FRESH_SEEDS = range(10, 20)  # of the controls
_CONTROLS = {  # what FGM works with, and its variant
    "codes of a VAE, discovered edges": "training=adam",
    "codes of a VAE, the same edges permuted": "graph=permuted training=adam",
    "codes of a VAE, no edges": "graph=empty training=adam",
    "codes of a VAE, discovered edges, ten times further": "training=adam search=ascent",
    "normal scores, discovered edges": "latent=scores training=adam search=ascent",
    "normal scores, no edges": "latent=scores graph=empty training=adam search=ascent",
    "hidden coordinates, discovered edges": "latent=oracle training=adam search=ascent",
    "hidden coordinates, no edges": "latent=oracle graph=empty training=adam search=ascent",
    "hidden coordinates, true edges": "latent=oracle graph=true training=adam search=ascent",
}


def controls() -> Iterator[str]:
    """Yield a line for each control of FGM: value, value by an oracle, invalid designs."""
    runs = chain_runs()
    runs = runs[(runs["d"] == 21) & (runs["n"] == 10_000) & runs["seed"].isin(_FRESH_SEEDS)]
    yield "| FGM works with | value | oracle's best step | invalid |\n|---|---|---|---|"
    wanted = [HEADLINE.name, BEST_ORACLE.name, INVALID_FINAL.name]
    given = {words: ("fgm", variant) for words, variant in _CONTROLS.items()}
    for words, key in ({"*best visible design*": ("naive", "")} | given).items():
        own = runs[(runs["method"] == key[0]) & (runs["method_variant"] == key[1])]
        assert len(own) == len(_FRESH_SEEDS)
        value, best, invalid = own[wanted].mean()
        line = f"| {words} | {value:.2f} | {best:.2f} | {100 * invalid:.0f} % |"
        yield line.replace("| -", f"| {MINUS}")


def tfbind8() -> Iterator[str]:
    """Yield a line for each method on TFBind8: best and median design, here and as published."""
    table = pd.read_csv(PUBLISHED / "tables" / "parity.csv")
    yield "| method | best of 128 | published | median of 128 | published |\n|---|---|---|---|---|"
    for row in table.sort_values("p100_mean", ascending=False, kind="stable").to_dict("records"):
        cells = (
            cell
            for level in ("p100", "p50")
            for cell in (f"{row[f'{level}_mean']:.3f}", _elsewhere(row, level))
        )
        yield f"| {row['name']} | {' | '.join(cells)} |"
    best = default_scores().query("task == 'tfbind8' and method == 'naive'")
    value = f"{float(best[NORMALISED_BEST.name].iloc[0]):.3f}"
    yield f"| *best visible design* | {value} | 0.439 | {value} | |"


def _elsewhere(row: Mapping[Any, Any], level: str) -> str:
    """Return what the authors and the two laboratories report, without repeats."""
    found = (row[f"{level}_{place}"] for place in ("authors", "ram", "root"))
    return ", ".join(dict.fromkeys(f"{value:.3f}" for value in found if value == value))


def trust() -> Iterator[str]:
    """Yield a line per task of `experiment=trust`: gain and promise of auto with intervals."""
    claims = pd.read_csv(PUBLISHED / "tables" / "claims.csv").set_index("id")
    yield "| task | gain over the best visible design | promise minus truth |\n|---|---|---|"
    for name in claims.index[claims.index.str.startswith("auto-trusted-")]:
        task = name.removeprefix("auto-trusted-")
        cells = (
            "{mean:.2f} [{low:.2f}, {high:.2f}]".format(**claims.loc[one]).replace("-", MINUS)
            for one in (name, f"auto-promise-{task}")
        )
        yield f"| {task} | {' | '.join(cells)} |"


_SHORT = {"holds": "\u2713", "fails": "\u2717", "undecided": "?", "not run": "", "": ""}


def paper() -> Iterator[str]:
    """Yield the results of the paper's claims: the conclusion, lists of claims, then readings."""
    readings = pd.read_csv(PUBLISHED / "tables" / "readings.csv", keep_default_na=False)
    claims = pd.read_csv(PUBLISHED / "tables" / "claims.csv", keep_default_na=False)
    texts = claims.drop_duplicates("id").set_index("id")["text"]
    conclusion = claims[claims["id"] == read_claims().conclusion].iloc[0]
    mean, low, high = (
        f"{float(conclusion[name]):.2f}".replace("-", MINUS) for name in ("mean", "low", "high")
    )
    result = {"undecided": "is undecided"}.get(conclusion["verdict"], conclusion["verdict"])
    numbers = f"{mean} [{low}, {high}] sd on {conclusion['seeds']} fresh seeds"
    yield f"**The conclusion:** {conclusion['text']} That {result}: {numbers}."
    for title, together in (
        ("Robust, holding in every reading", "robust"),
        ("Depending on the reading", "depends on the reading"),
        ("Refuted, holding in none", "refuted"),
        ("Undecided", "undecided"),
    ):
        own = readings[readings["together"] == together]
        if len(own):
            yield f"\n**{title}: {len(own)} of {len(readings)} claims**\n"
            yield from (f"- {escape_markdown(texts[name])}" for name in own["id"])
    yield ""
    columns = [str(name) for name in readings if name not in ("id", "together")]
    yield f"| claim | {' | '.join(columns)} | together |"
    yield "|---" * (2 + len(columns)) + "|"
    for row in readings.to_dict("records"):
        cells = [_SHORT[row[name]] for name in columns]
        name = f"[{row['id']}](../results/paper/tables/claims.md)"
        yield f"| {name} | {' | '.join(cells)} | {row['together']} |"


TABLES: dict[str, tuple[Path, Callable[[], Iterator[str]]]] = {  # the page of each, and its lines
    "short": (README, short),
    "tasks": (DOCS / "tasks.md", tasks),
    "task_cards": (DOCS / "tasks.md", task_cards),
    "methods": (DOCS / "methods.md", methods),
    "parts": (DOCS / "methods.md", parts),
    "scores": (DOCS / "glossary.md", scores),
    "cells": (DOCS / "suite.md", cells),
    "suite": (DOCS / "suite.md", suite),
    "few": (DOCS / "suite.md", few),
    "cards": (DOCS / "method_cards.md", cards),
    "chains": (DOCS / "results.md", chains),
    "tfbind8": (DOCS / "results.md", tfbind8),
    "trust": (DOCS / "results.md", trust),
    "controls": (DOCS / "paper.md", controls),
    "paper": (DOCS / "paper.md", paper),
}


def find_table(name: str) -> re.Pattern[str]:
    """Return a pattern that matches a table on its page."""
    return re.compile(rf"(?<={re.escape(_MARK.format(name=name))}).*?(?=<!-- end -->)", re.DOTALL)


def write_tables() -> None:
    """Write all tables into their pages."""
    for name, (page, lines) in TABLES.items():
        text = page.read_text(encoding="utf-8")
        place = find_table(name).search(text)
        if place is None:
            raise SystemExit(f"{page} has no mark for the table {name}")
        text = "".join([text[: place.start()], "\n".join(lines()), "\n", text[place.end() :]])
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_tables()

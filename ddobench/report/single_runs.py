"""The data behind the page's section of single runs, compressed to fit into the page."""

import base64
import gzip
import json
import logging
import re
import shlex
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import yaml
from numpy.typing import ArrayLike

from ddobench.report.data import ReportData
from ddobench.report.tables.formatting import escape_controls, format_ranges, name_runs
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.scores import LANDMARKS, drawn_curves, page_scores
from ddobench.store.checks import printable
from ddobench.variants import split_variant

log = logging.getLogger(__name__)

MOST_RUNS = 20_000
MOST_BYTES = 500_000  # of the packed runs, so that the page opens quickly on a phone
MOST_EDGES = 1_000_000  # of all graphs together; further graphs are not drawn
DIGITS = 4  # significant, of every number in the page
_GROUP = [*BY_SIZE, *SERIES, "digest"]
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_YAML_VALUE = re.compile(r"(?i)true|false|null|[-+.\de]+")


@dataclass(frozen=True)
class SingleRuns:
    """The runs in the page, packed, and those that did not fit."""

    packed: str
    shown: int
    left_out: list[str]  # a line for each configuration


def gather_single_runs(
    data: ReportData, most: int = MOST_RUNS, room: int = MOST_BYTES
) -> SingleRuns:
    """Pack the runs for the page; if they are too many, the first seeds of each configuration."""
    runs = data.runs
    place = runs.groupby("digest").cumcount().to_numpy()
    kept = np.sort(np.argsort(place, kind="stable")[:most])
    packed = pack(collect_runs(data, runs.iloc[kept].reset_index(drop=True)))
    if len(packed) > room and len(kept) > 1:
        fewer = int(0.95 * len(kept) * room / len(packed))  # slightly fewer than would fit
        return gather_single_runs(data, max(1, fewer), room)
    lost = runs.drop(index=runs.index[kept])
    return SingleRuns(
        packed=packed,
        shown=len(kept),
        left_out=[
            f"{name_runs(rows.iloc[0], 'n', 'd')}, {data.style(rows.iloc[0]).label}: "
            f"seeds {format_ranges(rows['seed'])}"
            for _, rows in lost.groupby(_GROUP, sort=True)
        ],
    )


def address_of(row: Mapping[Hashable, Any]) -> str:
    """Return the address of a run in the page, without the hash sign."""
    return f"run={quote(str(row['digest']), safe='')}/{row['seed']}"


def first_addresses(runs: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return the address of the first run of each size and series, a finished one if any."""
    ordered = runs.sort_values("status", key=lambda status: status != "ok", kind="stable")
    first = ordered.drop_duplicates([*BY_SIZE, *SERIES])
    places = first[[*BY_SIZE, *SERIES]].itertuples(index=False, name=None)
    return dict(zip(places, map(address_of, first.to_dict("records")), strict=True))


def pack(content: Mapping[str, Any] | str) -> str:
    """Compress data to text, without control characters; the same data give the same text."""
    text = json.dumps(_escape(content), separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 5, mtime=0)).decode()


def _escape(content: Any) -> Any:
    """Return data with the control characters of every text escaped."""
    if isinstance(content, str):
        return escape_controls(content)
    if isinstance(content, Mapping):
        return {escape_controls(str(name)): _escape(item) for name, item in content.items()}
    return [_escape(item) for item in content] if isinstance(content, list | tuple) else content


def collect_runs(data: ReportData, runs: pd.DataFrame) -> dict[str, Any]:
    """Return the runs by column, with what several of them share stored once."""
    groups = runs.groupby(_GROUP, sort=True)
    heads = [rows.iloc[0] for _, rows in groups]
    graphs, graph_of = collect_graphs(data, runs)
    judged, judged_of = collect_judgements(data, runs)
    origins = _share(_column(runs, "path").map(data.provenance).map(json.dumps, "ignore"))
    origins["texts"] = [_format(json.loads(text)) for text in origins["texts"]]
    shown = [score for score in page_scores() if score.name in runs]
    drawn = drawn_curves()
    return {
        "scores": [[s.name, capitalise(s.label), s.unit.name, s.meaning] for s in shown],
        "lines": [[c.name, c.line, c.predicted] for c in drawn if not c.unit.fraction],
        "shares": [[c.name, c.line] for c in drawn if c.unit.fraction],
        "marks": [[mark.name, mark.label] for mark in LANDMARKS],
        "groups": [_group(head, data) for head in heads],
        "runs": {
            "group": groups.ngroup().tolist(),
            "seed": runs["seed"].tolist(),
            "finished": runs["finished"].tolist(),
            "graph": graph_of,
            "judged": judged_of,
            "status": _share(runs["status"]),
            "reason": _share(runs["reason"]),
            "sweep": _share(runs["command"]),
            "origin": origins,
            "scores": {score.name: round_numbers(runs[score.name]) for score in shown},
        },
        "graphs": graphs,
        "judged": judged,
        "curves": _curves(data.curves, runs),
    }


def capitalise(text: str) -> str:
    """Return a text with a capital first letter; the others stay."""
    return text[:1].upper() + text[1:]


def collect_judgements(
    data: ReportData, runs: pd.DataFrame
) -> tuple[list[list[dict[str, Any]]], list[int | None]]:
    """Return the judged candidates, and for every run the index of its own, if any."""
    lists: list[list[dict[str, Any]]] = []
    places: dict[tuple[Any, ...], int] = {}
    for key, own in data.judgements.groupby(["digest", "seed"], sort=False):
        places[key] = len(lists)
        numbers = {name: round_numbers(own[name]) for name in ("rank", "error")}
        lists.append([
            {"candidate": candidate, "rank": rank, "error": error, "reason": reason,
             "chosen": bool(chosen)}
            for candidate, rank, error, reason, chosen in zip(
                own["candidate"], numbers["rank"], numbers["error"], own["reason"], own["chosen"],
                strict=True)
        ])  # fmt: skip
    keys = zip(runs["digest"], runs["seed"], strict=True)
    return lists, [places.get(key) for key in keys]


def _group(head: "pd.Series[Any]", data: ReportData) -> dict[str, Any]:
    """Return what the runs of one configuration share."""
    style = data.style(head)
    key = (head["task"], head["task_variant"], head["d"], head["n"])
    sample = next((p for p in data.task_samples if (p.task, p.task_variant, p.d, p.n) == key), None)
    truth = sample.edges if sample else None
    config = data.configs.get(head["digest"]) or {}
    return {
        "task": name_runs(head),
        "method": style.label,
        "color": style.color,
        "d": int(head["d"]),
        "n": int(head["n"]),
        "digest": head["digest"],
        "unit": head["regret_unit"],
        "command": run_command(head, config.get("budget")),
        "config": _format(config),
        "truth": None if truth is None else encode_edges(truth, int(head["d"])),
        "truth_seed": sample.seed if sample else None,
    }


def _curves(curves: pd.DataFrame, runs: pd.DataFrame) -> dict[str, Any]:
    """Concatenate the curves of all runs."""
    keys = runs[["digest", "seed"]].assign(run=np.arange(len(runs)))
    points = keys.merge(curves, on=["digest", "seed"]).sort_values(["run", "iteration"])
    lengths = np.bincount(points["run"].to_numpy(int), minlength=len(runs))
    return {
        "length": lengths.tolist(),
        "iteration": points["iteration"].astype(int).tolist(),
        **{c.name: round_numbers(points[c.name]) for c in drawn_curves() if c.name in points},
    }


def round_numbers(numbers: "pd.Series[Any]") -> list[float | None]:
    """Round to the digits of the page; numbers that are not finite become None."""
    values = pd.to_numeric(numbers, errors="coerce").to_numpy(float)
    finite = np.isfinite(values)
    sizes = np.abs(np.where(finite & (values != 0), values, 1))
    decimals = DIGITS - 1 - np.floor(np.log10(sizes))
    scale = 10.0 ** np.abs(decimals)  # an integer, so that rounding adds no digits
    safe = np.where(finite, values, 0)
    fine = np.round(safe * scale) / scale
    coarse = np.round(safe / scale) * scale
    rounded = np.where(decimals >= 0, fine, coarse)
    return [x if ok else None for x, ok in zip(rounded.tolist(), finite.tolist(), strict=True)]


def _share(column: "pd.Series[Any]") -> dict[str, Any]:
    """Encode a column as its distinct texts and, for each run, the index of its text."""
    codes, texts = pd.factorize(column.to_numpy(object))
    return {"texts": [str(text) for text in texts], "of": codes.tolist()}


def _format(config: Mapping[str, Any] | None) -> str:
    if not config:
        return ""
    return str(yaml.dump(config, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=1000))


def _column(runs: pd.DataFrame, name: str) -> "pd.Series[Any]":
    return runs[name] if name in runs else pd.Series(None, index=runs.index, dtype=object)


def collect_graphs(
    data: ReportData, runs: pd.DataFrame, most: int = MOST_EDGES
) -> tuple[list[dict[str, Any]], list[int | None]]:
    """Return the distinct graphs, and for every run the index of its graph, if any.

    This opens the file of every run whose method has a graph. If the first run of a configuration
    stores no edges, its other runs are skipped.
    """
    graphs: dict[str, int] = {}
    graph_of: list[int | None] = [None] * len(runs)
    graphless: set[str] = set()
    room = most
    for i, path, digest, d in _candidates(runs):
        if digest in graphless:
            continue
        diagnostics = data.diagnostics(path)  # empty if the file is missing or damaged
        if diagnostics and "edges" not in diagnostics:
            graphless.add(digest)
        if "edges" not in diagnostics:
            continue
        graph = _graph(diagnostics, d)
        if graph is None:
            log.warning("%s: an unreadable graph is left out", printable(path))
            continue
        if len(graph["edges"]) > room:
            graph["edges"] = None
        key = json.dumps(graph, sort_keys=True)
        if key not in graphs:
            graphs[key] = len(graphs)
            room -= len(graph["edges"] or ())
        graph_of[i] = graphs[key]
    return [json.loads(key) for key in graphs], graph_of


def encode_edges(edges: ArrayLike, nodes: int) -> list[int]:
    """Encode edges as sorted indices into the matrix of pairs, each minus the one before."""
    pairs = np.asarray(edges, dtype=int).reshape(-1, 2)
    codes = np.unique(pairs.min(axis=1) * nodes + pairs.max(axis=1))
    steps: list[int] = np.diff(codes, prepend=0).tolist()
    return steps


def _candidates(runs: pd.DataFrame) -> Iterator[tuple[int, str, str, int]]:
    """Yield the index, path, digest and d of every finished run whose method has a graph."""
    if "graph" not in runs or "path" not in runs:
        return
    has_graph = runs["graph"].notna() & (runs["graph"] != "") & (runs["status"] == "ok")
    places = np.flatnonzero(has_graph.to_numpy(bool)).tolist()
    chosen = runs.iloc[places]
    yield from zip(places, chosen["path"], chosen["digest"], chosen["d"].tolist(), strict=True)


def _graph(diagnostics: Mapping[str, Any], d: int) -> dict[str, Any] | None:
    """Return the graph of a run for the page, None if it is unreadable."""
    try:
        edges = np.array(diagnostics["edges"], dtype=int).reshape(-1, 2)
    except (TypeError, ValueError):
        return None
    nodes = max(int(diagnostics.get("latent_dimensions") or d), int(edges.max(initial=0)) + 1)
    sizes = diagnostics.get("clique_sizes")
    recovery = diagnostics.get("graph_recovery")
    return {
        "nodes": nodes,
        "count": len(edges),
        "edges": encode_edges(edges, nodes),
        "cliques": diagnostics.get("cliques"),
        "sizes": sizes if isinstance(sizes, Mapping) else None,
        "recovery": recovery if isinstance(recovery, Mapping) else None,
    }


def run_command(row: "pd.Series[Any]", budget: Mapping[str, Any] | None = None) -> str:
    """Return the command that repeats a run in another folder, without its seed.

    The variants of a row list the settings of task and method that differ from their files. For the
    budget there is no such list, so the resolved `budget` is compared with its file here.
    """
    words = [f"{name}={row[name]}" for name in ("task", "method", "d", "n")]
    if row["budget"]:
        words.append(f"budget={row['budget']}")
        written = _written_budget(str(row["budget"]))
        departures = {name: x for name, x in (budget or {}).items() if written.get(name) != x}
        words += [f"budget.{name}={value}" for name, value in departures.items()]
    words += [f"task.{name}={value}" for name, value in _departures(row["task_variant"]).items()]
    for name, value in _departures(row["method_variant"]).items():
        if name == "training":
            words.append(f"{name}={value}")
        elif not isinstance(row.get(name.split(".")[0]), str):
            words.append(f"method.{name}={value}")
        elif "." in name or not _YAML_VALUE.fullmatch(value):
            words.append(f"{name}={value}")  # of a config group, such as latent or graph
        else:
            words.append(f"{name}='{value}'")  # or Hydra would read a boolean
    words.append("results_dir=results/again")
    return " ".join(["python -m ddobench", *map(_quote, words)])


@cache
def _written_budget(name: str) -> dict[str, Any]:
    """Return the content of the file of a budget, empty for a budget of another package."""
    path = resources.files("ddobench.conf").joinpath("budget", f"{name}.yaml")
    if not re.fullmatch(r"\w+", name) or not path.is_file():
        return {}
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


def _departures(variant: str) -> dict[str, str]:
    """Return the overrides of a variant, without a digest."""
    settings = split_variant(variant)
    settings.pop("digest", None)
    return {name: "null" if value == "None" else value for name, value in settings.items()}


def _quote(word: str) -> str:
    """Quote a word for the shell, in double quotes if it contains single ones."""
    plain = re.fullmatch(r"[\w.='-]+", word) and "'" in word
    return f'"{word}"' if plain else shlex.quote(word)

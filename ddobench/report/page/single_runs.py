"""The data behind the section of single runs: every run, small enough to travel in the page."""

import base64
import gzip
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import yaml

from ddobench.report.data.commands import run_command
from ddobench.report.data.report_data import ReportData
from ddobench.report.page.run_graphs import collect_graphs, encode_edges
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.formats import format_ranges, name_runs
from ddobench.scores import LANDMARKS, drawn_curves, page_scores

MOST_RUNS = 20_000
MOST_BYTES = 500_000  # of the packed runs: a page is to open quickly on a phone
DIGITS = 4  # significant, of every number in the page
_GROUP = [*CELL, *SERIES, "digest"]
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


@dataclass(frozen=True)
class SingleRuns:
    """The runs that one can look at in the page, packed, and those there was no room for."""

    packed: str
    shown: int
    left_out: list[str]  # one line for each configuration


def gather_single_runs(
    stored: ReportData, most: int = MOST_RUNS, room: int = MOST_BYTES
) -> SingleRuns:
    """Pack the runs for the page, the first seeds of every configuration if they are too many."""
    runs = stored.runs
    place = runs.groupby("digest").cumcount().to_numpy()
    kept = np.sort(np.argsort(place, kind="stable")[:most])
    packed = pack(collect_runs(stored, runs.iloc[kept].reset_index(drop=True)))
    if len(packed) > room and len(kept) > 1:
        fewer = int(0.95 * len(kept) * room / len(packed))  # somewhat less than would fit
        return gather_single_runs(stored, max(1, fewer), room)
    lost = runs.drop(index=runs.index[kept])
    return SingleRuns(
        packed=packed,
        shown=len(kept),
        left_out=[
            f"{name_runs(rows.iloc[0], 'n', 'd')}, {_style(rows.iloc[0], stored).label}: "
            f"seeds {format_ranges(rows['seed'])}"
            for _, rows in lost.groupby(_GROUP, sort=True)
        ],
    )


def address_of(row: Mapping[Hashable, Any]) -> str:
    """Return the address of a run in the page, without the hash sign."""
    return f"run={quote(str(row['digest']), safe='')}/{row['seed']}"


def first_addresses(runs: pd.DataFrame) -> dict[tuple[Any, ...], str]:
    """Return the address of the first run of each series of each cell, a finished one if any."""
    ordered = runs.sort_values("status", key=lambda status: status != "ok", kind="stable")
    first = ordered.drop_duplicates([*CELL, *SERIES])
    places = first[[*CELL, *SERIES]].itertuples(index=False, name=None)
    return dict(zip(places, map(address_of, first.to_dict("records")), strict=True))


def pack(data: Mapping[str, Any] | str) -> str:
    """Spell data as text that any page can hold; the same data always gives the same text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), 5, mtime=0)).decode()


def collect_runs(stored: ReportData, runs: pd.DataFrame) -> dict[str, Any]:
    """Lay out runs column by column, everything that several of them share only once."""
    groups = runs.groupby(_GROUP, sort=True)
    heads = [rows.iloc[0] for _, rows in groups]
    graphs, graph_of = collect_graphs(stored, runs)
    judged, judged_of = collect_judgements(stored, runs)
    origins = _share(_column(runs, "path").map(stored.provenance).map(json.dumps, "ignore"))
    origins["texts"] = [_format(json.loads(text)) for text in origins["texts"]]
    told = [score for score in page_scores() if score.name in runs]
    drawn = drawn_curves()
    return {
        "scores": [[score.name, score.page, score.unit.name, score.meaning] for score in told],
        "lines": [[c.name, c.line, c.predicted] for c in drawn if not c.unit.fraction],
        "shares": [[c.name, c.line] for c in drawn if c.unit.fraction],
        "marks": [[mark.name, mark.label] for mark in LANDMARKS],
        "groups": [_group(head, stored) for head in heads],
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
            "scores": {score.name: round_numbers(runs[score.name]) for score in told},
        },
        "graphs": graphs,
        "judged": judged,
        "curves": _curves(stored.curves, runs),
    }


def collect_judgements(
    stored: ReportData, runs: pd.DataFrame
) -> tuple[list[list[dict[str, Any]]], list[int | None]]:
    """Return what was judged before a choice, and for every run which of it is its own, if any."""
    lists: list[list[dict[str, Any]]] = []
    places: dict[tuple[Any, ...], int] = {}
    for key, own in stored.judgements.groupby(["digest", "seed"], sort=False):
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


def _group(head: "pd.Series[Any]", stored: ReportData) -> dict[str, Any]:
    """Gather what the runs of one configuration share."""
    style = _style(head, stored)
    key = (head["task"], head["task_variant"], head["d"], head["n"])
    portrait = next(
        (p for p in stored.portraits if (p.task, p.task_variant, p.d, p.n) == key), None
    )
    truth = portrait.edges if portrait else None
    config = stored.configs.get(head["digest"]) or {}
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
        "truth_seed": portrait.seed if portrait else None,
    }


def _style(row: "pd.Series[Any]", stored: ReportData) -> Any:
    return stored.styles[row["task"], row["method"], row["method_variant"]]


def _curves(stored: pd.DataFrame, runs: pd.DataFrame) -> dict[str, Any]:
    """Lay the curves of all runs end to end, in the order of the runs."""
    keys = runs[["digest", "seed"]].assign(run=np.arange(len(runs)))
    points = keys.merge(stored, on=["digest", "seed"]).sort_values(["run", "iteration"])
    lengths = np.bincount(points["run"].to_numpy(int), minlength=len(runs))
    return {
        "length": lengths.tolist(),
        "iteration": points["iteration"].astype(int).tolist(),
        **{c.name: round_numbers(points[c.name]) for c in drawn_curves() if c.name in points},
    }


def round_numbers(numbers: "pd.Series[Any]") -> list[float | None]:
    """Round to the digits of the page; what is not a finite number becomes None."""
    values = pd.to_numeric(numbers, errors="coerce").to_numpy(float)
    finite = np.isfinite(values)
    sizes = np.abs(np.where(finite & (values != 0), values, 1))
    decimals = DIGITS - 1 - np.floor(np.log10(sizes))
    scale = 10.0 ** np.abs(decimals)  # whole, so that no rounding error adds digits
    safe = np.where(finite, values, 0)
    fine = np.round(safe * scale) / scale
    coarse = np.round(safe / scale) * scale
    rounded = np.where(decimals >= 0, fine, coarse)
    return [x if ok else None for x, ok in zip(rounded.tolist(), finite.tolist(), strict=True)]


def _share(column: "pd.Series[Any]") -> dict[str, Any]:
    """Spell a column as its different texts and, for each run, which of them it has."""
    codes, texts = pd.factorize(column.to_numpy(object))
    return {"texts": [str(text) for text in texts], "of": codes.tolist()}


def _format(config: Mapping[str, Any] | None) -> str:
    if not config:
        return ""
    return str(yaml.dump(config, Dumper=_DUMPER, sort_keys=False, allow_unicode=True, width=1000))


def _column(runs: pd.DataFrame, name: str) -> "pd.Series[Any]":
    return runs[name] if name in runs else pd.Series(None, index=runs.index, dtype=object)

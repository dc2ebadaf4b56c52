"""The graph that a method discovered, beside the true one and the numbers it was decided by."""

from collections.abc import Iterator
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from ddobench.report.data.commands import sweep_command
from ddobench.report.data.details import (
    Details,
    climbing_runs,
    column,
    find_details,
    first_of_each,
    read_details,
    stage_settings,
)
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.graph_panels import choose_size, draw_graphs, draw_pairs
from ddobench.report.figures.true_graphs import Truth, find_truth, mark_edges
from ddobench.report.tables.columns import FAMILY
from ddobench.report.tables.formats import format_number, name_runs

_WANTED = ("edges", "pseudo_hessian")
_ROUNDING = 1e-5  # of a stored pseudo-Hessian
_TRUTH = "Left: which variables of the function interact."
_TEXT = (
    "The discovered graph between the codes, and what decided it: the mean of z_i z_j y over the M "
    "visible rows (codes z and values y standardised) times \u221aM, so that a pair without "
    "interaction is about standard normal. Above the diagonal a dot marks each edge."
)
_AVERAGED = (
    "The discovered graph between the codes, and what decided it: the mean of z_i z_j y over M = "
    "{rows} rows at a time (codes z and values y standardised), averaged along the training, times "
    "\u221aM. The average rests on more rows than M, so a pair without interaction is nearer to 0 "
    "than a standard normal. Above the diagonal a dot marks each edge."
)


def discovered_graph(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw a discovered graph for each way to discover one, per task, variant, n and budget.

    It is that of the first seed, at d up to 41. Where a variant works on the hidden coordinates,
    its graph can be judged and is drawn as well.
    """
    runs = climbing_runs(stored)
    staged = runs.assign(graph=column(runs, "graph"))
    staged = staged[staged["graph"] != ""]
    taken: set[str] = set()
    for _, family in staged.groupby(FAMILY, sort=True):
        ways = [own for _, own in family.groupby("graph", sort=False)]
        for way in ways:
            cell = way[way["d"] == choose_size(way["d"])]
            plain = find_details(stored, cell, _WANTED, is_discovered)
            if plain is None:
                yield from _absences(stored, cell)
                continue
            yield _figure(stored, *plain, taken)
            if "graph_recovery" not in plain[1]:
                others = first_of_each(cell)
                judged = find_details(stored, others, (*_WANTED, "graph_recovery"), is_discovered,
                                      most=len(others))  # fmt: skip
                if judged is not None:
                    yield _figure(stored, *judged, taken)


def is_discovered(details: Details) -> bool:
    """Tell whether the edges are those pairs of codes with the largest entries.

    A graph that was shuffled afterwards is not what the pseudo-Hessian decided, and one code alone
    has no pairs.
    """
    pairs = pair_table(details, 1, None)
    entries = pairs["pseudo_hessian"].abs()
    edges, others = entries[pairs["edge"]], entries[~pairs["edge"]]
    apart = edges.empty or others.empty or edges.min() >= others.max() - _ROUNDING
    return len(pairs) > 0 and bool(apart)


def _figure(stored: ReportData, run: "pd.Series[Any]", details: Details, taken: set[str]) -> Figure:
    truth = find_truth(stored, run)
    pairs = pair_table(details, _tested_rows(run, details), truth)
    threshold = _threshold(stored, run, pairs)
    name = name_runs(run, "n", "d")
    label = stored.styles[str(run["task"]), str(run["method"]), str(run["method_variant"])].label
    judged = "graph_recovery" in details and pairs["true_edge"].dtype == bool
    return Figure(
        name=_stem(run, taken),
        title=f"Discovered graph: {name}",
        caption=_caption(run, details, threshold, label, known=truth is not None),
        task=str(run["task"]),
        data=pairs,
        commands=tuple(filter(None, [str(run["command"])])),
        drawing=draw_graphs(f"{name}, {label}, seed {run['seed']}", pairs, truth,
                            partial(draw_pairs, pairs=pairs, threshold=threshold), judged=judged),
        subject="methods",
    )  # fmt: skip


def _stem(run: "pd.Series[Any]", taken: set[str]) -> str:
    """Name the files by the variant, and by the method as well where another has that name."""
    variant, method = str(run["method_variant"]), str(run["method"])
    stem = row_stem("discovered", run, "d", "n", method=variant)
    if stem in taken:
        stem = row_stem("discovered", run, "d", "n", method=f"{method} {variant}".strip())
    taken.add(stem)
    return stem


def _tested_rows(run: "pd.Series[Any]", details: Details) -> int:
    """Return by how many rows a test took the entries to be estimated; older records took all."""
    return int(details.get("tested_rows") or run["n"])


def pair_table(details: Details, rows: int, truth: Truth | None) -> pd.DataFrame:
    """Return one row per pair of codes: its entry, the same times \u221arows, edge or not."""
    hessian = np.array(details["pseudo_hessian"], dtype=float)  # (e, e)
    table = mark_edges(len(hessian), details["edges"], truth)
    entries = hessian[table["a"], table["b"]]
    table.insert(2, "pseudo_hessian", entries)
    table.insert(3, "scaled", entries * sqrt(rows))
    return table


def _threshold(stored: ReportData, run: "pd.Series[Any]", pairs: pd.DataFrame) -> float | None:
    """Return what a scaled entry must reach, None where the test was another than pair by pair."""
    test = stage_settings(stored.configs.get(str(run["digest"]), {}), "graph")
    if not isinstance(test.get("alpha"), float) or test.get("correction", "none") != "none":
        return None
    threshold = float(norm.isf(test["alpha"] / 2))
    weakest = pairs.loc[pairs["edge"], "scaled"].abs().min()
    return None if weakest < threshold - 0.01 else threshold  # the record is rounded


def _caption(
    run: "pd.Series[Any]", details: Details, threshold: float | None, label: str, *, known: bool
) -> str:
    edges, codes = len(details["edges"]), len(details["pseudo_hessian"])
    rows = _tested_rows(run, details)
    whole = rows == run["n"]
    parts = [
        *([_TRUTH] if known else []),
        _TEXT if whole else _AVERAGED.format(rows=rows),
        f"{label}, seed {run['seed']} alone: {edges} of {codes * (codes - 1) // 2} pairs are edges",
    ]
    if "cliques" in details:
        parts[-1] += f", in {details['cliques']} maximal cliques"
    parts[-1] += "."
    if threshold is not None:
        expected = 2 * float(norm.sf(threshold)) * codes * (codes - 1) / 2
        chance = f", which chance alone would give about {expected:.2g} pairs" if whole else ""
        parts.append(
            f"An edge needs {format_number(threshold)} or more in absolute value (triangles at the "
            f"colour bar){chance}."
        )
    if details.get("dropped_edges"):
        parts.append(f"{details['dropped_edges']} of the weakest were dropped to limit cliques.")
    alignment, by_chance = details.get("alignment"), details.get("alignment_by_chance")
    if alignment is not None and by_chance is not None:
        parts.append(
            f"A code's largest correlation with a hidden coordinate is {format_number(alignment)} "
            f"on average, {format_number(by_chance)} for random axes."
        )
    if "graph_recovery" in details:
        recovery = details["graph_recovery"]
        parts.append(
            "The codes are the hidden coordinates, so the graphs can be compared: precision "
            f"{format_number(recovery['precision'])}, recall {format_number(recovery['recall'])}."
        )
    elif known:
        parts.append(
            "The codes are not the hidden coordinates: their edges need not match the true ones."
        )
    return " ".join(parts)


def _absences(stored: ReportData, runs: pd.DataFrame) -> Iterator[Absence]:
    """Say what is missing where runs test their edges at a level but do not tell of them."""
    tested = [
        "alpha" in stage_settings(stored.configs.get(digest, {}), "graph")
        for digest in runs["digest"]
    ]
    silent = runs[tested]
    if silent.empty or "edges" in read_details(stored, silent.iloc[0]):
        return
    first = silent.iloc[0]
    yield Absence(
        title=f"Discovered graph: {name_runs(first, 'n', 'd')}",
        task=str(first["task"]),
        reason="the stored runs do not say which graph they discovered, as fresh ones do",
        remedy=f"{sweep_command(first, [first['method']])} results_dir=results/fresh",
    )

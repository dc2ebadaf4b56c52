"""Figures of graphs: of a task, discovered by a method, or read off the units of a model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import sqrt
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.stats import norm

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import Values
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.graph_plots import (
    CirclePlot,
    ShapePlot,
    TrueGraph,
    name_shape,
    order_edges,
)
from ddobench.report.tables.formatting import (
    file_stem,
    format_number,
    format_percent,
    name_runs,
    row_stem,
)
from ddobench.report.tables.select import BY_N, BY_TASK
from ddobench.store.records import TaskSample
from ddobench.variants import split_variant

Details = dict[str, Any]

_LARGEST = 41  # nodes of a graph that is legible
_ROUNDING = 1e-5  # of a stored pseudo-Hessian
_LEVEL = "graph.alpha"  # of the test for edges, in a variant
_UNITS = "units_graph"  # among the diagnostics of a run
_FEW_FILES = 10  # opened before a search for diagnostics is given up
_MOST_FILES = 50  # seeds of the same configuration that a caption counts


def climbing_runs(data: ReportData) -> pd.DataFrame:
    """Return the finished runs of methods that iterate, plain variants and first seeds first."""
    curves, runs = data.curves, data.runs
    climbing = set(curves.loc[curves["iteration"] > 0, "digest"])
    chosen = runs[(runs["status"] == "ok") & runs["digest"].isin(climbing)]
    plain = chosen["method_variant"].str.len()
    return chosen.assign(_plain=plain).sort_values(
        ["_plain", "method_variant", "method", "seed"], kind="stable", ignore_index=True
    ).drop(columns="_plain")  # fmt: skip


def read_details(data: ReportData, run: "pd.Series[Any]") -> Details:
    """Return the diagnostics of a run, empty if its file is missing or damaged."""
    path = run.get("path")
    if not isinstance(path, str):
        return {}
    try:
        return data.diagnostics(path)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return {}


def find_details(
    data: ReportData,
    runs: pd.DataFrame,
    names: Sequence[str],
    fits: Callable[[Details], bool] = lambda _: True,
    most: int = _FEW_FILES,
) -> tuple["pd.Series[Any]", Details] | None:
    """Return the first run with these diagnostics that fits, and its diagnostics."""
    for _, run in runs.head(most).iterrows():
        details = read_details(data, run)
        if all(details.get(name) is not None for name in names) and fits(details):
            return run, details
    return None


def column(runs: pd.DataFrame, name: str) -> "pd.Series[str]":
    """Return a column of words, empty where it is missing."""
    if name not in runs:
        return pd.Series("", index=runs.index, dtype=object)
    return runs[name].astype(object).where(runs[name].notna(), "").astype(str)


def part_settings(config: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    """Return the settings of one part of a method, such as its graph, empty without it."""
    method = config.get("method")
    settings = method.get(part) if isinstance(method, Mapping) else None
    return settings if isinstance(settings, Mapping) else {}


def find_truth(data: ReportData, run: "pd.Series[Any]") -> TrueGraph | None:
    """Return the graph in the sample of the task, None if a run's graph may differ."""
    for sample in data.task_samples:
        shown = (sample.task, sample.task_variant, sample.d, sample.n)
        if shown == tuple(run[["task", "task_variant", "d", "n"]]) and sample.edges is not None:
            truth = TrueGraph.of(sample.d, sample.edges)
            same = sample.seed == run["seed"] or name_shape(truth.graph) != ""
            return truth if same else None
    return None


def mark_edges(nodes: int, edges: Iterable[Iterable[int]], truth: TrueGraph | None) -> pd.DataFrame:
    """Return one row per pair of nodes: whether it is an edge, and whether it is a true one.

    `true_edge` is about the hidden coordinates with the same numbers, empty where it is unknown.
    """
    found = order_edges(edges)
    pairs = list(combinations(range(nodes), 2))
    table = pd.DataFrame(pairs, columns=["a", "b"])
    table["edge"] = [pair in found for pair in pairs]
    known = truth is not None and truth.d == nodes
    table["true_edge"] = [pair in truth.edges for pair in pairs] if truth and known else ""
    return table


def true_graphs(data: ReportData) -> Iterator[Figure]:
    """Draw the graph of each task; variants with the same shape share a figure."""
    groups: dict[tuple[str, object], list[TaskSample]] = {}
    for sample in choose_samples(data.task_samples):
        if sample.edges is not None:
            graph = TrueGraph.of(sample.d, sample.edges).graph
            shape = name_shape(graph) or (sample.d, frozenset(graph.edges))
            groups.setdefault((sample.task, shape), []).append(sample)
    for group in groups.values():
        sample, *others = sorted(group, key=preference)
        caption = _graph_caption(sample)
        if others:
            names = ", ".join(other.task_variant or "the default" for other in others)
            caption += f" The same shape for {names}."
        name = name_sample(sample)
        yield Figure(
            "graph", file_stem("graph", sample.task, sample.task_variant, f"d{sample.d}"),
            f"True graph: {name}", caption, sample.task,
            pd.DataFrame(sample.edges, columns=["a", "b"]), sample_commands(data, sample),
            ShapePlot(f"True graph: {name}", sample.d), about_task=True,
        )  # fmt: skip


def sample_commands(data: ReportData, sample: TaskSample) -> tuple[str, ...]:
    """Return the commands that ran the task of a sample."""
    size = {name: [getattr(sample, name)] for name in ("task", "task_variant", "d", "n")}
    return data.commands(pd.DataFrame(size))


def choose_samples(samples: Iterable[TaskSample]) -> list[TaskSample]:
    """Choose for each variant the smallest dimension that shows the pattern, with most rows."""
    chosen: dict[tuple[str, str], TaskSample] = {}
    for sample in sorted(samples, key=preference):
        chosen.setdefault((sample.task, sample.task_variant), sample)
    return [chosen[key] for key in sorted(chosen)]


def preference(sample: TaskSample) -> tuple[bool, int, int, int]:
    """Return a sort key: the sample to show comes first."""
    small = sample.d < 7  # too few dimensions to show a pattern
    return small, -sample.d if small else sample.d, -sample.n, sample.seed


def name_sample(sample: TaskSample) -> str:
    """Name the task, variant and dimension of a sample."""
    return ", ".join(filter(None, [sample.task, sample.task_variant, f"d = {sample.d}"]))


def _graph_caption(sample: TaskSample) -> str:
    graph = TrueGraph.of(sample.d, sample.edges or ()).graph
    cliques = list(nx.find_cliques(graph))
    sizes = sorted({len(clique) for clique in cliques})
    shape = name_shape(graph)
    named = f"A {shape}. " if shape else ""
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    shaded = " Cliques of three or more are shaded." if sizes[-1] > 2 else ""
    return (
        f"{named}Nodes are the {sample.d} variables; an edge joins two variables that share a "
        f"term of the function (seed {sample.seed}). {graph.number_of_edges()} edges and "
        f"{len(cliques)} maximal cliques. The cliques have {span} variables.{shaded}"
    )


_DISCOVERED = ("edges", "pseudo_hessian")
_TRUTH = "Left: which variables of the function interact."
_TEXT = (
    "The discovered graph between the codes, and the test statistic: the mean of z_i z_j y over "
    "the M visible rows (codes z and values y standardised) times \u221aM. For a pair without "
    "interaction it is about standard normal. Above the diagonal a dot marks each edge."
)
_AVERAGED = (
    "The discovered graph between the codes, and the test statistic: the mean of z_i z_j y over M "
    "= {rows} rows at a time (codes z and values y standardised) times \u221aM, averaged over the "
    "training. The average uses more than M rows, so for a pair without interaction it is closer "
    "to 0 than a standard normal. Above the diagonal a dot marks each edge."
)


def discovered_graphs(data: ReportData) -> Iterator[Figure]:
    """Draw a graph for each discovery method and level, per task, variant, n and budget.

    It is that of the first seed, at d up to 41. If a variant works on the hidden coordinates, its
    graph can be compared with the true one and is drawn as well.
    """
    runs = climbing_runs(data)
    staged = runs.assign(graph=column(runs, "graph"))
    staged = staged[staged["graph"] != ""]
    taken: set[str] = set()
    for _, family in staged.groupby(BY_N, sort=True):
        levels = family["method_variant"].map(lambda text: split_variant(text).get(_LEVEL, ""))
        ways = [own for _, own in family.groupby(["graph", levels], sort=False)]
        for way in ways:
            cell = way[way["d"] == choose_size(way["d"])]
            plain = find_details(data, cell, _DISCOVERED, is_discovered)
            if plain is None:
                continue
            yield _discovered_figure(data, *plain, taken)
            if "graph_recovery" not in plain[1]:
                others = cell.drop_duplicates("digest")
                judged = find_details(data, others, (*_DISCOVERED, "graph_recovery"), is_discovered,
                                      most=len(others))  # fmt: skip
                if judged is not None:
                    yield _discovered_figure(data, *judged, taken)


def is_discovered(details: Details) -> bool:
    """Return whether the edges are the pairs of codes with the largest entries.

    They are not if the graph was permuted afterwards, or if there is only one code.
    """
    pairs = pair_table(details, 1, None)
    entries = pairs["pseudo_hessian"].abs()
    edges, others = entries[pairs["edge"]], entries[~pairs["edge"]]
    apart = edges.empty or others.empty or edges.min() >= others.max() - _ROUNDING
    return len(pairs) > 0 and bool(apart)


def _discovered_figure(
    data: ReportData, run: "pd.Series[Any]", details: Details, taken: set[str]
) -> Figure:
    truth = find_truth(data, run)
    pairs = pair_table(details, _tested_rows(run, details), truth)
    threshold = _threshold(data, run, pairs)
    name = name_runs(run, "n", "d")
    label = data.style(run).label
    judged = "graph_recovery" in details and pairs["true_edge"].dtype == bool
    title = f"Discovered graph: {name}, {label}, seed {run['seed']}"
    caption = _discovered_caption(run, details, threshold, label, known=truth is not None)
    plot = CirclePlot(title, truth, judged, "discovered graph", threshold=threshold)
    return Figure("discovered", _stem(run, taken), title, caption, str(run["task"]), pairs,
                  tuple(filter(None, [str(run["command"])])), plot)  # fmt: skip


def _stem(run: "pd.Series[Any]", taken: set[str]) -> str:
    """Name the files by the variant, and by the method too if that name is taken."""
    variant, method = str(run["method_variant"]), str(run["method"])
    stem = row_stem("discovered", run, "d", "n", method=variant)
    if stem in taken:
        stem = row_stem("discovered", run, "d", "n", method=f"{method} {variant}".strip())
    if stem in taken:  # long names are cut
        level = split_variant(variant).get(_LEVEL, "")
        stem = row_stem("discovered", run, "d", "n", method=f"{_LEVEL}={level} {variant}")
    taken.add(stem)
    return stem


def _tested_rows(run: "pd.Series[Any]", details: Details) -> int:
    """Return the number of rows M of the test, by default all visible rows."""
    return int(details.get("tested_rows") or run["n"])


def pair_table(details: Details, rows: int, truth: TrueGraph | None) -> pd.DataFrame:
    """Return one row per pair of codes: its entry, the same times \u221arows, edge or not."""
    hessian = np.array(details["pseudo_hessian"], dtype=float)  # (e, e)
    table = mark_edges(len(hessian), details["edges"], truth)
    entries = hessian[table["a"], table["b"]]
    table.insert(2, "pseudo_hessian", entries)
    table.insert(3, "scaled", entries * sqrt(rows))
    return table


def _threshold(data: ReportData, run: "pd.Series[Any]", pairs: pd.DataFrame) -> float | None:
    """Return the threshold of the scaled entries, None for a test that corrects for the pairs."""
    test = part_settings(data.configs.get(str(run["digest"]), {}), "graph")
    if not isinstance(test.get("alpha"), float) or test.get("correction", "none") != "none":
        return None
    threshold = float(norm.isf(test["alpha"] / 2))
    weakest = pairs.loc[pairs["edge"], "scaled"].abs().min()
    return None if weakest < threshold - 0.01 else threshold  # stored entries are rounded


def _discovered_caption(
    run: "pd.Series[Any]", details: Details, threshold: float | None, label: str, *, known: bool
) -> str:
    edges, codes = len(details["edges"]), len(details["pseudo_hessian"])
    rows = _tested_rows(run, details)
    whole = rows == run["n"]
    parts = [
        *([_TRUTH] if known else []),
        _TEXT if whole else _AVERAGED.format(rows=rows),
        f"{label}, seed {run['seed']} only: {edges} of {codes * (codes - 1) // 2} pairs are edges.",
    ]
    if "cliques" in details:
        parts.append(f"They form {details['cliques']} maximal cliques.")
    if threshold is not None:
        expected = 2 * float(norm.sf(threshold)) * codes * (codes - 1) / 2
        parts.append(
            f"An edge needs an absolute value of {format_number(threshold)} or more (triangles at "
            "the colour bar)."
        )
        parts += [f"By chance about {expected:.2g} pairs reach it."] if whole else []
    if details.get("dropped_edges"):
        parts.append(f"{details['dropped_edges']} weak edges were dropped to limit clique sizes.")
    alignment, by_chance = details.get("alignment"), details.get("alignment_by_chance")
    if alignment is not None and by_chance is not None:
        parts.append(
            "The largest correlation of a code with a hidden coordinate is "
            f"{format_number(alignment)} on average, and {format_number(by_chance)} for random "
            "axes."
        )
    if "graph_recovery" in details:
        recovery = details["graph_recovery"]
        parts.append(
            "The codes are the hidden coordinates, so the graphs can be compared: precision "
            f"{format_number(recovery['precision'])}, recall {format_number(recovery['recall'])}."
        )
    elif known:
        parts.append(
            "The codes are not the hidden coordinates, so their edges need not match the true ones."
        )
    return " ".join(parts)


_UNITS_TEXT = (
    "After the run the harness expressed the directions of the model's units in hidden "
    "coordinates, by least squares; {residual} of the variance of the codes is unexplained. The "
    "method saw neither these coordinates nor the true graph. An edge joins two coordinates that "
    "each have {share} or more of the energy (squared weight) of some unit. Right: that energy, "
    "one row per unit."
)


def graphs_of_units(data: ReportData) -> Iterator[Figure]:
    """Draw the units of a model for each task, variant, budget and method that stores them.

    It is the model of the first seed, at the largest d up to 41 with the most rows.
    """
    runs = climbing_runs(data)
    for _, own in runs.groupby([*BY_TASK, "method"], sort=True):
        sized = own[own["d"] == choose_size(own["d"])]
        cell = sized[sized["n"] == sized["n"].max()]
        found = find_details(data, cell, [_UNITS], is_readable)
        if found is not None:
            run, details = found
            same = cell[cell["digest"] == run["digest"]].head(_MOST_FILES)
            seeds = [read_details(data, other).get(_UNITS) for _, other in same.iterrows()]
            known = [dict(one) for one in seeds if isinstance(one, Mapping)]
            yield _unit_figure(data, run, details[_UNITS], known)


def is_readable(details: Details) -> bool:
    """Return whether there are units of two or more coordinates, all shares in [0, 1]."""
    units = details[_UNITS]
    if not isinstance(units, Mapping) or not isinstance(units.get("edges"), list):
        return False
    try:
        energy = np.array(units["energy"], dtype=float)
    except (KeyError, TypeError, ValueError):
        return False
    return energy.ndim == 2 and energy.shape[1] > 1 and bool(((energy >= 0) & (energy <= 1)).all())


def sort_units(energy: Values) -> Values:  # (U, d) -> (U, d)
    """Sort the units by the mean coordinate of their energy."""
    middle = energy @ np.arange(energy.shape[1])
    return energy[np.argsort(middle, kind="stable")]


def _unit_figure(
    data: ReportData, run: "pd.Series[Any]", graph: Details, seeds: Sequence[Details]
) -> Figure:
    energy = sort_units(np.array(graph["energy"], dtype=float))
    truth = find_truth(data, run)
    pairs = mark_edges(energy.shape[1], graph["edges"], truth)
    label = data.style(run).label
    title = f"Directions of units: {name_runs(run, 'n', 'd')}, {label}, seed {run['seed']}"
    plot = CirclePlot(title, truth, pairs["true_edge"].dtype == bool, "read off the units",
                      units=len(energy))  # fmt: skip
    return Figure("units", row_stem("units", run, "d", "n", method=str(run["method"])), title,
                  _unit_caption(run, graph, seeds, label, truth), str(run["task"]),
                  _numbers(pairs, energy), tuple(filter(None, [str(run["command"])])),
                  plot)  # fmt: skip


def _numbers(pairs: pd.DataFrame, energy: Values) -> pd.DataFrame:
    """Return the pairs of coordinates, followed by the energy of each unit on each of them."""
    units, coordinates = np.indices(energy.shape)
    matrix = pd.DataFrame(
        {"unit": units.ravel(), "a": coordinates.ravel(), "energy": energy.ravel()}
    )
    parts = [
        pairs.assign(drawn="pair").astype(object),
        matrix.assign(drawn="energy").astype(object),
    ]
    table = pd.concat([part for part in parts if len(part)], ignore_index=True)
    return table.reindex(columns=["drawn", "unit", "a", "b", "edge", "true_edge", "energy"])


def _unit_caption(
    run: "pd.Series[Any]",
    graph: Details,
    seeds: Sequence[Details],
    label: str,
    truth: TrueGraph | None,
) -> str:
    parts = ["Left: which hidden coordinates interact."] if truth is not None else []
    parts.append(
        _UNITS_TEXT.format(
            residual=format_percent(float(graph.get("residual", np.nan))),
            share=format_percent(float(graph.get("edge_share", np.nan))),
        )
    )
    units = len(graph["energy"])
    parts.append(f"{label}, seed {run['seed']} only: {units} {'unit' if units == 1 else 'units'}.")
    if "cliques_found" in graph:
        share = format_percent(float(graph.get("clique_share", np.nan)))
        parts.append(
            f"{graph['cliques_found']} of {graph['cliques_true']} true cliques have a unit with "
            f"more than {share} of its energy in them."
        )
    if isinstance(recovery := graph.get("recovery"), Mapping):
        parts.append(
            f"Precision of the edges {format_number(recovery['precision'])}, "
            f"recall {format_number(recovery['recall'])}."
        )
    found = [one["cliques_found"] for one in seeds if "cliques_found" in one]
    if len(found) > 1:
        parts.append(
            f"Over the {len(found)} seeds whose units are stored, {min(found)} to {max(found)} "
            "cliques have such a unit."
        )
    return " ".join(parts)


def choose_size(sizes: "pd.Series[int]") -> int:
    """Return the largest size that is legible, the smallest if none is."""
    small = sizes[sizes <= _LARGEST]
    return int(small.max() if len(small) else sizes.min())

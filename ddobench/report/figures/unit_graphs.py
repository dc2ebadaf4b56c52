"""The graph that can be read off the units of a model, beside the true one and what units look at.

The harness wrote the directions of the units in hidden coordinates when the run was over; no method
sees either.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.data.commands import sweep_command
from ddobench.report.data.details import Details, climbing_runs, find_details, read_details
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.drawing import Values
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.graph_panels import choose_size, draw_energy, draw_graphs
from ddobench.report.figures.true_graphs import Truth, find_truth, mark_edges
from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.formats import format_number, format_percent, name_runs

_NAME = "units_graph"  # among the diagnostics of a run
_MOST_FILES = 50  # seeds of the same cell that the caption counts
_TEXT = (
    "The harness, and no method, wrote the directions along which the units of a model look in "
    "hidden coordinates, once the run was over (least squares of the codes on these leave "
    "{residual} of the variance of codes unexplained); the method saw neither these coordinates "
    "nor the true graph. An edge joins two coordinates that each have {share} or more of the "
    "energy (squared weight) of some unit. Right: that energy, one row per unit, sorted by where "
    "it lies."
)


def graph_of_units(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw what a model's units look at for each task, variant, budget and method that tells.

    It is that of the first seed, at the largest d up to 41 and there with the most rows.
    """
    runs = climbing_runs(stored)
    for _, own in runs.groupby([*STUDY, "method"], sort=True):
        sized = own[own["d"] == choose_size(own["d"])]
        cell = sized[sized["n"] == sized["n"].max()]
        found = find_details(stored, cell, [_NAME], is_readable)
        if found is None:
            yield from _absences(stored, cell)
        else:
            run, details = found
            yield _figure(stored, run, details[_NAME], _siblings(stored, cell, run))


def is_readable(details: Details) -> bool:
    """Tell whether there are units to draw, of two or more coordinates, all shares in [0, 1]."""
    told = details[_NAME]
    if not isinstance(told, Mapping) or not isinstance(told.get("edges"), list):
        return False
    try:
        energy = np.array(told["energy"], dtype=float)
    except (KeyError, TypeError, ValueError):
        return False
    return energy.ndim == 2 and energy.shape[1] > 1 and bool(((energy >= 0) & (energy <= 1)).all())


def sort_units(energy: Values) -> Values:  # (U, d) -> (U, d)
    """Return the units in the order of where on the axis of coordinates their energy lies."""
    middle = energy @ np.arange(energy.shape[1])
    return energy[np.argsort(middle, kind="stable")]


def _siblings(stored: ReportData, cell: pd.DataFrame, run: "pd.Series[Any]") -> list[Details]:
    """Return what the other seeds of the same configuration tell of their units, and the run's."""
    same = cell[cell["digest"] == run["digest"]].head(_MOST_FILES)
    told = [read_details(stored, other) for _, other in same.iterrows()]
    return [one[_NAME] for one in told if isinstance(one.get(_NAME), Mapping)]


def _figure(
    stored: ReportData, run: "pd.Series[Any]", told: Details, seeds: Sequence[Details]
) -> Figure:
    energy = sort_units(np.array(told["energy"], dtype=float))
    truth = find_truth(stored, run)
    pairs = mark_edges(energy.shape[1], told["edges"], truth)
    name = name_runs(run, "n", "d")
    label = stored.styles[str(run["task"]), str(run["method"]), str(run["method_variant"])].label
    drawing = draw_graphs(
        f"{name}, {label}, seed {run['seed']}", pairs, truth, partial(draw_energy, energy=energy),
        judged=pairs["true_edge"].dtype == bool, found="read off the units",
    )  # fmt: skip
    return Figure(
        name=row_stem("units", run, "d", "n", method=str(run["method"])),
        title=f"What units look at: {name}",
        caption=_caption(run, told, seeds, label, truth),
        task=str(run["task"]),
        data=_numbers(pairs, energy),
        commands=tuple(filter(None, [str(run["command"])])),
        drawing=drawing,
        subject="methods",
    )


def _numbers(pairs: pd.DataFrame, energy: Values) -> pd.DataFrame:
    """Return the pairs of coordinates, and below them the energy of each unit on each of them."""
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


def _caption(
    run: "pd.Series[Any]",
    told: Details,
    seeds: Sequence[Details],
    label: str,
    truth: Truth | None,
) -> str:
    parts = ["Left: which hidden coordinates interact."] if truth is not None else []
    parts.append(
        _TEXT.format(
            residual=format_percent(float(told.get("residual", np.nan))),
            share=format_percent(float(told.get("edge_share", np.nan))),
        )
    )
    units = len(told["energy"])
    text = f"{label}, seed {run['seed']} alone: {units} {'unit' if units == 1 else 'units'}"
    if "cliques_found" in told:
        share = format_percent(float(told.get("clique_share", np.nan)))
        text += (
            f"; {told['cliques_found']} of {told['cliques_true']} true cliques have a unit with "
            f"more than {share} of its energy in them"
        )
    if isinstance(recovery := told.get("recovery"), Mapping):
        text += (
            f"; precision of the edges {format_number(recovery['precision'])}, "
            f"recall {format_number(recovery['recall'])}"
        )
    parts.append(f"{text}.")
    found = [one["cliques_found"] for one in seeds if "cliques_found" in one]
    if len(found) > 1:
        parts.append(
            f"Over the {len(found)} seeds whose units are stored: "
            f"{format_number(float(np.mean(found)))} cliques found on average, "
            f"from {min(found)} to {max(found)}."
        )
    return " ".join(parts)


def _absences(stored: ReportData, runs: pd.DataFrame) -> Iterator[Absence]:
    """Say what is missing where runs have units and hidden coordinates but do not relate them."""
    first = runs.drop_duplicates([*CELL, *SERIES]).iloc[0]
    details = read_details(stored, first)
    if _NAME in details or not {"units", "alignment"} <= {*details}:
        return
    yield Absence(
        title=f"What units look at: {name_runs(first, 'n', 'd')}",
        task=str(first["task"]),
        reason="the stored runs do not say what their units look at, as fresh ones do",
        remedy=f"{sweep_command(first, [first['method']])} results_dir=results/fresh",
    )

"""How a latent sees designs: a sample of them beside their codes, two coordinates at a time."""

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator

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
from ddobench.report.figures.drawing import FAINT, INK, LOOK, Values, blank_drawing, limits_around
from ddobench.report.figures.figure import Absence, Figure
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.panels import freeze_layout
from ddobench.report.tables.columns import FAMILY
from ddobench.report.tables.formats import format_number, format_percent, name_runs
from ddobench.store.records import LEFT_OUT

_TABLES = {"designs": "observed", "codes": "code", "decoded": "decoded"}
_WANTED = [*(f"{name}_sample" for name in _TABLES), "values_sample"]
_EXPECTED = 3  # dimensions of a task that is there to be looked at
_WIDTH, _PANEL = 5.6, 1.62  # inches
_SAME = 0.999  # correlation from which a code counts as an observed coordinate
_NORMAL = 2.45  # radius that holds 95 % of a standard normal pair


def codes_beside_designs(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw the codes of one run per task, variant, n and budget: the smallest d and first seed."""
    runs = climbing_runs(stored)
    runs = runs[column(runs, "latent") != ""]
    for _, family in runs.groupby(FAMILY, sort=True):
        for _, size in family.groupby("d", sort=True):
            candidates = first_of_each(size)
            found = find_details(stored, candidates, _WANTED, is_encoded, most=len(candidates))
            if found is not None:
                yield _figure(stored, *found)
                break
            if size["d"].iloc[0] == _EXPECTED:
                yield from _absences(stored, candidates)


def is_encoded(details: Details) -> bool:
    """Tell whether the codes are more than the observed coordinates, shifted and scaled.

    Codes that are all the same follow nothing, and are told apart.
    """
    codes, designs = (np.array(details[f"{name}_sample"]) for name in ("codes", "designs"))
    if codes.shape != designs.shape:
        return True
    constant = (np.ptp(codes, axis=0) == 0) | (np.ptp(designs, axis=0) == 0)
    spread = codes.std(axis=0) * designs.std(axis=0)
    shared = ((codes - codes.mean(axis=0)) * (designs - designs.mean(axis=0))).mean(axis=0)
    return bool((constant | (np.abs(shared) < _SAME * spread)).any())


def sample_table(details: Details) -> pd.DataFrame:
    """Return one row per design of the sample: observed, code and decoded coordinates, value."""
    columns = {
        f"{label}_{i}": values
        for name, label in _TABLES.items()
        for i, values in enumerate(zip(*details[f"{name}_sample"], strict=True))
    }
    return pd.DataFrame({**columns, "y": details["values_sample"]})


def _figure(stored: ReportData, run: "pd.Series[Any]", details: Details) -> Figure:
    sample = sample_table(details)
    name = name_runs(run, "n", "d")
    label = stored.styles[run["task"], run["method"], run["method_variant"]].label
    return Figure(
        name=row_stem("codes", run, "d", "n"),
        title=f"Codes beside designs: {name}",
        caption=_caption(run, details, label),
        task=str(run["task"]),
        data=sample,
        commands=tuple(filter(None, [str(run["command"])])),
        drawing=_draw(sample, f"{name}, {label}, seed {run['seed']}"),
        subject="methods",
    )  # fmt: skip


def _caption(run: "pd.Series[Any]", details: Details, label: str) -> str:
    shown = len(details["codes_sample"])
    first = "all" if run["d"] == len(details["designs_sample"][0]) else "the first"
    text = (
        f"{shown} of {run['n']} visible designs of seed {run['seed']} alone, {first} coordinates "
        "two at a time. Above as observed: a thin line leads from each design to what its code "
        "decodes to, too short to be seen where the two agree. Below the codes that "
        f"{label} works with (latent: {run['latent']}), in their own units; the circle would hold "
        "95\u00a0% of standard normal ones. Lighter dots have larger values."
    )
    active = details.get("active_dimensions")
    if active is not None:
        of = f" of {details['latent_dimensions']}" if "latent_dimensions" in details else ""
        text += f" {active}{of} codes are active."
    correlation, valid = details.get("round_trip_correlation"), details.get("round_trip_valid")
    if correlation is not None and valid is not None:
        text += (
            f" Encoded and decoded, {format_percent(valid)} of the designs are valid, and the "
            f"correlation of their values with the old ones is {format_number(correlation)}."
        )
    return text


def _draw(sample: pd.DataFrame, name: str) -> Drawing:
    sample = sample.sort_values("y")  # the largest values on top
    observed, codes, decoded = (_coordinates(sample, label) for label in _TABLES.values())
    rows = [("observed", "x", observed), ("code", "z", codes)]
    across = max(len(list(combinations(range(table.shape[1]), 2))) for _, _, table in rows)
    least, most = limits_around(sample["y"], room=0.0)
    with mpl.rc_context(LOOK):
        title = wrap_text(name, 70)
        drawing = blank_drawing(_WIDTH, 0.35 + 2 * _PANEL + 0.17 * title.count("\n"))
        drawing.set_layout_engine("constrained")
        drawing.suptitle(title, x=0.016, ha="left", fontsize=9.5, parse_math=False)
        panels = drawing.subplots(2, max(across, 1), squeeze=False)
        for row, (label, sign, table) in zip(panels, rows, strict=True):
            pairs = list(combinations(range(table.shape[1]), 2))
            for axes in row[len(pairs) :]:
                axes.set_visible(False)
            for axes, (i, j) in zip(row, pairs, strict=False):
                if label == "observed":
                    axes.set_xlim(*limits_around([observed[:, i], decoded[:, i]]))
                    axes.set_ylim(*limits_around([observed[:, j], decoded[:, j]]))
                    _lead(axes, observed[:, [i, j]], decoded[:, [i, j]])
                else:
                    axes.add_patch(Circle((0, 0), _NORMAL, fill=False, edgecolor=FAINT,
                                          linewidth=0.9, linestyle=(0, (3, 2))))  # fmt: skip
                    axes.set_aspect("equal", adjustable="datalim")
                dots = axes.scatter(table[:, i], table[:, j], c=sample["y"], s=7, cmap="cividis",
                                    linewidths=0, zorder=3, vmin=least, vmax=most)  # fmt: skip
                axes.set_xlabel(f"{label} ${sign}_{i}$", labelpad=1)
                axes.set_ylabel(f"${sign}_{j}$", labelpad=0)
                axes.tick_params(labelsize=8)
                for axis in (axes.xaxis, axes.yaxis):
                    axis.set_major_locator(MaxNLocator(4, integer=True))
        bar = drawing.colorbar(dots, ax=panels, label="visible value $y$ [raw units]", aspect=32)
        bar.outline.set_visible(False)
        freeze_layout(drawing)
    return drawing


def _coordinates(sample: pd.DataFrame, label: str) -> Values:
    names = [name for name in sample if str(name).startswith(f"{label}_")]
    return sample[names].to_numpy(dtype=float)


def _lead(axes: Axes, start: Values, end: Values) -> None:  # (K, 2) each
    """Lead from designs to what became of them."""
    path = np.stack([start, end, np.full_like(end, np.nan)], axis=1).reshape(-1, 2)
    axes.plot(*path.T, color=INK, linewidth=0.7, alpha=0.7, zorder=2)


def _absences(stored: ReportData, runs: pd.DataFrame) -> Iterator[Absence]:
    """Say what is missing where a latent that can be set up left no sample."""
    settable = [
        set(stage_settings(stored.configs.get(digest, {}), "latent")) > {"_target_"}
        for digest in runs["digest"]
    ]
    silent = runs[settable]
    if silent.empty:
        return
    first = silent.iloc[0]
    details = read_details(stored, first)
    if _WANTED[0] in details:
        return
    reason = "these runs were stored without a sample of their codes, as only fresh runs leave"
    if LEFT_OUT in details:
        reason = (
            "these runs were published without a sample of their codes, which the first seed of a "
            "configuration has alone, and it is not among them"
        )
    yield Absence(
        title=f"Codes beside designs: {name_runs(first, 'n', 'd')}",
        task=str(first["task"]),
        reason=reason,
        remedy=f"{sweep_command(first, [first['method']])} results_dir=results/fresh",
    )

"""Figures of designs as points: those of a task, and their codes in a latent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Circle
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import (
    FAINT,
    INK,
    PALE,
    Values,
    blank_drawing,
    freeze,
    limits_around,
    wrap,
)
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.graph_figures import (
    Details,
    choose_samples,
    climbing_runs,
    column,
    find_details,
    name_sample,
    read_details,
    sample_commands,
)
from ddobench.report.tables.formatting import (
    file_stem,
    format_number,
    format_percent,
    name_runs,
    row_stem,
)
from ddobench.report.tables.select import BY_N, BY_SIZE, SERIES
from ddobench.report.tables.styles import Style, explain_signs
from ddobench.store.records import PLANE, TaskSample

_TONES = {"hidden": "#7b8794", "observed": "#0072b2"}
_TABLES = {"designs": "observed", "codes": "code", "decoded": "decoded"}
_SAMPLES = [*(f"{name}_sample" for name in _TABLES), "values_sample"]


def marginals(data: ReportData) -> Iterator[Figure]:
    """Draw the distribution of the first coordinates of each task with continuous designs."""
    for sample in _different_designs(data):
        caption = (
            f"The first coordinates of {len(sample.observed)} of {sample.n} visible designs "
            f"(seed {sample.seed})"
        )
        hidden = len(list(_coordinate_tables(sample))) == 2
        caption += (
            ". Upper row: the arguments of the function, hidden from every method. Lower row: as "
            "observed." if hidden else ", which are the arguments of the function."
        )  # fmt: skip
        yield _sample_figure(data, "marginals", "Marginals of the designs", sample, caption)


def designs_in_pairs(data: ReportData) -> Iterator[Figure]:
    """Draw the designs of three-dimensional tasks, two coordinates at a time."""
    for sample in _different_designs(data):
        if sample.d == 3:
            caption = (
                f"{len(sample.observed)} of {sample.n} visible designs (seed {sample.seed}), "
                "two coordinates at a time, the largest values on top"
            )
            if len(list(_coordinate_tables(sample))) == 2:
                caption += ". The upper row is hidden from every method, the lower is observed"
            yield _sample_figure(data, "designs", "Designs and their values", sample,
                                   f"{caption}.")  # fmt: skip


def _sample_figure(
    data: ReportData, kind: str, words: str, sample: TaskSample, caption: str
) -> Figure:
    title = f"{words}: {name_sample(sample)}"
    return Figure(kind, file_stem(kind, sample.task, sample.task_variant, f"d{sample.d}"),
                  title, caption, sample.task, _table(sample),
                  sample_commands(data, sample), DesignPlot(title, kind == "designs"),
                  about_task=True)  # fmt: skip


def _coordinate_tables(sample: TaskSample) -> Iterator[tuple[str, list[list[float]]]]:
    """Yield the first coordinates of the designs of a sample, hidden and observed, by name."""
    if sample.hidden is not None and sample.hidden != sample.observed:
        yield "hidden", sample.hidden
    yield "observed", sample.observed


def _different_designs(data: ReportData) -> Iterator[TaskSample]:
    """Yield the samples with continuous designs; variants with the same designs share one."""
    seen = set()
    for sample in choose_samples(data.task_samples):
        values = np.array(sample.observed)
        first = (sample.task, str(sample.observed[:9]), str((sample.hidden or [])[:9]))
        if first not in seen and not np.array_equal(values, values.round()):
            seen.add(first)
            yield sample


def _table(sample: TaskSample) -> pd.DataFrame:
    columns = {
        f"{name}_{i}": column
        for name, designs in _coordinate_tables(sample)
        for i, column in enumerate(zip(*designs, strict=True))
    }
    return pd.DataFrame({**columns, "y": sample.y})


@dataclass(frozen=True)
class DesignPlot:
    """Histograms of single coordinates, or scatter plots of pairs, a row for each kind of them."""

    title: str
    pairs: bool

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the columns `hidden_0`, ..., `observed_0`, ... and `y`."""
        tables = {name: _coordinates(data, name) for name in _TONES}
        tables = {name: table for name, table in tables.items() if table.shape[1]}
        count = next(iter(tables.values())).shape[1]
        shown: list[Any] = list(combinations(range(count), 2)) if self.pairs else [*range(count)]
        title = wrap(self.title, 60)
        drawing = blank_drawing(4.9, 0.35 + 1.5 * len(tables) + 0.17 * title.count("\n"))
        drawing.set_layout_engine("constrained")
        drawing.suptitle(title, x=0.02, ha="left", fontsize=9.5, parse_math=False)
        panels = drawing.subplots(len(tables), len(shown), squeeze=False)
        for row, (name, table) in zip(panels, tables.items(), strict=True):
            if self.pairs:
                dots = _scatter_pairs(row, name, table, data["y"].to_numpy(dtype=float), shown)
            else:
                _draw_marginals(row, name, table)
        if self.pairs:
            bar = drawing.colorbar(dots, ax=panels, label="visible value $y$ [raw units]",
                                   aspect=30)  # fmt: skip
            bar.outline.set_visible(False)
        freeze(drawing)
        return drawing


def _draw_marginals(row: NDArray[Any], name: str, table: Values) -> None:
    bins = np.linspace(*limits_around(table, room=0.0), 29)
    for i, axes in enumerate(row):
        axes.set_xlim(*limits_around(bins))
        sns.histplot(x=table[:, i], bins=bins, stat="percent", color=_TONES[name], alpha=1,
                     linewidth=0, ax=axes)  # fmt: skip
        axes.set(xlabel=f"{name} $x_{{{i}}}$", ylabel="")
        axes.grid(axis="y", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8, labelleft=i == 0)
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    row[0].set_ylabel("designs per bin [%]", fontsize=8)
    tallest = max(bar.get_height() for axes in row for bar in axes.patches)
    for axes in row:
        axes.set_ylim(0, 1.06 * tallest)


def _scatter_pairs(
    row: NDArray[Any], name: str, table: Values, y: Values, pairs: list[tuple[int, int]]
) -> Any:
    order = np.argsort(y)
    least, most = limits_around(y, room=0.0)
    for axes, (i, j) in zip(row, pairs, strict=True):
        axes.set_xlim(*limits_around(table[:, i]))
        axes.set_ylim(*limits_around(table[:, j]))
        dots = axes.scatter(table[order, i], table[order, j], c=y[order], s=3.5, cmap="cividis",
                            linewidths=0, vmin=least, vmax=most, rasterized=True)  # fmt: skip
        _name_pair(axes, name, "x", i, j)
    return dots


def proposals_in_planes(data: ReportData) -> Iterator[Figure]:
    """Draw the proposals of each method beside rows and function, for designs of two numbers."""
    flat = data.runs[(data.runs["d"] == 2) & (data.runs["status"] == "ok")]
    for _, size in flat.groupby(BY_SIZE, sort=True):
        seed = size["seed"].min()
        parts: list[pd.DataFrame] = []
        styles: dict[tuple[str, str], Style] = {}
        for _, run in size[size["seed"] == seed].iterrows():
            plane = read_details(data, run).get(PLANE)
            if plane is not None and len(parts) < _MOST_PLANES:
                keys = {name: run[name] for name in [*BY_SIZE, *SERIES]}
                parts.append(_plane_table(plane).assign(**keys))
                styles[str(run["method"]), str(run["method_variant"])] = data.style(run)
        if not parts:
            continue
        first, shown = size.iloc[0], pd.concat(parts, ignore_index=True)
        title = f"Proposals: {name_runs(first, 'n', 'd')}, seed {seed}"
        caption = (
            "Contours: the function. Grey: visible rows, at most 400 of them. Diamond: the best "
            "visible design. Star: the optimum. Crosses: the designs that a method itself ranks "
            "highest at its last iteration, at most 64."
        )
        notes = [f" {note}." for note in explain_signs(styles.values())]
        labels = {series: style.label for series, style in styles.items()}
        yield Figure("plane", row_stem("plane", first, "d", "n"), title,
                     "".join([caption, *notes]), str(first["task"]), shown, data.commands(shown),
                     PlanePlot(title, labels))  # fmt: skip


def _plane_table(plane: Mapping[str, Any]) -> pd.DataFrame:
    """Return all points of a plane in rows; those of the grid have values."""
    kinds = [kind for kind in (*_PLANE_LOOKS, "grid") if plane.get(kind)]
    tables = [pd.DataFrame(plane[kind], columns=["x_0", "x_1"]).assign(kind=kind) for kind in kinds]
    return pd.concat([*tables[:-1], tables[-1].assign(value=plane["values"])])


_MOST_PLANES = 8
_PLANE_LOOKS: dict[str, dict[str, Any]] = {
    "rows": {"marker": "o", "s": 3, "color": FAINT, "linewidths": 0, "zorder": 2},
    "best_visible": {"marker": "D", "s": 26, "color": INK, "zorder": 4},
    "proposed": {"marker": "x", "s": 14, "color": "#D55E00", "linewidths": 1.1, "zorder": 5},
    "optimum": {"marker": "*", "s": 95, "color": "#F0E442", "edgecolors": INK, "linewidths": 0.7,
                "zorder": 3},
}  # fmt: skip


@dataclass(frozen=True)
class PlanePlot:
    """A panel per method: contours, rows, optimum, best visible design and proposals."""

    title: str
    labels: Mapping[tuple[str, str], str]  # by method and variant

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the points of all panels; a proposal far outside is left out."""
        across = min(len(self.labels), 4)
        rows = -(-len(self.labels) // across)
        drawing = blank_drawing(0.6 + 1.65 * max(across, 2), 0.5 + 1.75 * rows)
        drawing.set_layout_engine("constrained")
        drawing.suptitle(wrap(self.title, 25 * max(across, 2)), x=0.02, ha="left", fontsize=9.5,
                         parse_math=False)  # fmt: skip
        panels = drawing.subplots(rows, across, squeeze=False, sharex=True, sharey=True).ravel()
        for axes in panels[len(self.labels) :]:
            axes.set_visible(False)
        for axes, (series, label) in zip(panels, self.labels.items(), strict=False):
            own = data[(data[SERIES] == [*series]).all(axis=1)]
            grid = own[own["kind"] == "grid"].pivot_table("value", "x_1", "x_0", dropna=False)
            axes.contour(grid.columns, grid.index, grid, levels=9, colors="#9fb3c8",
                         linewidths=0.6, linestyles="solid", zorder=1)  # fmt: skip
            axes.set_xlim(*limits_around(grid.columns, room=0.0))
            axes.set_ylim(*limits_around(grid.index, room=0.0))
            for kind, look in _PLANE_LOOKS.items():
                points = own[own["kind"] == kind]
                axes.scatter(points["x_0"], points["x_1"], **look)
            axes.set_title(wrap(label, 24), loc="left", fontsize=8, parse_math=False)
            axes.tick_params(labelsize=8)
        for axes in panels[::across]:
            axes.set_ylabel("$x_1$", labelpad=0)
        for axes in panels[max(0, len(self.labels) - across) : len(self.labels)]:
            axes.set_xlabel("$x_0$", labelpad=1)
            axes.tick_params(labelbottom=True)
        freeze(drawing)
        return drawing


def _name_pair(axes: Axes, name: str, sign: str, i: int, j: int) -> None:
    axes.set_xlabel(f"{name} ${sign}_{i}$", labelpad=1)
    axes.set_ylabel(f"${sign}_{j}$", labelpad=0)
    axes.tick_params(labelsize=8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4, integer=True))


def codes_beside_designs(data: ReportData) -> Iterator[Figure]:
    """Draw the codes of one run per task, variant, n and budget: smallest d, first seed."""
    runs = climbing_runs(data)
    runs = runs[column(runs, "latent") != ""]
    for _, family in runs.groupby(BY_N, sort=True):
        for _, size in family.groupby("d", sort=True):
            candidates = size.drop_duplicates("digest")
            found = find_details(data, candidates, _SAMPLES, is_encoded, most=len(candidates))
            if found is not None:
                yield _codes_figure(data, *found)
                break


def is_encoded(details: Details) -> bool:
    """Return whether the codes are more than shifted and scaled observed coordinates."""
    codes, designs = (np.array(details[f"{name}_sample"]) for name in ("codes", "designs"))
    if codes.shape != designs.shape:
        return True
    constant = (np.ptp(codes, axis=0) == 0) | (np.ptp(designs, axis=0) == 0)
    spread = codes.std(axis=0) * designs.std(axis=0)
    shared = ((codes - codes.mean(axis=0)) * (designs - designs.mean(axis=0))).mean(axis=0)
    return bool((constant | (np.abs(shared) < 0.999 * spread)).any())


def sample_table(details: Details) -> pd.DataFrame:
    """Return one row per design of the sample: observed, code and decoded coordinates, value."""
    columns = {
        f"{label}_{i}": values
        for name, label in _TABLES.items()
        for i, values in enumerate(zip(*details[f"{name}_sample"], strict=True))
    }
    return pd.DataFrame({**columns, "y": details["values_sample"]})


def _codes_figure(data: ReportData, run: "pd.Series[Any]", details: Details) -> Figure:
    label = data.style(run).label
    title = f"Codes beside designs: {name_runs(run, 'n', 'd')}, {label}, seed {run['seed']}"
    return Figure("codes", row_stem("codes", run, "d", "n"), title,
                  _codes_caption(run, details, label), str(run["task"]), sample_table(details),
                  tuple(filter(None, [str(run["command"])])), CodesPlot(title))  # fmt: skip


def _codes_caption(run: "pd.Series[Any]", details: Details, label: str) -> str:
    shown = len(details["codes_sample"])
    first = "all" if run["d"] == len(details["designs_sample"][0]) else "the first"
    text = (
        f"{shown} of {run['n']} visible designs of seed {run['seed']}, {first} coordinates two at "
        "a time. Upper row: observed designs; a thin line joins each design to its decoded code. "
        f"Lower row: the codes of {label} (latent: {run['latent']}); the circle would hold "
        "95\u00a0% of standard normal codes. Lighter dots have larger values."
    )
    active = details.get("active_dimensions")
    if active is not None:
        of = f" of {details['latent_dimensions']}" if "latent_dimensions" in details else ""
        text += f" {active}{of} codes are active."
    correlation, valid = details.get("round_trip_correlation"), details.get("round_trip_valid")
    if correlation is not None and valid is not None:
        text += (
            f" After encoding and decoding, {format_percent(valid)} of the designs are valid, and "
            f"their values correlate with the original ones by {format_number(correlation)}."
        )
    return text


@dataclass(frozen=True)
class CodesPlot:
    """Observed designs above their codes, two coordinates at a time."""

    title: str

    def draw(self, data: pd.DataFrame) -> Drawing:
        """Draw the columns of `sample_table`."""
        sample = data.sort_values("y")  # the largest values on top
        observed, codes, decoded = (_coordinates(sample, label) for label in _TABLES.values())
        rows = [("observed", "x", observed), ("code", "z", codes)]
        across = max(len(list(combinations(range(table.shape[1]), 2))) for _, _, table in rows)
        least, most = limits_around(sample["y"], room=0.0)
        title = wrap(self.title, 70)
        drawing = blank_drawing(5.6, 3.6 + 0.17 * title.count("\n"))
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
                    ends = [observed[:, [i, j]], decoded[:, [i, j]],
                            np.full((len(sample), 2), np.nan)]  # fmt: skip
                    path = np.stack(ends, axis=1).reshape(-1, 2)
                    axes.plot(*path.T, color=INK, linewidth=0.7, alpha=0.7, zorder=2)
                else:  # a circle that holds 95 % of a standard normal pair
                    axes.add_patch(Circle((0, 0), 2.45, fill=False, edgecolor=FAINT, linewidth=0.9,
                                          linestyle=(0, (3, 2))))  # fmt: skip
                    axes.set_aspect("equal", adjustable="datalim")
                dots = axes.scatter(table[:, i], table[:, j], c=sample["y"], s=7, cmap="cividis",
                                    linewidths=0, zorder=3, vmin=least, vmax=most)  # fmt: skip
                _name_pair(axes, label, sign, i, j)
        bar = drawing.colorbar(dots, ax=panels, label="visible value $y$ [raw units]", aspect=32)
        bar.outline.set_visible(False)
        freeze(drawing)
        return drawing


def _coordinates(sample: pd.DataFrame, label: str) -> Values:
    names = [name for name in sample if str(name).startswith(f"{label}_")]
    return sample[names].to_numpy(dtype=float)

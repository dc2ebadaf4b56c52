"""The page beside the proposals: one self-contained HTML file with two figures."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from numbers import Real
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from ddobench.propose.fitting import Codes
from ddobench.propose.proposals import Proposals
from ddobench.propose.ranking import PREDICTED
from ddobench.propose.trust import GAIN, GAIN_HIGH, GAIN_LOW, TRUST
from ddobench.report.figures.draw import FAINT, INK, LOOK, PALE, blank_drawing, limits_around
from ddobench.report.figures.figure import render_drawing
from ddobench.report.page import embed_svg
from ddobench.report.tables.formatting import DASH, MINUS
from ddobench.runner.provenance import describe_machine
from ddobench.store.checks import printable
from ddobench.tabular.rows import Values

MOST_DESIGNS, PER_TABLE = 16, 8  # that the page compares with the best row
MOST_COLUMNS = 12  # of a design, those that change most
MOST_DOTS = 1500  # rows that are drawn
SLOPE_ROWS = 200  # at which the slopes of the model are computed
SLOPE_STEP = 0.1  # standard deviations to either side
SLOPE_NUMBERS = 5 * 10**7  # of the designs at which slopes are computed: fewer rows of more columns
LONGEST_NAME = 30  # characters of a column in a figure
NAMED, LONGEST_LABEL = 3, 40  # columns and characters in the label of an axis
_HEADINGS = {
    "held_out_top_rank": "rank correlation on the best rows",
    "held_out_error": "squared error there",
    "off_surface": "off surface",
    "nearest": "nearest row",
    "promised_gain": "promised gain",
    "carried_gain": "carried gain",
    "reason": "why not",
}
_BEST, _PROPOSED = "#d55e00", "#0072b2"


def summarise(found: Proposals) -> str:
    """Return the answer in one line."""
    best = describe_best(found)
    if found.hands_back:
        return f"no new design: {found.fitted.spec.method} hands back the best row; {best}"
    count = len(found.ranked.designs)
    text = f"{count} design{'' if count == 1 else 's'} by {found.fitted.spec.method}"
    if found.winners:
        text += f", which chose {' and '.join(found.winners)}"
    return f"{text}; {best}; {describe_first(found)}"


def describe_best(found: Proposals) -> str:
    """Return which row is the best, and its value."""
    number = found.rows.places[found.best] + 1
    return f"the best row is row {number} with {found.rows.y[found.best]:.4g}"


def describe_first(found: Proposals) -> str:
    """Return what the first design is expected to gain, and how far to trust it."""
    first = found.assessment.iloc[0]
    trust = f"trust: {first[TRUST]}, because {found.trust.reasons[0]}"
    if first[PREDICTED] != first[PREDICTED]:
        return trust
    text = f"design 1 is predicted {first[PREDICTED]:.4g}"
    if first[GAIN] == first[GAIN]:
        text += f", expected gain {format_gain(first[GAIN])}"
        if GAIN_LOW in first:
            text += f" ({format_gain(first[GAIN_LOW])} to {format_gain(first[GAIN_HIGH])})"
    return f"{text}; {trust}"


def render_page(found: Proposals, source: str, table_file: str, command: str) -> str:
    """Return the HTML of the page."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("ddobench.propose"), PackageLoader("ddobench.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _format_cell
    environment.filters["gain"] = lambda value: format_gain(value).replace("-", MINUS)
    with warnings.catch_warnings():  # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", r"(?s)Glyph .* missing from", UserWarning)
        fit = draw_held_out(found)
        fit_svg = None if fit is None else _embed(fit, "fit", "Predicted against measured values")
        directions, caption = draw_directions(found)
        directions_svg = _embed(directions, "directions", "Rows and proposals in two directions")
    packages = describe_machine()["packages"]
    card = found.fitted.spec.card
    shown = min(len(found.ranked.designs), MOST_DESIGNS)
    return environment.get_template("proposals.html").render(
        found=found,
        source=printable(source),
        table_file=printable(table_file),
        command=printable(command),
        method=found.fitted.spec.method,
        summary=card.get("summary", ""),
        best_number=found.rows.places[found.best] + 1,
        best_value=found.rows.y[found.best],
        designs=found.assessment.iloc[:shown].to_dict("records"),
        parts=[range(i, min(i + PER_TABLE, shown)) for i in range(0, shown, PER_TABLE)],
        changes=compare_columns(found, shown),
        most_columns=MOST_COLUMNS,
        candidates=_candidate_table(found.candidates),
        fit=fit_svg,
        directions=directions_svg,
        directions_caption=caption,
        versions=", ".join(f"{name} {packages[name]}" for name in ("ddobench", "torch")),
        written=datetime.now(UTC).isoformat(timespec="minutes"),
    )


def format_gain(value: float) -> str:
    """Format with two digits, as the interval of a gain is wide."""
    return DASH if value != value else f"{value:.0f}" if abs(value) >= 100 else f"{value:.2g}"


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        number = float(value)
        return DASH if number != number else f"{number:.4g}".replace("-", MINUS)
    return DASH if value is None else str(value)


def _embed(drawing: Drawing, name: str, title: str) -> Markup:
    return embed_svg(render_drawing(drawing, "svg").decode(), name, title)


@dataclass(frozen=True)
class ColumnChange:
    """A column of the best row, and what designs have instead."""

    name: str
    best: str
    entries: tuple[str, ...]  # of the designs
    changes: tuple[str, ...]  # difference of numbers, "changed" for categories, empty if equal
    size: float  # largest change, in standard deviations of the rows


def compare_columns(found: Proposals, count: int) -> list[ColumnChange]:
    """Return the columns in which any of the first designs differs from the best row.

    Those that change most come first.
    """
    best = found.rows.designs.iloc[found.best]
    changes = []
    for column in found.visible.encoding.columns:
        entries = found.ranked.designs[column.name].iloc[:count]
        digits = None if column.decimals is None else max(0, column.decimals)
        if column.numeric:
            rows = found.rows.designs[column.name].to_numpy(np.float64)
            differences = entries.to_numpy(np.float64) - float(best[column.name])
            size = float(np.abs(differences).max(initial=0.0) / (rows.std() or 1.0))
            texts = [_format_entry(x, digits) if x else "" for x in differences]
            signs = [x if not x or x.startswith(MINUS) else f"+{x}" for x in texts]
        else:
            changed = [bool(entry != best[column.name]) for entry in entries]
            size, signs = float(any(changed)), ["changed" if one else "" for one in changed]
        if any(signs):
            texts = [_format_entry(entry, digits) for entry in entries]
            was = _format_entry(best[column.name], digits)
            changes.append(
                ColumnChange(printable(column.name), was, tuple(texts), tuple(signs), size)
            )
    return sorted(changes, key=lambda one: -one.size)


def _format_entry(entry: Any, decimals: int | None) -> str:
    if decimals is not None:
        return f"{float(entry):.{decimals}f}".replace("-", MINUS)
    return printable(_format_cell(entry))


def _candidate_table(candidates: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the candidates that the method compared, with readable headings."""
    table = pd.DataFrame([dict(one) for one in candidates])
    empty = [name for name in table if not table[name].map(lambda x: x == x and x != "").any()]
    table = table.drop(columns=[name for name in empty if name != "chosen"])
    first = [name for name in ("candidate", "chosen") if name in table]
    rest = [name for name in table if name not in (*first, "reason")]
    last = ["reason"] if "reason" in table else []
    return table[[*first, *rest, *last]].rename(columns=lambda name: _HEADINGS.get(name, name))


def draw_held_out(found: Proposals) -> Drawing | None:
    """Draw predictions of rows that were not fitted against their values, None without a check."""
    check = found.check
    if check is None:
        return None
    sign = -1.0 if found.options.minimise else 1.0
    values, predicted = found.rows.y[check.rows], sign * check.predicted
    proposed = found.ranked.assessment[PREDICTED].to_numpy()
    with mpl.rc_context(LOOK):
        drawing, axes = _blank()
        limits = limits_around([*values, *predicted])
        axes.plot(limits, limits, color=FAINT, linewidth=0.8, zorder=1)
        for chosen, color, label in (
            (~check.best, FAINT, "rows, held out"),
            (check.best, _BEST, "best rows, held out"),
        ):
            axes.scatter(values[chosen], predicted[chosen], s=12, color=color, alpha=0.8,
                         linewidth=0, label=label)  # fmt: skip
        near = proposed[(proposed >= limits[0] - 1e-9) & (proposed <= limits[1] + 1e-9)]
        axes.hlines(near, limits[0], limits[0] + 0.03 * (limits[1] - limits[0]),
                    color=_PROPOSED, linewidth=0.9, label="proposals, predicted")  # fmt: skip
        axes.set(xlim=limits, ylim=limits)
        axes.set_xlabel(f"measured {_shorten(found.rows.target)}", parse_math=False)
        axes.set_ylabel("predicted")
        _finish(drawing, axes)
    return drawing


def draw_directions(found: Proposals) -> tuple[Drawing, str]:
    """Draw rows and proposals in the two most important directions, and describe these."""
    # a model of categories has no slopes between them
    native = found.fitted.encoding.native
    directions = find_directions(
        found.visible.codes, (lambda _: None) if native else found.fitted.predict_mean
    )
    names = [_shorten(name) for name in found.visible.encoding.names()]
    rows = directions.project(found.visible.codes)
    proposed = directions.project(found.ranked.codes)
    some = _thin(len(rows))
    with mpl.rc_context(LOOK):
        drawing, axes = _blank()
        dots = axes.scatter(
            rows[some, 0], rows[some, 1], s=9, c=found.rows.y[some], cmap="cividis", linewidth=0,
            label="rows",
        )  # fmt: skip
        axes.scatter(
            proposed[:, 0], proposed[:, 1], s=24, facecolor="none", edgecolor=_BEST,
            linewidth=0.9, label="proposals",
        )  # fmt: skip
        both = np.concatenate([rows, proposed])
        axes.set(xlim=limits_around(both[:, 0]), ylim=limits_around(both[:, 1]))
        axes.set_xlabel(directions.label(0, names), parse_math=False)
        axes.set_ylabel(directions.label(1, names), parse_math=False)
        bar = drawing.colorbar(dots, ax=axes, pad=0.02)
        bar.set_label(f"value of {_shorten(found.rows.target)}", parse_math=False)
        bar.outline.set_visible(False)
        _finish(drawing, axes)
    share = f"{directions.shares.sum():.0%} of "
    share += "its squared slopes" if directions.by_model else "their variance"
    if not all(name.isascii() for name in names):  # the font of the figure may lack letters
        across, up = (directions.label(axis, names) for axis in (0, 1))
        share += f"; horizontally {across}, vertically {up}"
    what = "the model changes" if directions.by_model else "the rows vary"
    return drawing, f"along which {what} most ({share})"


def _shorten(name: str) -> str:
    """Return the name of a column on one line, for a figure."""
    text = printable(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 1]}…"


def _blank() -> tuple[Drawing, Axes]:
    drawing = blank_drawing(4.9, 3.2)
    axes = drawing.add_subplot()
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    return drawing, axes


def _finish(drawing: Drawing, axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, fontsize=8,
        labelcolor=INK, borderaxespad=0.2, handletextpad=0.3,
    )  # fmt: skip
    drawing.tight_layout(pad=0.4)


def _thin(rows: int) -> NDArray[np.intp]:
    """Return which rows are drawn."""
    return np.unique(np.linspace(0, rows - 1, min(rows, MOST_DOTS)).astype(np.intp))


@dataclass(frozen=True)
class Directions:
    """Two axes through the mean of the rows, each column in its standard deviations."""

    mean: Values  # (e,)
    scale: Values  # (e,)
    axes: Values  # (e, 2)
    shares: Values  # (2,) of the squared slopes, or of the variance
    by_model: bool

    def project(self, codes: Codes) -> Values:  # (K, e) -> (K, 2)
        """Return where designs lie in the two directions."""
        projected: Values = (codes - self.mean) / self.scale @ self.axes
        return projected

    def label(self, axis: int, names: list[str]) -> str:
        """Label an axis with the columns of the largest weights."""
        weights = self.axes[:, axis]
        largest = np.argsort(-np.abs(weights), kind="stable")[:NAMED]
        parts = [f"{weights[i]:+.2f} {names[i]}" for i in largest if abs(weights[i]) > 0.005]
        label = ""
        for i, part in enumerate(parts):
            if i and len(label) + len(part) > LONGEST_LABEL:
                break
            label += f" {part}"
        return label.strip() + (" …" if len(weights) > NAMED else "")


def find_directions(rows: Codes, predict: Callable[[Codes], Values | None]) -> Directions:
    """Find the two directions in which a model changes most, for rows (N, e).

    They are the leading axes of its slopes at some of the rows (an active subspace), by central
    differences; without a model they are the principal axes of the rows.
    """
    mean, sd = rows.mean(axis=0), rows.std(axis=0)
    scale = np.where(sd > 0, sd, 1.0)
    table, by_model = (rows - mean) / scale, False
    width = rows.shape[1]
    if (count := min(SLOPE_ROWS, SLOPE_NUMBERS // (2 * width**2))) > 0:
        some = rows[np.linspace(0, len(rows) - 1, count).astype(int)]  # (K, e)
        steps = SLOPE_STEP * np.diag(scale)  # (e, e)
        around = np.stack([some[:, None, :] + steps, some[:, None, :] - steps])  # (2, K, e, e)
        predicted = predict(around.reshape(-1, width))
        if predicted is not None:
            above, below = predicted.reshape(2, *some.shape)
            slopes = (above - below) / (2 * SLOPE_STEP)  # (K, e)
            if np.isfinite(slopes).all() and slopes.any():
                table, by_model = slopes, True
    if len(table) < width:  # the same axes, from the smaller product
        _, singular, transposed = np.linalg.svd(table, full_matrices=False)
        values, vectors = singular[::-1] ** 2, transposed[::-1].T
    else:
        values, vectors = np.linalg.eigh(table.T @ table / len(table))
    axes, shares = vectors[:, ::-1][:, :2], values[::-1][:2] / max(values.sum(), 1e-300)
    if axes.shape[1] < 2:  # a single column: the second direction is flat
        axes, shares = np.hstack([axes, np.zeros_like(axes)]), np.append(shares, 0.0)
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])
    return Directions(mean, scale, axes * np.where(signs == 0, 1.0, signs), shares, by_model)

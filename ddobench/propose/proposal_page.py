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

from ddobench.propose.fitting import HIDE, Codes
from ddobench.propose.proposals import Proposals
from ddobench.propose.ranking import PREDICTED
from ddobench.report.figures.draw import FAINT, INK, LOOK, PALE, blank_drawing, limits_around
from ddobench.report.figures.figure import render_drawing
from ddobench.report.page import embed_svg
from ddobench.report.tables.formatting import DASH, MINUS
from ddobench.runner.provenance import describe_machine
from ddobench.scores import HELD_OUT_ERROR
from ddobench.store.checks import printable
from ddobench.tabular.rows import Values

MOST_ROWS, MOST_COLUMNS = 20, 12  # of the table on the page, besides the columns that we add
MOST_DOTS = 1500  # rows that are drawn
SLOPE_ROWS = 200  # at which the slopes of the model are computed
SLOPE_STEP = 0.1  # standard deviations to either side
SLOPE_NUMBERS = 5 * 10**7  # of the designs at which slopes are computed: fewer rows of more columns
LONGEST_NAME = 30  # characters of a column in a figure
NAMED = 3  # columns in the label of an axis
_HEADINGS = {
    "held_out_top_rank": "Rank correlation on the best rows",
    HELD_OUT_ERROR.name: "Squared error on them (variance of all rows is 1)",
    "reason": "Why not",
}
_HIDDEN, _PROPOSED = "#d55e00", "#0072b2"


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
    with warnings.catch_warnings():  # a character that the font lacks is drawn as a box
        warnings.filterwarnings("ignore", r"(?s)Glyph .* missing from", UserWarning)
        fit = draw_fit(found)
        fit_svg = None if fit is None else _embed(fit, "fit", "Predicted against given values")
        directions, caption = draw_directions(found)
        directions_svg = _embed(directions, "directions", "Rows and proposals in two directions")
    packages = describe_machine()["packages"]
    card = found.fitted.spec.card
    columns = _shown_columns(found)
    return environment.get_template("proposals.html").render(
        found=found,
        source=printable(source),
        table_file=printable(table_file),
        command=printable(command),
        label=card.get("label", found.fitted.spec.method),
        summary=card.get("summary", ""),
        shown=found.table.iloc[:MOST_ROWS, columns],
        omitted=len(found.table.columns) - len(columns),
        candidates=_candidate_table(found.candidates),
        hide=HIDE,
        fit=fit_svg,
        directions=directions_svg,
        directions_caption=caption,
        versions=", ".join(f"{name} {packages[name]}" for name in ("ddobench", "torch")),
        written=datetime.now(UTC).isoformat(timespec="minutes"),
    )


def _format_cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        number = float(value)
        return DASH if number != number else f"{number:.4g}".replace("-", MINUS)
    return DASH if value is None else str(value)


def _embed(drawing: Drawing, name: str, title: str) -> Markup:
    return embed_svg(render_drawing(drawing, "svg").decode(), name, title)


def _shown_columns(found: Proposals) -> list[int]:
    """Return the columns of the table on the page: the assessment, then the first of a design."""
    designs, added = len(found.ranked.designs.columns), len(found.ranked.assessment.columns)
    return [*range(designs, designs + added), *range(min(designs, MOST_COLUMNS))]


def _candidate_table(candidates: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the candidates that the method compared, with readable headings."""
    table = pd.DataFrame([dict(one) for one in candidates])
    if "reason" in table and not table["reason"].any():
        table = table.drop(columns="reason")
    return table.rename(columns=lambda name: _HEADINGS.get(str(name), str(name).capitalize()))


def draw_fit(found: Proposals) -> Drawing | None:
    """Draw predictions of the rows against their values, None without a model."""
    fitted = found.fitted.predict_mean(found.visible)
    if fitted is None:
        return None
    sign = -1.0 if found.options.minimise else 1.0
    values, predicted = found.rows.y, sign * fitted
    some = _thin(len(values))
    proposed = found.ranked.assessment[PREDICTED].to_numpy()
    with mpl.rc_context(LOOK):
        drawing, axes = _blank()
        limits = limits_around([*values, *predicted, *proposed])
        axes.plot(limits, limits, color=FAINT, linewidth=0.8, zorder=1)
        axes.scatter(values[some], predicted[some], s=7, color=FAINT, alpha=0.5, linewidth=0,
                     label="rows, as fitted")  # fmt: skip
        if found.check is not None:
            axes.scatter(
                values[found.check.hidden], sign * found.check.predicted, s=10, color=_HIDDEN,
                alpha=0.8, linewidth=0, label="best rows, held out",
            )  # fmt: skip
        axes.hlines(proposed, limits[0], limits[0] + 0.03 * (limits[1] - limits[0]),
                    color=_PROPOSED, linewidth=0.7, label="proposals, predicted")  # fmt: skip
        axes.set(xlim=limits_around(values), ylim=limits)
        axes.set_xlim(min(axes.get_xlim()[0], limits[0]), axes.get_xlim()[1])
        axes.set_xlabel(f"value of {_shorten(found.rows.target)}", parse_math=False)
        axes.set_ylabel("predicted")
        _finish(drawing, axes)
    return drawing


def draw_directions(found: Proposals) -> tuple[Drawing, str]:
    """Draw rows and proposals in the two most important directions, and describe these."""
    # a model of categories has no slopes between them
    native = found.fitted.encoding.native
    directions = find_directions(
        found.row_codes, (lambda _: None) if native else found.fitted.predict_mean
    )
    names = [_shorten(name) for name in found.one_hot.names()]
    rows, proposed = directions.project(found.row_codes), directions.project(found.ranked.codes)
    some = _thin(len(rows))
    with mpl.rc_context(LOOK):
        drawing, axes = _blank()
        dots = axes.scatter(
            rows[some, 0], rows[some, 1], s=9, c=found.rows.y[some], cmap="cividis", linewidth=0,
            label="rows",
        )  # fmt: skip
        axes.scatter(
            proposed[:, 0], proposed[:, 1], s=24, facecolor="none", edgecolor=_HIDDEN,
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
        return " ".join(parts) + (" …" if len(weights) > NAMED else "")


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

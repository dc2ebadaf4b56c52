"""The two figures of the page: what the model makes of the rows, and where the proposals lie."""

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from numpy.typing import NDArray

from ddobench.proposing.directions import find_directions
from ddobench.proposing.proposals import PREDICTED
from ddobench.proposing.propose import Proposals
from ddobench.report.figures.draw import FAINT, INK, LOOK, PALE, blank_drawing, limits_around
from ddobench.tabular.rows import Values

MOST_DOTS = 1500  # rows that are drawn
_HIDDEN, _PROPOSED = "#d55e00", "#0072b2"


def draw_fit(found: Proposals) -> Drawing | None:
    """Draw what the model predicts of the rows against their values, None without a model."""
    fitted = found.fitted.predict_mean(found.visible)
    if fitted is None:
        return None
    truth, predicted = found.rows.y, _signed(found, fitted)
    some = _thin(len(truth))
    promised = found.chosen.told[PREDICTED].to_numpy()
    with mpl.rc_context(LOOK):
        drawing, axes = _blank()
        limits = limits_around([*truth, *predicted, *promised])
        axes.plot(limits, limits, color=FAINT, linewidth=0.8, zorder=1)
        axes.scatter(truth[some], predicted[some], s=7, color=FAINT, alpha=0.5, linewidth=0,
                     label="rows, as fitted")  # fmt: skip
        if found.check is not None:
            axes.scatter(
                truth[found.check.hidden], _signed(found, found.check.predicted), s=10,
                color=_HIDDEN, alpha=0.8, linewidth=0, label="best rows, predicted without them",
            )  # fmt: skip
        axes.hlines(promised, limits[0], limits[0] + 0.03 * (limits[1] - limits[0]),
                    color=_PROPOSED, linewidth=0.7, label="what the proposals promise")  # fmt: skip
        axes.set(xlim=limits_around(truth), ylim=limits)
        axes.set_xlim(min(axes.get_xlim()[0], limits[0]), axes.get_xlim()[1])
        axes.set_xlabel(f"value of {found.rows.target}", parse_math=False)
        axes.set_ylabel("predicted")
        _finish(drawing, axes)
    return drawing


def draw_directions(found: Proposals) -> tuple[Drawing, str]:
    """Draw rows and proposals in the two directions that matter most, and say which these are."""
    # a model of categories cannot be asked between them
    ask = (lambda _: None) if found.fitted.encoding.native else found.fitted.predict_mean
    directions = find_directions(found.placed, ask)
    names = found.numbers.names()
    rows, proposed = directions.project(found.placed), directions.project(found.chosen.codes)
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
        axes.set_xlabel(directions.describe(0, names), parse_math=False)
        axes.set_ylabel(directions.describe(1, names), parse_math=False)
        bar = drawing.colorbar(dots, ax=axes, pad=0.02)
        bar.set_label(f"value of {found.rows.target}", parse_math=False)
        bar.outline.set_visible(False)
        _finish(drawing, axes)
    share = directions.shares.sum()
    if directions.by_model:
        told = f"the two directions along which the model changes most ({share:.0%} of its slopes)"
    else:
        told = f"the two directions along which the rows vary most ({share:.0%} of their variance)"
    return drawing, told


def _blank() -> tuple[Drawing, Axes]:
    drawing = blank_drawing(4.9, 3.2)
    axes = drawing.add_subplot()
    axes.grid(axis="y", color=PALE, linewidth=0.6)
    axes.set_axisbelow(True)
    return drawing, axes


def _finish(drawing: Drawing, axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, frameon=False, fontsize=8,
        labelcolor=INK, borderaxespad=0.2, handletextpad=0.3,
    )  # fmt: skip
    drawing.tight_layout(pad=0.4)


def _signed(found: Proposals, predicted: Values) -> Values:
    """Return predictions in the units of the table."""
    return -predicted if found.options.minimise else predicted


def _thin(rows: int) -> NDArray[np.intp]:
    """Return which rows are drawn."""
    return np.unique(np.linspace(0, rows - 1, min(rows, MOST_DOTS)).astype(np.intp))

"""Grids of small panels that share their axes, with one legend below them all."""

from collections.abc import Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.lines import Line2D

from ddobench.report.figures.drawing import FAINT, INK, PALE, blank_drawing
from ddobench.report.figures.labels import wrap_text
from ddobench.report.figures.series import marker_look, sample_line
from ddobench.report.tables.formats import format_number
from ddobench.report.tables.styles import Style

WIDTH = 7.0  # inches, the text width of a journal page
_PANEL = 2.15  # inches of height
_LEGEND_LINE = 0.17  # inches
_WIDEST_LABEL = 46  # characters of one entry of the legend
_WIDEST_TITLE = 90
_ROW = 0.27  # inches
_WIDEST_ROW = 34  # characters of its label
_CLOSE = 0.12  # of a panel's height, within which the numbers of two lines would meet


def panel_grid(
    count: int, title: str, styles: Sequence[Style], x: str, y: str
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with so many panels, its title, its legend and the names of its axes."""
    columns = count if count < 4 else 2 if count == 4 else 3
    rows = ceil(count / columns)
    entries = [wrap_text(style.label, _WIDEST_LABEL) for style in styles]
    across = _legend_columns(entries)
    lines = ceil(len(entries) / across) * max((1 + e.count("\n") for e in entries), default=1)
    title = wrap_text(title, _WIDEST_TITLE)
    height = 0.45 + _PANEL * rows + _LEGEND_LINE * (lines + title.count("\n"))
    drawing = blank_drawing(WIDTH, height)
    drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
    grid = drawing.subplots(rows, columns, squeeze=False, sharex=True, sharey=True)
    panels: list[Axes] = list(grid.flat)
    for spare in panels[count:]:
        spare.set_visible(False)
    for i, axes in enumerate(panels[:count]):
        if i % columns == 0:
            axes.set_ylabel(y, fontsize=8.5)
        if i + columns >= count:
            axes.set_xlabel(x, fontsize=8.5)
        axes.grid(axis="y", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.tick_params(labelsize=8, labelbottom=True, labelleft=True)
    if entries:
        add_legend(drawing, styles, across)
    return drawing, panels[:count]


def add_legend(drawing: Drawing, styles: Sequence[Style], across: int) -> None:
    """Explain these looks below all panels, so many side by side."""
    legend = drawing.legend(
        [_sample(style) for style in styles],
        [wrap_text(style.label, _WIDEST_LABEL) for style in styles],
        loc="outside lower left", ncols=across, frameon=False, fontsize=8, handlelength=3.2,
        columnspacing=1.6, borderaxespad=0.2,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)


def draw_landmarks(axes: Axes, best_visible: float, optimum: float) -> None:
    """Draw both as thin lines across a panel whose limits are set, their numbers in the margin."""
    low, high = axes.get_ylim()
    close = abs(optimum - best_visible) < _CLOSE * (high - low)
    above = -1 if best_visible > optimum else 1  # noise may lift a visible value over the optimum
    for name, value, side in (("best visible", best_visible, -above), ("optimum", optimum, above)):
        if np.isfinite(value):
            axes.axhline(value, color=FAINT, linewidth=0.9, dashes=(1.5, 1.5), zorder=1)
            axes.annotate(
                f"{name}\n{format_number(value)}", (1, value), (3, (1 if close else -4) * side),
                xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=7,
                va="bottom" if side > 0 else "top", color=INK, linespacing=1.05,
                annotation_clip=False,
            )  # fmt: skip


def row_panels(
    count: int, title: str, labels: Sequence[str], places: Sequence[float]
) -> tuple[Drawing, list[Axes]]:
    """Return a drawing with panels side by side, whose rows have the same labels and places."""
    title = wrap_text(title, _WIDEST_TITLE)
    height = 0.95 + _ROW * (places[-1] + 1) + _LEGEND_LINE * title.count("\n")
    drawing = blank_drawing(WIDTH, height)
    drawing.set_layout_engine("constrained", w_pad=0.06, h_pad=0.06)
    drawing.suptitle(title, x=0.012, ha="left", fontsize=9.5, parse_math=False)
    panels: list[Axes] = list(drawing.subplots(1, count, sharey=True, squeeze=False)[0])
    for axes in panels:
        axes.grid(axis="x", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines["left"].set_visible(False)
        axes.tick_params(axis="y", length=0)
        axes.tick_params(axis="x", labelsize=8)
    panels[0].set_yticks(places, [wrap_text(text, _WIDEST_ROW) for text in labels], fontsize=8)
    for text in panels[0].get_yticklabels():
        text.set_parse_math(False)
    panels[0].set_ylim(places[-1] + 0.6, -0.6)
    return drawing, panels


def draw_row(
    axes: Axes, place: float, mean: float, ends: tuple[float, float], style: Style,
    *, hollow: bool = False,
) -> None:  # fmt: skip
    """Draw a mean with its interval in its row."""
    axes.hlines(place, *ends, color=style.color, linewidth=1.6, zorder=3)
    axes.plot([mean], [place], linestyle="none", zorder=4, **marker_look(style, 6.5, hollow=hollow))


def freeze_layout(drawing: Drawing) -> None:
    """Arrange everything once, for all formats alike."""
    drawing.draw_without_rendering()
    drawing.set_layout_engine("none")


def _sample(style: Style) -> Line2D:
    sample = sample_line(style)
    sample.set(**marker_look(style, 5))
    return sample


def _legend_columns(entries: Sequence[str]) -> int:
    """Return how many entries fit side by side."""
    widest = max((len(line) for entry in entries for line in entry.split("\n")), default=1)
    inches = 0.65 + 0.068 * widest
    return int(np.clip(WIDTH // inches, 1, max(len(entries), 1)))

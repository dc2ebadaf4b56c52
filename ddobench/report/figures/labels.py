"""Direct labels: the name of each curve beside its last point, instead of a legend over it."""

import re
from collections.abc import Sequence
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.offsetbox import AnnotationBbox, DrawingArea, HPacker, TextArea
from matplotlib.transforms import ScaledTranslation

from ddobench.report.figures.series import marker_look, sample_line
from ddobench.report.tables.formats import format_number
from ddobench.report.tables.styles import Style

_LINE = 0.062  # height of a line of text, as a fraction of the axes
_GAP = 12  # points between the axes and the labels
_WIDEST = 20  # characters before a label is wrapped
_JOINT = "\u2060"  # where a long word may be broken; not printed
_SAMPLE = 24  # points of a curve shown beside its label


def label_ends(axes: Axes, ends: Sequence[tuple[Style, float]]) -> None:
    """Write every curve's look, label and last value in the right margin, none over another.

    `ends` are the style and last value of each curve; the limits of the axes must be set. A label
    stands as near to its curve's end as others let it, and no line leads there: it would look like
    data.
    """
    low, high = axes.get_ylim()
    ordered = sorted(ends, key=lambda end: end[1])
    texts = [f"{wrap_text(style.label, _WIDEST)}: {format_number(y)}" for style, y in ordered]
    heights = [_LINE * (1 + text.count("\n")) for text in texts]
    wanted = [(y - low) / (high - low) for _, y in ordered]
    margin = axes.transAxes + ScaledTranslation(_GAP / 72, 0, axes.figure.dpi_scale_trans)
    for (style, _), text, place in zip(ordered, texts, spread(wanted, heights), strict=True):
        axes.add_artist(
            AnnotationBbox(
                _sample(style, text),
                xy=(1, place),
                xycoords=margin,
                box_alignment=(0, 0.5),
                frameon=False,
                pad=0,
                annotation_clip=False,
            )
        )


def _sample(style: Style, text: str) -> HPacker:
    area = DrawingArea(_SAMPLE, 8)
    area.add_artist(sample_line(style, [0, _SAMPLE], [4, 4]))
    area.add_artist(Line2D([_SAMPLE / 2], [4], linestyle="none", **marker_look(style, 5)))
    words = {"fontsize": 8.5, "parse_math": False}
    label = TextArea(text, textprops=words)
    return HPacker(children=[area, label], align="center", pad=0, sep=4)


def wrap_text(text: str, width: int) -> str:
    """Break a text into at most three lines of so many characters, long words at their joints."""
    if any(len(word) > width for word in text.split()):
        text = re.sub(r"(?<=[_=])", f"{_JOINT} ", text)
    broken = fill(text, width, max_lines=3, placeholder=" \u2026")
    return broken.replace(f"{_JOINT} ", "").replace(_JOINT, "")


def spread(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Move ascending positions as little as needed for boxes of these heights not to overlap."""
    groups: list[tuple[list[int], float]] = []  # members and the centre of their stack
    for i in range(len(wanted)):
        members, centre = [i], wanted[i]
        while groups and _bottom(members, centre, heights) < _top(*groups[-1], heights):
            members = groups.pop()[0] + members
            centre = _stack_centre(members, wanted, heights)
        groups.append((members, centre))
    places = [0.0] * len(wanted)
    for members, centre in groups:
        position = _bottom(members, centre, heights)
        for i in members:
            places[i] = position + heights[i] / 2
            position += heights[i]
    return places


def _stack_centre(
    members: Sequence[int], wanted: Sequence[float], heights: Sequence[float]
) -> float:
    """Return where a stack of boxes must be centred for its boxes to be nearest their wishes."""
    total = sum(heights[i] for i in members)
    below = 0.0
    wishes = []
    for i in members:
        wishes.append(wanted[i] - (below + heights[i] / 2) + total / 2)
        below += heights[i]
    return sum(wishes) / len(wishes)


def _bottom(members: Sequence[int], centre: float, heights: Sequence[float]) -> float:
    return centre - sum(heights[i] for i in members) / 2


def _top(members: Sequence[int], centre: float, heights: Sequence[float]) -> float:
    return centre + sum(heights[i] for i in members) / 2

"""How each method looks, in every figure and table alike.

A method's colour comes from its card. Its marker and dashes follow from the colour where that is
one of the Okabe-Ito palette, which colour-blind readers can tell apart, and from the method's name
otherwise; so a method looks the same in every report, and no two series of a report share a marker
while there are markers left.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

import pandas as pd
from matplotlib.colors import is_color_like, to_hex

PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"),
    *("#000000", "#7a5195", "#8c6d31", "#5f6b6d"),  # further tones, apart in lightness
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
DASHES: tuple[tuple[float, ...], ...] = ((), (5, 1.6), (1.4, 1.4), (6, 1.6, 1.4, 1.6), (3, 1.4))

SIGNS = {"graph": "†", "hidden": "‡"}
_KNOWLEDGE = {"graph": "the true graph", "hidden": "the hidden coordinates"}
_OTHER_SIGN = "§"
REMARK_SIGN = "¶"


@dataclass(frozen=True)
class Style:
    """The look of one series: a method in one variant, on one task."""

    label: str  # with the signs of its privileges and remarks
    color: str  # "#rrggbb"
    marker: str
    dashes: tuple[float, ...]  # on, off, ... in line widths; empty: solid
    privileges: tuple[str, ...]
    name: str = ""  # the label without the signs
    remarks: tuple[str, ...] = ()  # what a reader must know before believing it, by its name


Key = tuple[str, str, str]  # task, method, method variant


def assign_styles(
    runs: pd.DataFrame, remarks: Mapping[str, tuple[str, ...]] | None = None
) -> dict[Key, Style]:
    """Give every method and variant of these runs a look of its own, the same on all tasks.

    What a method is told beyond the visible table may differ from task to task, and so may the
    signs behind its name. `remarks` are by digest.
    """
    cards = {str(method): _card(rows) for method, rows in runs.groupby("method")}
    labels = pd.Series({method: label for method, (label, _) in cards.items()}, dtype=object)
    ambiguous = set(labels[labels.duplicated(keep=False)].index)
    colors = _assign_colors({method: color for method, (_, color) in cards.items()})
    styles: dict[Key, Style] = {}
    taken: set[int] = set()
    for (method, variant), rows in _plainest_first(runs):
        slot = _free_slot(_preferred_slot(method, colors[method]), taken, len(MARKERS))
        taken.add(slot)
        name = f"{cards[method][0]} ({method})" if method in ambiguous else cards[method][0]
        suffix = f", {variant}" if variant else ""
        for task, own in rows.groupby("task"):
            privileges = privileges_of(own)
            told = {
                text for digest in set(own["digest"]) for text in (remarks or {}).get(digest, ())
            }
            signs = "".join(dict.fromkeys(sign_of(privilege) for privilege in privileges))
            signs += REMARK_SIGN if told else ""
            styles[str(task), method, variant] = Style(
                label=name + signs + suffix,
                name=name + suffix,
                color=colors[method],
                marker=MARKERS[slot % len(MARKERS)],
                dashes=DASHES[slot % len(DASHES)],
                privileges=privileges,
                remarks=tuple(f"{name}: {text}" for text in sorted(told)),
            )
    return styles


def privileges_of(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return what any of these runs was told beyond the visible table."""
    words = {word for text in runs["privileges"] for word in re.findall(r"\w+", text)}
    return tuple(sorted(words))


def sign_of(privilege: str) -> str:
    """Return the sign that marks a privilege."""
    return SIGNS.get(privilege, _OTHER_SIGN)


def explain_signs(styles: Iterable[Style]) -> list[str]:
    """Spell out every sign that these styles use."""
    shown = list(styles)
    used = {privilege for style in shown for privilege in style.privileges}
    remarks = {remark for style in shown for remark in style.remarks}
    return [
        *(f"{sign_of(name)} knows {_KNOWLEDGE.get(name, name)}" for name in sorted(used)),
        *(f"{REMARK_SIGN} {remark}" for remark in sorted(remarks)),
    ]


def _card(rows: pd.DataFrame) -> tuple[str, str]:
    """Return a method's label and colour, the method's name and "" where its card is silent."""
    label = next((label for label in rows["label"] if label), str(rows["method"].iloc[0]))
    color = next((color for color in rows["color"] if is_color_like(color)), "")
    return label, to_hex(color) if color else ""


def _assign_colors(wanted: Mapping[str, str]) -> dict[str, str]:
    """Fill in a colour for methods without one: a free one of the palette, picked by name."""
    colors = {method: color for method, color in wanted.items() if color}
    taken = {PALETTE.index(color) for color in colors.values() if color in PALETTE}
    for method in sorted(set(wanted) - set(colors)):
        slot = _free_slot(crc32(method.encode()), taken, len(PALETTE))
        taken.add(slot)
        colors[method] = PALETTE[slot]
    return colors


def _plainest_first(runs: pd.DataFrame) -> list[tuple[tuple[str, str], pd.DataFrame]]:
    """List the series, defaults before variants, so that variants never take a default's marker."""
    series = [
        ((str(method), str(variant)), rows)
        for (method, variant), rows in runs.groupby(["method", "method_variant"])
    ]
    return sorted(series, key=lambda item: (bool(item[0][1]), item[0]))


def _preferred_slot(method: str, color: str) -> int:
    return PALETTE.index(color) if color in PALETTE else crc32(method.encode())


def _free_slot(preferred: int, taken: set[int], slots: int) -> int:
    """Return the first free slot at or after the preferred one, the preferred one if none is."""
    order = [(preferred + step) % slots for step in range(slots)]
    return next((slot for slot in order if slot not in taken), order[0])

"""How each series looks and is called, in every figure and table alike."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pandas as pd

from ddobench.report.tables.looks import Look, look_of_method, look_of_variant

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
    looks = {method: look_of_method(method, color) for method, (_, color) in cards.items()}
    styles: dict[Key, Style] = {}
    taken: set[Look] = set()
    for key, rows in runs.groupby(["method", "method_variant"]):
        method, variant = map(str, key)
        look = _free_look(looks[method], variant, taken) if variant else looks[method]
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
                color=look.color,
                marker=look.marker,
                dashes=look.dashes,
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
    """Return the label and the colour that runs were stored with, the method's name without one."""
    label = next((label for label in rows["label"] if label), str(rows["method"].iloc[0]))
    return label, next((color for color in rows["color"] if color), "")


def _free_look(method: Look, variant: str, taken: set[Look]) -> Look:
    """Return the look of a variant; one that another has by chance gives way to the next."""
    again = 0
    while (look := look_of_variant(method, variant, again)) in taken and again < len(taken):
        again += 1
    taken.add(look)
    return look

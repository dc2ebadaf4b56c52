"""The label, colour, marker and dashes of each series, the same in every figure and table.

They come from the card of a method and do not depend on what else is stored. If a card is missing
or incomplete, they are derived from the method's name. A variant has a shade of its method's
colour, and a marker and dashes derived from its settings.

A remark, declared in conf/report.yaml, is a caveat about a method. It selects runs by settings, so
that it applies to every method with a part: `{surrogate: units, surrogate.form: gaussian}`. A key
such as `task.bump` restricts it to tasks with that setting.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from colorsys import hls_to_rgb, rgb_to_hls
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

import pandas as pd
from matplotlib.colors import is_color_like, to_hex, to_rgb

from ddobench.errors import UsageError
from ddobench.registry import PARTS, read_choice
from ddobench.variants import split_variant

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")  # all filled
LINES: dict[str, tuple[float, ...]] = {  # on, off, ... in line widths; empty: solid
    "solid": (),
    "dashed": (5, 1.6),
    "dotted": (1.4, 1.4),
    "dashdot": (6, 1.6, 1.4, 1.6),
    "short": (3, 1.4),
}
BEST_VISIBLE_ROLE, REFERENCE, USUAL = "nothing", "reference", "usual"  # roles on a card
SIGNS = {"graph": "†", "hidden": "‡"}  # of privileges
PRIVILEGES = {"graph": "the true graph", "hidden": "the hidden coordinates"}
_OTHER_SIGN = "§"
REMARK_SIGN = "¶"
DASHES = tuple(LINES.values())
_DOI = re.compile(r"10\.[0-9.]+/[A-Za-z0-9._;()/:-]+")
_SHADES = (0.7, 1.0, 1.3)  # of the lightness of a method's colour
_LIGHTEST = 0.68  # lightness that is visible on white


@dataclass(frozen=True)
class Look:
    """Colour, marker and dashes."""

    color: str  # "#rrggbb"
    marker: str
    dashes: tuple[float, ...]


def look_of_method(method: str, stored_color: str = "") -> Look:
    """Return the look from a method's card, else its stored colour, else derived from its name."""
    card = _read_card(method)
    number = crc32(method.encode())
    colors = (card.get("color"), stored_color)
    color = next((to_hex(one) for one in colors if one and is_color_like(one)), "")
    marker = card.get("marker")
    return Look(
        color=color or to_hex(hls_to_rgb(number / 2**32, 0.4, 0.6)),
        marker=marker if marker in MARKERS else MARKERS[number % len(MARKERS)],
        dashes=LINES.get(str(card.get("line")), DASHES[number // len(MARKERS) % len(DASHES)]),
    )


def look_of_variant(method: Look, variant: str, again: int = 0) -> Look:
    """Return the look of a variant, which shares only the hue with that of its method.

    `again` counts the looks tried before that other variants already have.
    """
    number = crc32(variant.encode()) + again
    markers = [marker for marker in MARKERS if marker != method.marker]
    dashes = [dashes for dashes in DASHES if dashes != method.dashes]
    number, place = divmod(number, len(markers))
    number, line = divmod(number, len(dashes))
    shade = _SHADES[number % len(_SHADES)]
    return Look(_shade(method.color, shade), markers[place], dashes[line])


def role_of(method: str) -> str:
    """Return the role on a method's card, "" if it has none."""
    return str(_read_card(method).get("role", ""))


@dataclass(frozen=True)
class Paper:
    """The paper of a method."""

    title: str = ""
    doi: str = ""

    @property
    def link(self) -> str:
        """Its address, "" if it has no DOI."""
        return f"https://doi.org/{self.doi}" if self.doi else ""


def paper_of(method: str) -> Paper:
    """Return the paper on a method's card, empty if it names none."""
    card = _read_card(method)
    doi = str(card.get("doi", ""))
    return Paper(str(card.get("paper", "")), doi if _DOI.fullmatch(doi) else "")


def _shade(color: str, factor: float) -> str:
    hue, lightness, saturation = rgb_to_hls(*to_rgb(color))
    shaded = max(lightness, 0.15) * factor  # shades of black must differ
    return str(to_hex(hls_to_rgb(hue, min(shaded, max(_LIGHTEST, lightness)), saturation)))


@cache
def _read_card(method: str) -> Mapping[str, Any]:
    try:
        card = read_choice("method", method).get("card")
    except UsageError:  # a broken file is reported when it is chosen
        return {}
    return card if isinstance(card, dict) else {}


@dataclass(frozen=True)
class Style:
    """The label and look of one series: a method in one variant, on one task."""

    label: str  # with the signs of its privileges and remarks
    color: str  # "#rrggbb"
    marker: str
    dashes: tuple[float, ...]  # on, off, ... in line widths; empty: solid
    privileges: tuple[str, ...]
    name: str = ""  # the label without the signs
    remarks: tuple[str, ...] = ()  # each with the name of the series


Key = tuple[str, str, str]  # task, method, method variant


def assign_styles(
    runs: pd.DataFrame, remarks: Mapping[str, tuple[str, ...]] | None = None
) -> dict[Key, Style]:
    """Give every method and variant of these runs its own look, the same on all tasks.

    The privileges and remarks of a method, and so the signs behind its name, may differ between
    tasks. `remarks` are by digest.
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
            texts = {
                text for digest in set(own["digest"]) for text in (remarks or {}).get(digest, ())
            }
            signs = "".join(dict.fromkeys(sign_of(privilege) for privilege in privileges))
            signs += REMARK_SIGN if texts else ""
            styles[str(task), method, variant] = Style(
                label=name + signs + suffix,
                name=name + suffix,
                color=look.color,
                marker=look.marker,
                dashes=look.dashes,
                privileges=privileges,
                remarks=tuple(f"{name}: {text}" for text in sorted(texts)),
            )
    return styles


def privileges_of(runs: pd.DataFrame) -> tuple[str, ...]:
    """Return what any of these runs uses beyond the visible table."""
    words = {word for text in runs["privileges"] for word in re.findall(r"\w+", text)}
    return tuple(sorted(words))


def sign_of(privilege: str) -> str:
    """Return the sign that marks a privilege."""
    return SIGNS.get(privilege, _OTHER_SIGN)


def explain_signs(styles: Iterable[Style]) -> list[str]:
    """Return an explanation of every sign that these styles use."""
    shown = list(styles)
    used = {privilege for style in shown for privilege in style.privileges}
    remarks = {remark for style in shown for remark in style.remarks}
    return [
        *(f"{sign_of(name)} uses {PRIVILEGES.get(name, name)}" for name in sorted(used)),
        *(f"{REMARK_SIGN} {remark}" for remark in sorted(remarks)),
    ]


def _card(rows: pd.DataFrame) -> tuple[str, str]:
    """Return the label and the colour that runs were stored with, the method's name without one."""
    label = next((label for label in rows["label"] if label), str(rows["method"].iloc[0]))
    return label, next((color for color in rows["color"] if color), "")


def _free_look(method: Look, variant: str, taken: set[Look]) -> Look:
    """Return the look of a variant, the next one if another variant has it already."""
    again = 0
    while (look := look_of_variant(method, variant, again)) in taken and again < len(taken):
        again += 1
    taken.add(look)
    return look


MethodRemarks = Sequence[Mapping[str, Any]]  # each with `where`, settings of a method, and `text`


def find_remarks(
    runs: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]], declared: MethodRemarks
) -> dict[str, tuple[str, ...]]:
    """Return the remarks on each configuration that has any, by its digest."""
    found = {}
    for row in runs.drop_duplicates("digest").to_dict("records"):
        config = configs.get(row["digest"])
        own = _written_settings(row) if config is None else {
            **(config.get("method") or {}), "task": config.get("task"),
        }  # fmt: skip
        texts = tuple(
            str(remark["text"])
            for remark in declared
            if all(_read(own, row, name) == str(x) for name, x in remark["where"].items())
        )
        if texts:
            found[str(row["digest"])] = texts
    return found


def _written_settings(row: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the settings of a published score: those of its files, changed as its variants say."""
    parts = {part: read_choice(part, row[part]) for part in PARTS if isinstance(row.get(part), str)}
    task = {**read_choice("task", row["task"]), **split_variant(row["task_variant"])}
    settings = {**read_choice("method", row["method"]), **parts, "task": task}
    for name, value in split_variant(row["method_variant"]).items():
        *above, last = name.split(".")
        node: Any = settings
        for key in above:
            node = node.setdefault(key, {}) if isinstance(node, dict) else {}
        if isinstance(node, dict) and (above or name not in parts):
            node[last] = value
    return settings


def _read(settings: Any, row: Mapping[Any, Any], name: str) -> str | None:
    """Return a setting by its dotted name; the setting of a part is the option it has."""
    node = settings
    for key in name.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = node[key]
    return str(row.get(name)) if isinstance(node, Mapping) else str(node)

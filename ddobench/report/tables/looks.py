"""The colour, marker and dashes of a method: those of its card, never of what else is stored.

A method whose file is not at hand, or whose card is silent, has a look that follows from its name.
A variant has the marker and dashes that follow from its settings and a shade of its method's
colour, so that it is seen whose it is and which.
"""

from collections.abc import Mapping
from colorsys import hls_to_rgb, rgb_to_hls
from dataclasses import dataclass
from functools import cache
from typing import Any
from zlib import crc32

from matplotlib.colors import is_color_like, to_hex, to_rgb

from ddobench.errors import UsageError
from ddobench.registry import read_choice

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*", "d", "8")  # all filled
LINES: dict[str, tuple[float, ...]] = {  # on, off, ... in line widths; empty: solid
    "solid": (),
    "dashed": (5, 1.6),
    "dotted": (1.4, 1.4),
    "dashdot": (6, 1.6, 1.4, 1.6),
    "short": (3, 1.4),
}
NOTHING, REFERENCE, USUAL = "nothing", "reference", "usual"  # roles in a comparison
DASHES = tuple(LINES.values())
_SHADES = (0.7, 1.0, 1.3)  # of the lightness of a method's colour
_LIGHTEST = 0.68  # that is seen on white


@dataclass(frozen=True)
class Look:
    """What a series is drawn with."""

    color: str  # "#rrggbb"
    marker: str
    dashes: tuple[float, ...]


def look_of_method(method: str, stored_color: str = "") -> Look:
    """Return the look on a method's card, where that is silent the stored colour, then its name."""
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
    """Return the look of a variant, which shares nothing with its method's but the hue.

    `again` counts how often the look was found to be another variant's already.
    """
    number = crc32(variant.encode()) + again
    markers = [marker for marker in MARKERS if marker != method.marker]
    dashes = [dashes for dashes in DASHES if dashes != method.dashes]
    number, place = divmod(number, len(markers))
    number, line = divmod(number, len(dashes))
    shade = _SHADES[number % len(_SHADES)]
    return Look(_shade(method.color, shade), markers[place], dashes[line])


def role_of(method: str) -> str:
    """Return what a method is for a comparison as its card says, "" for nothing in particular."""
    return str(_read_card(method).get("role", ""))


def _shade(color: str, factor: float) -> str:
    hue, lightness, saturation = rgb_to_hls(*to_rgb(color))
    shaded = max(lightness, 0.15) * factor  # or all shades of black would be black
    return str(to_hex(hls_to_rgb(hue, min(shaded, max(_LIGHTEST, lightness)), saturation)))


@cache
def _read_card(method: str) -> Mapping[str, Any]:
    try:
        card = read_choice("method", method).get("card")
    except UsageError:  # a broken file is said when it is chosen
        return {}
    return card if isinstance(card, dict) else {}

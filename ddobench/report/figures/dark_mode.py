"""Dark mode: a style sheet within an SVG that trades its colours where the reader's screen is dark.

The colours of the drawing stay as they are for programs that know no style sheets. On a dark screen
paper and ink change places, and the colours of lines are lightened until they stand out. Colours
that code numbers, as in a cloud of points, are left alone.
"""

import re
from colorsys import hls_to_rgb, rgb_to_hls
from functools import cache

from matplotlib.colors import to_hex, to_rgb

from ddobench.report.figures.drawing import FAINT, INK, MUTED, PALE, TINT

HEAT_MAP = "heat-map"  # the id of axes whose image begins at white
_TRADED = {
    "#ffffff": "#1c2228",  # the card of the page
    INK: "#e6e8ea",
    FAINT: "#93a0ac",
    PALE: "#343d46",
    MUTED: "#56616c",
    TINT: "#27435a",
}
_BRIGHT_ENOUGH = 0.22  # relative luminance, to stand out against the card
_USES = re.compile(r"(fill|stroke): (#[0-9a-f]{6})")
_SHEET = '<style type="text/css">'  # as matplotlib begins its own


def add_dark_mode(svg: str) -> str:
    """Return an SVG of matplotlib that adapts to a dark screen."""
    uses = set(_USES.findall(svg))
    lines = {color for use, color in uses if use == "stroke"}
    rules = "".join(
        f'[style*="{use}: {color}"]{{{use}:{lighten(color)}!important}}'
        for use, color in sorted(uses)
        if (color in _TRADED or color in lines) and lighten(color) != color
    )
    if HEAT_MAP in svg:
        rules += f'[id*="{HEAT_MAP}"] image{{filter:invert(.88) hue-rotate(180deg)}}'
    sheet = f"{_SHEET}@media screen and (prefers-color-scheme:dark){{{rules}}}</style>"
    return svg.replace("<defs>", f"{sheet}\n <defs>", 1) if rules else svg


@cache
def lighten(color: str) -> str:
    """Return what a colour becomes on a dark screen."""
    if color in _TRADED:
        return _TRADED[color]
    hue, lightness, saturation = rgb_to_hls(*to_rgb(color))
    while luminance(color) < _BRIGHT_ENOUGH:
        lightness += 0.02
        color = str(to_hex(hls_to_rgb(hue, min(lightness, 1.0), saturation)))
    return color


def luminance(color: str) -> float:
    """Return the relative luminance of a colour: 0 is black, 1 white."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in to_rgb(color)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue

"""Promises of figures on dark screens."""

import re

from ddobench.registry import entries
from ddobench.report.figures.dark_mode import lighten, luminance
from ddobench.report.figures.drawing import FAINT, INK
from ddobench.report.figures.figure import tighten
from ddobench.report.figures.regret import regret_by_dimension
from ddobench.report.tables.looks import look_of_method
from tests.support.drawn import only
from tests.support.synthetic_runs import evidence_of, sweep

CARD = luminance(lighten("#ffffff"))


def contrast(color: str) -> float:
    """Return the contrast of a colour to the ground of a dark page, as accessibility counts it."""
    return (luminance(lighten(color)) + 0.05) / (CARD + 0.05)


def test_an_svg_has_no_ground_of_its_own_and_knows_what_its_colours_become() -> None:
    svg = only(regret_by_dimension, evidence_of(sweep(seeds=2))).render("svg").decode()
    sheet, drawn = re.split(r"</style>", svg, maxsplit=1)
    assert "prefers-color-scheme:dark" in sheet
    assert 'id="patch_1"' not in drawn or "fill: #ffffff" not in drawn.split('id="patch_2"')[0]
    for use, color in set(re.findall(r"(fill|stroke): (#[0-9a-f]{6})", drawn)):
        known = f'[style*="{use}: {color}"]{{{use}:{lighten(color)}!important}}' in sheet
        assert known or lighten(color) == color


def test_every_method_and_all_writing_stands_out_on_a_dark_page() -> None:
    methods = [look_of_method(entry.name).color for entry in entries("method")]
    assert min(map(contrast, [*methods, FAINT])) > 3
    assert contrast(INK) > 7


def test_a_png_keeps_its_white_ground() -> None:
    assert lighten("#ffffff") != "#ffffff"
    figure = only(regret_by_dimension, evidence_of(sweep(seeds=2)))
    assert figure.drawing.get_facecolor()[:3] == (1.0, 1.0, 1.0)


def test_an_svg_is_tightened_where_it_does_not_show() -> None:
    path = '<path d="M 1.234567 2 \nL 3 -4.5 \nz\n" transform="scale(0.015625)"/>'
    svg = f"<g>\n   <!-- word -->\n  {path}\n </g>"
    assert tighten(svg) == '<g>\n<path d="M1.23 2L3 -4.5z" transform="scale(0.015625)"/>\n</g>'
    assert tighten('<use x="12.000001" y="0.004"/>') == '<use x="12" y="0"/>'

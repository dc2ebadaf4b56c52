"""Pieces of markup: formulas, figures, numbers to sort by, and the name of a script."""

import base64
import math
import re
from hashlib import sha256
from typing import Any
from zlib import crc32

from markupsafe import Markup, escape

from ddobench.report.tables.formats import MINUS


def format_sort_value(value: Any) -> str:
    """Spell the number that a table is sorted by with every digit, a missing one as nothing."""
    number = float(value)
    return repr(number) if math.isfinite(number) else ""


def set_formula(text: str) -> Markup:
    """Set a formula of plain text: w_C with an index, R^41 with an exponent, true minus signs."""
    formula = str(escape(text)).replace("-", MINUS)
    formula = re.sub(r"_([A-Za-z]|\d+)(?!\w)", r"<sub>\1</sub>", formula)
    return Markup(re.sub(r"\^([A-Za-z]|\d+)(?!\w)", r"<sup>\1</sup>", formula))


def embed_svg(svg: str, name: str, title: str) -> Markup:
    """Make a stand-alone SVG part of a page: ids of its own, a size that adapts, a spoken title."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    own = f"f{crc32(name.encode()):x}-"  # short: every letter of every text of a figure has it
    body = re.sub(r'\bid="', f'id="{own}', body)
    body = re.sub(r'href="#', f'href="#{own}', body)
    body = re.sub(r"url\(#", f"url(#{own}", body)
    tag, rest = body.split(">", 1)
    tag = re.sub(r'\s(?:width|height)="[^"]*"', "", tag)
    spoken = Markup('{} role="img" aria-label="{}">').format(Markup(tag), title)
    return spoken + Markup(rest)


def name_script(script: str) -> str:
    """Name a script as a content security policy does, so that a browser runs no other."""
    return f"sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}"

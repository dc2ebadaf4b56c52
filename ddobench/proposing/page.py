"""The page beside the proposals: one self-contained file that says what to believe of them."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from numbers import Real
from typing import Any

import pandas as pd
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure as Drawing

from ddobench.proposing.check import HIDE
from ddobench.proposing.figures import draw_directions, draw_fit
from ddobench.proposing.propose import Proposals
from ddobench.report.figures.figure import render_drawing
from ddobench.report.page import embed_svg
from ddobench.report.tables.table import DASH, MINUS
from ddobench.runner.provenance import describe_machine
from ddobench.scores import HELD_OUT_ERROR

_HEADINGS = {
    "held_out_top_rank": "Rank correlation on the best rows",
    HELD_OUT_ERROR.name: "Squared error there (variance of all rows is 1)",
    "reason": "Why not",
}
SHOWN = 20  # proposals in the table of the page
MOST_COLUMNS = 12  # of each of them


def render_page(found: Proposals, source: str, table_file: str, command: str) -> str:
    """Return the HTML of the page."""
    environment = Environment(
        loader=ChoiceLoader(
            [PackageLoader("ddobench.proposing"), PackageLoader("ddobench.report.page")]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = format_cell
    fit = draw_fit(found)
    directions, told = draw_directions(found)
    packages = describe_machine()["packages"]
    return environment.get_template("proposals.html").render(
        found=found,
        source=source,
        table_file=table_file,
        command=command,
        label=found.spec.card.get("label", found.spec.method),
        summary=found.spec.card.get("summary", ""),
        shown=found.table.iloc[:SHOWN, _shown_columns(found)],
        left_out=len(found.table.columns) - len(_shown_columns(found)),
        candidates=_candidate_table(found.candidates),
        hide=HIDE,
        fit=None if fit is None else _embed(fit, "fit", "What the model predicts of the rows"),
        directions=_embed(directions, "directions", "Rows and proposals in two directions"),
        directions_told=told,
        versions=", ".join(f"{name} {packages[name]}" for name in ("ddobench", "torch")),
        written=datetime.now(UTC).isoformat(timespec="minutes"),
    )


def format_cell(value: Any) -> str:
    """Spell an entry of a table."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Real):
        number = float(value)
        return DASH if number != number else f"{number:.4g}".replace("-", MINUS)
    return DASH if value is None else str(value)


def _embed(drawing: Drawing, name: str, title: str) -> Markup:
    return embed_svg(render_drawing(drawing, "svg").decode(), name, title)


def _shown_columns(found: Proposals) -> list[int]:
    """Return the columns that the page has room for: all of ours, then the first of a design."""
    designs, ours = len(found.chosen.designs.columns), len(found.chosen.told.columns)
    return [*range(designs, designs + ours), *range(min(designs, MOST_COLUMNS))]


def _candidate_table(candidates: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return what a method that chooses by itself compared, with headings for people."""
    table = pd.DataFrame([dict(one) for one in candidates])
    if "reason" in table and not table["reason"].any():
        table = table.drop(columns="reason")
    return table.rename(columns=lambda name: _HEADINGS.get(str(name), str(name).capitalize()))

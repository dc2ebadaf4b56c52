"""The page of a report: one self-contained HTML file in which every stored text is escaped."""

import base64
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any
from zlib import crc32

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ddobench.report.answers import answer
from ddobench.report.data import Origins, ReportData
from ddobench.report.figures.figure import FORMATS, Figure
from ddobench.report.figures.gallery import choose_leading, list_omitted
from ddobench.report.figures.graph_figures import choose_samples
from ddobench.report.figures.matrix_figures import color_cell
from ddobench.report.single_runs import DIGITS, first_addresses, gather_single_runs, pack
from ddobench.report.summary import summarise
from ddobench.report.tables.formatting import (
    MINUS,
    Group,
    Table,
    escape_controls,
    file_stem,
    format_ranges,
)
from ddobench.report.tables.leaderboard import position_of
from ddobench.report.tables.matrix import (
    BEST_VISIBLE_ROW,
    SUITE_FIRST,
    describe_cell,
    format_cell,
    name_cell,
)
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.report.tables.styles import explain_signs, paper_of
from ddobench.report.verdicts import (
    NOTE,
    Judgement,
    by_source,
    format_counts,
    format_declared,
    format_finding,
    format_reason,
)
from ddobench.stats.samples import FEW

MOST_BYTES = 1_000_000  # of the figures in the page, so that it opens quickly on a phone
FIRST_SWEEP = "python -m ddobench -m 'method=glob(*)' task=quadratic d=10,20,40 seed=0-9"
_OF_TASK = ("controls", "settings", "choices", "pairs", "scores")  # tables in a task's section
_OVERALL = ("stability", "standings", "cross", "cross_levels")  # tables across tasks
_FIELD = ("parity", "protocol")  # tables in the form of other papers


@dataclass(frozen=True)
class Contents:
    """Everything the page shows."""

    data: ReportData
    figures: Sequence[Figure]
    svgs: Mapping[str, str]  # by figure name
    tables: Mapping[str, Table]
    origins: Origins
    remarks: Mapping[str, Sequence[Mapping[str, str]]]
    source: str
    command: str
    judged: Judgement = field(default_factory=Judgement)
    formats: Sequence[str] = (*FORMATS, "csv")  # of the files of a figure


def render_page(contents: Contents) -> str:
    """Return the HTML of the page."""
    environment = Environment(
        loader=PackageLoader("ddobench.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "ranges": format_ranges,
        "formula": set_formula,
        "sort_value": format_sort_value,
        "pack": pack,
        "cell_name": name_cell,
        "cell_number": format_cell,
        "cell_text": describe_cell,
        "at": lambda items, place: items[place],
    }
    data = contents.data
    script = environment.get_template("script.js").render()
    leading = [one for one in choose_leading(contents.figures) if one.kind != "suite"]
    sizes = np.cumsum([len(contents.svgs[figure.name]) for figure in leading])
    aside = [figure for figure in contents.figures if figure not in leading]
    addresses = first_addresses(data.runs)
    board = contents.tables["leaderboard"].groups
    leads = [group for group in board if group.rows[0]["lead"]]
    page = environment.get_template("index.html").render(
        contents=contents,
        runs=data.runs,
        counts=data.runs["status"].value_counts().to_dict(),
        summary=summarise(data, contents.judged),
        leading=[
            _figure_part(figure, contents, embedded=size <= MOST_BYTES)
            for figure, size in zip(leading, sizes, strict=True)
        ],
        tasks=[_task_part(task, contents, aside) for task in sorted(data.runs["task"].unique())],
        looks=_looks(data),
        claims=_claim_parts(contents.judged),
        claims_note=NOTE,
        overall=[_figure_part(figure, contents) for figure in aside if not figure.task],
        overall_tables=[contents.tables[name] for name in _OVERALL if name in contents.tables],
        field_tables=[_across_tasks(contents.tables[name]) for name in _FIELD],
        matrix=data.matrix,
        answers=answer(data.matrix) if data.matrix else [],
        suite_table=contents.tables.get("suite"),
        suite_first=SUITE_FIRST,
        suite_minor=("family", "IQM, %", "CPU s"),
        best_visible_row=BEST_VISIBLE_ROW,
        cell_look=color_cell,
        leads=leads,
        other_boards=[group for group in board if group not in leads],
        omitted=list_omitted(data),
        methods=_methods(data),
        single_runs=gather_single_runs(data),
        digits=DIGITS,
        script=Markup(script),  # contains no data
        script_hash=hash_script(script),
        commands=sorted(set(data.runs["command"]) - {""}),
        signs=explain_signs(data.styles.values()),
        first_sweep=FIRST_SWEEP,
        few=FEW,
        style_of=data.style,
        paper=paper_of,
        position=lambda row: position_of(row["gain_low"], row["gain_high"]),
        address=lambda row: addresses[tuple(row[name] for name in [*BY_SIZE, *SERIES])],
    )
    return escape_controls(page)  # `pack` does the same for what it compresses


def _across_tasks(table: Table) -> Table:
    """Keep the groups that are not about one task, which are in files only."""
    return replace(table, groups=[group for group in table.groups if not group.task])


def _looks(data: ReportData) -> list[tuple[str, str]]:
    """Return the name and colour of each series."""
    looks = {(method, variant): style for (_, method, variant), style in data.styles.items()}
    return [(looks[key].name, looks[key].color) for key in sorted(looks)]


def _methods(data: ReportData) -> list[tuple[str, str]]:
    """Return every method and its name without its variants."""
    names = {
        method: style.name.removesuffix(f", {variant}")
        for (_, method, variant), style in data.styles.items()
    }
    return sorted(names.items(), key=lambda item: (item[1].lower(), item[0]))


def _task_part(task: str, contents: Contents, aside: Sequence[Figure]) -> dict[str, Any]:
    """Return the part of one task, with those of its figures that do not lead the page."""
    figures = [figure for figure in aside if figure.task == task]
    samples = [item for item in contents.data.task_samples if item.task == task]
    tables: list[tuple[Table, list[Group]]] = [
        (contents.tables[name], contents.tables[name].of_task(task)) for name in _OF_TASK
    ]
    return {
        "name": task,
        "anchor": f"task-{file_stem(task)}",
        "remarks": contents.remarks.get(task, ()),
        "samples": choose_samples(samples),
        "pictures": [_figure_part(item, contents) for item in figures if item.about_task],
        "figures": [_figure_part(item, contents) for item in figures if not item.about_task],
        "tables": [(table, groups) for table, groups in tables if groups],
    }


def _claim_parts(judged: Judgement) -> list[dict[str, Any]]:
    """Return a part for the claims of each source."""
    order = ["holds", "fails", "undecided", "not run"]
    titles = {"paper": "The paper's claims, in the declared reading", "ours": "Our own claims"}
    return [
        {
            "source": source,
            "title": titles[source],
            "summary": f"{len(own)} tests: {format_counts([v.result for v in own], order)}.",
            "claims": [
                {
                    "verdict": verdict,
                    "place": order.index(verdict.result),
                    "numbers": [
                        (finding.answer.where if len(verdict.findings) > 1 else "",
                         format_finding(verdict.claim.question, finding))
                        for finding in verdict.findings
                    ],
                    "reason": format_reason(verdict),
                    "declared": format_declared(verdict),
                    "seen": verdict.result != "not run",
                }
                for verdict in own
            ],
        }
        for source, own in by_source(judged.verdicts).items()
    ]  # fmt: skip


def _figure_part(figure: Figure, contents: Contents, *, embedded: bool = False) -> dict[str, Any]:
    """Return a figure with its links, and its SVG if it is embedded."""
    svg = contents.svgs[figure.name]
    links = [(end.upper(), f"figures/{figure.name}.{end}") for end in contents.formats]
    if figure.table:
        links.append((f"{figure.table}.md", f"tables/{figure.table}.md"))
    return {
        "figure": figure,
        "svg": embed_svg(svg, figure.name, figure.title) if embedded else None,
        "links": links,
    }


def format_sort_value(value: Any) -> str:
    """Format the number that a table is sorted by with every digit, "" for a missing one."""
    number = float(value)
    return repr(number) if math.isfinite(number) else ""


def set_formula(text: str) -> Markup:
    """Typeset a plain formula: w_C with an index, R^41 with an exponent, and minus signs."""
    formula = str(escape(text)).replace("-", MINUS)
    formula = re.sub(r"_([A-Za-z]|\d+)(?!\w)", r"<sub>\1</sub>", formula)
    return Markup(re.sub(r"\^([A-Za-z]|\d+)(?!\w)", r"<sup>\1</sup>", formula))


def embed_svg(svg: str, name: str, title: str) -> Markup:
    """Prepare an SVG for embedding: unique ids, flexible size, and a title for screen readers."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    prefix = f"f{crc32(name.encode()):x}-"  # short, as every glyph has it
    body = re.sub(r'\bid="', f'id="{prefix}', body)
    body = re.sub(r'href="#', f'href="#{prefix}', body)
    body = re.sub(r"url\(#", f"url(#{prefix}", body)
    tag, rest = body.split(">", 1)
    tag = re.sub(r'\s(?:width|height)="[^"]*"', "", tag)
    labelled = Markup('{} role="img" aria-label="{}">').format(Markup(tag), title)
    return labelled + Markup(rest)


def hash_script(script: str) -> str:
    """Return the hash of a script for a content security policy that allows no other script."""
    return f"sha256-{base64.b64encode(sha256(script.encode()).digest()).decode()}"

"""The page: one self-contained HTML file, everything a user can configure escaped."""

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ddobench.report import comparisons, tables
from ddobench.report.columns import CELL, SERIES, STUDY
from ddobench.report.evidence import Evidence
from ddobench.report.figures import FORMATS, Absence, Figure
from ddobench.report.files import file_stem
from ddobench.report.origins import Origins
from ddobench.report.portraits import choose_portraits
from ddobench.report.samples import FEW
from ddobench.report.scores import leaderboard
from ddobench.report.styles import Key, Style, explain_privileges

FIRST_SWEEP = "python -m ddobench -m 'method=glob(*)' task=quadratic d=10,20,40 seed=0-9"
INTERVAL_NOTE = (
    "Mean over seeds [95\u00a0% bootstrap interval: BCa, 9999 resamples, fixed seed]; "
    "the CSV also has Student's t interval."
)


@dataclass(frozen=True)
class Contents:
    """Everything the page speaks of."""

    evidence: Evidence
    problems: pd.DataFrame
    drawn: Sequence[Figure | Absence]
    svgs: Mapping[str, str]  # by figure name
    origins: Origins
    remarks: Mapping[str, Sequence[Mapping[str, str]]]
    source: str
    command: str


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
        "number": tables.format_number,
        "percent": tables.format_percent,
        "ranges": tables.format_ranges,
        "formula": set_formula,
    }
    runs = contents.evidence.runs
    styles = contents.evidence.styles
    return environment.get_template("index.html").render(
        contents=contents,
        runs=runs,
        counts=runs["status"].value_counts().to_dict(),
        tasks=[_task_part(str(task), contents) for task in sorted(runs["task"].unique())],
        series=[replace(look, label=look.name) for look in _looks(styles)],
        board=_studies(leaderboard(contents.evidence.scores), contents),
        problems=_group_problems(contents.problems, contents.evidence),
        commands=sorted(set(runs["command"]) - {""}),
        privileges=explain_privileges(styles.values()),
        interval_note=INTERVAL_NOTE,
        first_sweep=FIRST_SWEEP,
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        few=FEW,
    )


def _looks(styles: Mapping[Key, Style]) -> list[Style]:
    """Return one style for each series; its signs would depend on the task."""
    looks = {(method, variant): style for (_, method, variant), style in styles.items()}
    return [looks[key] for key in sorted(looks)]


def _task_part(task: str, contents: Contents) -> dict[str, Any]:
    """Gather what the page says of one task."""
    scores = contents.evidence.scores
    drawn = [item for item in contents.drawn if item.task == task]
    figures = [item for item in drawn if isinstance(item, Figure)]
    portraits = [item for item in contents.evidence.portraits if item.task == task]
    return {
        "name": task,
        "anchor": f"task-{file_stem(task)}",
        "remarks": contents.remarks.get(task, ()),
        "portraits": choose_portraits(portraits),
        "pictures": [_figure_part(item, contents) for item in figures if item.subject == "task"],
        "figures": [_figure_part(item, contents) for item in figures if item.subject != "task"],
        "absences": [item for item in drawn if isinstance(item, Absence)],
        "controls": _controls(task, contents.evidence),
        "studies": _studies(scores[scores["task"] == task], contents),
    }


def _controls(task: str, evidence: Evidence) -> list[dict[str, Any]]:
    """Spell the comparisons of a task, one table per size."""
    table = evidence.comparisons
    return [
        {
            "title": tables.name_runs(cell.iloc[0], "n", "d"),
            "note": comparisons.explain_comparison(cell),
            "scores": list(comparisons.SCORES.values()),
            "rows": comparisons.spell_rows(cell),
        }
        for _, cell in table[table["task"] == task].groupby(CELL, sort=True)
    ]


def _figure_part(figure: Figure, contents: Contents) -> dict[str, Any]:
    return {
        "figure": figure,
        "svg": embed_svg(contents.svgs[figure.name], figure.name, figure.title),
        "links": [(end.upper(), f"figures/{figure.name}.{end}") for end in (*FORMATS, "csv")],
    }


def _studies(table: pd.DataFrame, contents: Contents) -> list[dict[str, Any]]:
    """Split a score table into studies, each with a title and rows for the template."""
    studies = []
    for _, study in table.groupby(STUDY, sort=True):
        rows = [
            {
                "row": row,
                "style": contents.evidence.styles[
                    row["task"], row["method"], row["method_variant"]
                ],
                "regret": _estimate(row, "regret"),
                "value": _estimate(row, "value"),
                "counts": tables.describe_counts(row),
            }
            for row in study.to_dict("records")
        ]
        first = study.iloc[0]
        studies.append(
            {
                "title": tables.name_runs(first),
                "sized": tables.name_runs(first, "n", "d"),
                "rows": rows,
                "unit": first["regret_unit"],
            }
        )
    return studies


def _estimate(row: Mapping[Hashable, Any], score: str) -> str:
    return tables.format_estimate(row[f"{score}_mean"], row[f"{score}_low"], row[f"{score}_high"])


def _group_problems(problems: pd.DataFrame, evidence: Evidence) -> list[dict[str, Any]]:
    """Put runs that ended for the same reason into one line."""
    keys = [*STUDY, *SERIES, "status", "reason"]
    return [
        {
            "title": tables.name_runs(rows.iloc[0]),
            "style": evidence.styles[
                str(rows["task"].iloc[0]),
                str(rows["method"].iloc[0]),
                str(rows["method_variant"].iloc[0]),
            ],
            "status": rows["status"].iloc[0],
            "reason": rows["reason"].iloc[0] or "no reason was recorded",
            "sizes": rows["n"].tolist(),
            "dimensions": rows["d"].tolist(),
            "seeds": rows["seed"].tolist(),
            "count": len(rows),
        }
        for _, rows in problems.groupby(keys, sort=True)
    ]


def set_formula(text: str) -> Markup:
    """Set a formula of plain text: w_C with an index, R^41 with an exponent, true minus signs."""
    formula = str(escape(text)).replace("-", tables.MINUS)
    formula = re.sub(r"_([A-Za-z]|\d+)(?!\w)", r"<sub>\1</sub>", formula)
    return Markup(re.sub(r"\^([A-Za-z]|\d+)(?!\w)", r"<sup>\1</sup>", formula))


def embed_svg(svg: str, name: str, title: str) -> Markup:
    """Make a stand-alone SVG part of a page: ids of its own, a size that adapts, a spoken title."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, count=1, flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    tag, rest = body.split(">", 1)
    tag = re.sub(r'\s(?:width|height)="[^"]*"', "", tag)
    spoken = Markup('{} role="img" aria-label="{}">').format(Markup(tag), title)
    return spoken + Markup(rest)

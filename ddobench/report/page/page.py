"""The page: one self-contained HTML file, everything a user can configure escaped."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ddobench.report.claims.verdicts import NOTE, Verdict
from ddobench.report.data.files import file_stem
from ddobench.report.data.origins import Origins
from ddobench.report.data.portraits import choose_portraits
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import FORMATS, Absence, Figure
from ddobench.report.page.answers import find_answers
from ddobench.report.page.leading import choose_leading
from ddobench.report.page.markup import embed_svg, format_sort_value, name_script, set_formula
from ddobench.report.page.sections import (
    choice_section,
    claim_section,
    pair_section,
    setting_section,
    spread_section,
    standing_section,
)
from ddobench.report.page.single_runs import (
    DIGITS,
    address_of,
    first_addresses,
    gather_single_runs,
    pack,
)
from ddobench.report.tables import comparisons
from ddobench.report.tables import formats as tables
from ddobench.report.tables.columns import CELL, SERIES, STUDY
from ddobench.report.tables.nothing import standing_of
from ddobench.report.tables.scores import known_scores, lead_studies, leaderboard
from ddobench.report.tables.styles import Key, Style, explain_signs
from ddobench.scores import (
    HEADLINE,
    HELD_OUT_RANK,
    INVALID_FINAL,
    Part,
    Score,
    Tabled,
    contrasted_scores,
    leaderboard_scores,
    tabled_scores,
)
from ddobench.stats.samples import FEW

_GAIN_HEADING = "Above doing nothing, sd"
MOST_BYTES = 1_000_000  # of the figures in the page: it is to open quickly on a phone
FIRST_SWEEP = "python -m ddobench -m 'method=glob(*)' task=quadratic d=10,20,40 seed=0-9"
INTERVAL_NOTE = f"Mean over seeds [95\u00a0% interval: {tables.INTERVAL_RULE}]."


@dataclass(frozen=True)
class Contents:
    """Everything the page speaks of."""

    stored: ReportData
    drawn: Sequence[Figure | Absence]
    svgs: Mapping[str, str]  # by figure name
    origins: Origins
    remarks: Mapping[str, Sequence[Mapping[str, str]]]
    source: str
    command: str
    verdicts: Sequence[Verdict] = ()
    formats: Sequence[str] = (*FORMATS, "csv")  # of the files of a figure

    @property
    def figures(self) -> list[Figure]:
        """All figures that were drawn."""
        return [item for item in self.drawn if isinstance(item, Figure)]


def render_page(contents: Contents) -> str:
    """Return the HTML of the page."""
    environment = Environment(
        loader=PackageLoader("ddobench.report.page"),
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
        "sort_value": format_sort_value,
        "pack": pack,
    }
    runs = contents.stored.runs
    styles = contents.stored.styles
    script = environment.get_template("script.js").render()
    board = leaderboard(contents.stored.scores)
    lead = lead_studies(board)
    others = _without(board, lead)
    leading = choose_leading(contents.figures)
    aside = [item for item in contents.figures if item not in leading]
    return environment.get_template("index.html").render(
        contents=contents,
        runs=runs,
        counts=runs["status"].value_counts().to_dict(),
        answers=find_answers(contents.stored, contents.verdicts),
        leading=[
            _figure_part(item, contents, embedded=embedded)
            for item, embedded in zip(leading, _fit(leading, contents), strict=True)
        ],
        tasks=[_task_part(str(task), contents, aside) for task in sorted(runs["task"].unique())],
        series=[replace(look, label=look.name) for look in _looks(styles)],
        claims=claim_section(contents.verdicts),
        claims_note=NOTE,
        standings=standing_section(contents.stored.standings),
        overall=[_figure_part(item, contents) for item in aside if not item.task],
        board=_studies(lead, contents),
        other_boards=_studies(others, contents),
        problems=_group_problems(contents.stored),
        methods=_methods(styles),
        single_runs=gather_single_runs(contents.stored),
        digits=DIGITS,
        script=Markup(script),  # ours alone: no data is rendered into it
        script_source=name_script(script),
        commands=sorted(set(runs["command"]) - {""}),
        signs=explain_signs(styles.values()),
        interval_note=INTERVAL_NOTE,
        board_header=[
            *((heading, _is_minor(score)) for heading, score, *_ in _board_parts(contents)),
            (_GAIN_HEADING, True),
        ],
        other_header=[heading for heading, *_ in _other_parts(contents)],
        first_sweep=FIRST_SWEEP,
        few=FEW,
    )


def _looks(styles: Mapping[Key, Style]) -> list[Style]:
    """Return one style for each series; its signs would depend on the task."""
    looks = {(method, variant): style for (_, method, variant), style in styles.items()}
    return [looks[key] for key in sorted(looks)]


def _methods(styles: Mapping[Key, Style]) -> list[tuple[str, str]]:
    """Return every method and what it is called without its variants."""
    names = {
        method: style.name.removesuffix(f", {variant}")
        for (_, method, variant), style in styles.items()
    }
    return sorted(names.items(), key=lambda item: (item[1].lower(), item[0]))


def _without(board: pd.DataFrame, lead: pd.DataFrame) -> pd.DataFrame:
    """Return the studies of a leaderboard that do not lead."""
    led = set(lead[STUDY].itertuples(index=False, name=None))
    studies = pd.Series([*board[STUDY].itertuples(index=False, name=None)], board.index, object)
    return board[~studies.isin(led)]


def _task_part(task: str, contents: Contents, aside: Sequence[Figure]) -> dict[str, Any]:
    """Gather what the page says of one task, with those of its figures that do not lead."""
    scores = contents.stored.scores
    drawn = [item for item in contents.drawn if item.task == task]
    figures = [item for item in aside if item.task == task]
    portraits = [item for item in contents.stored.portraits if item.task == task]
    return {
        "name": task,
        "anchor": f"task-{file_stem(task)}",
        "remarks": contents.remarks.get(task, ()),
        "portraits": choose_portraits(portraits),
        "pictures": [_figure_part(item, contents) for item in figures if item.subject == "task"],
        "figures": [_figure_part(item, contents) for item in figures if item.subject != "task"],
        "absences": [item for item in drawn if isinstance(item, Absence)],
        "controls": _controls(task, contents.stored),
        "settings": setting_section(
            contents.stored.knobs.query("task == @task"), contents.stored.styles
        ),
        "spread": spread_section(contents.stored.spread.query("task == @task")),
        "choices": choice_section(contents.stored.choices.query("task == @task")),
        "pairs": pair_section(contents.stored.pairs.query("task == @task")),
        "studies": _studies(scores[scores["task"] == task], contents),
    }


def _controls(task: str, stored: ReportData) -> list[dict[str, Any]]:
    """Spell the comparisons of a task, one table per size."""
    table = stored.comparisons
    return [
        {
            "title": tables.name_runs(cell.iloc[0], "n", "d"),
            "note": comparisons.explain_comparison(cell),
            "scores": list(contrasted_scores().values()),
            "rows": _pair_values(cell),
        }
        for _, cell in table[table["task"] == task].groupby(CELL, sort=True)
    ]


def _pair_values(cell: pd.DataFrame) -> list[list[tuple[str, Any]]]:
    """Spell the comparisons of one cell, each text with the number to sort it by."""
    variants = [rows for _, rows in cell.groupby(SERIES, sort=False)]
    lines = []
    for rows, texts in zip(variants, comparisons.format_rows(cell), strict=True):
        values = rows[["mean", "difference", "p_holm"]].to_numpy(float).ravel().tolist()
        lines.append(list(zip(texts, [texts[0], *values, rows["pairs"].max()], strict=True)))
    return lines


def _fit(leading: Sequence[Figure], contents: Contents) -> list[bool]:
    """Say which of the leading figures the page has room for; it shows the files of the others."""
    sizes = np.cumsum([len(contents.svgs[figure.name]) for figure in leading])
    return [bool(size <= MOST_BYTES) for size in sizes]


def _figure_part(figure: Figure, contents: Contents, *, embedded: bool = False) -> dict[str, Any]:
    """Gather what the page shows of a figure: the figure itself, or a look at its file."""
    svg = contents.svgs[figure.name]
    links = [(end.upper(), f"figures/{figure.name}.{end}") for end in contents.formats]
    if figure.table:
        links.append((f"{figure.table}.md", f"tables/{figure.table}.md"))
    return {
        "figure": figure,
        "svg": embed_svg(svg, figure.name, figure.title) if embedded else None,
        "links": links,
    }


def _studies(table: pd.DataFrame, contents: Contents) -> list[dict[str, Any]]:
    """Split a score table into studies, each with a title and rows for the template."""
    addresses = first_addresses(contents.stored.runs)
    studies = []
    for _, study in table.groupby(STUDY, sort=True):
        rows = [
            {
                "row": row,
                "style": contents.stored.styles[row["task"], row["method"], row["method_variant"]],
                "board": [*_cells(row, _board_parts(contents)), _gain_cell(row)],
                "standing": standing_of(row["gain_low"], row["gain_high"]),
                "others": _cells(row, _other_parts(contents)),
                "counts": tables.describe_counts(row),
                "address": addresses[tuple(row[name] for name in [*CELL, *SERIES])],
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
                "unmeasured": _judged_by_rows_alone(study),
            }
        )
    return studies


def _judged_by_rows_alone(study: pd.DataFrame) -> bool:
    """Tell whether no new design has a value: a table of rows without an oracle."""
    columns = {score.name: f"{table.key}_mean" for score, table in leaderboard_scores()}
    rank, value = columns[HELD_OUT_RANK.name], columns[HEADLINE.name]
    return bool(rank in study and study[rank].notna().any() and study[value].isna().all())


_Headed = tuple[str, Score, Tabled, Part]  # a heading and what is below it


def _board_parts(contents: Contents) -> list[_Headed]:
    """Return the columns of the leaderboard, those that a phone has room for first."""
    parts: list[_Headed] = [
        (heading, score, table, part)
        for score, table in known_scores(contents.stored.scores, leaderboard_scores())
        for heading, part in score.board.items()
    ]
    return sorted(parts, key=lambda part: _is_minor(part[1]))


def _is_minor(score: Score) -> bool:
    """Tell whether a phone does without a column of the leaderboard."""
    return score not in (HEADLINE, INVALID_FINAL)


def _gain_cell(row: Mapping[Hashable, Any]) -> tuple[Any, str, bool]:
    numbers = (row["gain_mean"], row["gain_low"], row["gain_high"])
    return row["gain_mean"], tables.format_estimate(*numbers), True


def _other_parts(contents: Contents) -> list[_Headed]:
    """Return the columns that only the table of all scores has: the means of the other scores."""
    return [
        (heading[0].upper() + heading[1:], score, table, "mean")
        for score, table in known_scores(contents.stored.scores, tabled_scores("scores"))
        if not score.board
        for heading in [*table.cells][:1]
    ]


def _cells(row: Mapping[Hashable, Any], parts: Sequence[_Headed]) -> list[tuple[Any, str, bool]]:
    """Spell these columns of a row, each with the value to sort it by, and whether it is minor."""
    return [
        (row[table.column(part)], tables.format_part(row, score, table, part), _is_minor(score))
        for _, score, table, part in parts
    ]


def _group_problems(stored: ReportData) -> list[dict[str, Any]]:
    """Put runs that ended for the same reason into one line."""
    keys = [*STUDY, *SERIES, "status", "reason"]
    problems = stored.runs[stored.runs["status"] != "ok"]
    return [
        {
            "title": tables.name_runs(rows.iloc[0]),
            "style": stored.styles[
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
            "address": address_of(rows.iloc[0].to_dict()),
        }
        for _, rows in problems.groupby(keys, sort=True)
    ]

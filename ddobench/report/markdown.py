"""README.md of a report: its summary, leaderboard, claims and first figures as Markdown."""

import re
from collections.abc import Mapping, Sequence

from ddobench.report.answers import answer
from ddobench.report.data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.gallery import choose_leading
from ddobench.report.summary import RESULTS, summarise
from ddobench.report.tables.formatting import (
    Table,
    escape_controls,
    escape_markdown,
    markdown_group,
)
from ddobench.report.tables.styles import explain_signs
from ddobench.report.verdicts import Judgement, Outcome, Verdict, format_numbers


def write_readme(
    data: ReportData, figures: Sequence[Figure], tables: Mapping[str, Table], judged: Judgement,
    command: str,
) -> str:  # fmt: skip
    """Return the Markdown of a report: summary, leaderboard, claims, figures, cost, commands."""
    parts = ["# Offline optimisation, compared\n"]
    if data.runs.empty:
        return "\n".join([*parts, "Nothing is stored yet.\n"])
    summary = summarise(data, judged)
    leading = choose_leading(figures)
    answers = answer(data.matrix) if data.matrix else []
    parts += [
        *(f"- {_text(one.text)}" for one in answers),
        *([""] if answers else []),
        f"1. {_text(summary.best)}",
        *(f"   - {_text(line)}" for line in summary.by_task),
        f"2. {_text(summary.invalid)}",
        f"3. {_text(summary.claims)}",
        *([f"4. {_text(summary.conclusion)}"] if summary.conclusion else []),
        "",
        *(f"{_text(note)}.\n" for note in explain_signs(data.styles.values())),
        *(_figure(figure) for figure in leading[:1]),
        "The full report: [index.html](index.html). All numbers: [tables](tables).\n",
        *_leaderboard(tables["leaderboard"]),
        *_parity(tables["parity"]),
        *_claims(tables, judged),
        *_not_reproduced(judged),
    ]
    if leading[1:]:
        parts += ["## Figures\n", *(_figure(figure) for figure in leading[1:])]
    return "\n".join([*parts, *_costs(tables["command_costs"], command)])


def _figure(figure: Figure) -> str:
    return (
        f"![{_text(figure.title)}](figures/{figure.name}.svg)\n\n"
        f"*{_text(figure.title)}.* {_text(figure.caption)}\n"
    )


def _leaderboard(table: Table) -> list[str]:
    parts = ["## Leaderboard\n", f"{_text(table.note)}\n"]
    for group in table.groups:
        if group.rows[0]["lead"]:
            parts += [f"### {_text(group.title)}\n", markdown_group(group)]
    rest = sum(not group.rows[0]["lead"] for group in table.groups)
    return [*parts, f"{rest} more sizes: [leaderboard.md](tables/leaderboard.md).\n"]


def _parity(table: Table) -> list[str]:
    if not table.groups:
        return []
    parts = [f"## {_text(table.title)}\n", f"{_text(table.note)}\n"]
    return [*parts, *map(markdown_group, table.groups)]


def _claims(tables: Mapping[str, Table], judged: Judgement) -> list[str]:
    if not judged.verdicts:
        return []
    claims, readings = tables["claims"], tables["readings"]
    parts = ["## Claims\n"]
    for group in readings.groups:
        parts += [
            f"### {_text(readings.title)}\n",
            f"{_text(readings.note)}\n",
            markdown_group(group),
        ]
    parts.append(f"### In the declared reading\n\n{_text(claims.note)}\n")
    for group in claims.groups:
        parts += [f"#### {_text(group.title)}\n", markdown_group(group)]
    return parts


def _not_reproduced(judged: Judgement) -> list[str]:
    """Return the claims that did not reproduce, each with our own claims that explain why."""
    by_id = {verdict.claim.id: verdict for verdict in judged.verdicts}
    lost = [o for o in judged.outcomes if o.verdict.result in ("fails", "undecided")]
    if not lost:
        return []
    return ["## Claims that did not reproduce, and controls that show why\n",
            *(_explain(outcome, by_id) for outcome in lost), ""]  # fmt: skip


def _explain(outcome: Outcome, by_id: Mapping[str, Verdict]) -> str:
    verdict = outcome.verdict
    lines = [f"- {_text(verdict.claim.text)} This claim {RESULTS[verdict.result]}: "
             f"{_text(format_numbers(verdict))}."]  # fmt: skip
    for name in verdict.claim.explained_by:
        control = by_id[name]
        result = RESULTS.get(control.result, "was not run")
        lines.append(f"  - Control: {_text(control.claim.text)} This claim {result}: "
                     f"{_text(format_numbers(control))}.")  # fmt: skip
    return "\n".join(lines)


def _costs(table: Table, command: str) -> list[str]:
    commands = [escape_controls(text) for text in (*table.frame["command"], command) if text]
    ticks = (len(found) for text in commands for found in re.findall("`+", text))
    fence = "`" * max(3, 1 + max(ticks, default=0))  # longer than any in a command
    return [
        "## Cost and commands\n",
        f"{_text(table.note)} By command: [command_costs.md](tables/command_costs.md).\n",
        fence,
        *commands,
        f"{fence}\n",
    ]


def _text(text: str) -> str:
    return escape_markdown(text)

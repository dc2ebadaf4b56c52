"""The page for those who read a repository: the same answers as Markdown, README.md of a report."""

from collections.abc import Sequence

from ddobench.report.claims.outcomes import WORDS, Outcome, find_outcomes
from ddobench.report.claims.verdicts import (
    HEADER,
    NOTE,
    TITLES,
    Verdict,
    by_source,
    format_numbers,
    format_verdicts,
)
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.figure import Figure
from ddobench.report.page.answers import find_answers
from ddobench.report.page.leading import choose_leading
from ddobench.report.tables.command_costs import cost_table, describe_costs
from ddobench.report.tables.formats import (
    INTERVAL_RULE,
    describe_counts,
    escape_markdown,
    format_estimate,
    format_percent,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.nothing import standing_of
from ddobench.report.tables.scores import lead_studies, leaderboard
from ddobench.report.tables.styles import explain_signs

NAME = "README.md"
_BOARD = ["rank", "method", "value (sd)", "above doing nothing (sd)", "invalid", "seeds"]


def write_readme(
    stored: ReportData, figures: Sequence[Figure], verdicts: Sequence[Verdict], command: str
) -> str:
    """Return the Markdown of a report: answers, figures, leaderboard, claims, cost, commands."""
    answers = find_answers(stored, verdicts)
    leading = choose_leading(figures)
    parts = ["# Offline optimisation, compared\n"]
    if stored.runs.empty:
        return "\n".join([*parts, "Nothing is stored yet.\n"])
    parts += [
        f"1. {_text(answers.best)}",
        *(f"   - {_text(line)}" for line in answers.by_task),
        f"2. {_text(answers.invalid)}",
        f"3. {_text(answers.claims)}\n",
        *(f"{_text(note)}.\n" for note in explain_signs(stored.styles.values())),
        *(_figure(figure) for figure in leading[:1]),
        "The page with everything: [index.html](index.html); all numbers: [tables](tables).\n",
        *_claims(verdicts),
        *_failures(verdicts),
        *_leaderboard(stored),
    ]
    if leading[1:]:
        parts += ["## Figures\n", *(_figure(figure) for figure in leading[1:])]
    return "\n".join([*parts, *_costs(stored, command)])


def _figure(figure: Figure) -> str:
    lines = [f"![{_text(figure.title)}](figures/{figure.name}.svg)\n",
             f"*{_text(figure.title)}.* {_text(figure.caption)}\n"]  # fmt: skip
    return "\n".join(lines)


def _claims(verdicts: Sequence[Verdict]) -> list[str]:
    parts = [f"## Claims\n\n{_text(NOTE)}\n"] if verdicts else []
    for source, own in by_source(verdicts).items():
        seen = [verdict for verdict in own if verdict.word != "not run"]
        absent = [verdict.claim.id for verdict in own if verdict.word == "not run"]
        parts.append(f"### {TITLES[source]}\n")
        if seen:
            lines = [line[:-1] for line in format_verdicts(seen)]
            parts.append(markdown_table(HEADER[:-1], lines, words=range(len(HEADER) - 1)))
        if absent:
            parts.append(f"Without runs here: {', '.join(f'`{name}`' for name in absent)}.\n")
    return parts


def _failures(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what did not reproduce, each with the claims of ours that say why."""
    told = {verdict.claim.id: verdict for verdict in verdicts}
    lost = [
        outcome
        for outcome in find_outcomes(by_source(verdicts).get("paper", []))
        if outcome.fate in ("fails", "oracle", "undecided")
    ]
    if not lost:
        return []
    return ["## What did not reproduce, and the control that shows why\n",
            *(_failure(outcome, told) for outcome in lost), ""]  # fmt: skip


def _failure(outcome: Outcome, told: dict[str, Verdict]) -> str:
    verdict = outcome.verdict
    lines = [f"- {_text(verdict.claim.text)} It {WORDS[outcome.fate][0]}: "
             f"{_text(format_numbers(verdict))}."]  # fmt: skip
    if outcome.by_oracle is not None and outcome.fate == "oracle":
        lines.append(f"  - By an oracle's choice: {_text(format_numbers(outcome.by_oracle))}.")
    for name in verdict.claim.explained_by:
        control = told[name]
        lines.append(f"  - Control: {_text(control.claim.text)} That "
                     f"{WORDS[control.word][0]}: {_text(format_numbers(control))}.")  # fmt: skip
    return "\n".join(lines)


def _leaderboard(stored: ReportData) -> list[str]:
    board = lead_studies(leaderboard(stored.scores))
    parts = [
        "## Leaderboard\n",
        f"Means over seeds with 95\u00a0% intervals ({INTERVAL_RULE}). Methods that were told more "
        "than the visible table are not ranked; those whose whole interval is below doing nothing "
        "say so.\n",
    ]
    for _, study in board.groupby("task", sort=True):
        lines = []
        for row in study.to_dict("records"):
            gain = format_estimate(row["gain_mean"], row["gain_low"], row["gain_high"])
            below = standing_of(row["gain_low"], row["gain_high"]) == "below"
            value = format_estimate(row["value_mean"], row["value_low"], row["value_high"])
            rank = "" if row["rank"] != row["rank"] else f"{row['rank']:.0f}"
            lines.append([rank, row["label"], value, gain + (", below" if below else ""),
                          format_percent(row["invalid"]), describe_counts(row)])  # fmt: skip
        parts += [f"### {_text(name_runs(study.iloc[0], 'n', 'd'))}\n",
                  markdown_table(_BOARD, lines, words=[1, 5])]  # fmt: skip
    return parts


def _costs(stored: ReportData, command: str) -> list[str]:
    table = cost_table(stored.every_run)
    commands = [text for text in table["command"] if text]
    return [
        "## Cost and commands\n",
        f"{_text(describe_costs(table))} "
        "By command: [command_costs.md](tables/command_costs.md).\n",
        "```",
        *commands,
        command,
        "```\n",
    ]


def _text(text: str) -> str:
    return escape_markdown(text)

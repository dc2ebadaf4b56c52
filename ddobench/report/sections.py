"""Every table of a report, described: from here the files, the page and the README are written."""

from collections.abc import Sequence

from ddobench.report.data import ReportData
from ddobench.report.tables.choices import describe_choices
from ddobench.report.tables.costs import (
    command_table,
    cpu_table,
    describe_commands,
    describe_cpu,
    describe_problems,
    problem_table,
)
from ddobench.report.tables.factorial import describe_levels, describe_shares
from ddobench.report.tables.paired import describe_controls, describe_pairs
from ddobench.report.tables.scores import INTERVAL_NOTE, describe_leaderboard, describe_scores
from ddobench.report.tables.settings import describe_settings
from ddobench.report.tables.standings import describe_standings
from ddobench.report.tables.styles import explain_signs
from ddobench.report.tables.table import Table
from ddobench.report.verdicts import Judgement, describe_readings, describe_verdicts


def make_tables(data: ReportData, judged: Judgement) -> dict[str, Table]:
    """Return every table by its name."""
    notes: Sequence[str] = [
        INTERVAL_NOTE, *(f"{note}." for note in explain_signs(data.styles.values()))
    ]  # fmt: skip
    tables = [
        describe_leaderboard(data.board, data.scores),
        describe_scores(data.scores, notes),
        describe_scores(data.scores, notes, "protocol"),
        describe_verdicts(judged.verdicts),
        describe_readings(judged),
        describe_controls(data.controls),
        describe_pairs(data.pairs),
        describe_standings(data.standings),
        describe_settings(data.settings, data.styles),
        describe_choices(data.choices),
        describe_shares(data.factorials),
        describe_levels(data.factorials),
        describe_cpu(cpu_table(data.runs, data.styles)),
        describe_commands(command_table(data.runs)),
        describe_problems(problem_table(data.runs), data.styles),
    ]
    return {table.name: table for table in tables}

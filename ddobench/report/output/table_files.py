"""The tables of a report as files: all digits as CSV, for people as Markdown, for papers as TeX."""

from collections.abc import Iterable, Sequence

import pandas as pd

from ddobench.report.claims.verdicts import Verdict, verdict_markdown, verdict_table
from ddobench.report.data.report_data import ReportData
from ddobench.report.output.latex import latex_files
from ddobench.report.tables.choices import choice_markdown
from ddobench.report.tables.command_costs import cost_markdown, cost_table
from ddobench.report.tables.comparisons import comparison_markdown
from ddobench.report.tables.costs import cpu_markdown, cpu_table
from ddobench.report.tables.crosses import cross_markdown, level_table, share_table
from ddobench.report.tables.formats import DIGITS, score_markdown, to_csv
from ddobench.report.tables.knobs import knob_markdown
from ddobench.report.tables.pairs import pair_markdown
from ddobench.report.tables.rules import rule_markdown
from ddobench.report.tables.spread import spread_markdown
from ddobench.report.tables.standings import standing_markdown
from ddobench.report.tables.styles import explain_signs
from ddobench.scores import meanings


def table_files(
    stored: ReportData, problems: pd.DataFrame, verdicts: Sequence[Verdict], notes: Iterable[str]
) -> dict[str, str]:
    """Return the text of every table by the name of its file."""
    scores, controls = stored.scores, stored.comparisons
    pairs, standings = stored.pairs, stored.standings
    costs = cpu_table(stored.runs, stored.styles)
    frames = {
        "scores": scores,
        "controls": controls,
        "pairs": pairs,
        "standings": standings,
        "settings": stored.knobs,
        "choices": stored.choices,
        "costs": costs,
        "rules": stored.rules,
        "cross": share_table(stored.crosses),
        "cross_levels": level_table(stored.crosses),
        "claims": verdict_table(verdicts),
        "spread": stored.spread,
        "command_costs": cost_table(stored.every_run),
        "problems": problems,
    }
    texts = {
        "scores": score_markdown(scores, notes),
        "protocol": score_markdown(scores, meanings("protocol"), "protocol"),
        "controls": comparison_markdown(controls),
        "pairs": pair_markdown(pairs),
        "standings": standing_markdown(standings),
        "settings": knob_markdown(stored.knobs, explain_signs(stored.styles.values())),
        "choices": choice_markdown(stored.choices),
        "costs": cpu_markdown(costs),
        "rules": rule_markdown(stored.rules),
        "cross": cross_markdown(stored.crosses),
        "spread": spread_markdown(stored.spread),
        "claims": verdict_markdown(verdicts),
        "command_costs": cost_markdown(frames["command_costs"]),
    }
    papers = latex_files(stored, verdicts)
    return {
        **{f"{name}.csv": to_csv(frame, DIGITS) for name, frame in frames.items()},
        **{f"{name}.md": text for name, text in texts.items()},
        **{f"{name}.tex": text for name, text in papers.items()},
    }

"""The tables of a report as files: all digits as CSV, for people as Markdown, for papers as TeX."""

from collections.abc import Iterable, Sequence

import pandas as pd

from ddobench.report.claims.verdicts import Verdict, verdict_markdown, verdict_table
from ddobench.report.data.report_data import ReportData
from ddobench.report.output.latex import latex_files
from ddobench.report.tables.comparisons import comparison_markdown
from ddobench.report.tables.formats import score_markdown, to_csv
from ddobench.report.tables.pairs import pair_markdown
from ddobench.report.tables.standings import standing_markdown


def table_files(
    stored: ReportData, problems: pd.DataFrame, verdicts: Sequence[Verdict], notes: Iterable[str]
) -> dict[str, str]:
    """Return the text of every table by the name of its file."""
    scores, controls = stored.scores, stored.comparisons
    pairs, standings = stored.pairs, stored.standings
    frames = {
        "scores": scores,
        "controls": controls,
        "pairs": pairs,
        "standings": standings,
        "claims": verdict_table(verdicts),
        "problems": problems,
    }
    texts = {
        "scores": score_markdown(scores, notes),
        "controls": comparison_markdown(controls),
        "pairs": pair_markdown(pairs),
        "standings": standing_markdown(standings),
        "claims": verdict_markdown(verdicts),
    }
    papers = latex_files(scores, controls, pairs, standings, verdicts)
    return {
        **{f"{name}.csv": to_csv(frame) for name, frame in frames.items()},
        **{f"{name}.md": text for name, text in texts.items()},
        **{f"{name}.tex": text for name, text in papers.items()},
    }

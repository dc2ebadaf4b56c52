"""What the page says of claims, standings, settings, choices and pairs, for its templates."""

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from ddobench.report.claims.outcomes import count_fates, find_outcomes, spell_fates
from ddobench.report.claims.verdicts import (
    SIGNS,
    TITLES,
    Verdict,
    by_source,
    format_declared,
    format_finding,
    format_reason,
)
from ddobench.report.tables import choices, knobs, pairs, spread, standings
from ddobench.report.tables.columns import SERIES, STUDY
from ddobench.report.tables.crosses import CROSS
from ddobench.report.tables.formats import name_runs
from ddobench.report.tables.styles import Key, Style, explain_signs
from ddobench.scores import contrasted_scores


def claim_section(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a part for the claims of each source."""
    return [
        {
            "source": source,
            "title": TITLES[source],
            "summary": _summarise(own),
            "claims": _claim_items(own),
        }
        for source, own in by_source(verdicts).items()
    ]


def _summarise(verdicts: Sequence[Verdict]) -> str:
    """Count what became of the claims of one source."""
    outcomes = find_outcomes(verdicts)
    twice = len(verdicts) - len(outcomes)
    put = f", {twice} of them put by an oracle's choice as well" if twice else ""
    return f"{len(outcomes)} claims{put}: {spell_fates(count_fates(outcomes))}."


def _claim_items(verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """Return a part for each claim: its verdict in a word, its numbers and how to get them."""
    order = list(SIGNS)
    return [
        {
            "claim": verdict.claim,
            "word": verdict.word,
            "sign": SIGNS[verdict.word],
            "place": order.index(verdict.word),
            "numbers": [
                (finding.answer.where if len(verdict.findings) > 1 else "",
                 format_finding(verdict.claim.question, finding))
                for finding in verdict.findings
            ],
            "reason": format_reason(verdict),
            "declared": format_declared(verdict),
            "seen": any(len(finding.answer.numbers) for finding in verdict.findings),
        }
        for verdict in verdicts
    ]  # fmt: skip


def standing_section(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a part for each line-up."""
    return [
        {
            "title": standings.name_lineup(lineup.iloc[0]),
            "note": standings.explain_standings(lineup),
            "left_out": standings.explain_left_out(lineup),
            "header": _capitalise(standings.header()),
            "words": standings.word_columns(),
            "rows": standings.standing_cells(lineup),
        }
        for _, lineup in table.groupby(standings.LINEUP, sort=False)
    ]


def setting_section(table: pd.DataFrame, styles: Mapping[Key, Style]) -> list[dict[str, Any]]:
    """Return a part for each sweep over a knob of a task."""
    return [
        {
            "title": f"{sweep['knob'].iloc[0]}: {knobs.name_sweep(sweep.iloc[0])}",
            "note": knobs.explain_knobs(sweep, _explain_signs_of(sweep, styles)),
            "header": ["Method", *knobs.header(sweep)[1:-1], "Seeds"],
            "words": [0],
            "rows": knobs.knob_cells(sweep),
        }
        for _, sweep in table.groupby(knobs.SWEEP, sort=True)
    ]


def choice_section(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a part for each method that chooses, in each cell."""
    return [
        {
            "title": choices.name_choices(cell.iloc[0]),
            "note": choices.EXPLANATION,
            "header": _capitalise(choices.HEADER),
            "words": choices.WORDS,
            "rows": choices.choice_cells(cell),
        }
        for _, cell in table.groupby(choices.CHOOSER, sort=True)
    ]


def spread_section(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a part for each cross of instances and trainings."""
    return [
        {
            "title": spread.name_spread(cross.iloc[0]),
            "note": f"{spread.describe_spread(cross)} {spread.EXPLANATION}",
            "header": _capitalise(spread.header()),
            "words": spread.WORDS,
            "rows": spread.spread_cells(cross),
        }
        for _, cross in table.groupby(CROSS, sort=True)
    ]


def _capitalise(names: Sequence[str]) -> list[str]:
    return [name[0].upper() + name[1:] for name in names]


def _explain_signs_of(table: pd.DataFrame, styles: Mapping[Key, Style]) -> list[str]:
    keys = table[["task", *SERIES]].drop_duplicates().itertuples(index=False, name=None)
    return explain_signs(styles[key] for key in keys)


def pair_section(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a part for each study of a task."""
    return [
        {
            "title": name_runs(study.iloc[0]),
            "note": pairs.explain_pairs(study),
            "scores": list(contrasted_scores().values()),
            "words": pairs.WORDS,
            "rows": pairs.pair_cells(study),
        }
        for _, study in table.groupby(STUDY, sort=True)
    ]

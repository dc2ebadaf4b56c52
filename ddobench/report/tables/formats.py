"""The tables of a report: numbers first, as frames; then their spelling for people."""

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from ddobench.report.tables.columns import CELL, LOST, SERIES, STUDY
from ddobench.report.tables.scores import known_scores
from ddobench.scores import Part, Score, Sheet, Tabled, tabled_scores
from ddobench.stats.samples import FEW

MINUS = "\u2212"
DASH = "\u2013"
INTERVAL_RULE = f"Student's t below {FEW} seeds, the BCa bootstrap from {FEW} on"
DIGITS = 10  # in a table of a report; further ones of a mean depend on the CPU
_EXACT = 1e-9  # what is smaller in absolute value is printed as 0
_MANY = 40  # entries of a list before it is cut short
_FORMULA = ("=", "+", "-", "@", "\t", "\n")  # how a cell begins that is computed


def problem_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return every failed and declined run with its reason."""
    problems = runs[runs["status"] != "ok"]
    columns = [*CELL, *SERIES, "seed", "status", "reason", "command"]
    return problems[columns].reset_index(drop=True)


def to_csv(table: pd.DataFrame, digits: int | None = None) -> str:
    """Spell a table, all digits unless told how many, with no text that a spreadsheet computes."""
    words = table.select_dtypes(exclude="number")
    safe = table.assign(**{str(name): words[name].map(escape_formula) for name in words})
    return str(
        safe.rename(columns=escape_formula).to_csv(
            index=False,
            lineterminator="\n",
            float_format=None if digits is None else f"%.{digits}g",
        )
    )


def escape_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet takes for a formula; numbers are none.

    Lines end in one way, which is quoted: Python before 3.13 leaves a lone carriage return bare,
    and what follows would be a cell of its own.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(_FORMULA) and not _is_numeric(text) else text


def _is_numeric(text: str) -> bool:
    """Tell whether a text is a number or a row of them, such as -1.5 or -1.5 2.0."""
    try:
        return bool([float(word) for word in text.split()])
    except ValueError:
        return False


def score_header(study: pd.DataFrame, sheet: Sheet = "scores") -> list[str]:
    """Return the headings of a score table of one study."""
    known = known_scores(study, tabled_scores(sheet))
    told = [heading for _, table in known for heading in table.cells]
    return ["n", "d", "method", *told, "seeds"]


def score_words(study: pd.DataFrame, sheet: Sheet = "scores") -> list[int]:
    """Return the places under `score_header` that hold words."""
    return [2, len(score_header(study, sheet)) - 1]


def score_markdown(scores: pd.DataFrame, notes: Iterable[str], sheet: Sheet = "scores") -> str:
    """Spell the scores for people, one heading per task, variant and budget."""
    parts = [f"# {sheet.capitalize()}\n", *(f"{escape_markdown(note)}\n" for note in notes)]
    for _, study in scores.groupby(STUDY, sort=True):
        if not known_scores(study, tabled_scores(sheet)):
            continue  # runs of a version that knew none of them
        parts.append(f"## {escape_markdown(name_runs(study.iloc[0]))}\n")
        header, lines = score_header(study, sheet), format_scores(study, sheet)
        parts.append(markdown_table(header, lines, words=score_words(study, sheet)))
    return "\n".join(parts)


def format_scores(study: pd.DataFrame, sheet: Sheet = "scores") -> list[list[str]]:
    """Spell the scores of one study under `score_header`."""
    return [
        [
            str(row["n"]),
            str(row["d"]),
            str(row["label"]),
            *(
                format_part(row, score, table, part)
                for score, table in known_scores(study, tabled_scores(sheet))
                for part in table.cells.values()
            ),
            describe_counts(row),
        ]
        for row in study.to_dict("records")
    ]


def format_part(row: Mapping[Hashable, Any], score: Score, table: Tabled, part: Part) -> str:
    """Spell one part of a score in a row of the score table: a share as a percentage."""
    value = row[table.column(part)]
    if part == "estimate" and table.summary != "mean":
        scale, ends = score.unit.scale, (row[f"{table.key}_low"], row[f"{table.key}_high"])
        return format_estimate(scale * value, scale * ends[0], scale * ends[1])
    return format_percent(value) if score.unit.fraction else format_number(value)


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int]
) -> str:
    """Spell a table, the columns of words to the left and those of numbers to the right."""
    rule = [":---" if i in words else "---:" for i in range(len(header))]
    lines = [header, rule, *([escape_markdown(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def escape_markdown(text: str) -> str:
    """Keep a text from being read as a column, a line or markup."""
    for sign, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|")):
        text = text.replace(sign, code)
    return " ".join(text.split())


def name_runs(row: "pd.Series[Any]", *sizes: str) -> str:
    """Name the runs that share a row's task, variant and budget, and these of its sizes."""
    budget = "" if row["budget"] in ("", "full") else f"budget {row['budget']}"
    shared = [f"{size} = {row[size]}" for size in sizes]
    return ", ".join(filter(None, [f"{row['task']}", str(row["task_variant"]), *shared, budget]))


def describe_counts(row: Mapping[Hashable, Any]) -> str:
    """Say how many seeds were averaged, and what became of the others."""
    lost = [f"{count} {name}" for name in LOST if (count := row[name])]
    return ", ".join([str(row["seeds"]), *lost])


def format_number(value: float) -> str:
    """Spell a number with two decimals; an exact zero stays "0" and a small number visible."""
    if not math.isfinite(value):
        return DASH
    if abs(value) < _EXACT:
        return "0"
    text = f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}"
    return text.replace("-", MINUS)


def format_estimate(mean: float, low: float, high: float) -> str:
    """Spell a mean with its interval, alone where there is none."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return format_number(mean)
    return f"{format_number(mean)} [{format_number(low)}, {format_number(high)}]"


def format_percent(fraction: float) -> str:
    """Spell a fraction as a percentage, never rounding something to nothing."""
    if not math.isfinite(fraction):
        return DASH
    if 0 < fraction < 0.005:
        return "< 1 %"
    return f"{100 * fraction:.0f} %"


def format_ranges(numbers: Iterable[int]) -> str:
    """Spell whole numbers as ranges joined by a dash."""
    ordered = sorted(set(numbers))
    starts = [i for i, number in enumerate(ordered) if i == 0 or ordered[i - 1] != number - 1]
    ends = [*(start - 1 for start in starts[1:]), len(ordered) - 1]
    parts = [
        str(ordered[a]) if a == b else f"{ordered[a]}{DASH}{ordered[b]}"
        for a, b in zip(starts, ends, strict=bool(ordered))
    ]
    return ", ".join(parts[:_MANY]) + (", …" if len(parts) > _MANY else "")

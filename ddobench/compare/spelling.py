"""A comparison for people: sentences and tables, as text or Markdown."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from ddobench.compare.settings import Change
from ddobench.compare.sides import Side
from ddobench.report.tables.select import BY_N, BY_SIZE, SERIES
from ddobench.report.tables.table import (
    DASH,
    MINUS,
    escape_markdown,
    format_number,
    format_ranges,
    markdown_table,
    name_runs,
)

HEADER = [
    *("task", "method", "n", "d", "pairs", "identical", "mean A", "mean B", f"B {MINUS} A"),
    *("95 % interval", "largest", "only A", "only B", "status"),
]
WORDS = ("task", "method", "status")  # the columns that do not hold numbers
_SILENT = {"only A": "0", "only B": "0", "status": ""}  # columns that may have nothing to say
_MOST_LINES = 20


def is_changed(table: pd.DataFrame) -> "pd.Series[bool]":
    """Tell for each line whether a run in it is not what it was."""
    return table["changed"].astype(int) > 0


def summarise(a: Side, b: Side, matched: pd.DataFrame, table: pd.DataFrame) -> list[str]:
    """Say in sentences what was compared and what came of it."""
    said = [_describe(letter, side) for letter, side in (("A", a), ("B", b))]
    shared = matched[matched["in"] == "both"]
    if shared.empty:
        return [*said, "No run is on both sides, so nothing can be compared.",
                *_inventory("A", a.runs), *_inventory("B", b.runs)]  # fmt: skip
    changed = int((~shared["identical"]).sum())
    if changed:
        lines = table[table["pairs"].astype(int) > 0]
        said.append(
            f"{changed} of the {len(shared)} runs that both have changed, in "
            f"{int(is_changed(lines).sum())} of {len(lines)} lines of the table; "
            f"{len(shared) - changed} are identical to the bit in scores and curves."
        )
    else:
        some = "The one run" if len(shared) == 1 else f"All {len(shared)} runs"
        verb = "is" if len(shared) == 1 else "are"
        said.append(f"{some} that both have {verb} identical to the bit in scores and curves.")
    for side in ("A", "B"):
        alone = matched[matched["in"] == side]
        if len(alone):
            series = len(alone[[*BY_SIZE, *SERIES]].drop_duplicates())
            lines_word = "line" if series == 1 else "lines"
            said.append(f"Only {side} has {len(alone)} more, in {series} {lines_word}.")
    return said


def _describe(letter: str, side: Side) -> str:
    status = side.runs["status"].value_counts().sort_index()
    lost = "".join(f", {count} of them {name}" for name, count in status.items() if name != "ok")
    runs = f"{len(side.runs)} run{'' if len(side.runs) == 1 else 's'}"
    return f"{letter}: {side.name}: {runs}{lost}"


def _inventory(letter: str, runs: pd.DataFrame) -> list[str]:
    """List what one side has."""
    if runs.empty:
        return [f"{letter} has no runs."]
    lines = [
        f"{letter} has {_name(rows.iloc[0])}, n = {rows['n'].iloc[0]}, "
        f"d = {format_ranges(rows['d'])}, seeds {format_ranges(rows['seed'])}"
        for _, rows in runs.groupby([*BY_N, *SERIES], sort=True)
    ]
    more = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"{letter} has {more} more such lines"] if more > 0 else [])


def _name(row: "pd.Series[Any]") -> str:
    return f"{name_runs(row)}, {_method(row)}"


def _method(row: "Mapping[Any, Any] | pd.Series[Any]") -> str:
    return f"{row['method']} {row['method_variant']}".strip()


def format_rows(table: pd.DataFrame) -> list[list[str]]:
    """Spell the lines of a table under HEADER."""
    lines = []
    for _, row in table.iterrows():
        lines.append(
            [
                *(name_runs(row), _method(row), str(row["n"]), str(row["d"]), str(row["pairs"])),
                *(
                    str(row["identical"]),
                    format_number(row["mean_a"]),
                    format_number(row["mean_b"]),
                ),
                *(format_change(row["difference"]), _format_interval(row["low"], row["high"])),
                format_change(row["largest_change"]),
                *(str(row["only_a"]), str(row["only_b"]), str(row["status_changes"])),
            ]
        )
    return lines


def telling_columns(table: pd.DataFrame) -> dict[str, list[str]]:
    """Return the spelled table by column, without columns that say the same nothing everywhere."""
    rows = format_rows(table)
    columns = {name: [row[i] for row in rows] for i, name in enumerate(HEADER)}
    return {name: cells for name, cells in columns.items() if {*cells} != {_SILENT.get(name)}}


def format_change(value: float) -> str:
    """Spell a change with three digits; only what is exactly nothing is "0"."""
    if not math.isfinite(value):
        return DASH
    return "0" if value == 0 else f"{value:.3g}".replace("-", MINUS)


def _format_interval(low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    return f"[{format_change(low)}, {format_change(high)}]"


def format_changes(changes: Mapping[Change, Sequence[Mapping[Hashable, Any]]]) -> list[str]:
    """Spell each change of a setting once, with the lines of the table that it concerns."""
    said = []
    for (name, before, after), rows in changes.items():
        methods = sorted({f"{row['task']} {_method(row)}" for row in rows})
        where = ", ".join(methods[:_MOST_LINES]) + (", …" if len(methods) > _MOST_LINES else "")
        sizes = format_ranges(row["d"] for row in rows)
        said.append(f"{name}: {before} \u2192 {after} ({where}; d = {sizes})")
    return said


def align(columns: Mapping[str, Sequence[str]]) -> str:
    """Lay out a table as plain text, words to the left and numbers to the right."""
    padded = []
    for name, cells in columns.items():
        width = max(map(len, [name, *cells]))
        side = str.ljust if name in WORDS else str.rjust
        padded.append([side(cell, width) for cell in (name, *cells)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def to_markdown(
    said: Sequence[str], score: str, table: pd.DataFrame, sections: Mapping[str, Sequence[str]]
) -> str:
    """Spell a whole comparison as Markdown."""
    parts = ["# Comparison\n", *(f"{escape_markdown(line)}\n" for line in said)]
    if len(table):
        parts.append(f"## Differences in {score}\n")
        parts.append(markdown_table(HEADER, format_rows(table), [name in WORDS for name in HEADER]))
    for title, lines in sections.items():
        if lines:
            parts.append(f"## {title}\n")
            parts.append("".join(f"- {escape_markdown(line)}\n" for line in lines))
    return "\n".join(parts)

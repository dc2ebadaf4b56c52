"""The command `python -m ddobench.compare A B [method=...] [--all]`, and what it prints."""

import argparse
import logging
import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.cli.argv import DEFAULT_RESULTS, SentenceParser, complain, quiet_output
from ddobench.compare.comparison import Comparison, compare, format_setting
from ddobench.compare.sides import Side, read_sides
from ddobench.errors import UsageError
from ddobench.progress import reporting_late
from ddobench.report.data import FILTERS
from ddobench.report.tables.formatting import (
    DASH,
    MINUS,
    escape_markdown,
    format_number,
    format_ranges,
    markdown_table,
    name_runs,
    one_line,
    to_csv,
)
from ddobench.report.tables.select import BY_N, BY_SIZE, SERIES
from ddobench.scores import HEADLINE, comparable_names
from ddobench.store.atomic import write_whole

_EPILOG = f"""\
A and B are each a folder of stored runs, or a git revision (a hash or its beginning, a branch, a
tag) whose runs are in --results-dir. A name that is both is taken as the folder; write dir:NAME or
rev:NAME to choose. Runs are matched by task, method, their variants, d, n, budget and seed.

{textwrap.fill(f"scores: {', '.join(comparable_names())}", 99)}

Exit code: 0; 1 if --fail-on-change found a change or nothing to compare; 2 if the request is not
valid."""
_SUFFIXES = (".csv", ".md")
_MOST_LINES = 20
_HEADER = [
    *("task", "method", "n", "d", "pairs", "identical", "mean A", "mean B", f"B {MINUS} A"),
    *("95 % interval", "largest", "only A", "only B", "status"),
]
_TEXT_COLUMNS = ("task", "method", "status")  # aligned to the left
_EMPTY = {"only A": "0", "only B": "0", "status": ""}  # columns left out if every cell is this


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.getLogger("ddobench").addHandler(logging.StreamHandler(sys.stderr))
    try:
        if options.output and options.output.suffix not in _SUFFIXES:
            raise UsageError(
                f"--output must end in {' or '.join(_SUFFIXES)}, got {options.output.name}"
            )
        with reporting_late():
            filters = _parse_filters(options.filters)
            sides = read_sides([options.a, options.b], options.results_dir, filters)
            found = compare(*sides, options.score)
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    listed = found.table if options.all else found.table[found.table["changed"].astype(int) > 0]
    _print(found, listed)
    if options.output:
        text = to_csv(listed) if options.output.suffix == ".csv" else _to_markdown(found, listed)
        path = write_whole(options.output, text)
        print(f"\n{one_line(str(path))}: {len(listed)} lines")
    return int(options.fail_on_change and (found.changed > 0 or not found.compared))


def summarise(found: Comparison) -> list[str]:
    """Return sentences on what was compared and what changed."""
    sentences = [_describe(letter, side) for letter, side in (("A", found.a), ("B", found.b))]
    if not found.compared:
        return [*sentences, "No run is on both sides, so nothing can be compared.",
                *_list_runs("A", found.a.runs), *_list_runs("B", found.b.runs)]  # fmt: skip
    same = found.compared - found.changed
    if found.changed:
        lines = found.table[found.table["pairs"].astype(int) > 0]
        changed_lines = int((lines["changed"].astype(int) > 0).sum())
        sentences.append(
            f"{found.changed} of the {found.compared} runs that both have changed, in "
            f"{changed_lines} of {len(lines)} lines of the table; "
            f"{same} are identical to the bit in scores and curves."
        )
    else:
        runs = "The one run that both have is"
        if same > 1:
            runs = f"All {same} runs that both have are"
        sentences.append(f"{runs} identical to the bit in scores and curves.")
    for side in ("A", "B"):
        alone = found.runs[found.runs["in"] == side]
        if len(alone):
            runs = "1 run is" if len(alone) == 1 else f"{len(alone)} runs are"
            count = len(alone[[*BY_SIZE, *SERIES]].drop_duplicates())
            where = "1 line" if count == 1 else f"{count} lines"
            sentences.append(f"{runs} only in {side}, in {where} of the table.")
    return sentences


def list_differences(found: Comparison) -> dict[str, list[str]]:
    """Return what differs besides the scores, by title."""
    settings = []
    for change, rows in found.settings.items():
        methods = sorted({f"{row['task']} {_method(row)}" for row in rows})
        where = ", ".join(methods[:_MOST_LINES]) + (", …" if len(methods) > _MOST_LINES else "")
        sizes = format_ranges(row["d"] for row in rows)
        settings.append(f"{format_setting(change)} ({where}; d = {sizes})")
    return {
        "Settings that differ": settings,
        "Versions and machines that differ": [*map(format_setting, found.origins)],
    }


def _describe(letter: str, side: Side) -> str:
    status = side.runs["status"].value_counts().sort_index()
    others = "".join(f", {count} of them {name}" for name, count in status.items() if name != "ok")
    runs = f"{len(side.runs)} run{'' if len(side.runs) == 1 else 's'}"
    return f"{letter}: {side.name}: {runs}{others}"


def _list_runs(letter: str, runs: pd.DataFrame) -> list[str]:
    """List the runs of one side by task and method."""
    if runs.empty:
        return [f"{letter} has no runs."]
    lines = [
        f"{letter} has {name_runs(rows.iloc[0])}, {_method(rows.iloc[0])}, "
        f"n = {rows['n'].iloc[0]}, d = {format_ranges(rows['d'])}, "
        f"seeds {format_ranges(rows['seed'])}"
        for _, rows in runs.groupby([*BY_N, *SERIES], sort=True)
    ]
    more = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"{letter} has {more} more such lines"] if more > 0 else [])


def _method(row: "Mapping[Any, Any] | pd.Series[Any]") -> str:
    return f"{row['method']} {row['method_variant']}".strip()


def _format_rows(table: pd.DataFrame) -> list[list[str]]:
    """Format the rows of a table for the columns of _HEADER."""
    return [
        [
            *(name_runs(row), _method(row), str(row["n"]), str(row["d"]), str(row["pairs"])),
            *(str(row["identical"]), format_number(row["mean_a"]), format_number(row["mean_b"])),
            *(format_change(row["difference"]), _format_interval(row["low"], row["high"])),
            format_change(row["largest_change"]),
            *(str(row["only_a"]), str(row["only_b"]), str(row["status_changes"])),
        ]
        for _, row in table.iterrows()
    ]


def format_change(value: float) -> str:
    """Format a change with three digits; only an exact zero is "0"."""
    if not math.isfinite(value):
        return DASH
    return "0" if value == 0 else f"{value:.3g}".replace("-", MINUS)


def _format_interval(low: float, high: float) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return DASH
    return f"[{format_change(low)}, {format_change(high)}]"


def _print(found: Comparison, listed: pd.DataFrame) -> None:
    print("\n".join(map(one_line, summarise(found))))
    if len(listed):
        print(f"\nDifferences in {found.score}, paired by seed:")
        rows = _format_rows(listed)
        columns = {name: [one_line(row[i]) for row in rows] for i, name in enumerate(_HEADER)}
        columns = {name: cells for name, cells in columns.items() if {*cells} != {_EMPTY.get(name)}}
        if sys.stdout.isatty():
            _print_table(columns)
        else:
            print(_align(columns))
    for title, lines in list_differences(found).items():
        if lines:
            print(
                "\n".join([f"\n{title}, A \u2192 B:", *(f"  {one_line(line)}" for line in lines)])
            )


def _print_table(columns: Mapping[str, Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        text = name in _TEXT_COLUMNS
        table.add_column(name, justify="left" if text else "right", no_wrap=not text)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))  # Text, so that brackets are not read as markup
    console.print(table)


def _align(columns: Mapping[str, Sequence[str]]) -> str:
    """Format a table as plain text, text to the left and numbers to the right."""
    padded = []
    for name, cells in columns.items():
        width = max(map(len, [name, *cells]))
        pad = str.ljust if name in _TEXT_COLUMNS else str.rjust
        padded.append([pad(cell, width) for cell in (name, *cells)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _to_markdown(found: Comparison, listed: pd.DataFrame) -> str:
    parts = ["# Comparison\n", *(f"{escape_markdown(line)}\n" for line in summarise(found))]
    if len(listed):
        left = [name in _TEXT_COLUMNS for name in _HEADER]
        parts.append(f"## Differences in {found.score}\n")
        parts.append(markdown_table(_HEADER, _format_rows(listed), left))
    for title, lines in list_differences(found).items():
        if lines:
            parts.append(f"## {title}\n")
            parts.append("".join(f"- {escape_markdown(line)}\n" for line in lines))
    return "\n".join(parts)


def _parse_filters(words: Sequence[str]) -> dict[str, Any]:
    """Parse `method=a,b d=10` as the report does."""
    filters: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in FILTERS:
            raise UsageError(f"a filter must be {'=, '.join(FILTERS)}= and a value, got {word!r}")
        values = value.strip("[]").split(",")
        if name in ("d", "n") and not all(part.strip().isdigit() for part in values):
            raise UsageError(f"{name} must be whole numbers joined by commas, got {value!r}")
        filters[name] = (
            value.strip("[]") if name == "seed"
            else [int(part) if name in ("d", "n") else part.strip() for part in values]
        )  # fmt: skip
    return filters


def _parser() -> argparse.ArgumentParser:
    parser = SentenceParser(
        prog="python -m ddobench.compare",
        description="Compare two sets of stored runs, paired by seed.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("a", metavar="A", help="the runs before: a folder or a git revision")
    add("b", metavar="B", help="the runs after: a folder or a git revision")
    add("filters", metavar="NAME=VALUE", nargs="*", default=[],
        help=f"only runs with this {', '.join(FILTERS)}")  # fmt: skip
    add("--results-dir", type=Path, default=Path(DEFAULT_RESULTS), metavar="FOLDER",
        help="the folder with the runs of a revision (default: %(default)s)")  # fmt: skip
    add("--score", choices=comparable_names(), default=HEADLINE.name, metavar="NAME",
        help="the score to compare (default: %(default)s)")  # fmt: skip
    add("--output", type=Path, metavar="FILE",
        help="also write the table, .csv (with every digit) or .md")  # fmt: skip
    add("--all", action="store_true", help="also list what did not change")
    add("--fail-on-change", action="store_true",
        help="exit with 1 if a run changed or none could be compared")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())

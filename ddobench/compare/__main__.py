"""The command line of a comparison: `python -m ddobench.compare A B [method=...] [--all]`."""

import argparse
import logging
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.cli.parser import SentenceParser, complain
from ddobench.cli.settings import DEFAULT_RESULTS
from ddobench.compare import spelling
from ddobench.compare.matching import change_table, match_runs
from ddobench.compare.settings import Change, config_changes, origin_changes
from ddobench.compare.sides import Side, read_sides
from ddobench.errors import UsageError
from ddobench.progress import reporting_late
from ddobench.report.data import FILTERS
from ddobench.report.tables.table import to_csv
from ddobench.scores import HEADLINE, comparable_names
from ddobench.store.atomic import write_whole

_EPILOG = """\
A and B are each a folder of stored runs, or a git revision (a hash or the beginning of one, a
branch, a tag) whose runs are in --results-dir. A name that is both is the folder; dir:NAME and
rev:NAME say which is meant. Runs belong together if task, method, their variants, d, n, budget and
seed agree. Exit code: 0, 1 if --fail-on-change found a change or nothing to compare, 2 if the
request cannot be understood."""
_ENDINGS = (".csv", ".md")


@dataclass(frozen=True)
class Comparison:
    """All that a comparison found."""

    said: list[str]
    score: str
    table: pd.DataFrame
    sections: dict[str, list[str]]  # what else differs, by title
    compared: int  # runs
    changed: int


def compare(a: Side, b: Side, score: str) -> Comparison:
    """Compare two sides."""
    matched = match_runs(a, b)
    table = change_table(matched, score)
    settings: dict[Change, list[Mapping[Hashable, Any]]] = {}
    spelled = []
    for row in table.to_dict("records"):
        changes = config_changes(row, a, b)
        for change in changes:
            settings.setdefault(change, []).append(row)
        spelled.append("; ".join(f"{name}: {old} \u2192 {new}" for name, old, new in changes))
    origins = [f"{name}: {old} \u2192 {new}" for name, old, new in origin_changes(matched, a, b)]
    return Comparison(
        said=spelling.summarise(a, b, matched, table),
        score=score,
        table=table.assign(settings=spelled),
        sections={
            "Settings that differ": spelling.format_changes(settings),
            "Versions and machines that differ": origins,
        },
        compared=int(table["pairs"].sum()),
        changed=int(table["changed"].sum()),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.getLogger("ddobench").addHandler(logging.StreamHandler(sys.stderr))
    try:
        if options.output and options.output.suffix not in _ENDINGS:
            raise UsageError(
                f"--output must end in {' or '.join(_ENDINGS)}, got {options.output.name}"
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
    listed = found.table if options.all else found.table[spelling.is_changed(found.table)]
    _print(found, listed)
    if options.output:
        text = (
            to_csv(listed)
            if options.output.suffix == ".csv"
            else spelling.to_markdown(found.said, found.score, listed, found.sections)
        )
        print(f"\n{write_whole(options.output, text)}: {len(listed)} lines")
    return int(options.fail_on_change and (found.changed > 0 or not found.compared))


def _print(found: Comparison, listed: pd.DataFrame) -> None:
    print("\n".join(found.said))
    if len(listed):
        print(f"\nDifferences in {found.score}, paired by seed:")
        columns = spelling.telling_columns(listed)
        if sys.stdout.isatty():
            _print_table(columns)
        else:
            print(spelling.align(columns))
    for title, lines in found.sections.items():
        if lines:
            print("\n".join([f"\n{title}, A \u2192 B:", *(f"  {line}" for line in lines)]))


def _print_table(columns: Mapping[str, Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        words = name in spelling.WORDS
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for row in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, row))  # brackets are no markup
    console.print(table)


def _parse_filters(words: Sequence[str]) -> dict[str, Any]:
    """Read `method=a,b d=10` as the report does."""
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
        description="Put two sets of stored runs side by side.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("a", metavar="A", help="what it was: a folder of runs or a git revision")
    parser.add_argument("b", metavar="B", help="what it is now")
    parser.add_argument("filters", metavar="NAME=VALUE", nargs="*", default=[],
                        help=f"only runs with this {', '.join(FILTERS)}")  # fmt: skip
    parser.add_argument("--results-dir", type=Path, default=Path(DEFAULT_RESULTS),
                        help="where the runs of a revision are (default: %(default)s)")  # fmt: skip
    parser.add_argument("--score", choices=comparable_names(), default=HEADLINE.name,
                        help="what to average (default: %(default)s)")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE",
                        help="also write the table, .csv with every digit or .md")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="list what did not change as well")
    parser.add_argument("--fail-on-change", action="store_true",
                        help="exit with 1 if a run changed or none could be compared")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())

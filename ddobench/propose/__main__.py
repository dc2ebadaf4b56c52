"""The command `python -m ddobench.propose`: designs for a file of rows, and a page about them."""

import argparse
import logging
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from ddobench.cli.argv import CONFIG_DIR, SentenceParser, complain
from ddobench.cli.main import use_plugins
from ddobench.errors import UsageError
from ddobench.progress import console, reporting
from ddobench.propose.example_data import example_table
from ddobench.propose.proposal_page import render_page
from ddobench.propose.proposals import DEFAULT_METHOD, Options, Proposals, find_proposals
from ddobench.propose.ranking import PREDICTED
from ddobench.report.tables.formatting import format_number, to_csv
from ddobench.seeds import parse_seeds
from ddobench.store.atomic import write_whole
from ddobench.tabular.rows import SUFFIXES, check_column, read_table

PROGRAM = "python -m ddobench.propose"
_EPILOG = """\
examples:
  python -m ddobench.propose --example chain d=21 n=2000 --out table.csv
  python -m ddobench.propose table.csv --target y --k 50 --out proposals.csv
  python -m ddobench.propose table.csv --target y --bounds x0=0:1 --fixed x3=0.5 --seed 0-4

A page of the same name (proposals.html) shows how the designs were found and how far to trust them.
Nothing is uploaded. Exit code: 0, or 2 if the request cannot be carried out."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    if not console.is_terminal:  # a terminal shows progress bars instead
        log = logging.getLogger("ddobench")
        log.handlers = [logging.StreamHandler(sys.stderr)]
        log.setLevel(logging.INFO)
    try:
        options = _parser().parse_intermixed_args(typed)
        if options.config_dir is not None:
            if not options.config_dir.is_dir():
                raise UsageError(
                    "the folder given by --config-dir does not exist, got "
                    f"{options.config_dir}; give one that does"
                )
            use_plugins([CONFIG_DIR[-1], str(options.config_dir)])
        if options.example is not None:
            _write_example(options)
        else:
            _propose(options, shlex.join(typed))
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return 0


def _write_example(options: argparse.Namespace) -> None:
    """Write the rows of a task as a table."""
    sizes, rest = {}, []
    for word in options.words:
        name, _, size = word.partition("=")
        if name in ("d", "n") and size.isdigit():
            sizes[name] = int(size)
        else:
            rest.append(word)
    seed = next(iter(parse_seeds(options.seed)))
    table = example_table(options.example, seed=seed, overrides=rest, **sizes)
    out = _check_out(options.out or Path("table.csv"))
    _write(table, out)
    print(f"{out}: {len(table)} rows of {options.example}, columns x0 to {table.columns[-2]} and y")


def _propose(options: argparse.Namespace, typed: str) -> None:
    """Write designs for a file, and the page."""
    if not options.words or options.target is None:
        raise UsageError(
            f"give a table and its value column, as in: {PROGRAM} table.csv --target y"
        )
    file, *overrides = options.words
    out = _check_out(options.out or Path("proposals.csv"))
    table = read_table(file)
    if out.resolve() == Path(file).resolve():
        raise UsageError(f"--out would overwrite the table {file}; give another name")
    check_column(options.target, table)
    asked = Options(
        method=options.method,
        k=options.k,
        seed=options.seed,
        overrides=overrides,
        minimise=options.minimise,
        bounds="visible" if options.inside else _parse_bounds(options.bounds),
        fixed=_parse_fixed(options.fixed, table),
        categorical=options.categorical,
        whole=options.whole or None,
        drop=options.drop,
        check=options.check,
    )
    with reporting(len(parse_seeds(options.seed))):
        found = find_proposals(table, options.target, asked)
    page = out.with_suffix(".html")
    _write(found.table, out)
    write_whole(page, render_page(found, Path(file).name, out.name, f"{PROGRAM} {typed}"))
    for sentence in found.warnings:
        print(f"warning: {sentence}", file=sys.stderr)
    print(f"{out}: {_summarise(found)}")
    print(f"{page}: how the designs were found, and how far to trust them")


def _summarise(found: Proposals) -> str:
    """Return one line on the result."""
    y, predicted = found.rows.y, found.ranked.assessment[PREDICTED]
    best = y.min() if found.options.minimise else y.max()
    count = len(found.ranked.designs)
    text = f"{count} design{'' if count == 1 else 's'} by {found.fitted.spec.method}"
    if found.winners:
        text += f", which chose {' and '.join(found.winners)}"
    if predicted.notna().any():
        span = dict.fromkeys(map(format_number, (predicted.iloc[0], predicted.iloc[-1])))
        text += f", predicted {' to '.join(span)}"
    return f"{text}; the best row has {format_number(best)}"


def _write(table: pd.DataFrame, out: Path) -> None:
    if out.suffix.lower() == ".parquet":
        write_whole(out, table.to_parquet(index=False))
    else:
        write_whole(out, to_csv(table))


def _check_out(out: Path) -> Path:
    if out.suffix.lower() not in SUFFIXES:
        raise UsageError(f"--out must end in {' or '.join(SUFFIXES)}, got {out.name!r}")
    return out


def _parse_bounds(words: Sequence[str]) -> dict[str, tuple[float | None, float | None]]:
    """Parse `name=low:high`, where either end may be left open."""
    bounds = {}
    for word in words:
        name, equals, span = word.rpartition("=")
        ends = span.split(":")
        try:
            if not equals or len(ends) != 2:
                raise ValueError
            low, high = (float(end) if end.strip() else None for end in ends)
        except ValueError:
            raise UsageError(f"--bounds must be NAME=LOW:HIGH, got {word!r}") from None
        bounds[name] = (low, high)
    return bounds


def _parse_fixed(words: Sequence[str], table: pd.DataFrame) -> dict[str, Any]:
    """Parse `name=entry`, with an entry of the dtype of the column."""
    fixed: dict[str, Any] = {}
    for word in words:
        name, equals, entry = word.partition("=")
        if not equals:
            raise UsageError(f"--fixed must be NAME=ENTRY, got {word!r}")
        check_column(name, table)
        kind = table[name].dtype
        if types.is_bool_dtype(kind):
            fixed[name] = entry.lower() == "true"
        elif types.is_numeric_dtype(kind):
            try:
                fixed[name] = int(entry) if types.is_integer_dtype(kind) else float(entry)
            except ValueError:
                raise UsageError(f"--fixed {name} must be a number, got {entry!r}") from None
        else:
            fixed[name] = entry
    return fixed


def _parser() -> argparse.ArgumentParser:
    parser = SentenceParser(
        prog=PROGRAM,
        description="Propose new designs from a file of rows, and assess how far to trust them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "words",
        metavar="TABLE [NAME=VALUE ...]",
        nargs="*",
        default=[],
        help="a CSV or Parquet file, then any settings of a run (budget=small)",
    )
    add("--target", metavar="NAME", help="the column of values")
    add("--minimise", action="store_true", help="smaller values are better")
    add("--method", default=DEFAULT_METHOD, help="the method that proposes (default: %(default)s)")
    add("--k", type=int, default=128, help="how many designs (default: %(default)s)")
    add("--seed", default="0", help="one seed or several, as 0-4 (default: %(default)s)")
    add(
        "--out",
        type=Path,
        metavar="FILE",
        help="the file to write, .csv or .parquet (default: proposals.csv)",
    )
    add(
        "--bounds",
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="bounds of a column, either may be left out; repeat for other columns",
    )
    add("--inside", action="store_true", help="keep every column inside the range of the rows")
    add(
        "--fixed",
        action="append",
        default=[],
        metavar="NAME=ENTRY",
        help="an entry that every design must have; repeat for other columns",
    )
    add(
        "--categorical",
        action="append",
        default=[],
        metavar="NAME",
        help="a numeric column that is a category; string columns always are",
    )
    add(
        "--whole",
        action="append",
        default=[],
        metavar="NAME",
        help="a column of whole numbers (default: those written without a decimal point)",
    )
    add("--drop", action="append", default=[], metavar="NAME", help="a column to leave out")
    add(
        "--no-check",
        dest="check",
        action="store_false",
        help="skip the check that fits without the best rows and predicts them",
    )
    add("--config-dir", type=Path, metavar="FOLDER", help="the folder of your own methods")
    add(
        "--example",
        metavar="TASK",
        help="write the rows of a task as a table to try",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

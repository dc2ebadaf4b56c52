"""The command `python -m ddobench.propose`: designs for a file of rows, and a page about them."""

import argparse
import logging
import os
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, TextIO

import numpy as np
import pandas as pd
from pandas.api import types

from ddobench.cli.argv import CONFIG_DIR, SentenceParser, cannot_print, complain, quiet_output
from ddobench.cli.main import use_plugins
from ddobench.errors import UsageError
from ddobench.progress import console, reporting
from ddobench.propose.example_data import example_table
from ddobench.propose.proposal_page import render_page, summarise
from ddobench.propose.proposals import DEFAULT_K, DEFAULT_METHOD, Options, find_proposals
from ddobench.report.tables.formatting import to_csv
from ddobench.seeds import parse_seeds
from ddobench.store.atomic import check_room, write_whole
from ddobench.store.checks import printable
from ddobench.tabular.files import GivenForm, TextForm, read_file
from ddobench.tabular.rows import check_column

PROGRAM = "python -m ddobench.propose"
LONGEST_NAME = 200  # bytes of the name of a file that is written
_EXAMPLE_OPTIONS = {"--example", "--out", "--seed", "--config-dir"}
# each for several columns
_COLUMN_OPTIONS = (
    "bounds", "fixed", "constraint", "categorical", "whole", "levels", "continuous", "drop",
)  # fmt: skip
OUT_SUFFIXES = (".csv", ".tsv", ".parquet")
_EPILOG = """\
examples:
  python -m ddobench.propose --example chain d=21 n=2000 --out table.csv
  python -m ddobench.propose table.csv --target y --out proposals.csv
  python -m ddobench.propose table.csv --target y --bounds x0=0:1 --fixed x3=0.5 --seed 0-4
  python -m ddobench.propose recipes.xlsx --target cost --minimise --inside \\
    --constraint "water + oil + salt = 1"

A page of the same name (proposals.html) compares the designs with the best row and says how far to
trust them. Nothing is uploaded. Exit code: 0, or 2 if the request cannot be carried out."""


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    typed = sys.argv[1:] if arguments is None else list(arguments)
    if not console.is_terminal:  # a terminal shows progress bars instead
        log = logging.getLogger("ddobench")
        log.handlers = [logging.StreamHandler(sys.stderr)]
        log.setLevel(logging.INFO)
    try:
        _run(typed)
    except UsageError as error:
        complain(printable(str(error)))
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):  # PyTorch's
            raise
        complain("there is not enough memory for so many rows, columns or designs; take fewer")
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except OSError as error:  # such as a folder whose name is too long
        if isinstance(error, BrokenPipeError) or cannot_print(error):
            raise
        name = f"{error.filename} cannot be used: " if error.filename else ""
        complain(printable(f"{name}{error.strerror or error}; give another file or folder"))
    return 0


def _run(typed: Sequence[str]) -> None:
    options = _parser().parse_intermixed_args(typed)
    for name in ("categorical", "whole", "continuous", "constraint", "drop"):
        _check_once(name, getattr(options, name))
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


def _write_example(options: argparse.Namespace) -> None:
    """Write the rows of a task as a table."""
    unused = sorted(vars(options).get("given", set()) - _EXAMPLE_OPTIONS)
    unused += [f"--{name}" for name in _COLUMN_OPTIONS if getattr(options, name)]
    if unused:
        raise UsageError(f"--example only writes a table, got {unused[0]}; leave one of them out")
    for word in options.words:
        if word.lstrip("+").startswith("seed="):
            raise UsageError(f"seed cannot be an override here, got {word}; use --seed")
    seed, *others = parse_seeds(options.seed)
    if others:
        raise UsageError(f"--example writes the rows of one seed, got --seed {options.seed}")
    out = _check_out(options.out or Path("table.csv"))
    table = example_table(options.example, seed=seed, overrides=options.words)
    _write(table, out)
    columns = f"columns x0 to {table.columns[-2]} and y"
    _print(f"{out}: {len(table)} rows of {options.example}, {columns}")


def _propose(options: argparse.Namespace, typed: str) -> None:
    """Write designs for a file, and the page."""
    if not options.words or options.target is None:
        raise UsageError(
            f"give a table and its value column, as in: {PROGRAM} table.csv --target y"
        )
    file, *overrides = options.words
    out = _check_out(options.out or Path("proposals.csv"))
    sep = "\t" if options.sep in ("tab", "\\t") else options.sep
    source = read_file(file, GivenForm(sep, options.decimal, options.encoding))
    table = source.table
    if out.resolve() == Path(file).resolve():
        raise UsageError(f"--out would overwrite the table {file}; give another name")
    check_column(options.target, table)
    asked = Options(
        method=options.method,
        k=options.k,
        seed=options.seed,
        overrides=overrides,
        minimise=options.minimise,
        min_distance=options.min_distance,
        same=options.same,
        bounds=_parse_bounds(options.bounds),
        inside=options.inside,
        fixed=_parse_fixed(options.fixed, table),
        constraints=options.constraint,
        categorical=options.categorical,
        whole=options.whole or None,
        levels=_parse_levels(options.levels, table),
        continuous=options.continuous,
        drop=options.drop,
        check=options.check,
    )
    with reporting(len(parse_seeds(options.seed))):
        found = find_proposals(table, options.target, asked)
    found = replace(found, notes=(*source.notes, *found.notes))
    page = out.with_suffix(".html")
    rendered = render_page(found, Path(file).name, out.name, f"{PROGRAM} {typed}")
    _write(found.table, out, source.form)
    write_whole(page, rendered)
    for sentence in found.notes:
        _print(f"note: {sentence}", sys.stderr)
    for sentence in found.warnings:
        _print(f"warning: {sentence}", sys.stderr)
    _print(f"{out}: {summarise(found)}")
    _print(f"{page}: what changes against the best row, and how far to trust it")


def _print(line: str, stream: TextIO | None = None) -> None:
    """Print a line without the control characters that a table or a file name may have."""
    print(printable(line), file=stream)


def _write(table: pd.DataFrame, out: Path, form: TextForm | None = None) -> None:
    """Write a table; a CSV file has the form of the table that was read."""
    form = form or TextForm()
    suffix = out.suffix.lower()
    if suffix == ".parquet":
        write_whole(out, table.to_parquet(index=False))
    else:
        sep = "\t" if suffix == ".tsv" else form.sep
        text = to_csv(table, controls=True, sep=sep, decimal=form.decimal)
        write_whole(out, text.encode(form.encoding))


def _check_out(out: Path) -> Path:
    """Raise unless a table and its page can be written, before anything is computed."""
    if out.suffix.lower() not in OUT_SUFFIXES:
        raise UsageError(f"--out must end in {' or '.join(OUT_SUFFIXES)}, got {out.name!r}")
    if "\0" in str(out) or len(os.fsencode(out.name)) > LONGEST_NAME:
        raise UsageError(
            f"--out must be a file name of at most {LONGEST_NAME} bytes, got {out.name[:40]!r}"
        )
    for path in (out, out.with_suffix(".html")):
        if path.is_dir():
            raise UsageError(f"{path} would be written, but is a folder; give another --out")
    check_room(next(folder for folder in out.absolute().parents if folder.exists()))
    return out


def _check_once(option: str, names: Iterable[str]) -> None:
    """Raise if an option is given twice for the same column."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UsageError(f"--{option} {name} is given twice; keep one")
        seen.add(name)


def _parse_bounds(words: Sequence[str]) -> dict[str, tuple[float | None, float | None]]:
    """Parse `name=low:high`, where either end may be left open."""
    _check_once("bounds", [word.rpartition("=")[0] for word in words])
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


def _parse_levels(words: Sequence[str], table: pd.DataFrame) -> dict[str, list[float] | None]:
    """Parse `name` or `name=number,number,...`."""
    levels: dict[str, list[float] | None] = {}
    for word in words:
        name, equals, numbers = word.rpartition("=")
        if not equals or word in table:
            name, equals = word, ""
        _check_once("levels", [*levels, name])
        try:
            levels[name] = [float(one) for one in numbers.split(",")] if equals else None
        except ValueError:
            raise UsageError(f"--levels must be NAME or NAME=0,10,20, got {word!r}") from None
    return levels


def _parse_fixed(words: Sequence[str], table: pd.DataFrame) -> dict[str, Any]:
    """Parse `name=entry`, with an entry of the dtype of the column."""
    pairs = [_split_fixed(word, table) for word in words]
    _check_once("fixed", [name for name, _ in pairs])
    fixed: dict[str, Any] = {}
    for name, entry in pairs:
        check_column(name, table)
        kind = table[name].dtype
        if types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind):
            try:
                number = float(entry)
            except ValueError:
                raise UsageError(f"--fixed {name} must be a number, got {entry!r}") from None
            whole = types.is_integer_dtype(kind) and number.is_integer()
            fixed[name] = int(number) if whole else number
        else:  # the entry of the table that is written so
            fixed[name] = next((x for x in table[name].dropna() if _is_written(x, entry)), entry)
    return fixed


def _split_fixed(word: str, table: pd.DataFrame) -> tuple[str, str]:
    """Return the column and the entry; the name of a column may have an equals sign."""
    if "=" not in word:
        raise UsageError(f"--fixed must be NAME=ENTRY, got {word!r}")
    names = [str(name) for name in table if word.startswith(f"{name}=")]
    name = max(names, key=len, default=word.partition("=")[0])
    return name, word[len(name) + 1 :]


def _is_written(entry: object, text: str) -> bool:
    if isinstance(entry, bool | np.bool_):
        return str(entry).lower() == text.lower()
    return str(entry) == text


class _Parser(SentenceParser):
    def error(self, message: str) -> NoReturn:
        """Raise instead of printing what was typed, which may have control characters."""
        raise UsageError(f"{message}; --help shows how to write it")


class _Once(argparse.Action):
    """Stores the value of an option, or the constant of a flag; a second one is an error."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - given by argparse
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,  # noqa: ARG002 - may be an abbreviation
    ) -> None:
        """Store it."""
        name = self.option_strings[0]
        given = vars(namespace).setdefault("given", set())
        if name in given:
            raise UsageError(f"{name} is given twice; keep one")
        given.add(name)
        setattr(namespace, self.dest, self.const if self.nargs == 0 else values)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
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
        help="a CSV, TSV, Excel or Parquet file, then any settings of a run (budget=small)",
    )
    add("--target", action=_Once, metavar="NAME", help="the column of values")
    add(
        "--minimise",
        "--minimize",
        action=_Once,
        nargs=0,
        const=True,
        default=False,
        help="smaller values are better",
    )
    add(
        "--method",
        action=_Once,
        default=DEFAULT_METHOD,
        help="the method that proposes (default: %(default)s)",
    )
    add(
        "--k",
        action=_Once,
        type=int,
        default=DEFAULT_K,
        help="how many designs (default: %(default)s)",
    )
    add(
        "--min-distance",
        action=_Once,
        type=float,
        metavar="TIMES",
        help="how far designs are apart at least, in typical distances between rows (default: 1)",
    )
    add(
        "--same",
        action=_Once,
        nargs=0,
        const=True,
        default=False,
        help="the k best designs, though they may be nearly the same",
    )
    add(
        "--seed",
        action=_Once,
        default="0",
        help="one seed or several, as 0-4 (default: %(default)s)",
    )
    add(
        "--out",
        action=_Once,
        type=Path,
        metavar="FILE",
        help="the file to write, .csv, .tsv or .parquet (default: proposals.csv)",
    )
    add(
        "--bounds",
        action="append",
        default=[],
        metavar="NAME=LOW:HIGH",
        help="bounds of a column, either may be left out; repeat for other columns",
    )
    add(
        "--inside",
        action=_Once,
        nargs=0,
        const=True,
        default=False,
        help="keep every column inside the range of the rows, and inside its bounds",
    )
    add(
        "--fixed",
        action="append",
        default=[],
        metavar="NAME=ENTRY",
        help="an entry that every design must have; repeat for other columns",
    )
    add(
        "--constraint",
        action="append",
        default=[],
        metavar="SUM",
        help="a linear constraint between columns, as 'a + b <= 1' or 'a + b + c = 1'; repeatable",
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
    add(
        "--levels",
        action="append",
        default=[],
        metavar="NAME[=N,N,...]",
        help="a column that has only the numbers of the rows, or these (default: those with few)",
    )
    add(
        "--continuous",
        action="append",
        default=[],
        metavar="NAME",
        help="a column that may have other numbers than the few of the rows",
    )
    add("--drop", action="append", default=[], metavar="NAME", help="a column to leave out")
    add(
        "--no-check",
        dest="check",
        action=_Once,
        nargs=0,
        const=False,
        default=True,
        help="skip the check that fits without some rows and predicts them",
    )
    add("--sep", action=_Once, metavar="SIGN", help="between columns (default: detected)")
    add("--decimal", action=_Once, metavar="SIGN", help=". or , (default: detected)")
    add("--encoding", action=_Once, metavar="NAME", help="as cp1252 (default: detected)")
    add(
        "--config-dir",
        action=_Once,
        type=Path,
        metavar="FOLDER",
        help="the folder of your own methods",
    )
    add(
        "--example",
        action=_Once,
        metavar="TASK",
        help="write the rows of a task as a table to try",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

"""Files of users' tables: text as spreadsheets of many countries write it, Excel, Parquet.

Separator, decimal sign and encoding of a text file are detected unless they are given. `notes` say
what was found where it is not the usual (commas, decimal points, UTF-8).
"""

import codecs
import csv
import hashlib
import io
import re
import warnings
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from itertools import islice
from pathlib import Path

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from ddobench.errors import UsageError
from ddobench.store.checks import printable
from ddobench.tabular.rows import include_index, name_columns

EXAMPLE = "example"  # the file name that stands for the table of the package
TEXT = (".csv", ".tsv", ".txt")
SUFFIXES = (*TEXT, ".xlsx", ".parquet")
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}  # that are detected
SAMPLE = 1_000_000  # characters of a file that its form is detected from
_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
_POINT = re.compile(r"[+-]?\d+\.\d+([eE][+-]?\d+)?")
_UNREADABLE = (
    ValueError, OSError, TypeError, KeyError, NotImplementedError, pa.ArrowException,
    zipfile.BadZipFile, LookupError,
)  # fmt: skip


@dataclass(frozen=True)
class TextForm:
    """How a table is written as text."""

    sep: str = ","
    decimal: str = "."
    encoding: str = "utf-8"

    def describe(self) -> str:
        """Return what differs from the usual, empty if nothing does."""
        parts = [
            f"columns separated by {SEPARATORS.get(self.sep, repr(self.sep))}"
            if self.sep != ","
            else "",
            "decimal commas" if self.decimal == "," else "",
            f"encoding {self.encoding}" if self.encoding not in ("utf-8", "utf-8-sig") else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class GivenForm:
    """What a user says of the form of a text file; None is detected."""

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\r\n'):
            raise UsageError(f"--sep must be one character or tab, got {self.sep!r}")
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"--decimal must be . or , got {self.decimal!r}")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise UsageError(
                    "--encoding must be one that Python knows, such as utf-8 or cp1252, got "
                    f"{self.encoding!r}"
                ) from None


@dataclass(frozen=True)
class TableFile:
    """The table of a file, and how it was written."""

    table: pd.DataFrame
    form: TextForm  # of a text file; the usual one for others
    notes: tuple[str, ...] = ()


def read_table(file: str | Path) -> pd.DataFrame:
    """Read a table without losing a digit; a named index becomes columns."""
    return read_file(file).table


def read_file(file: str | Path, given: GivenForm | None = None) -> TableFile:
    """Read a table and say how it was written, as detected or as given."""
    given = given or GivenForm()
    source = find_table(file)
    suffix = Path(source.name).suffix.lower()
    for name, value in vars(given).items():
        if value is not None and suffix not in TEXT:
            raise UsageError(
                printable(
                    f"--{name} is for text files ({', '.join(TEXT)}), got {file}; leave it out"
                )
            )
    try:
        with source.open("rb") as opened:
            if suffix == ".parquet":
                table = include_index(name_columns(pd.read_parquet(opened)))[0]
                return TableFile(table, TextForm())
            if suffix == ".xlsx":
                return _read_excel(opened.read(), file)
            return _read_text(opened.read(), given)
    except _UNREADABLE as error:  # Arrow raises these for other kinds of file
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        sentence = f"{file} cannot be read as a table: {reason}"
        raise UsageError(printable(sentence)) from error


def _read_excel(content: bytes, file: str | Path) -> TableFile:
    if find_spec("openpyxl") is None:
        raise UsageError(
            printable(f"{file} needs openpyxl: pip install 'ddobench[excel]', or save it as CSV")
        )
    with warnings.catch_warnings():  # of openpyxl, about styles and drop-down lists
        warnings.simplefilter("ignore")
        with pd.ExcelFile(io.BytesIO(content), engine="openpyxl") as book:
            table = name_columns(book.parse(book.sheet_names[0]))
            sheets = [str(name) for name in book.sheet_names]
    notes = [f"Read the first of {len(sheets)} sheets, {sheets[0]!r}."] if len(sheets) > 1 else []
    return TableFile(table, TextForm(), tuple(map(printable, notes)))


def _read_text(content: bytes, given: GivenForm) -> TableFile:
    encoding = given.encoding or _detect_encoding(content)
    text = content.decode(encoding).removeprefix("\ufeff")
    sep = given.sep or _detect_separator(text)
    form = TextForm(sep, given.decimal or _detect_decimal(text, sep), encoding)
    # Arrow, as some versions of pandas lose the last bit of a number
    cells = arrow_csv.read_csv(
        io.BytesIO(text.encode()),
        parse_options=arrow_csv.ParseOptions(delimiter=form.sep, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            strings_can_be_null=True, decimal_point=form.decimal
        ),
    )
    found = form.describe()
    notes = (f"Read with {found}.",) if found else ()
    return TableFile(name_columns(cells.to_pandas()), form, notes)


def _detect_encoding(content: bytes) -> str:
    """Return the encoding that a byte order mark names, else UTF-8 if it fits, else Excel's."""
    if content.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    for encoding in ("utf-8", "cp1252"):
        try:
            content.decode(encoding)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"  # in which every byte is a character


def _detect_separator(text: str) -> str:
    """Return the separator that gives every line as many cells, and most of them."""
    widths = {sep: [len(row) for row in _sample(text, sep)] for sep in SEPARATORS}
    first = {sep: found[0] for sep, found in widths.items() if found}
    even = {sep: width for sep, width in first.items() if width > 1 and {width} == {*widths[sep]}}
    return max(even or first, key=lambda sep: first[sep], default=",")


def _detect_decimal(text: str, sep: str) -> str:
    """Return whether numbers have decimal points or commas."""
    points = commas = None
    for row in islice(_sample(text, sep), 1, None):
        for cell in map(str.strip, row):
            if _COMMA.fullmatch(cell):
                commas = commas or cell
            elif _POINT.fullmatch(cell):
                points = points or cell
    if points and commas:
        raise ValueError(
            f"it has numbers such as {points} and such as {commas}; give --decimal , or --decimal ."
        )
    return "," if commas else "."


def _sample(text: str, sep: str) -> Iterator[list[str]]:
    """Yield the cells of the first whole lines of a text that are not empty."""
    some = text if len(text) <= SAMPLE else text[:SAMPLE].rpartition("\n")[0]
    try:
        yield from filter(None, csv.reader(io.StringIO(some, newline=""), delimiter=sep))
    except csv.Error:  # such as a cell that is too long
        return


def content_hash(file: str | Path) -> str:
    """Return a hash of what is in a file."""
    source = find_table(file)
    try:
        content = source.read_bytes()
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(printable(f"{file} cannot be read: {reason}; give another")) from error
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def find_table(file: str | Path) -> Traversable:
    """Return where a file is; raise a UsageError if it is not a table that can be read."""
    if str(file) == EXAMPLE:
        return resources.files("ddobench.tabular").joinpath("example.csv")
    path = Path(file)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(
            printable(f"a table must be a file of {', '.join(SUFFIXES)}, got {path.name!r}")
        )
    try:
        found = path.is_file()
        why = f"{file} is a folder or a pipe" if path.exists() else f"there is no file {file}"
    except OSError as error:  # such as a name that is too long
        found, why = False, f"{file} cannot be read: {error.strerror}"
    if not found:
        raise UsageError(printable(f"{why}; give the path of a table"))
    return path

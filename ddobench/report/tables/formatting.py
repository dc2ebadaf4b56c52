r"""The type of every table, its four writers, and how numbers are formatted.

A table has a frame with all digits, which is its CSV, and groups of rows for reading: each has a
heading in Markdown, a part of the page, and a booktabs tabular (to \input, without a float).
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from ddobench.report.tables.select import LOST
from ddobench.scores import find_score
from ddobench.stats.samples import FEW

MINUS = "\u2212"
DASH = "\u2013"
INTERVAL_RULE = f"Student's t below {FEW} seeds, the BCa bootstrap from {FEW} on"
DIGITS = 10  # in a CSV of a report; further ones of a mean depend on the CPU
Row = Any  # a mapping, or a row of a frame

_EXACT = 1e-9  # what is smaller in absolute value is printed as 0
_LONGEST_STEM = 80  # letters of a file name
_MANY = 40  # entries of a list before it is cut short
_FORMULA = ("=", "+", "-", "@", "\t", "\n")  # how a cell begins that a spreadsheet computes
_CONTROL = re.compile(  # C0 without tab and line breaks, C1, line separators, bidi, half characters
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_MARKDOWN = re.compile(
    r"[\\`*~$|]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # not within a word
    r"|(?<=\])[(:]"  # a link, a picture, or the address of one
    r"|(?<=[A-Za-z]):(?=//)|(?<=\bwww)\.|@(?=\w)"  # addresses that become links by themselves
    r"|^(?:#{1,6}|[-+]|\d{1,9}[.)])(?=\s|$)|^[-=](?=[-=\s]*$)",  # headings, lists, rules
    re.IGNORECASE,
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\u00a0": "~",
    MINUS: "$-$",
    DASH: "--",
    "±": r"$\pm$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "✓": r"$\surd$",  # a tick would need a further package
    "✗": r"$\times$",
    "…": r"\dots{}",
}


@dataclass(frozen=True)
class Column:
    """One column for reading: its heading, and what it shows of a row."""

    heading: str
    text: Callable[[Any], str]
    value: Callable[[Any], Any] | None = None  # the number to sort by; None: the text
    over: str = ""  # a heading shared with neighbouring columns
    words: bool = False  # aligned left
    minor: bool = False  # hidden on a phone
    width: float | None = None  # of the line in LaTeX, where the text is wrapped
    link: Callable[[Any], str] | None = None  # the address behind the text, "" for none

    @property
    def full_heading(self) -> str:
        """The heading where there is no second line for the one over it."""
        return f"{self.over}, {self.heading}" if self.over else self.heading


def number_column(
    heading: str, key: Any, text: Callable[[Any], str] = str, **look: Any
) -> Column:  # fmt: skip
    """Return a column of the numbers that rows have under a key."""
    return Column(heading, lambda row: text(row[key]), lambda row: row[key], **look)


def word_column(heading: str, key: Any, **look: Any) -> Column:
    """Return a column of the words that rows have under a key."""
    return Column(heading, lambda row: str(row[key]), words=True, **look)


@dataclass(frozen=True)
class Group:
    """Rows under one heading."""

    title: str
    stem: str  # of its LaTeX file; "": no such file
    rows: Sequence[Any]
    columns: Sequence[Column]
    note: str = ""
    task: str = ""  # "": several

    def texts(self) -> list[list[str]]:
        """Return the formatted cells of every row."""
        return [[column.text(row) for column in self.columns] for row in self.rows]

    def cells(self) -> list[list[tuple[Column, str, Any, str]]]:
        """Return each cell with its column, its text, the number to sort it by, and its link."""
        return [
            [
                (c, c.text(row), c.value(row) if c.value else None, c.link(row) if c.link else "")
                for c in self.columns
            ]
            for row in self.rows
        ]


@dataclass(frozen=True)
class Table:
    """A table of a report."""

    name: str  # of its files
    title: str
    note: str
    frame: pd.DataFrame  # every digit
    groups: Sequence[Group] = field(default=())

    def of_task(self, task: str) -> list[Group]:
        """Return the groups about one task."""
        return [group for group in self.groups if group.task == task]

    def files(self) -> dict[str, str]:
        """Return the text of every file of this table by its name."""
        papers = {f"{group.stem}.tex": to_latex(group) for group in self.groups if group.stem}
        files = {f"{self.name}.csv": to_csv(self.frame, DIGITS)}
        return {**files, f"{self.name}.md": to_markdown(self), **papers}


def to_csv(
    table: pd.DataFrame,
    digits: int | None = None,
    controls: bool = False,
    sep: str = ",",
    decimal: str = ".",
) -> str:
    """Write a frame with all digits, or so many; no text is left that a spreadsheet computes.

    Control characters are escaped unless `controls` keeps them, as in the user's own rows.
    """

    def escape(cell: Any) -> Any:
        safe = escape_formula(cell)
        return safe if controls or not isinstance(safe, str) else escape_controls(safe)

    words = table.select_dtypes(exclude="number")
    safe = table.assign(**{str(name): words[name].map(escape) for name in words})
    float_format = None if digits is None else f"%.{digits}g"
    return str(
        safe.rename(columns=escape).to_csv(
            index=False, lineterminator="\n", float_format=float_format, sep=sep, decimal=decimal
        )
    )


def to_markdown(table: Table) -> str:
    """Write a table with one heading per group."""
    parts = [
        f"# {escape_markdown(table.title)}\n",
        *([f"{escape_markdown(table.note)}\n"] if table.note else []),
    ]
    for group in table.groups:
        parts += [f"## {escape_markdown(group.title)}\n"] if group.title else []
        parts += [f"{escape_markdown(group.note)}\n"] if group.note else []
        parts.append(markdown_group(group))
    return "\n".join(parts)


def markdown_group(group: Group) -> str:
    """Write the rows of a group."""
    words = [column.words for column in group.columns]
    header = [escape_markdown(column.full_heading) for column in group.columns]
    rows = [[_markdown_link(column, row) for column in group.columns] for row in group.rows]
    return _markdown_lines(header, rows, words)


def _markdown_link(column: Column, row: Row) -> str:
    text = escape_markdown(column.text(row))
    address = column.link(row) if column.link else ""
    return f"[{text}]({address})" if address else text


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[bool]
) -> str:
    """Write rows, columns of words to the left and those of numbers to the right."""
    header, *body = ([escape_markdown(cell) for cell in row] for row in (header, *rows))
    return _markdown_lines(header, body, words)


def _markdown_lines(
    header: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[bool]
) -> str:
    rule = [":---" if left else "---:" for left in words]
    return "".join(f"| {' | '.join(line)} |\n" for line in (header, rule, *rows))


def to_latex(group: Group) -> str:
    """Write the rows of a group as a tabular of booktabs."""
    kinds = [
        f"p{{{c.width:g}\\linewidth}}" if c.width else "l" if c.words else "r"
        for c in group.columns
    ]
    headings: dict[Any, str] = {
        i: escape_latex(column.full_heading) for i, column in enumerate(group.columns)
    }
    frame = pd.DataFrame([[escape_latex(text) for text in line] for line in group.texts()])
    frame = frame.reindex(columns=[*headings])
    styler = frame.style.hide(axis="index").format_index(lambda i: headings[i], axis="columns")
    text = styler.to_latex(hrules=True, column_format="".join(kinds))
    return f"% needs \\usepackage{{booktabs}}\n{text}"


def escape_formula(cell: Any) -> Any:
    """Put an apostrophe before a text that a spreadsheet takes for a formula; numbers are left.

    Carriage returns become newlines, which are quoted: Python before 3.13 does not quote a lone
    carriage return, and the text after it would become a cell.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.replace("\r\n", "\n").replace("\r", "\n")
    return f"'{text}" if text.startswith(_FORMULA) and not _is_numeric(text) else text


def _is_numeric(text: str) -> bool:
    """Return whether a text is one or more numbers, such as -1.5 or -1.5 2.0."""
    try:
        return bool([float(word) for word in text.split()])
    except ValueError:
        return False


def escape_controls(text: str) -> str:
    """Write control characters and bidi overrides as escapes: they obey no terminal or viewer.

    Tabs and line breaks stay.
    """
    return _CONTROL.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(escape_controls(text).split())


def escape_markdown(text: str) -> str:
    """Keep a text from being read as a column, a line, HTML, a link or other markup."""
    escaped = _MARKDOWN.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", one_line(text))
    return escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_latex(text: str) -> str:
    """Keep a text from being read as a command, a column or the option of a line break."""
    words = escape_controls(text).replace("\u00a0", "\0").split()
    line = " ".join(words).replace("\0", "\u00a0")
    escaped = "".join(_LATEX.get(sign, sign) for sign in line)
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


def name_runs(row: Row, *sizes: str) -> str:
    """Name the runs that share a row's task, variant and budget, and these of its sizes."""
    budget = "" if row["budget"] in ("", "full") else f"budget {row['budget']}"
    shared = [f"{size} = {row[size]}" for size in sizes]
    return ", ".join(filter(None, [f"{row['task']}", str(row["task_variant"]), *shared, budget]))


def describe_counts(row: Row) -> str:
    """Return how many seeds were averaged, and how many were not and why."""
    lost = [f"{count} {name}" for name in LOST if (count := row[name])]
    return ", ".join([str(row["seeds"]), *lost])


def format_number(value: float) -> str:
    """Format with two decimals; an exact zero stays "0" and a small number visible."""
    if not math.isfinite(value):
        return DASH
    if abs(value) < _EXACT:
        return "0"
    text = f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}"
    return text.replace("-", MINUS)


def format_digits(value: float, digits: int) -> str:
    """Format with so many decimals."""
    return f"{value + 0.0:.{digits}f}".replace("-", MINUS) if math.isfinite(value) else DASH


def format_estimate(mean: float, low: float, high: float) -> str:
    """Format a mean with its interval, if there is one."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return format_number(mean)
    return f"{format_number(mean)} [{format_number(low)}, {format_number(high)}]"


def format_percent(fraction: float) -> str:
    """Format a fraction as a percentage; a small one is never rounded to 0."""
    if not math.isfinite(fraction):
        return DASH
    return "< 1 %" if 0 < fraction < 0.005 else f"{100 * fraction:.0f} %"


def format_p(p: float) -> str:
    """Format a p value with two digits, never as 0."""
    if not math.isfinite(p):
        return DASH
    if p < 0.001:
        return "< .001"
    return f"{p:.2f}".lstrip("0") if p >= 0.01 else f"{p:.3f}".lstrip("0")


def format_change(row: Mapping[Hashable, Any]) -> str:
    """Format the difference of a score with its interval; shares in percentage points."""
    unit = find_score(row["score"]).unit
    mean, low, high = (
        format_digits(unit.scale * row[name], unit.digits)
        for name in ("difference", "difference_low", "difference_high")
    )
    return mean if DASH in (mean, low) else f"{mean} [{low}, {high}]"


def format_ranges(numbers: Iterable[int]) -> str:
    """Format whole numbers as ranges joined by a dash."""
    ordered = sorted(set(numbers))
    starts = [i for i, number in enumerate(ordered) if i == 0 or ordered[i - 1] != number - 1]
    ends = [*(start - 1 for start in starts[1:]), len(ordered) - 1]
    parts = [
        str(ordered[a]) if a == b else f"{ordered[a]}{DASH}{ordered[b]}"
        for a, b in zip(starts, ends, strict=bool(ordered))
    ]
    return ", ".join(parts[:_MANY]) + (", …" if len(parts) > _MANY else "")


def file_stem(*words: str) -> str:
    """Join words to one portable file name without its ending."""
    text = "-".join(word for word in words if word).lower()
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-.")[:_LONGEST_STEM].rstrip("-.") or "unnamed"


def row_stem(kind: str, row: Row, *sizes: str, method: str = "") -> str:
    """Name a file by what it shows of the runs that share a row's task, budget and sizes."""
    budget = "" if row["budget"] == "full" else str(row["budget"])
    sized = "-".join(f"{size}{row[size]}" for size in sizes)
    return file_stem(kind, str(row["task"]), str(row["task_variant"]), method, sized, budget)

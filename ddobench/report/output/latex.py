r"""Tables for a paper: plain tabulars of booktabs, ready to \input, without caption or float."""

from collections.abc import Iterable, Mapping, Sequence

from ddobench.report.claims import verdicts
from ddobench.report.data.files import row_stem
from ddobench.report.data.report_data import ReportData
from ddobench.report.tables import choices, comparisons, knobs, pairs, standings
from ddobench.report.tables import formats as tables
from ddobench.report.tables.columns import CELL, STUDY

_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\u00a0": "~",
    tables.MINUS: "$-$",
    tables.DASH: "--",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
    "✓": r"$\surd$",  # a tick would need a further package
    "✗": r"$\times$",
    "…": r"\dots{}",
}
_CLAIM_WIDTHS = {0: 0.12, 1: 0.28, 2: 0.13, 3: 0.31}  # of the line, for columns of sentences


def escape_latex(text: str) -> str:
    """Keep a text from being read as a command, a column or the option of a line break."""
    line = " ".join(text.replace("\u00a0", "\0").split()).replace("\0", "\u00a0")
    escaped = "".join(_SIGNS.get(sign, sign) for sign in line)
    return f"{{}}{escaped}" if escaped.startswith(("[", "*")) else escaped


def latex_table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    words: Iterable[int],
    widths: Mapping[int, float] | None = None,
) -> str:
    """Spell a tabular: words to the left, numbers to the right, columns with a width wrapped."""
    left, wrapped = set(words), widths or {}
    columns = "".join(
        f"p{{{wrapped[i]:g}\\linewidth}}" if i in wrapped else "l" if i in left else "r"
        for i in range(len(header))
    )
    return "\n".join(
        [
            "% needs \\usepackage{booktabs}",
            f"\\begin{{tabular}}{{{columns}}}",
            "\\toprule",
            _line(header),
            "\\midrule",
            *(_line(row) for row in rows),
            "\\bottomrule",
            "\\end{tabular}",
            "",
        ]
    )


def _line(cells: Sequence[str]) -> str:
    return " & ".join(escape_latex(cell) for cell in cells) + r" \\"


def latex_files(stored: ReportData, judged: Sequence[verdicts.Verdict]) -> dict[str, str]:
    """Return every table of a report by the stem of its file."""
    files = {}
    for _, study in stored.scores.groupby(STUDY, sort=True):
        files[row_stem("scores", study.iloc[0])] = latex_table(
            tables.score_header(study), tables.format_scores(study), tables.score_words(study)
        )
    for _, study in stored.pairs.groupby(STUDY, sort=True):
        files[row_stem("pairs", study.iloc[0])] = latex_table(
            pairs.header(), pairs.format_pairs(study), pairs.WORDS
        )
    for _, cell in stored.comparisons.groupby(CELL, sort=True):
        files[row_stem("controls", cell.iloc[0], "d", "n")] = latex_table(
            comparisons.header(), comparisons.format_rows(cell), [0]
        )
    for i, (_, lineup) in enumerate(
        stored.standings.groupby(standings.LINEUP, sort=False), start=1
    ):
        lines = [[text for text, _ in line] for line in standings.standing_cells(lineup)]
        files[f"standings-{i}"] = latex_table(standings.header(), lines, standings.word_columns())
    for _, sweep in stored.knobs.groupby(knobs.SWEEP, sort=True):
        lines = [[text for text, _ in line] for line in knobs.knob_cells(sweep)]
        first = sweep.iloc[0]
        stem = row_stem(f"settings-{first['knob']}", knobs.without_knob(first), "d", "n")
        files[stem] = latex_table(knobs.header(sweep), lines, [0])
    for _, cell in stored.choices.groupby(choices.CHOOSER, sort=True):
        lines = [[text for text, _ in line] for line in choices.choice_cells(cell)]
        stem = row_stem(
            "choices", cell.iloc[0], "d", "n", method=choices.name_chooser(cell.iloc[0])
        )
        files[stem] = latex_table(choices.HEADER, lines, choices.WORDS)
    for source, own in verdicts.by_source(judged).items():  # together longer than a page
        lines = [line[:4] for line in verdicts.format_verdicts(own)]
        files[f"claims-{source}"] = latex_table(verdicts.HEADER[:4], lines, range(4), _CLAIM_WIDTHS)
    return files

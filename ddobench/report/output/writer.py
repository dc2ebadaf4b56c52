"""Writes a report: reads the store, computes, and puts every file in its place."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from ddobench.errors import UsageError
from ddobench.report.claims.claims import read_claims
from ddobench.report.claims.verdicts import judge
from ddobench.report.data.origins import find_origins
from ddobench.report.data.report_data import FILTERS, ReportData
from ddobench.report.figures.figure import FORMATS, Figure
from ddobench.report.figures.gallery import draw_each
from ddobench.report.output import readme
from ddobench.report.output.manifest import clear_stale
from ddobench.report.output.rendering import render_all
from ddobench.report.output.table_files import table_files
from ddobench.report.page.page import FIRST_SWEEP, INTERVAL_NOTE, Contents, render_page
from ddobench.report.tables.formats import DIGITS, problem_table, to_csv
from ddobench.report.tables.remarks import MethodRemarks
from ddobench.report.tables.styles import explain_signs
from ddobench.store.atomic import write_whole

NUMBERS = "csv"  # the file with the numbers in a figure
Remarks = Mapping[str, Sequence[Mapping[str, str]]]  # by task: texts, some with a command


@dataclass(frozen=True)
class Written:
    """What a report consists of."""

    page: Path
    files: tuple[Path, ...]  # the page included
    message: str  # one or two lines for the terminal


def write_report(
    results_dir: str | Path,
    report_dir: str | Path,
    filters: Mapping[str, Any] | None = None,
    remarks: Remarks | None = None,
    method_remarks: MethodRemarks | None = None,
    claims: str | Path | None = None,
    formats: str | Sequence[str] | None = None,
) -> Written:
    """Write tables, figures and the page of the stored runs that pass the filters.

    Filters name a column of the runs (task, method, d, n, seed, budget) and give one value or
    several. The remarks on tasks and on methods, and the file of claims, default to those of the
    package, the formats of figures to all.
    """
    endings = _check_formats(formats)
    source, target = Path(results_dir), Path(report_dir)
    if not source.is_dir():
        raise UsageError(
            f"results_dir must be a folder of stored runs, got {source} which does not exist; "
            f"make one with: {FIRST_SWEEP}"
        )
    unknown = sorted(set(filters or {}) - set(FILTERS))
    if unknown:
        raise UsageError(f"a filter must be one of {', '.join(FILTERS)}, got {unknown[0]!r}")
    claimed = read_claims(claims)  # first: what is wrong in the file is known at once
    packaged = _packaged_report()
    noted = packaged["method_remarks"] if method_remarks is None else method_remarks
    stored = ReportData.read(source, filters, noted)
    problems, verdicts = problem_table(stored.runs), judge(stored.runs, claimed)
    drawn, rendered = render_all(
        draw_each(stored), formats=[end for end in FORMATS if end in endings]
    )
    figures = [item for item in drawn if isinstance(item, Figure)]
    notes = [INTERVAL_NOTE, *explain_signs(stored.styles.values())]
    command = _report_command(source, target, filters or {}, claims, endings)
    page = render_page(
        Contents(
            stored=stored,
            drawn=drawn,
            svgs={item.name: rendered[item.name, "svg"].decode() for item in figures},
            origins=find_origins(stored),
            remarks=packaged["remarks"] if remarks is None else remarks,
            source=_from_here(source),
            command=command,
            verdicts=verdicts,
            formats=endings,
        )
    )
    texts = {
        **{
            target / "figures" / f"{item.name}.csv": to_csv(item.data, DIGITS)
            for item in figures
            if NUMBERS in endings
        },
        **{
            target / "tables" / name: text
            for name, text in table_files(stored, problems, verdicts, notes).items()
        },
        target / readme.NAME: readme.write_readme(stored, figures, verdicts, command),
        target / "index.html": page,  # last: it speaks of the others
    }
    contents = {
        **{target / "figures" / f"{name}.{end}": data for (name, end), data in rendered.items()},
        **{path: text.encode("utf-8") for path, text in texts.items()},
    }
    for path, content in contents.items():
        write_whole(path, content)
    files = (*contents, clear_stale(target, contents))
    message = f"{_from_here(target / 'index.html')}: {_summary(stored, figures)}"
    if stored.left_out:
        message += f"\n{_name_left_out(stored.left_out)}"
    return Written(target / "index.html", files, message)


def _summary(stored: ReportData, figures: Sequence[Figure]) -> str:
    total = stored.total
    if not total:
        return f"nothing is stored yet; fill the store with\n  {FIRST_SWEEP}"
    runs = len(stored.runs)
    if not runs:
        return f"none of the {total} stored runs passes the filters"
    some = f"{runs} runs" if runs == total else f"{runs} of {total} runs"
    return f"{some}, {len(figures)} figure{'' if len(figures) == 1 else 's'}"


def _name_left_out(left_out: Mapping[str, str]) -> str:
    some = "1 file" if len(left_out) == 1 else f"{len(left_out)} files"
    return f"{some} could not be used and {'is' if len(left_out) == 1 else 'are'} named in the page"


def _check_formats(formats: str | Sequence[str] | None) -> list[str]:
    """Return the endings of the files of a figure, in one order whatever the order told."""
    known = [*FORMATS, NUMBERS]
    if formats is None:
        return known
    told = formats.split(",") if isinstance(formats, str) else list(map(str, formats))
    unknown = [ending for ending in told if ending not in known]
    if unknown:
        raise UsageError(f"formats must be among {', '.join(known)}, got {unknown[0]!r}")
    if FORMATS[0] not in told:
        raise UsageError(
            f"formats must have {FORMATS[0]}, which the page shows, got {', '.join(told)}"
        )
    return [ending for ending in known if ending in told]


def _report_command(
    source: Path,
    target: Path,
    filters: Mapping[str, Any],
    claims: str | Path | None,
    endings: Sequence[str],
) -> str:
    """Return the command that writes this report again."""
    words = [f"results_dir={_from_here(source)}", f"report_dir={_from_here(target)}"]
    for name, wanted in filters.items():
        if wanted is not None:
            values = wanted if isinstance(wanted, list | tuple) else [wanted]
            words.append(f"{name}={','.join(map(str, values))}")
    if claims is not None:
        words.append(f"claims={_from_here(Path(claims))}")
    if list(endings) != _check_formats(None):
        words.append(f"formats=[{','.join(endings)}]")
    return " ".join(["python -m ddobench.report", *words])


def _from_here(path: Path) -> str:
    return os.path.relpath(path)


def _packaged_report() -> dict[str, Any]:
    """Return what the package says about reports."""
    text = resources.files("ddobench.conf").joinpath("report.yaml").read_text(encoding="utf-8")
    return dict(yaml.safe_load(text))

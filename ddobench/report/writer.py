"""Writes a report: reads the stored runs, makes tables, figures and the page, and writes all files.

`manifest.json` lists the written files. The next report removes those that it does not write again,
if they are in a folder of the report and still have the same content.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from ddobench.errors import UsageError
from ddobench.report.claims import read_claims
from ddobench.report.data import FILTERS, ReportData, find_origins
from ddobench.report.figures.figure import FORMATS, Figure, render_all
from ddobench.report.figures.gallery import make_figures
from ddobench.report.markdown import write_readme
from ddobench.report.page import FIRST_SWEEP, Contents, render_page
from ddobench.report.tables.choices import describe_choices
from ddobench.report.tables.factorial import describe_levels, describe_shares
from ddobench.report.tables.formatting import DIGITS, Table, to_csv
from ddobench.report.tables.leaderboard import (
    INTERVAL_NOTE,
    describe_leaderboard,
    describe_scores,
)
from ddobench.report.tables.matrix import describe_matrix, describe_stability
from ddobench.report.tables.paired import describe_controls, describe_pairs
from ddobench.report.tables.protocol import (
    describe_parity,
    describe_protocol,
    parity_table,
    percentile_table,
)
from ddobench.report.tables.run_costs import (
    command_table,
    cpu_table,
    describe_commands,
    describe_cpu,
    describe_problems,
    problem_table,
)
from ddobench.report.tables.setting_sweeps import describe_settings
from ddobench.report.tables.standings import describe_standings
from ddobench.report.tables.styles import MethodRemarks, explain_signs
from ddobench.report.verdicts import Judgement, describe_readings, describe_verdicts, judge_all
from ddobench.store.atomic import write_whole
from ddobench.store.checks import printable
from ddobench.store.published import PUBLISHED

MANIFEST = "manifest.json"
FOLDERS = ("figures", "tables")
NUMBERS = "csv"  # the file with the numbers in a figure
Remarks = Mapping[str, Sequence[Mapping[str, str]]]  # by task: texts, some with a command


@dataclass(frozen=True)
class Written:
    """The files of a report."""

    page: Path
    files: tuple[Path, ...]  # the page included
    message: str  # for the terminal


def write_report(
    results_dir: str | Path | Sequence[str | Path],
    report_dir: str | Path,
    filters: Mapping[str, Any] | None = None,
    remarks: Remarks | None = None,
    method_remarks: MethodRemarks | None = None,
    claims: str | Path | None = None,
    formats: str | Sequence[str] | None = None,
) -> Written:
    """Write tables, figures and the page of the stored runs that pass the filters.

    `results_dir` is a folder or several; among several, "published" are the published scores.
    A filter is a column of the runs (task, method, d, n, seed, budget) with one or more values. The
    remarks on tasks and methods and the file of claims default to those of the package, the formats
    of figures to all.
    """
    endings = _check_formats(formats)
    sources, target = _list_sources(results_dir), Path(report_dir)
    unknown = sorted(set(filters or {}) - set(FILTERS))
    if unknown:
        raise UsageError(f"a filter must be one of {', '.join(FILTERS)}, got {unknown[0]!r}")
    claimed = read_claims(claims)  # first, so that errors in the file are reported at once
    text = resources.files("ddobench.conf").joinpath("report.yaml").read_text(encoding="utf-8")
    packaged = yaml.safe_load(text)
    noted = packaged["method_remarks"] if method_remarks is None else method_remarks
    data = ReportData.read(sources, filters, noted)
    judged = judge_all(data.runs, claimed)
    tables = make_tables(data, judged)
    figures = list(make_figures(data))
    rendered = render_all(figures, [end for end in FORMATS if end in endings])
    command = _report_command(sources, target, filters or {}, claims, endings)
    page = render_page(
        Contents(
            data=data,
            figures=figures,
            svgs={figure.name: rendered[figure.name, "svg"].decode() for figure in figures},
            tables=tables,
            origins=find_origins(data),
            remarks=packaged["remarks"] if remarks is None else remarks,
            source=_join_sources(sources),
            command=command,
            judged=judged,
            formats=endings,
        )
    )
    texts = {
        **{
            target / "figures" / f"{figure.name}.csv": to_csv(figure.data, DIGITS)
            for figure in figures
            if NUMBERS in endings
        },
        **{
            target / "tables" / name: text
            for table in tables.values()
            for name, text in table.files().items()
        },
        target / "README.md": write_readme(data, figures, tables, judged, command),
        target / "index.html": page,  # last, as it links to the others
    }
    contents = {
        **{target / "figures" / f"{name}.{end}": content
           for (name, end), content in rendered.items()},
        **{path: text.encode("utf-8") for path, text in texts.items()},
    }  # fmt: skip
    for path, content in contents.items():
        write_whole(path, content)
    files = (*contents, clear_stale(target, contents))
    message = f"{printable(_from_here(target / 'index.html'))}: {_summary(data, figures)}"
    if data.left_out:
        count = len(data.left_out)
        message += f"\n{count} unusable file{' is' if count == 1 else 's are'} listed in the page"
    return Written(target / "index.html", files, message)


def _list_sources(given: str | Path | Sequence[str | Path]) -> list[Path]:
    """Return the folders of a request, which must exist."""
    sources = [Path(one) for one in ([given] if isinstance(given, str | Path) else given)]
    if not sources:
        raise UsageError("results_dir must be a folder or several, got none")
    for source in sources:
        if str(source) != PUBLISHED:
            _check_exists(source)
    return sources


def _join_sources(sources: Sequence[Path]) -> str:
    names = [PUBLISHED if str(one) == PUBLISHED else _from_here(one) for one in sources]
    return names[0] if len(names) == 1 else f"[{','.join(names)}]"


def _check_exists(source: Path) -> None:
    """Raise if there is no such folder."""
    try:
        source.stat()
    except FileNotFoundError:
        raise UsageError(
            f"results_dir must be a folder of stored runs, got {printable(str(source))} which does "
            f"not exist; make one with: {FIRST_SWEEP}"
        ) from None
    except OSError:  # the store names the reason
        return


def make_tables(data: ReportData, judged: Judgement) -> dict[str, Table]:
    """Return every table by its name."""
    notes = [INTERVAL_NOTE, *(f"{note}." for note in explain_signs(data.styles.values()))]
    tables = [
        *([describe_matrix(data.matrix), describe_stability(data.matrix)] if data.matrix else []),
        describe_leaderboard(data.board, data.scores),
        describe_scores(data.scores, notes),
        describe_protocol(data.scores, percentile_table(data.runs, data.board, data.styles)),
        describe_parity(parity_table(data.runs)),
        describe_verdicts(judged.verdicts),
        describe_readings(judged),
        describe_controls(data.controls),
        describe_pairs(data.pairs),
        describe_standings(data.standings),
        describe_settings(data.settings, data.styles),
        describe_choices(data.choices),
        describe_shares(data.factorials),
        describe_levels(data.factorials),
        describe_cpu(cpu_table(data.runs, data.styles)),
        describe_commands(command_table(data.runs)),
        describe_problems(problem_table(data.runs), data.styles),
    ]
    return {table.name: table for table in tables}


def _summary(data: ReportData, figures: Sequence[Figure]) -> str:
    total = data.total
    if not total:
        return f"nothing is stored yet; make some runs with\n  {FIRST_SWEEP}"
    runs = len(data.runs)
    if not runs:
        return f"none of the {total} stored runs passes the filters"
    some = f"{runs} runs" if runs == total else f"{runs} of {total} runs"
    return f"{some}, {len(figures)} figure{'' if len(figures) == 1 else 's'}"


def _check_formats(formats: str | Sequence[str] | None) -> list[str]:
    """Return the endings of the files of a figure, in a fixed order."""
    known = [*FORMATS, NUMBERS]
    if formats is None:
        return known
    given = formats.split(",") if isinstance(formats, str) else list(map(str, formats))
    unknown = [ending for ending in given if ending not in known]
    if unknown:
        raise UsageError(f"formats must be among {', '.join(known)}, got {unknown[0]!r}")
    if FORMATS[0] not in given:
        raise UsageError(
            f"formats must include {FORMATS[0]}, which the page needs, got {', '.join(given)}"
        )
    return [ending for ending in known if ending in given]


def _report_command(
    sources: Sequence[Path],
    target: Path,
    filters: Mapping[str, Any],
    claims: str | Path | None,
    endings: Sequence[str],
) -> str:
    """Return the command that writes this report again."""
    words = [f"results_dir={_join_sources(sources)}", f"report_dir={_from_here(target)}"]
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


def clear_stale(report: Path, files: Mapping[Path, bytes]) -> Path:
    """Remove files of an earlier report that are not written again, and write the manifest."""
    written = {
        path.relative_to(report).as_posix(): sha256(content).hexdigest()
        for path, content in files.items()
        if path.parent.name in FOLDERS and path.parent.parent == report
    }
    for name, digest in _read_manifest(report / MANIFEST).items():
        if name not in written and _is_report_file(name):
            stale = report / name
            if stale.is_file() and sha256(stale.read_bytes()).hexdigest() == digest:
                stale.unlink()
    return write_whole(report / MANIFEST, json.dumps(written, indent=1, sort_keys=True) + "\n")


def _read_manifest(path: Path) -> dict[str, str]:
    """Return the manifest of an earlier report, empty if there is none or it is damaged."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}


def _is_report_file(name: str) -> bool:
    """Return whether a listed name is a file directly in a folder of the report."""
    parts = PurePosixPath(name).parts
    return len(parts) == 2 and parts[0] in FOLDERS and parts[1] not in ("", ".", "..")

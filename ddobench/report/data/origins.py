"""Where the runs of a report come from: when they were stored, and by which versions of what."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ddobench.report.data.report_data import ReportData

_PACKAGES = ("ddobench", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class Origins:
    """The stamps of a set of runs, each spelled for people."""

    stored: str
    versions: tuple[str, ...]
    revisions: tuple[str, ...]
    machines: tuple[str, ...]


def find_origins(stored: ReportData) -> Origins:
    """Gather the stamps of all runs; for the date of an older run that of its file stands in."""
    runs = stored.runs
    samples = [stored.provenance[path] for path in _paths(runs) if path in stored.provenance]
    changed = {sample.get("revision") for sample in samples if sample.get("dirty")}
    known = {*runs["revision"], *(sample.get("revision") for sample in samples)}
    return Origins(
        stored=_span([*_days_told(runs), *_days_of_files(stored.folder, runs)]),
        versions=_distinct(
            " · ".join(
                [f"Python {sample.get('python', '?')}"]
                + [f"{name} {sample.get('packages', {}).get(name, '?')}" for name in _PACKAGES]
            )
            for sample in samples
        ),
        revisions=_distinct(
            revision[:12] + (" with uncommitted changes" if revision in changed else "")
            for revision in known
            if revision
        ),
        machines=_distinct(
            str(sample.get("gpu") or sample.get("cpu") or "unknown") for sample in samples
        ),
    )


def _paths(runs: pd.DataFrame) -> "pd.Series[str]":
    return runs.get("path", pd.Series(index=runs.index, dtype=str))


def _days_told(runs: pd.DataFrame) -> list[str]:
    """Return the days on which runs say that they finished."""
    moments = pd.to_datetime(runs["finished"], utc=True, errors="coerce", format="ISO8601")
    return [moment.date().isoformat() for moment in moments.dropna()]


def _days_of_files(folder: Path | None, runs: pd.DataFrame) -> Iterator[str]:
    """Yield the days on which the files of runs that do not say so were last changed."""
    if folder is None:
        return
    for path in _paths(runs)[runs["finished"] == ""].dropna():
        if (folder / path).exists():
            yield datetime.fromtimestamp((folder / path).stat().st_mtime, UTC).date().isoformat()


def _span(days: Iterable[str]) -> str:
    ordered = sorted(set(days))
    if not ordered:
        return ""
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))

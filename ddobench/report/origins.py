"""Where the runs of a report come from: when they were stored, and by which versions of what."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from ddobench.store import read_record

_PACKAGES = ("ddobench", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class Origins:
    """The stamps of a set of runs, each spelled for people."""

    stored: str
    versions: tuple[str, ...]
    revisions: tuple[str, ...]
    machines: tuple[str, ...]


def find_origins(folder: Path, runs: pd.DataFrame) -> Origins:
    """Read the dates of all runs, and the provenance of one finished run per task and method."""
    paths = [folder / path for path in runs.get("path", pd.Series(dtype=str)).dropna()]
    finished = runs[(runs["status"] == "ok") & runs.get("path", pd.Series(dtype=str)).notna()]
    samples = [
        read_record(folder / str(rows["path"].iloc[-1])).provenance
        for _, rows in finished.groupby(["task", "method"])
    ]
    return Origins(
        stored=_span(path.stat().st_mtime for path in paths if path.exists()),
        versions=_distinct(
            " · ".join(
                [f"Python {sample.get('python', '?')}"]
                + [f"{name} {sample.get('packages', {}).get(name, '?')}" for name in _PACKAGES]
            )
            for sample in samples
        ),
        revisions=_distinct(
            sample["revision"][:12] + (" with uncommitted changes" if sample.get("dirty") else "")
            for sample in samples
            if sample.get("revision")
        ),
        machines=_distinct(
            str(sample.get("gpu") or sample.get("cpu") or "unknown") for sample in samples
        ),
    )


def _span(stamps: Iterable[float]) -> str:
    days = sorted({datetime.fromtimestamp(stamp, UTC).date().isoformat() for stamp in stamps})
    if not days:
        return ""
    return days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))

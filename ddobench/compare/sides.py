"""The two sides of a comparison: a folder of runs or a git revision, and its runs."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.errors import UsageError
from ddobench.report.data import filter_runs, make_uniform
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.store.checks import printable
from ddobench.store.runs import Survey, survey

_FOLDER, _REVISION = "dir:", "rev:"
_ABBREVIATED = re.compile(r"[0-9a-f]{4,40}")
_SHOWN = 12  # digits of a revision in messages


@dataclass(frozen=True)
class Side:
    """One side of a comparison."""

    name: str
    runs: pd.DataFrame  # one row per run, the columns of `ReportData.runs`
    curves: pd.DataFrame
    configs: Mapping[str, Mapping[str, Any]]  # resolved, by digest
    provenance: Mapping[str, Mapping[str, Any]]  # by the path of a run


def read_sides(
    words: Sequence[str], results_dir: Path, filters: Mapping[str, Any] | None = None
) -> tuple[Side, Side]:
    """Read two sides, each given as a folder of runs or a git revision."""
    folders: dict[Path, Survey] = {}

    def read(folder: Path) -> Survey:
        if folder not in folders:
            folders[folder] = survey(folder)
        return folders[folder]

    sides = []
    for word in words:
        folder = _as_folder(word)
        if folder is not None:
            found = read(folder)
            sides.append(_side(str(folder), found, make_uniform(found.runs)))
        else:
            revision = word.removeprefix(_REVISION)
            found = read(_existing(results_dir, f"{printable(word)} is not a folder, and"))
            runs = make_uniform(found.runs)
            chosen = _resolve(revision, sorted(set(runs["revision"]) - {""}), results_dir)
            own = runs[runs["revision"] == chosen]
            name = chosen[:_SHOWN]
            shown = name if name.startswith(revision) else f"{revision} ({name})"
            sides.append(_side(f"revision {shown} in {results_dir}", found, own))
    return _distinguish(*_filter(sides[0], sides[1], filters or {}))


def _side(name: str, found: Survey, runs: pd.DataFrame) -> Side:
    return Side(name, runs, found.curves, found.configs, found.provenance)


def _as_folder(word: str) -> Path | None:
    """Return the folder that a word names, None for a revision."""
    if word.startswith(_FOLDER):
        return _existing(Path(word.removeprefix(_FOLDER)), "")
    if not word.startswith(_REVISION) and _is_folder(Path(word)):
        return Path(word)
    if "/" in word and word.startswith((".", "/", "~")):
        return _existing(Path(word), "")
    return None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # in a folder that cannot be read
        return False


def _existing(folder: Path, why: str) -> Path:
    if not _is_folder(folder):
        got = printable(str(folder))
        raise UsageError(f"{why} {got} is not a folder; give a folder of stored runs".strip())
    return folder


def _resolve(word: str, stored: Sequence[str], results_dir: Path) -> str:
    """Return the full hash of a revision, from git or else from the stored runs."""
    known = _ask_git(word)
    if known:
        return known
    matching = [name for name in stored if name.startswith(word)]
    if _ABBREVIATED.fullmatch(word) and len(matching) == 1:
        return matching[0]
    if len(matching) > 1:
        some = ", ".join(printable(name[:_SHOWN]) for name in matching)
        raise UsageError(f"{word} is the beginning of several revisions, {some}; write more of it")
    known_here = ", ".join(printable(name[:_SHOWN]) for name in stored) or "none"
    place = printable(str(results_dir))
    raise UsageError(
        f"{word!r} is neither a folder nor a revision known to git or {place}; "
        f"the revisions stored there: {known_here}"
    )


def _ask_git(word: str) -> str:
    command = ["git", "rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


def _filter(a: Side, b: Side, filters: Mapping[str, Any]) -> tuple[Side, Side]:
    """Apply the filters; a value must occur on at least one side."""
    both = pd.concat({0: a.runs, 1: b.runs})
    kept = filter_runs(both, filters)
    left, right = (kept[kept.index.get_level_values(0) == side] for side in (0, 1))
    return replace(a, runs=left.droplevel(0)), replace(b, runs=right.droplevel(0))


def _distinguish(a: Side, b: Side) -> tuple[Side, Side]:
    """Add the digest to the variant, on both sides, where one side has two runs of equal names."""
    ambiguous: set[tuple[Any, ...]] = set()
    for side in (a, b):
        digests = side.runs.groupby([*BY_SIZE, *SERIES])["digest"].nunique()
        ambiguous |= set(digests[digests > 1].index)
    sides = []
    for side in (a, b):
        runs = side.runs.copy()
        keys = runs[[*BY_SIZE, *SERIES]].itertuples(index=False, name=None)
        marked = pd.Series([key in ambiguous for key in keys], index=runs.index, dtype=bool)
        variant = (runs["method_variant"] + " digest=" + runs["digest"].str[:8]).str.strip()
        runs["method_variant"] = runs["method_variant"].where(~marked, variant)
        sides.append(replace(side, runs=runs))
    return sides[0], sides[1]

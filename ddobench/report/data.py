"""The data behind a report: the stored runs in uniform columns, filtered, and tables of them.

A run with a number that cannot be averaged (infinite, or so large that its powers are) counts as
failed, with the number as its reason. Predictions may be any number: such a one is dropped, and the
run stays.
"""

import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.coverage import TERMS
from ddobench.errors import UsageError
from ddobench.registry import PARTS
from ddobench.report.diagnostic_checks import LARGEST, keep_usable
from ddobench.report.tables.choices import choice_table, read_judgements
from ddobench.report.tables.factorial import Factorial, find_factorials
from ddobench.report.tables.leaderboard import leaderboard, score_table
from ddobench.report.tables.matrix import Matrix, find_matrix
from ddobench.report.tables.paired import control_table, pair_table
from ddobench.report.tables.select import (
    BY_SIZE,
    SERIES,
    best_visible_means,
    best_visible_values,
    share_of_optimum,
)
from ddobench.report.tables.setting_sweeps import Sweep, find_sweeps, setting_table
from ddobench.report.tables.standings import Lineup, find_lineups, standing_table
from ddobench.report.tables.styles import Key, MethodRemarks, Style, assign_styles, find_remarks
from ddobench.scores import (
    BEST_VISIBLE,
    HEADLINE,
    SHARE_OF_OPTIMUM,
    curve_names,
    predicted_names,
    stored_names,
    unstored_curves,
)
from ddobench.seeds import parse_seeds
from ddobench.store import runs as store
from ddobench.store.checks import printable
from ddobench.store.published import PUBLISHED, published
from ddobench.store.records import DATA, TaskSample

log = logging.getLogger(__name__)

FILTERS = ("task", "method", "d", "n", "seed", "budget")
_WORDS = (
    *("task", "method", "status", "reason", "task_variant", "method_variant", "budget"),
    *("privileges", "label", "color", "regret_unit", "digest", "command", "revision", "finished"),
    DATA,
)
_WHOLES = ("d", "n", "seed")
_SCALES = ("y_mean", "y_sd", "y_min", "y_max")  # of the visible values
_SAME_ROWS = 1e-3  # standard deviations between the same numbers of two machines, at most
_PACKAGES = ("ddobench", "torch", "numpy", "scipy")


@dataclass(frozen=True)
class ReportData:
    """The runs behind a report, their curves, styles and task samples; tables are cached."""

    runs: pd.DataFrame
    styles: Mapping[Key, Style]  # by task, method and method variant
    task_samples: Sequence[TaskSample]
    curves: pd.DataFrame  # one row per finished run and recorded iteration, see `load_curves`
    total: int  # runs before the filters
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by digest
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path
    folder: Path | None = None  # where the paths of the runs start
    left_out: Mapping[str, str] = field(default_factory=dict)  # reasons, by the path of a file
    remarks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by digest
    warned: set[str] = field(default_factory=set)  # paths of runs with unusable diagnostics

    def diagnostics(self, path: str) -> dict[str, Any]:
        """Read the diagnostics of one run; this opens its file."""
        if self.folder is None or not path:  # a published score
            return {}
        usable, odd = keep_usable(store.read_diagnostics(self.folder / path))
        if odd and path not in self.warned:
            self.warned.add(path)
            names = printable(", ".join(odd))
            log.warning("%s: unusable diagnostics are left out: %s", printable(path), names)
        return usable

    def style(self, row: Any) -> Style:
        """Return the look of the series that a row belongs to."""
        return self.styles[str(row["task"]), str(row["method"]), str(row["method_variant"])]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The score table of the runs."""
        return score_table(self.runs, self.styles)

    @cached_property
    def board(self) -> pd.DataFrame:
        """The leaderboard at every size."""
        return leaderboard(self.scores)

    @cached_property
    def best_visible(self) -> pd.DataFrame:
        """The mean value of the best visible design at every size."""
        return best_visible_means(self.runs)

    @cached_property
    def controls(self) -> pd.DataFrame:
        """The variants of each method against its default."""
        return control_table(self.runs, self.curves, self.styles)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """Each method against each other one."""
        return pair_table(self.runs, self.styles)

    @cached_property
    def lineups(self) -> list[Lineup]:
        """The methods that can be compared across tasks."""
        return find_lineups(self.runs)

    @cached_property
    def standings(self) -> pd.DataFrame:
        """The standings of every line-up."""
        return standing_table(self.lineups, self.styles)

    @cached_property
    def matrix(self) -> Matrix | None:
        """Every method in every cell of a suite, if the runs of one are here."""
        return find_matrix(self.runs, self.styles, self.remarks)

    @cached_property
    def sweeps(self) -> list[Sweep]:
        """The runs that differ in one setting only."""
        return find_sweeps(self.runs, self.configs)

    @cached_property
    def settings(self) -> pd.DataFrame:
        """The methods against every setting that varies."""
        return setting_table(self.sweeps, self.styles)

    @cached_property
    def factorials(self) -> list[Factorial]:
        """The complete factorials of parts of a method."""
        return find_factorials(self.runs)

    @cached_property
    def judgements(self) -> pd.DataFrame:
        """The candidates of methods that choose among some; this opens their files."""
        return read_judgements(self.runs, self.diagnostics)

    @cached_property
    def choices(self) -> pd.DataFrame:
        """Which candidates were chosen, and why."""
        return choice_table(self.judgements, self.styles)

    def commands(self, drawn: pd.DataFrame) -> tuple[str, ...]:
        """Return the different commands behind the runs of these sizes and series."""
        keys = [name for name in [*BY_SIZE, *SERIES] if name in drawn]
        runs = self.runs.merge(drawn[keys].drop_duplicates(), on=keys)
        return tuple(sorted(set(runs["command"]) - {""}))

    @classmethod
    def read(
        cls,
        folders: Path | Sequence[Path],
        filters: Mapping[str, Any] | None = None,
        remarks: MethodRemarks = (),
    ) -> "ReportData":
        """Read the runs of results folders that pass the filters; see `read_sources`."""
        sources = [folders] if isinstance(folders, Path) else list(folders)
        found = read_sources(sources)
        own = [source for source in sources if str(source) != PUBLISHED]
        data = cls.of(
            found.runs, filters, [one for source in own for one in store.load_samples(source)],
            found.curves, find_remarks(found.runs, found.configs, remarks),
        )  # fmt: skip
        return replace(
            data,
            configs=found.configs,
            provenance=found.provenance,
            folder=own[0] if own else None,
            left_out=found.left_out,
        )

    @classmethod
    def of(
        cls,
        stored: pd.DataFrame,
        filters: Mapping[str, Any] | None = None,
        samples: Sequence[TaskSample] = (),
        curves: pd.DataFrame | None = None,
        remarks: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "ReportData":
        """Prepare the stored runs that pass the filters; `remarks` are by digest."""
        uniform = _with_ends_of_curves(make_uniform(stored, curves), curves)
        uniform = _keep_rows_apart(uniform)
        uniform[BEST_VISIBLE.name] = best_visible_values(uniform)
        runs = filter_runs(_keep_configurations_apart(uniform), filters or {})
        runs = runs.sort_values([*BY_SIZE, *SERIES, "seed"], ignore_index=True)
        shown = set(runs[["task", "task_variant", "d", "n"]].itertuples(index=False, name=None))
        kept = [p for p in samples if (p.task, p.task_variant, p.d, p.n) in shown]
        return cls(runs, assign_styles(runs, remarks), kept, _curves_of(runs, curves), len(stored),
                   remarks=remarks or {})  # fmt: skip


def read_sources(sources: Sequence[str | Path], like: pd.DataFrame | None = None) -> store.Survey:
    """Read several results folders in one; of the same run the first counts.

    `published` are the published scores, without curves: those at the sizes of `like`, or of the
    other folders if there are any. Paths of runs start at the first folder.
    """
    folders = [Path(source) for source in sources if str(source) != PUBLISHED]
    found = [_survey_from(folder, folders[0]) for folder in folders]
    frames = [one.runs for one in found]
    if any(str(source) == PUBLISHED for source in sources):
        known = published().assign(path="")
        beside = [like] if like is not None else [one for one in frames if len(one)]
        if beside:
            sizes = pd.concat([one[BY_SIZE] for one in beside]).drop_duplicates()
            known = known.merge(sizes, on=BY_SIZE)
        frames.append(known)
    if len(frames) == 1:
        return found[0] if found else store.Survey(frames[0], _NO_CURVES, {}, {}, {})
    runs = pd.concat([one for one in frames if len(one)] or frames[:1], ignore_index=True)
    return store.Survey(
        runs=runs.drop_duplicates(["digest", "seed"], ignore_index=True),
        curves=pd.concat([one.curves for one in found], ignore_index=True).drop_duplicates(
            ["digest", "seed", "iteration"]
        ) if found else _NO_CURVES,
        configs={digest: one for each in reversed(found) for digest, one in each.configs.items()},
        provenance={path: one for each in found for path, one in each.provenance.items()},
        left_out={path: reason for each in found for path, reason in each.left_out.items()},
    )  # fmt: skip


_NO_CURVES = pd.DataFrame(columns=["digest", "seed", "iteration", *curve_names()])


def _survey_from(folder: Path, first: Path) -> store.Survey:
    """Read a results folder, with paths that start at another one."""
    found = store.survey(folder)
    if folder == first:
        return found
    way = os.path.relpath(folder, first)
    return replace(
        found,
        runs=found.runs.assign(path=[f"{way}/{path}" for path in found.runs["path"]]),
        provenance={f"{way}/{path}": one for path, one in found.provenance.items()},
        left_out={f"{way}/{path}": reason for path, reason in found.left_out.items()},
    )


def _keep_rows_apart(runs: pd.DataFrame) -> pd.DataFrame:
    """Name the variant of a task otherwise where a run saw other rows than most of its seed.

    Runs of the same task, size and seed see the same rows, so that they can be paired. That is
    checked by the digest of the rows, and by their mean, deviation, least and largest value, which
    older runs have too.
    """
    seeds = [runs[name] for name in [*BY_SIZE, "seed"]]
    usual = runs[[*_SCALES]].groupby(seeds).transform("median")
    slack = _SAME_ROWS * usual["y_sd"].abs()
    other = (runs[[*_SCALES]] - usual).abs().gt(slack, axis=0).any(axis=1)
    known = runs[DATA].where(runs[DATA] != "")
    if (known.groupby(seeds).transform("nunique") > 1).any():
        most = known.groupby(seeds).transform(lambda own: own.mode().iloc[0] if own.any() else "")
        other |= known.notna() & (known != most)
    if not other.any():
        return runs
    names = ", ".join(sorted(set(runs.loc[other, "method"]))[:5])
    log.warning(
        "%d runs saw other rows than the others of their task, size and seed, and are kept apart: "
        "%s", int(other.sum()), printable(names),
    )  # fmt: skip
    named = (runs["task_variant"] + " rows=" + known.fillna("other").str[:8]).str.strip()
    return runs.assign(task_variant=runs["task_variant"].where(~other, named))


def _curves_of(runs: pd.DataFrame, stored: pd.DataFrame | None) -> pd.DataFrame:
    """Return the curves of the runs with a score, with the keys of these runs."""
    scored = (runs["status"] == "ok") & runs[HEADLINE.name].notna()
    finished = runs.loc[scored, [*BY_SIZE, *SERIES, "digest", "seed"]]
    if stored is None:
        return pd.DataFrame(columns=[*finished, "iteration", *curve_names()])
    points = stored.reindex(columns=["digest", "seed", "iteration", *curve_names()])
    return finished.merge(drop_unusable_points(points), on=["digest", "seed"])


def make_uniform(stored: pd.DataFrame, curves: pd.DataFrame | None = None) -> pd.DataFrame:
    """Keep the known columns, each in its type; a column that is missing is empty or NaN."""
    numeric = (*stored_names(), *_SCALES, *TERMS)
    known = {*_WORDS, *numeric, *unstored_curves(), *_WHOLES, *PARTS, "path"}
    runs = stored[[name for name in stored if name in known]].copy()
    for column in _WORDS:
        words = runs[column] if column in runs else pd.Series("", index=runs.index, dtype=object)
        runs[column] = words.astype(object).where(words.notna(), "").astype(str)
    runs["command"] = runs["command"].map(_without_folder)
    for column in numeric:
        numbers = runs[column] if column in runs else pd.Series(float("nan"), index=runs.index)
        runs[column] = pd.to_numeric(numbers, errors="coerce").astype(float)
    for column in _WHOLES:
        wholes = runs[column] if column in runs else pd.Series(0, index=runs.index)
        runs[column] = pd.to_numeric(wholes).astype(int)
    runs = fail_unusable_runs(runs, curves)
    runs[SHARE_OF_OPTIMUM.name] = share_of_optimum(runs)
    return runs


def _keep_configurations_apart(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the digest to the variant where different configurations have the same names."""
    ambiguous = runs.groupby([*BY_SIZE, *SERIES])["digest"].transform("nunique") > 1
    named = runs["method_variant"] + " digest=" + runs["digest"].str[:8]
    runs["method_variant"] = runs["method_variant"].where(~ambiguous, named.str.strip())
    return runs


def _with_ends_of_curves(runs: pd.DataFrame, curves: pd.DataFrame | None) -> pd.DataFrame:
    """Add the scores that are not stored: the last known number of a curve, else NaN.

    The published scores have them already.
    """
    wanted = unstored_curves()
    given = runs.reindex(columns=[*wanted]).astype(float)
    runs = runs.drop(columns=[*wanted], errors="ignore")
    if curves is None or not {"digest", "seed", "iteration"} <= {*curves}:
        return runs.assign(**given)
    ordered = drop_unusable_points(curves).sort_values("iteration", kind="stable")
    for name, curve in wanted.items():
        known = ordered.dropna(subset=curve) if curve in ordered else ordered.head(0)
        last = known.drop_duplicates(["digest", "seed"], keep="last")
        ends = last[["digest", "seed"]].assign(**{name: last.get(curve, float("nan"))})
        runs = runs.merge(ends, on=["digest", "seed"], how="left")
        runs[name] = runs[name].where(runs[name].notna(), given[name].to_numpy())
    return runs


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Keep the runs that have one of the wanted values in each column; None wants all."""
    for name, wanted in filters.items():
        if wanted is None:
            continue
        values = _wanted_values(name, wanted)
        stored = set(runs[name])
        unknown = [value for value in values if value not in stored]
        if unknown and stored:
            raise UsageError(
                f"{name} must be one of {_join(stored)} (the stored values), got {_join(unknown)}"
            )
        runs = runs[runs[name].isin(values)]
    return runs


def _wanted_values(name: str, wanted: Any) -> list[Any]:
    if name == "seed":
        wanted = wanted if isinstance(wanted, str | int) else ",".join(map(str, wanted))
        return list(parse_seeds(wanted))
    values = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else wanted
    return [value if name in _WHOLES else str(value) for value in values]


def _join(values: Iterable[Any]) -> str:
    ordered = sorted(values, key=lambda value: (str(type(value)), value))
    return ", ".join(printable(str(value)) for value in ordered)


@cache
def _without_folder(command: str) -> str:
    """Return a command without its results folder, which is specific to a machine."""
    try:
        words = shlex.split(command)
    except ValueError:  # an open quote
        return command
    if not any(word.startswith("results_dir=") for word in words):
        return command
    return shlex.join(word for word in words if not word.startswith("results_dir="))


def fail_unusable_runs(runs: pd.DataFrame, curves: pd.DataFrame | None = None) -> pd.DataFrame:
    """Mark finished runs as failed if a measured score or curve cannot be averaged."""
    finished = runs["status"] == "ok"
    reasons = pd.Series("", index=runs.index, dtype=object)
    for name in stored_names():
        unusable = too_large(runs[name])
        if name not in predicted_names():
            reasons = reasons.where(~(unusable & finished) | (reasons != ""), _explain(name))
        runs[name] = runs[name].where(~unusable)
    for name in (name for name in curve_names() if name not in predicted_names()):
        if curves is not None and name in curves:
            points = curves.loc[too_large(curves[name]), ["digest", "seed"]]
            hit = pd.MultiIndex.from_frame(runs[["digest", "seed"]]).isin(
                pd.MultiIndex.from_frame(points)
            )
            reasons = reasons.where(~(hit & finished) | (reasons != ""), _explain(name))
    failed = reasons != ""
    runs["reason"] = runs["reason"].where(~failed, reasons)
    runs["status"] = runs["status"].where(~failed, "failed")
    return runs


def drop_unusable_points(points: pd.DataFrame) -> pd.DataFrame:
    """Replace what cannot be averaged in curves by NaN."""
    names = [name for name in curve_names() if name in points]
    numbers = points[names].apply(pd.to_numeric, errors="coerce")
    return points.assign(**{name: numbers[name].where(~too_large(numbers[name])) for name in names})


def too_large(numbers: "pd.Series[float]") -> NDArray[np.bool_]:
    """Return which numbers cannot be averaged; NaN is not among them."""
    found: NDArray[np.bool_] = np.abs(numbers.to_numpy(float)) > LARGEST
    return found


def _explain(name: str) -> str:
    return f"{name} is infinite or beyond {LARGEST:g}, so no score of this run is used"


@dataclass(frozen=True)
class Origins:
    """When and where a set of runs was made, formatted."""

    stored: str
    versions: tuple[str, ...]
    revisions: tuple[str, ...]
    machines: tuple[str, ...]


def find_origins(data: ReportData) -> Origins:
    """Collect the provenance of all runs."""
    runs = data.runs
    samples = [data.provenance[path] for path in _paths(runs) if path in data.provenance]
    changed = {sample.get("revision") for sample in samples if sample.get("dirty")}
    known = {*runs["revision"], *(sample.get("revision") for sample in samples)}
    return Origins(
        stored=_span(_days(runs, data.folder)),
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


def _days(runs: pd.DataFrame, folder: Path | None) -> Iterator[str]:
    """Yield the days on which runs finished, or on which the file of an undated run changed."""
    moments = pd.to_datetime(runs["finished"], utc=True, errors="coerce", format="ISO8601")
    yield from (moment.date().isoformat() for moment in moments.dropna())
    for path in _paths(runs)[runs["finished"] == ""].dropna():
        if folder is not None and (folder / path).exists():
            yield datetime.fromtimestamp((folder / path).stat().st_mtime, UTC).date().isoformat()


def _span(days: Iterable[str]) -> str:
    ordered = sorted(set(days))
    if not ordered:
        return ""
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts)))

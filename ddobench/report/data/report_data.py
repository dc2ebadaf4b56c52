"""What a report rests on: the stored runs, made uniform and filtered."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from ddobench.errors import UsageError
from ddobench.registry import PARTS
from ddobench.report.data.commands import join_commands, portable
from ddobench.report.data.diagnostics import keep_usable
from ddobench.report.data.magnitudes import drop_unusable_points, fail_unusable_runs
from ddobench.report.tables.choices import choice_table, read_judgements
from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.comparisons import comparison_table
from ddobench.report.tables.crosses import Cross, find_crosses
from ddobench.report.tables.knobs import knob_table
from ddobench.report.tables.lineups import Lineup, find_lineups
from ddobench.report.tables.pairs import pair_table
from ddobench.report.tables.remarks import MethodRemarks, find_remarks
from ddobench.report.tables.rules import find_contests, rule_table
from ddobench.report.tables.scores import score_table
from ddobench.report.tables.spread import find_spreads, is_reseeded, spread_table
from ddobench.report.tables.standings import standing_table
from ddobench.report.tables.styles import Key, Style, assign_styles
from ddobench.report.tables.sweeps import find_sweeps
from ddobench.scores import HEADLINE, curve_names, stored_names
from ddobench.seeds import parse_seeds
from ddobench.store import runs as store
from ddobench.store.records import Portrait

log = logging.getLogger(__name__)

FILTERS = ("task", "method", "d", "n", "seed", "budget")

_WORDS = (
    *("task", "method", "status", "reason", "task_variant", "method_variant", "budget"),
    *("privileges", "label", "color", "regret_unit", "digest", "command", "revision", "finished"),
)
_WHOLES = ("d", "n", "seed")
_SCALES = ("y_sd",)  # the standard deviation of the visible values


@dataclass(frozen=True)
class ReportData:
    """The runs behind a report, how each series of them looks, and what their tasks look like."""

    runs: pd.DataFrame
    styles: Mapping[Key, Style]  # by task, method and method variant
    portraits: Sequence[Portrait]
    curves: pd.DataFrame  # one row per finished run and recorded iteration, see `load_curves`
    total: int  # runs before the filters
    configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by digest
    provenance: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by path
    folder: Path | None = None  # where the paths of the runs start
    left_out: Mapping[str, str] = field(default_factory=dict)  # reasons, by the path of a file
    named: set[str] = field(default_factory=set)  # paths of runs with odd diagnostics, told of once
    reseeded: pd.DataFrame = field(default_factory=pd.DataFrame)  # set apart from `runs`

    def diagnostics(self, path: str) -> dict[str, Any]:
        """Read what a method and the harness had to tell of one run; costs a look at its file."""
        if self.folder is None:
            return {}
        usable, odd = keep_usable(store.read_diagnostics(self.folder / path))
        if odd and path not in self.named:
            self.named.add(path)
            log.warning(
                "%s tells %s in a way that is not usable and is left out", path, ", ".join(odd)
            )
        return usable

    @property
    def every_run(self) -> pd.DataFrame:
        """The runs, and those that were set apart."""
        return pd.concat([self.runs, self.reseeded]) if len(self.reseeded) else self.runs

    @cached_property
    def scores(self) -> pd.DataFrame:
        """The score table of the runs."""
        return score_table(self.runs, self.styles, self.curves)

    @cached_property
    def comparisons(self) -> pd.DataFrame:
        """The comparisons of the variants of each method with its default."""
        return comparison_table(self.runs, self.curves, self.styles)

    @cached_property
    def pairs(self) -> pd.DataFrame:
        """The comparisons of each method with each other one."""
        return pair_table(self.runs, self.styles)

    @cached_property
    def lineups(self) -> list[Lineup]:
        """The methods that can be compared across tasks."""
        return find_lineups(self.runs)

    @cached_property
    def standings(self) -> pd.DataFrame:
        """The overall standings of every line-up."""
        return standing_table(self.lineups, self.styles)

    @cached_property
    def knobs(self) -> pd.DataFrame:
        """The methods against the settings of every knob of a task that was swept."""
        return knob_table(find_sweeps(self.runs, self.configs), self.styles)

    @cached_property
    def crosses(self) -> list[Cross]:
        """The complete crosses of parts of a method."""
        return find_crosses(self.runs)

    @cached_property
    def spread(self) -> pd.DataFrame:
        """The variance that instances, and parts trained once more, add to a score."""
        return spread_table(find_spreads(self.every_run, self.configs))

    @cached_property
    def rules(self) -> pd.DataFrame:
        """What rules that choose settings lose against the oracle's choice."""
        return rule_table(find_contests(self.runs, self.configs), self.styles)

    @cached_property
    def judgements(self) -> pd.DataFrame:
        """How methods that choose among candidates judged each; costs a look at their files."""
        return read_judgements(self.runs, self.diagnostics)

    @cached_property
    def choices(self) -> pd.DataFrame:
        """What methods that choose among candidates chose, and by what."""
        return choice_table(self.judgements, self.styles)

    def commands(
        self, shared: Mapping[Any, Any], drawn: pd.DataFrame | None = None
    ) -> tuple[str, ...]:
        """Return the command behind the runs with these values in these columns.

        Of several series only those that are `drawn` count.
        """
        members = (self.runs[[*shared]] == list(shared.values())).all(axis=1)
        runs = self.runs[members]
        if drawn is not None:
            runs = runs.merge(drawn[SERIES].drop_duplicates(), on=SERIES)
        return join_commands(runs["command"])

    @classmethod
    def read(
        cls,
        folder: Path,
        filters: Mapping[str, Any] | None = None,
        remarks: MethodRemarks = (),
    ) -> "ReportData":
        """Take the runs of a results folder that pass the filters, with remarks on methods."""
        found = store.survey(folder)
        report_data = cls.of(
            found.runs, filters, store.load_portraits(folder), found.curves,
            find_remarks(found.runs, found.configs, remarks),
        )  # fmt: skip
        whole = replace(
            report_data,
            configs=found.configs,
            provenance=found.provenance,
            folder=folder,
            left_out=found.left_out,
        )
        return whole.set_reseeded_apart()

    def set_reseeded_apart(self) -> "ReportData":
        """Keep runs that train a part once more for the table of spreads, if there are others.

        They are one method many times: as its variants they would fill every other table.
        """
        apart = pd.Series(
            [is_reseeded(self.configs.get(digest, {})) for digest in self.runs["digest"]],
            self.runs.index,
            dtype=bool,
        )
        if not apart.any() or apart.all():
            return self
        runs = self.runs[~apart].reset_index(drop=True)
        shown = set(runs[["task", *SERIES]].itertuples(index=False, name=None))
        return replace(
            self,
            runs=runs,
            styles={key: style for key, style in self.styles.items() if key in shown},
            curves=self.curves[self.curves["digest"].isin(runs["digest"])].reset_index(drop=True),
            total=self.total - int(apart.sum()),
            reseeded=self.runs[apart].reset_index(drop=True),
        )

    @classmethod
    def of(
        cls,
        stored: pd.DataFrame,
        filters: Mapping[str, Any] | None = None,
        portraits: Sequence[Portrait] = (),
        curves: pd.DataFrame | None = None,
        remarks: Mapping[str, tuple[str, ...]] | None = None,
    ) -> "ReportData":
        """Take the stored runs that pass the filters, with their curves, portraits and remarks."""
        uniform = make_uniform(stored, curves)
        runs = filter_runs(_keep_configurations_apart(uniform), filters or {})
        runs = runs.sort_values([*CELL, *SERIES, "seed"], ignore_index=True)
        shown = set(runs[["task", "task_variant", "d", "n"]].itertuples(index=False, name=None))
        kept = [p for p in portraits if (p.task, p.task_variant, p.d, p.n) in shown]
        return cls(runs, assign_styles(runs, remarks), kept, _curves_of(runs, curves), len(stored))


def _curves_of(runs: pd.DataFrame, stored: pd.DataFrame | None) -> pd.DataFrame:
    """Return the curves of the runs with a score, under the names that the runs have here."""
    scored = (runs["status"] == "ok") & runs[HEADLINE.name].notna()
    finished = runs.loc[scored, [*CELL, *SERIES, "digest", "seed"]]
    if stored is None:
        return pd.DataFrame(columns=[*finished, "iteration", *curve_names()])
    points = stored.reindex(columns=["digest", "seed", "iteration", *curve_names()])
    return finished.merge(drop_unusable_points(points), on=["digest", "seed"])


def make_uniform(stored: pd.DataFrame, curves: pd.DataFrame | None = None) -> pd.DataFrame:
    """Keep the columns we know, each in its type; what an older record lacks is empty or NaN."""
    known = {*_WORDS, *stored_names(), *_SCALES, *_WHOLES, *PARTS, "path"}
    runs = stored[[name for name in stored if name in known]].copy()
    for column in _WORDS:
        words = runs[column] if column in runs else pd.Series("", index=runs.index, dtype=object)
        runs[column] = words.astype(object).where(words.notna(), "").astype(str)
    runs["command"] = runs["command"].map(portable)
    for column in (*stored_names(), *_SCALES):
        numbers = runs[column] if column in runs else pd.Series(float("nan"), index=runs.index)
        runs[column] = pd.to_numeric(numbers, errors="coerce").astype(float)
    for column in _WHOLES:
        wholes = runs[column] if column in runs else pd.Series(0, index=runs.index)
        runs[column] = pd.to_numeric(wholes).astype(int)
    return fail_unusable_runs(runs, curves)


def _keep_configurations_apart(runs: pd.DataFrame) -> pd.DataFrame:
    """Name the digest where runs look alike but are not: another version or a deeper override."""
    looks_alike = runs.groupby([*CELL, *SERIES])["digest"].transform("nunique") > 1
    named = runs["method_variant"] + " digest=" + runs["digest"].str[:8]
    runs["method_variant"] = runs["method_variant"].where(~looks_alike, named.str.strip())
    return runs


def filter_runs(runs: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Keep the runs that pass all filters, each a column with the values wanted of it."""
    for name, wanted in filters.items():
        runs = _filter(runs, name, wanted)
    return runs


def _filter(runs: pd.DataFrame, name: str, wanted: Any) -> pd.DataFrame:
    """Keep the runs whose `name` is wanted; None wants all, a value nobody stored is an error."""
    if wanted is None:
        return runs
    values = _wanted_values(name, wanted)
    stored = set(runs[name])
    unknown = [value for value in values if value not in stored]
    if unknown and stored:
        raise UsageError(
            f"{name} must be one of {_enumerate(stored)}, which is what is stored, "
            f"got {_enumerate(unknown)}"
        )
    return runs[runs[name].isin(values)]


def _wanted_values(name: str, wanted: Any) -> list[Any]:
    if name == "seed":
        wanted = wanted if isinstance(wanted, str | int) else ",".join(map(str, wanted))
        return list(parse_seeds(wanted))
    values = [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else wanted
    return [value if name in _WHOLES else str(value) for value in values]


def _enumerate(values: Iterable[Any]) -> str:
    return ", ".join(
        str(value) for value in sorted(values, key=lambda value: (str(type(value)), value))
    )

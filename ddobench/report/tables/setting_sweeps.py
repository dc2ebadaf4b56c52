"""Methods against one setting that varies: of the task (noise, bump, map) or of the method.

A sweep is a set of runs of one size that differ in one setting only. Variants name the settings
that differ from the file of a task or method; the configuration has their values.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.tables.formatting import (
    DASH,
    INTERVAL_RULE,
    Column,
    Group,
    Row,
    Table,
    format_digits,
    format_ranges,
    name_runs,
    row_stem,
    word_column,
)
from ddobench.report.tables.select import BY_SIZE, SERIES, scored_runs, share_of_optimum
from ddobench.report.tables.styles import Key, Style, explain_signs
from ddobench.scores import HEADLINE, SHARE
from ddobench.stats.samples import Sample, mean_intervals
from ddobench.variants import format_variant, split_variant

MEASURES = {"share": SHARE, "value": HEADLINE.unit}  # with their units
SWEEP = ["task", "rest", "budget", "n", "d", "owner", "setting"]  # columns that identify one
_FEWEST = {"task": 2, "method": 3}  # levels; two levels of a method are compared as controls
_PARTS = ("mean", "low", "high")
_COLUMNS = [
    *BY_SIZE, "rest", "owner", "setting", "numeric", "place", "level", *SERIES, "series", "label",
    "measure", "seeds", *(f"{measure}_{part}" for measure in MEASURES for part in _PARTS),
]  # fmt: skip
_MISSING = object()
Configs = Mapping[str, Mapping[str, Any]]  # by digest


@dataclass(frozen=True)
class Sweep:
    """The scored runs of one sweep."""

    owner: str  # "task" or "method"
    setting: str  # its dotted name
    runs: pd.DataFrame  # with `level`, and `rest` and `series`: other settings of task and method
    levels: tuple[str, ...]  # numbers ascending, or words with the default first
    numeric: bool


def find_sweeps(runs: pd.DataFrame, configs: Configs) -> list[Sweep]:
    """Return a sweep for every setting at several levels of which some method has a score."""
    return [
        sweep
        for owner in _FEWEST
        for _, size in runs.groupby(["task", "budget", "n", "d"], sort=True)
        for setting in sorted({name for text in set(size[f"{owner}_variant"])
                               for name in split_variant(text)})
        for sweep in _sweeps_of(owner, setting, size, configs)
    ]  # fmt: skip


def _sweeps_of(
    owner: str, setting: str, runs: pd.DataFrame, configs: Configs
) -> Iterator[Sweep]:  # fmt: skip
    """Yield the sweeps over a setting at one size, one for each choice of the other settings."""
    found = {digest: _read(configs.get(digest, {}).get(owner), setting)
             for digest in set(runs["digest"])}  # fmt: skip
    known = runs[[found[digest] is not _MISSING for digest in runs["digest"]]]
    variant = f"{owner}_variant"
    others = known[variant].map(lambda text: _without(setting, text))
    known = known.assign(
        rest=others if owner == "task" else known["task_variant"],
        series=known["method_variant"] if owner == "task" else others,
        level=known["digest"].map(lambda digest: _format(found[digest])),
    )
    for _, own in known.groupby("rest", sort=True):
        scored = scored_runs(own)
        levels = scored.groupby(["method", "series"])["level"].transform("nunique")
        swept = scored[levels >= _FEWEST[owner]]
        values = {_format(found[digest]): found[digest] for digest in swept["digest"]}
        numeric = all(_is_number(value) for value in values.values())
        if values and (numeric or owner == "task"):
            unchanged = own["rest"] if owner == "task" else own["series"]
            usual = set(own.loc[own[variant] == unchanged, "level"])
            order = sorted(
                values, key=lambda text: values[text] if numeric else (text not in usual, text)
            )
            yield Sweep(owner, setting, swept, tuple(order), numeric)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without(setting: str, variant: str) -> str:
    settings = split_variant(variant)
    return format_variant({name: value for name, value in settings.items() if name != setting})


def _read(node: Any, setting: str) -> Any:
    """Return a setting by its dotted name, _MISSING if there is none or if it is a part."""
    for name in setting.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return _MISSING
        node = node[name]
    return _MISSING if isinstance(node, Mapping) else node


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def setting_table(sweeps: Iterable[Sweep], styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per sweep, level, method and variant.

    `measure` is what methods are compared by at a level: the share of the optimum if it is known
    for all runs there, else the value.
    """
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, str, Sample]] = []  # with the index of the row and the measure
    keys = [*BY_SIZE, "rest", *SERIES, "series"]
    for sweep in sweeps:
        scored = sweep.runs.assign(
            share=share_of_optimum(sweep.runs), value=sweep.runs[HEADLINE.name]
        )
        for place, level in enumerate(sweep.levels):
            here = scored[scored["level"] == level]
            measure = "share" if here["share"].notna().all() else "value"
            for key, own in here.groupby(keys, sort=True):
                named: dict[str, Any] = dict(zip(keys, key, strict=True))
                style = styles[named["task"], named["method"], named["method_variant"]]
                rows.append(named | {"owner": sweep.owner, "setting": sweep.setting,
                                     "numeric": sweep.numeric, "place": place, "level": level,
                                     "label": style.label, "measure": measure,
                                     "seeds": len(own)})  # fmt: skip
                for name in MEASURES:
                    values = own[name].dropna().to_numpy(dtype=np.float64)
                    if len(values) == len(own):
                        samples.append((len(rows) - 1, name, values))
    intervals = mean_intervals([values for _, _, values in samples])
    for (row, name, values), interval in zip(samples, intervals, strict=True):
        found = (values.mean(), interval.low, interval.high)
        rows[row] |= {f"{name}_{part}": x for part, x in zip(_PARTS, found, strict=True)}
    return pd.DataFrame(rows, columns=_COLUMNS)


def name_sweep(row: Row) -> str:
    """Name the task of a sweep by all but the setting that varies."""
    return name_runs({**row, "task_variant": row["rest"]}, "n", "d")


def describe_settings(table: pd.DataFrame, styles: Mapping[Key, Style]) -> Table:
    """Describe the sweeps, one group each, the best method first."""
    groups = []
    for _, sweep in table.groupby(SWEEP, sort=True):
        first = sweep.iloc[0].to_dict()
        levels = list(dict.fromkeys(sweep.sort_values("place", kind="stable")["level"]))
        units = sweep.drop_duplicates("level").set_index("level")["measure"].map(
            lambda measure: MEASURES[measure].sign
        )  # fmt: skip
        columns = [
            word_column("method", "label"),
            *(_level_column(f"{first['setting']}={level} [{units[level]}]", level)
              for level in levels),
            Column("seeds", lambda row: format_ranges(row["seeds"]), lambda row: max(row["seeds"])),
        ]  # fmt: skip
        rows = [
            {"label": own.sort_values("place")["label"].iloc[0], "seeds": sorted(set(own["seeds"])),
             "levels": own.set_index("level").to_dict("index")}
            for own in _ranked_series(sweep)
        ]  # fmt: skip
        stem = row_stem(f"settings-{first['setting']}", {**first, "task_variant": first["rest"]},
                        "d", "n")  # fmt: skip
        keys = sweep[["task", *SERIES]].drop_duplicates().itertuples(index=False, name=None)
        notes = explain_signs(styles[key] for key in keys)
        groups.append(Group(f"{first['setting']}: {name_sweep(first)}", stem, rows, columns,
                            _explain(sweep, notes), str(first["task"])))  # fmt: skip
    return Table("settings", "Methods against one setting", "", table, groups)


def _level_column(heading: str, level: str) -> Column:
    def value(row: Row) -> float:
        cell = row["levels"].get(level)
        return float("nan") if cell is None else float(cell[f"{cell['measure']}_mean"])

    return Column(heading, lambda row: _format_cell(row["levels"].get(level)), value)


def _ranked_series(sweep: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the series of one sweep, best first by their mean over its levels.

    Means are divided by the best mean of their level, as the optimum may be unknown at some levels.
    Series that lack a level come last.
    """
    means = pd.Series([row[f"{row['measure']}_mean"] for _, row in sweep.iterrows()], sweep.index)
    top = means.abs().groupby(sweep["level"]).transform("max")
    relative = sweep[["method", "series"]].assign(merit=means / top.where(top > 0, 1.0))
    ranked = relative.groupby(["method", "series"])["merit"].agg(["count", "mean"])
    order = ranked.sort_values(["count", "mean"], ascending=False, kind="stable").index
    groups = dict(list(sweep.groupby(["method", "series"], sort=False)))
    return [groups[key] for key in order]


def _format_cell(row: Row | None) -> str:
    if row is None:
        return DASH
    unit = MEASURES[row["measure"]]
    mean, low, high = (
        format_digits(unit.scale * row[f"{row['measure']}_{part}"], unit.digits) for part in _PARTS
    )
    return mean if DASH in (mean, low) else f"{mean} [{low}, {high}]"


def _explain(sweep: pd.DataFrame, notes: Sequence[str]) -> str:
    text = (
        f"Only {sweep['setting'].iloc[0]} differs. Means over seeds of the value of the designs "
        f"that a method itself ranks first, with 95\u00a0% intervals ({INTERVAL_RULE}). 0 is the "
        "mean of the visible values, 100\u00a0% the optimum. Methods are sorted by their mean over "
        "the levels, relative to the best method at each level."
    )
    if "value" in set(sweep["measure"]):
        text += " Where the optimum is unknown, values are in sd of the visible values."
    return " ".join([text, *(f"{note}." for note in notes)])

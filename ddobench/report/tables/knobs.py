"""Methods against the settings of a knob of their task: shares of the optimum, or values."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.differences import format_digits
from ddobench.report.tables.formats import (
    DASH,
    INTERVAL_RULE,
    escape_markdown,
    format_ranges,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.normalised import normalise
from ddobench.report.tables.styles import Key, Style
from ddobench.report.tables.sweeps import Sweep
from ddobench.scores import HEADLINE, SHARE
from ddobench.stats.samples import Sample, mean_intervals

MEASURES = {"share": "share of the optimum", "value": "value"}
UNITS = {"share": SHARE.sign, "value": HEADLINE.unit.sign}
SWEEP = ["task", "rest", "budget", "n", "d", "knob"]  # the columns that tell sweeps apart
_PARTS = ("mean", "low", "high")
_COLUMNS = [
    *CELL, "rest", "knob", "numeric", "place", "setting", *SERIES, "label", "measure", "seeds",
    *(f"{measure}_{part}" for measure in MEASURES for part in _PARTS),
]  # fmt: skip


def knob_table(sweeps: Iterable[Sweep], styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per sweep, setting, method and variant.

    `measure` is what methods are compared by at a setting: the share of the optimum where every
    run there knows it, else the value.
    """
    rows: list[dict[str, Any]] = []
    samples: list[tuple[int, str, Sample]] = []  # of which row, and of what
    for sweep in sweeps:
        scored = sweep.runs.assign(share=normalise(sweep.runs), value=sweep.runs[HEADLINE.name])
        for place, setting in enumerate(sweep.settings):
            here = scored[scored["setting"] == setting]
            measure = "share" if here["share"].notna().all() else "value"
            for key, own in here.groupby([*CELL, "rest", *SERIES], sort=True):
                named: dict[str, Any] = dict(zip([*CELL, "rest", *SERIES], key, strict=True))
                style = styles[named["task"], named["method"], named["method_variant"]]
                rows.append(named | {"knob": sweep.knob, "numeric": sweep.numeric, "place": place,
                                     "setting": setting, "label": style.label, "measure": measure,
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


def without_knob(row: "pd.Series[Any]") -> "pd.Series[Any]":
    """Return a row whose variant of the task is what all runs of its sweep have in common."""
    shared = row.copy()
    shared["task_variant"] = row["rest"]
    return shared


def name_sweep(row: "pd.Series[Any]") -> str:
    """Name the task of a sweep by all but the knob that is turned."""
    return name_runs(without_knob(row), "n", "d")


def settings_of(sweep: pd.DataFrame) -> list[str]:
    """Return the settings of one sweep in their order."""
    ordered = sweep.sort_values("place", kind="stable")
    return [str(setting) for setting in ordered["setting"].drop_duplicates()]


def rank_series(sweep: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the methods and variants of one sweep, best first, by their mean over its settings.

    Settings whose optimum is known and those where it is not are put on one scale by the best mean
    of each setting. A series that lacks a setting comes after those that have all.
    """
    means = pd.Series([row[f"{row['measure']}_mean"] for _, row in sweep.iterrows()], sweep.index)
    top = means.abs().groupby(sweep["setting"]).transform("max")
    relative = sweep[SERIES].assign(merit=means / top.where(top > 0, 1.0))
    ranked = relative.groupby(SERIES)["merit"].agg(["count", "mean"])
    ordered = ranked.sort_values(["count", "mean"], ascending=False, kind="stable").index
    return [(str(method), str(variant)) for method, variant in ordered]


def header(sweep: pd.DataFrame) -> list[str]:
    """Return the headings of one sweep."""
    measures = sweep.drop_duplicates("setting").set_index("setting")["measure"]
    knob = sweep["knob"].iloc[0]
    told = [f"{knob}={setting} [{UNITS[measures[setting]]}]" for setting in settings_of(sweep)]
    return ["method", *told, "seeds"]


def knob_cells(sweep: pd.DataFrame) -> list[list[tuple[str, Any]]]:
    """Return one sweep as lines of texts, each with the value to sort it by, best method first."""
    lines = []
    for key in rank_series(sweep):
        own = sweep[(sweep[SERIES] == list(key)).all(axis=1)]
        rows = own.set_index("setting").to_dict("index")
        cells = [_cell(rows.get(setting)) for setting in settings_of(sweep)]
        seeds = sorted(set(own["seeds"]))
        label = str(own["label"].iloc[0])
        lines.append([(label, label), *cells, (format_ranges(seeds), max(seeds))])
    return lines


def _cell(row: Mapping[Hashable, Any] | None) -> tuple[str, float]:
    """Spell a mean with its interval in the unit of its setting."""
    if row is None:
        return DASH, float("nan")
    unit = SHARE if row["measure"] == "share" else HEADLINE.unit
    mean, low, high = (
        format_digits(unit.scale * row[f"{row['measure']}_{part}"], unit.digits) for part in _PARTS
    )
    text = mean if DASH in (mean, low) else f"{mean} [{low}, {high}]"
    return text, row[f"{row['measure']}_mean"]


def explain_knobs(sweep: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Say how to read one sweep, and what its signs mean."""
    text = (
        f"Nothing about the task differs but {sweep['knob'].iloc[0]}. Means over seeds of what the "
        "designs that a method itself ranks first are worth, with 95\u00a0% intervals "
        f"({INTERVAL_RULE}): 0 is the mean of the visible values, 100\u00a0% the optimum. Methods "
        "come by their mean over the settings, each relative to the best there."
    )
    if "value" in set(sweep["measure"]):
        text += " Where no exact optimum is known, values are in sd of the visible ones."
    return " ".join([text, *(f"{note}." for note in notes)])


def knob_markdown(table: pd.DataFrame, notes: Iterable[str]) -> str:
    """Spell the sweeps for people, one heading each."""
    parts = ["# Methods against settings of their task\n"]
    parts += [f"{escape_markdown(note)}.\n" for note in notes]
    for _, sweep in table.groupby(SWEEP, sort=True):
        first = sweep.iloc[0]
        parts.append(f"## {first['knob']}: {escape_markdown(name_sweep(first))}\n")
        parts.append(f"{escape_markdown(explain_knobs(sweep))}\n")
        lines = [[text for text, _ in line] for line in knob_cells(sweep)]
        parts.append(markdown_table(header(sweep), lines, words=[0]))
    return "\n".join(parts)

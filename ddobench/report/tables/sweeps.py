"""Sweeps over a knob of a task: runs of one size whose tasks differ in nothing but one setting."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ddobench.report.tables.columns import SERIES, SLICE
from ddobench.scores import HEADLINE
from ddobench.variants import format_variant, split_variant

_SIZE = [name for name in [*SLICE, "n"] if name != "task_variant"]  # what a sweep has in common
_MISSING = object()
Configs = Mapping[str, Mapping[str, Any]]  # by digest


@dataclass(frozen=True)
class Sweep:
    """The runs of one sweep, by any method that was swept."""

    knob: str  # a key of the task
    runs: (
        pd.DataFrame
    )  # with two more columns: `setting`, spelled, and `rest`, the other departures
    settings: tuple[str, ...]  # in order: numbers ascending, else the usual word first
    numeric: bool


def find_sweeps(runs: pd.DataFrame, configs: Configs) -> list[Sweep]:
    """Return a sweep for every knob of a task that some method has a score at two settings of.

    A series with a score at one setting only was not swept, and its runs are left out.
    A knob is known by the variants of tasks, which name what departs from the file of a task; its
    usual setting is read in the configuration of the runs.
    """
    return [
        sweep
        for _, size in runs.groupby(_SIZE, sort=True)
        for knob in sorted(
            {name for text in set(size["task_variant"]) for name in split_variant(text)}
        )
        for sweep in _sweeps_of(knob, size, configs)
    ]


def _sweeps_of(knob: str, runs: pd.DataFrame, configs: Configs) -> Iterator[Sweep]:
    """Yield the sweeps over a knob among runs of one size, one for each of all other settings."""
    found = {digest: _read(configs.get(digest, {}), knob) for digest in set(runs["digest"])}
    known = runs[[found[digest] is not _MISSING for digest in runs["digest"]]]
    known = known.assign(
        rest=known["task_variant"].map(lambda text: _without(knob, text)),
        setting=known["digest"].map(lambda digest: _spell(found[digest])),
    )
    for _, own in known.groupby("rest", sort=True):
        scored = own[(own["status"] == "ok") & own[HEADLINE.name].notna()]
        swept = scored[scored.groupby(SERIES)["setting"].transform("nunique") > 1]
        values = {_spell(found[digest]): found[digest] for digest in swept["digest"]}
        if values:
            numeric = all(_is_number(value) for value in values.values())
            usual = set(own.loc[own["task_variant"] == own["rest"], "setting"])
            order = sorted(
                values, key=lambda text: values[text] if numeric else (text not in usual, text)
            )
            yield Sweep(knob, swept, tuple(order), numeric)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _without(knob: str, variant: str) -> str:
    settings = split_variant(variant)
    return format_variant({name: value for name, value in settings.items() if name != knob})


def _read(config: Mapping[str, Any], knob: str) -> Any:
    """Return a setting of the task in a configuration, by its dotted name."""
    node: Any = config.get("task")
    for name in knob.split("."):
        if not isinstance(node, Mapping) or name not in node:
            return _MISSING
        node = node[name]
    return node


def _spell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)

"""Whose luck a spread is: the variance that instances, and parts trained once more, add to a score.

A part with a `reseed` may be trained many times on the same rows. Where runs of a method differ in
nothing but that, and every combination has the same seeds, each of which is an instance, the
variance of a score falls apart into what a new instance adds and what each new training adds.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.registry import PARTS
from ddobench.report.tables.crosses import CROSS, SEED, TIMES, complete_levels
from ddobench.report.tables.formats import (
    escape_markdown,
    format_number,
    format_percent,
    markdown_table,
    name_runs,
)
from ddobench.scores import BEST_ORACLE, BEST_VISIBLE, FINAL_MODEL
from ddobench.stats.variance import components

_RESEED = "reseed"  # the setting of a part
_SCORES = {FINAL_MODEL.name: "final value", BEST_ORACLE.name: "best iteration"}
INSTANCE = "instance"
_COLUMNS = [
    *CROSS, "score", "source", "variance", "sd", "share", "freedom", "mean", "best_visible",
    *("instances", "runs"),
]  # fmt: skip
WORDS = [0]
EXPLANATION = (
    "Each instance, a seed, has its own trainings of each part, in all combinations, and all else "
    "of a run is the same. A standard deviation is how far a score moves if this alone is drawn "
    "anew; two parts together are what one training does only beside one of the other. Variances "
    "are those of random effects, by the analysis of variance, and add up; one that comes out "
    f"below 0 counts as none. Values are in {FINAL_MODEL.unit.sign} of the visible values; the "
    "best iteration is an oracle's choice."
)


@dataclass(frozen=True)
class Spread:
    """A complete cross of instances and trainings of parts, and the scores in it."""

    place: Mapping[str, Any]  # the cell and the method, by column
    parts: tuple[str, ...]  # that were trained more than once
    scores: Mapping[str, NDArray[np.float64]]  # (instances, trainings of the first part, ...)
    best_visible: float  # the mean over instances


def is_reseeded(config: Mapping[str, Any]) -> bool:
    """Tell whether a part of a method is one of several trainings on the same rows."""
    return bool(_reseeds(config))


def _reseeds(config: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of every part that has one."""
    method = config.get("method")
    parts = {part: method.get(part) for part in PARTS} if isinstance(method, Mapping) else {}
    return {
        name: part[_RESEED]
        for name, part in parts.items()
        if isinstance(part, Mapping) and isinstance(part.get(_RESEED), int)
    }


def find_spreads(runs: pd.DataFrame, configs: Mapping[str, Mapping[str, Any]]) -> list[Spread]:
    """Return the complete crosses of two or more instances and trainings of parts."""
    known = runs[[is_reseeded(configs.get(digest, {})) for digest in runs["digest"]]]
    if known.empty:
        return []
    numbers = [_reseeds(configs[digest]) for digest in known["digest"]]
    known = known.assign(**{_column(part): [own.get(part, -1) for own in numbers]
                            for part in PARTS})  # fmt: skip
    rest = [_all_but_reseeds(configs[digest]) for digest in known["digest"]]
    keys = [*(known[name] for name in CROSS), pd.Series(rest, known.index)]
    found = [_find_spread(dict(zip(CROSS, key[:-1], strict=True)), own)
             for key, own in known.groupby(keys, sort=True)]  # fmt: skip
    return [spread for spread in found if spread is not None]


def _column(part: str) -> str:
    return f"{_RESEED} of {part}"


def _all_but_reseeds(config: Mapping[str, Any]) -> str:
    """Spell the configuration of a method without the numbers of its parts."""
    method = {
        name: {key: value for key, value in part.items() if key != _RESEED}
        if isinstance(part, Mapping)
        else part
        for name, part in config["method"].items()
    }
    return json.dumps(method, sort_keys=True, default=str)


def _find_spread(place: Mapping[Any, Any], runs: pd.DataFrame) -> Spread | None:
    parts = [part for part in PARTS if len(runs[_column(part)].unique()) > 1]
    axes = [SEED, *map(_column, parts)]
    scored = runs[(runs["status"] == "ok") & runs[[*_SCORES]].notna().all(axis=1)]
    table = scored.drop_duplicates(axes).set_index(axes)
    kept = complete_levels({axis: sorted(runs[axis].unique()) for axis in axes}, {*table.index})
    shape = [len(levels) for levels in kept.values()]
    if not parts or min(shape) < 2:
        return None
    whole = table.loc[pd.MultiIndex.from_product([*kept.values()], names=axes)]
    return Spread(
        place,
        tuple(parts),
        {name: whole[name].to_numpy(np.float64).reshape(shape) for name in _SCORES},
        float(whole[BEST_VISIBLE.name].mean()),
    )


def spread_table(spreads: Iterable[Spread]) -> pd.DataFrame:
    """Return one row per cross, score and source of chance; the shares of a score add up to 1."""
    rows: list[dict[str, Any]] = []
    for spread in spreads:
        for score, values in spread.scores.items():
            found = components(values)
            total = sum(max(part.variance, 0.0) for part in found)
            for part in found:
                variance = max(part.variance, 0.0)
                rows.append({**spread.place, "score": score,
                             "source": _name_source(part.axes, spread.parts),
                             "variance": part.variance, "sd": np.sqrt(variance),
                             "share": variance / total if total > 0 else np.nan,
                             "freedom": part.freedom, "mean": values.mean(),
                             "best_visible": spread.best_visible,
                             "instances": len(values), "runs": values.size})  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def _name_source(axes: tuple[int, ...], parts: tuple[str, ...]) -> str:
    return INSTANCE if axes == (0,) else TIMES.join(parts[axis - 1] for axis in axes)


def name_spread(row: "pd.Series[Any]") -> str:
    """Name a cross by its task, size and method."""
    return f"{name_runs(row, 'n', 'd')}: {row['method']}"


def describe_spread(table: pd.DataFrame) -> str:
    """Say how many runs one cross has, and what their scores are on average."""
    first = table.iloc[0]
    means = table.drop_duplicates("score").set_index("score")["mean"]
    told = "; ".join(f"{words} {format_number(means[name])}" for name, words in _SCORES.items())
    return (
        f"{first['runs']} runs on {first['instances']} instances. Means: {told}; doing nothing "
        f"has {format_number(first['best_visible'])}."
    )


def header() -> list[str]:
    """Return the headings of the table of one cross."""
    told = [text for words in _SCORES.values() for text in (f"{words}: sd", "share of variance")]
    return ["drawn anew", *told, "degrees of freedom"]


def spread_cells(table: pd.DataFrame) -> list[list[tuple[str, Any]]]:
    """Return the sources of one cross as lines of texts, each with the value to sort it by."""
    lines: list[list[tuple[str, Any]]] = []
    for source, own in table.groupby("source", sort=False):
        by_score = own.set_index("score").loc[[*_SCORES]]
        told: list[tuple[str, Any]] = [
            cell
            for row in by_score.to_dict("records")
            for cell in ((format_number(row["sd"]), row["sd"]),
                         (format_percent(row["share"]), row["share"]))
        ]  # fmt: skip
        freedom = int(own["freedom"].iloc[0])
        lines.append([(str(source), source), *told, (str(freedom), freedom)])
    return lines


def spread_markdown(table: pd.DataFrame) -> str:
    """Spell the variances for people, one heading per cross."""
    parts = ["# Whose luck it is\n", f"{EXPLANATION}\n"]
    for _, cross in table.groupby(CROSS, sort=True):
        parts.append(f"## {escape_markdown(name_spread(cross.iloc[0]))}\n")
        parts.append(f"{describe_spread(cross)}\n")
        lines = [[text for text, _ in line] for line in spread_cells(cross)]
        parts.append(markdown_table(header(), lines, words=WORDS))
    return "\n".join(parts)

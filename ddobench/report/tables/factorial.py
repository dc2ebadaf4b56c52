"""Which part of a method explains the gain: full factorial designs, and their analysis of variance.

A factorial consists of the runs of one method at one size that differ only in their parts (latent,
surrogate, search, ...): every combination of the levels of two or more parts, with the same seeds.
Where runs are missing or have no score, levels are left out until the rest is complete; otherwise
the shares of variance would not add up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.registry import PARTS
from ddobench.report.tables.formatting import (
    Column,
    Group,
    Table,
    describe_counts,
    format_estimate,
    format_percent,
    format_ranges,
    name_runs,
    number_column,
    row_stem,
    word_column,
)
from ddobench.report.tables.select import BY_SIZE, LOST, scored_runs
from ddobench.report.tables.styles import privileges_of
from ddobench.scores import BEST_VISIBLE, HEADLINE
from ddobench.stats.samples import mean_interval
from ddobench.stats.variance import decompose
from ddobench.variants import split_variant

FACTORIAL = [*BY_SIZE, "method"]  # the columns that identify a factorial
SEED, REST = "seed", "rest"
TIMES = " \u00d7 "  # between the parts of an interaction
_SHARES = [*FACTORIAL, "source", "parts", "share", "squares", "freedom", "runs", "seeds"]
_LEVELS = [
    *FACTORIAL, "part", "level", "combinations", "mean", "low", "high", "value", "best_visible",
]  # fmt: skip
EXPLANATION = (
    "Every combination of the levels was run with the same seeds. The sum of squares of the final "
    "value is divided into shares: of single parts, of interactions between parts, of the seeds "
    "(some instances are easier), and of the rest (the effect of a part differs between seeds). "
    "The gain of a level over the best visible design is a mean over all combinations with it; its "
    "interval is that of the mean over seeds. Shares hold for these levels only: a part with "
    "similar levels explains little."
)


@dataclass(frozen=True)
class Factorial:
    """A complete factorial of parts, and what was left out to make it complete."""

    place: dict[str, Any]  # its size and method, by column
    levels: Mapping[str, tuple[str, ...]]  # of every part that varies
    seeds: tuple[int, ...]
    scores: NDArray[np.float64]  # (levels of the first part, of the second, ..., S)
    best_visible: NDArray[np.float64]  # (S,)
    lost: Mapping[str, int]  # runs without a score, by reason
    privileges: tuple[str, ...] = ()  # what some of the runs use beyond the visible table

    @property
    def gains(self) -> NDArray[np.float64]:
        """The gain of every run over the best visible design, in the shape of the scores."""
        return self.scores - self.best_visible


def find_factorials(runs: pd.DataFrame) -> list[Factorial]:
    """Return the complete factorials of two or more parts with two or more seeds."""
    if not {*PARTS} <= {*runs}:
        return []
    only_parts = runs["method_variant"].map(lambda text: {*split_variant(text)} <= {*PARTS})
    plain = runs[only_parts & runs[[*PARTS]].notna().all(axis=1)]
    found = [_find_factorial(dict(zip(FACTORIAL, key, strict=True)), own)
             for key, own in plain.groupby(FACTORIAL, sort=True)]  # fmt: skip
    return [factorial for factorial in found if factorial is not None]


def _find_factorial(place: dict[str, Any], runs: pd.DataFrame) -> Factorial | None:
    exchanged = [part for part in PARTS if len(runs[part].unique()) > 1]
    scored = scored_runs(runs)
    axes = [*exchanged, SEED]
    table = scored.drop_duplicates(axes).set_index(axes)
    kept = complete_levels({axis: sorted(runs[axis].unique()) for axis in axes}, {*table.index})
    levels = {part: tuple(map(str, kept[part])) for part in exchanged if len(kept[part]) > 1}
    if len(levels) < 2 or len(kept[SEED]) < 2:
        return None
    whole = table.loc[pd.MultiIndex.from_product([*kept.values()], names=axes)]
    shape = [len(names) for names in levels.values()]
    tried = len(runs.drop_duplicates(axes))
    combinations = len(runs.drop_duplicates(exchanged))
    status = runs["status"].value_counts()
    counted = (
        int(status.get("declined", 0)),
        int(status.get("failed", 0)),
        combinations * runs[SEED].nunique() - tried,
        int(status.get("ok", 0)) - len(scored),
    )
    return Factorial(
        place,
        levels,
        tuple(int(seed) for seed in kept[SEED]),
        whole[HEADLINE.name].to_numpy(dtype=np.float64).reshape(*shape, -1),
        whole[BEST_VISIBLE.name].to_numpy(dtype=np.float64).reshape(-1, len(kept[SEED]))[0],
        dict(zip(LOST, counted, strict=True)),
        privileges_of(whole),
    )


def complete_levels(
    levels: dict[str, list[Any]], present: set[tuple[Any, ...]]
) -> dict[str, list[Any]]:  # fmt: skip
    """Leave out the level that lacks most of its runs, repeatedly, until none lacks any."""
    kept = {axis: [*names] for axis, names in levels.items()}
    while all(kept.values()):
        there = np.zeros([len(names) for names in kept.values()])
        for place in np.ndindex(there.shape):
            there[place] = tuple(n[i] for n, i in zip(kept.values(), place, strict=True)) in present
        if there.all():
            break
        shares = [
            (there.take(i, axis=axis).mean(), -axis, i, name)
            for axis, name in enumerate(kept)
            for i in range(len(kept[name]))
        ]
        _, _, i, name = min(shares)
        del kept[name][i]
    return kept


def share_table(factorials: Iterable[Factorial]) -> pd.DataFrame:
    """Return one row per factorial and source of variance; the shares of each add up to 1."""
    rows: list[dict[str, Any]] = []
    for factorial in factorials:
        names = [*factorial.levels]
        effects = decompose(factorial.scores)
        total = sum(effect.squares for effect in effects)
        sources: dict[str, list[float]] = {}
        for effect in effects:
            source = _name_source(effect.axes, names)
            squares, freedom = sources.get(source, [0.0, 0])
            sources[source] = [squares + effect.squares, freedom + effect.freedom]
        for source in sorted(sources, key=lambda name: name in (SEED, REST)):
            squares, freedom = sources[source]
            share = squares / total if total > 0 else np.nan
            rows.append(factorial.place | {
                "source": source, "parts": ", ".join(names), "share": share, "squares": squares,
                "freedom": freedom, "runs": factorial.scores.size, "seeds": len(factorial.seeds),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=_SHARES)


def _name_source(axes: tuple[int, ...], parts: list[str]) -> str:
    """Name an effect by its parts; seeds are the last axis, and interact with parts as the rest."""
    if len(parts) in axes:
        return SEED if len(axes) == 1 else REST
    return TIMES.join(parts[axis] for axis in axes)


def level_table(factorials: Iterable[Factorial]) -> pd.DataFrame:
    """Return one row per factorial and level of a part, with its mean gain."""
    rows: list[dict[str, Any]] = []
    for factorial in factorials:
        for axis, (part, levels) in enumerate(factorial.levels.items()):
            for i, level in enumerate(levels):
                own = factorial.gains.take(i, axis=axis)
                by_seed = own.reshape(-1, len(factorial.seeds)).mean(axis=0)
                ends, best = mean_interval(by_seed), factorial.best_visible.mean()
                rows.append(factorial.place | {
                    "part": part, "level": level, "combinations": own.size // len(factorial.seeds),
                    "mean": by_seed.mean(), "low": ends.low, "high": ends.high,
                    "value": by_seed.mean() + best, "best_visible": best,
                })  # fmt: skip
    return pd.DataFrame(rows, columns=_LEVELS)


def combination_table(factorials: Iterable[Factorial]) -> pd.DataFrame:
    """Return one row per factorial and combination: its mean gain over the best visible design."""
    rows = []
    for factorial in factorials:
        means = factorial.gains.mean(axis=-1)
        for place in np.ndindex(means.shape):
            words = [
                f"{p}={n[i]}" for (p, n), i in zip(factorial.levels.items(), place, strict=True)
            ]
            rows.append({**factorial.place, "combination": " ".join(words), "gain": means[place],
                         "value": means[place] + factorial.best_visible.mean(),
                         "best_visible": factorial.best_visible.mean()})  # fmt: skip
    return pd.DataFrame(rows, columns=[*FACTORIAL, "combination", "gain", "value", "best_visible"])


def name_factorial(factorial: Factorial) -> str:
    """Name a factorial by its task, size and method."""
    return f"{name_runs(factorial.place, 'n', 'd')}: parts of {factorial.place['method']}"


def describe_factorial(factorial: Factorial) -> str:
    """List the levels, the seeds, and how many runs have no score."""
    levels = "; ".join(f"{part} {', '.join(names)}" for part, names in factorial.levels.items())
    counted = describe_counts({"seeds": f"{factorial.scores.size} runs", **factorial.lost})
    know = f" Some runs use: {', '.join(factorial.privileges)}." if factorial.privileges else ""
    return f"{levels}; seeds {format_ranges(factorial.seeds)}; {counted}.{know}"


def describe_shares(factorials: list[Factorial]) -> Table:
    """Describe the shares of variance, one group per factorial."""
    columns = [
        word_column("source", "source"),
        number_column("share", "share", format_percent),
        number_column("degrees of freedom", "freedom"),
    ]
    groups = [_group(one, "cross", share_table([one]), columns) for one in factorials]
    title = "Which part explains the gain"
    return Table("cross", title, EXPLANATION, share_table(factorials), groups)


def describe_levels(factorials: list[Factorial]) -> Table:
    """Describe the gain of every level of every part, one group per factorial."""
    columns = [
        word_column("part", "part"),
        word_column("level", "level"),
        Column(f"gain over the best visible design ({HEADLINE.unit.sign})",
               lambda row: format_estimate(row["mean"], row["low"], row["high"]),
               lambda row: row["mean"]),
    ]  # fmt: skip
    groups = [_group(one, "cross_levels", level_table([one]), columns) for one in factorials]
    title = "Gain of each level of a part"
    return Table("cross_levels", title, EXPLANATION, level_table(factorials), groups)


def _group(one: Factorial, kind: str, frame: pd.DataFrame, columns: list[Column]) -> Group:
    stem = row_stem(kind, one.place, "d", "n", method=str(one.place["method"]))
    return Group(name_factorial(one), stem, frame.to_dict("records"), columns,
                 describe_factorial(one))  # fmt: skip

"""Which part of a method earns the gain: crosses of its parts, and the analysis of their variance.

A cross is what the runs of one method in one cell make up if nothing but parts (latent, surrogate,
search, ...) was exchanged: every combination of the levels of two or more parts, each with the same
seeds. Where some runs are missing, have declined or have no score, levels are left out until what
remains is complete: only then do the shares add up.
"""

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ddobench.registry import PARTS
from ddobench.report.tables.columns import CELL, LOST
from ddobench.report.tables.formats import (
    describe_counts,
    escape_markdown,
    format_estimate,
    format_percent,
    format_ranges,
    markdown_table,
    name_runs,
)
from ddobench.report.tables.styles import privileges_of
from ddobench.scores import BEST_VISIBLE, HEADLINE
from ddobench.stats.samples import mean_interval
from ddobench.stats.variance import decompose
from ddobench.variants import split_variant

CROSS = [*CELL, "method"]  # the columns that tell crosses apart
SEED, REST = "seed", "rest"
TIMES = " \u00d7 "  # between the parts of an interaction
_BEST = 3  # combinations that are named
_SHARES = [*CROSS, "source", "parts", "share", "squares", "freedom", "runs", "seeds"]
_LEVELS = [*CROSS, "part", "level", "combinations", "mean", "low", "high", "value", "best_visible"]
EXPLANATION = (
    "Every combination of the levels was run with the same seeds. Shares are those of the sum of "
    "squares of the final value around its mean: of a part alone, of parts that interact, of the "
    "seeds (some instances are easier), and of the rest, which is how seeds differ in what the "
    "parts do. Levels have their mean gain over doing nothing, the best visible design, over all "
    "combinations with them; the interval is that of the mean over seeds. Shares describe these "
    "levels: a part of which only similar ones were tried explains little."
)


@dataclass(frozen=True)
class Cross:
    """A complete cross of parts, and what was left out for the sake of that."""

    place: Mapping[str, Any]  # the cell and the method, by column
    levels: Mapping[str, tuple[str, ...]]  # of every part that was exchanged
    seeds: tuple[int, ...]
    scores: NDArray[np.float64]  # (levels of the first part, of the second, ..., S)
    best_visible: NDArray[np.float64]  # (S,)
    lost: Mapping[str, int]  # runs without a score, by what became of them
    privileges: tuple[str, ...] = ()  # what some of the runs were told beyond the visible table

    @property
    def gains(self) -> NDArray[np.float64]:
        """How much more than doing nothing every run is worth, in the shape of the scores."""
        return self.scores - self.best_visible


def find_crosses(runs: pd.DataFrame) -> list[Cross]:
    """Return the complete crosses of two or more parts with two or more seeds."""
    if not {*PARTS} <= {*runs}:
        return []
    plain = runs[
        runs["method_variant"].map(_changes_parts_alone) & runs[[*PARTS]].notna().all(axis=1)
    ]
    found = [_find_cross(dict(zip(CROSS, key, strict=True)), own)
             for key, own in plain.groupby(CROSS, sort=True)]  # fmt: skip
    return [cross for cross in found if cross is not None]


def _changes_parts_alone(variant: str) -> bool:
    return {*split_variant(variant)} <= {*PARTS}


def _find_cross(place: Mapping[Any, Any], runs: pd.DataFrame) -> Cross | None:
    exchanged = [part for part in PARTS if len(runs[part].unique()) > 1]
    scored = runs[(runs["status"] == "ok") & runs[HEADLINE.name].notna()]
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
    return Cross(
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
    """Leave out the level that lacks most of its runs, again and again, until none lacks any."""
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


def share_table(crosses: Iterable[Cross]) -> pd.DataFrame:
    """Return one row per cross and source of variance; the shares of a cross add up to 1."""
    rows: list[dict[str, Any]] = []
    for cross in crosses:
        names = [*cross.levels]
        effects = decompose(cross.scores)
        total = sum(effect.squares for effect in effects)
        sources: dict[str, list[float]] = {}
        for effect in effects:
            source = _name_source(effect.axes, names)
            squares, freedom = sources.get(source, [0.0, 0])
            sources[source] = [squares + effect.squares, freedom + effect.freedom]
        for source in sorted(sources, key=lambda name: name in (SEED, REST)):
            squares, freedom = sources[source]
            share = squares / total if total > 0 else np.nan
            rows.append({**cross.place, "source": source, "parts": ", ".join(names), "share": share,
                         "squares": squares, "freedom": freedom, "runs": cross.scores.size,
                         "seeds": len(cross.seeds)})  # fmt: skip
    return pd.DataFrame(rows, columns=_SHARES)


def _name_source(axes: tuple[int, ...], parts: list[str]) -> str:
    """Name an effect by its parts; the seeds are the last axis, what they change is the rest."""
    if len(parts) in axes:
        return SEED if len(axes) == 1 else REST
    return TIMES.join(parts[axis] for axis in axes)


def level_table(crosses: Iterable[Cross]) -> pd.DataFrame:
    """Return one row per cross and level of a part: its mean gain over doing nothing."""
    rows: list[dict[str, Any]] = []
    for cross in crosses:
        for axis, (part, levels) in enumerate(cross.levels.items()):
            for i, level in enumerate(levels):
                own = cross.gains.take(i, axis=axis)
                by_seed = own.reshape(-1, len(cross.seeds)).mean(axis=0)
                ends = mean_interval(by_seed)
                rows.append({**cross.place, "part": part, "level": level,
                             "combinations": own.size // len(cross.seeds), "mean": by_seed.mean(),
                             "low": ends.low, "high": ends.high,
                             "value": by_seed.mean() + cross.best_visible.mean(),
                             "best_visible": cross.best_visible.mean()})  # fmt: skip
    return pd.DataFrame(rows, columns=_LEVELS)


def combination_table(crosses: Iterable[Cross]) -> pd.DataFrame:
    """Return one row per cross and combination: its mean gain over doing nothing."""
    rows = []
    for cross in crosses:
        means = cross.gains.mean(axis=-1)
        for place in np.ndindex(means.shape):
            words = [f"{p}={n[i]}" for (p, n), i in zip(cross.levels.items(), place, strict=True)]
            rows.append({**cross.place, "combination": " ".join(words), "gain": means[place],
                         "value": means[place] + cross.best_visible.mean(),
                         "best_visible": cross.best_visible.mean()})  # fmt: skip
    return pd.DataFrame(rows, columns=[*CROSS, "combination", "gain", "value", "best_visible"])


def name_cross(cross: Cross) -> str:
    """Name a cross by its task, size and method."""
    return f"{name_runs(pd.Series(cross.place), 'n', 'd')}: parts of {cross.place['method']}"


def describe_cross(cross: Cross) -> str:
    """Say which levels met on which seeds, and what became of runs that have no score."""
    met = "; ".join(f"{part} {', '.join(levels)}" for part, levels in cross.levels.items())
    counts: dict[Hashable, Any] = {"seeds": f"{cross.scores.size} runs"}
    counted = describe_counts(counts | {**cross.lost})
    told = f" Some of them know more: {', '.join(cross.privileges)}." if cross.privileges else ""
    return f"{met}; seeds {format_ranges(cross.seeds)}; {counted}.{told}"


def cross_markdown(crosses: Iterable[Cross]) -> str:
    """Spell the crosses for people, one heading each: shares, levels, and the best combinations."""
    parts = ["# Which part earns the gain\n", f"{EXPLANATION}\n"]
    for cross in crosses:
        parts += [f"## {escape_markdown(name_cross(cross))}\n", f"{describe_cross(cross)}\n"]
        shares = [[row["source"], format_percent(row["share"]), str(row["freedom"])]
                  for row in share_table([cross]).to_dict("records")]  # fmt: skip
        parts.append(markdown_table(["source", "share", "degrees of freedom"], shares, words=[0]))
        levels = [[row["part"], row["level"], format_estimate(row["mean"], row["low"], row["high"])]
                  for row in level_table([cross]).to_dict("records")]  # fmt: skip
        gain = f"gain over doing nothing ({HEADLINE.unit.sign})"
        parts.append(markdown_table(["part", "level", gain], levels, words=[0, 1]))
        best = combination_table([cross]).sort_values("gain", ascending=False, kind="stable")
        lines = [[row["combination"], format_estimate(row["gain"], np.nan, np.nan)]
                 for row in best.head(_BEST).to_dict("records")]  # fmt: skip
        parts.append(markdown_table([f"best {len(lines)} combinations", gain], lines, words=[0]))
    return "\n".join(parts)

"""Which series a figure draws, their means, and the sentences of a caption about them."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from ddobench.report.data import ReportData
from ddobench.report.figures.draw import MOST_BANDS, MUTED
from ddobench.report.tables.select import BY_SIZE, LOST, SERIES
from ddobench.report.tables.styles import (
    BEST_VISIBLE_ROLE,
    REFERENCE,
    USUAL,
    Style,
    explain_signs,
    role_of,
)
from ddobench.stats.samples import FEW, mean_band, mean_intervals

MOST_SERIES = 8  # lines in one panel
_BEST = 4  # series that are chosen by rank alone


def name_series(frame: pd.DataFrame) -> "pd.Series[str]":
    """Return a key for the series of every row, for the column `series`."""
    return frame["method"] + " " + frame["method_variant"]


def drop_variants(frame: pd.DataFrame, most: int = MOST_SERIES) -> tuple[pd.DataFrame, int]:
    """If there are too many series, leave out variants of methods that have a default.

    Also returns the number of series left out.
    """
    series = frame[SERIES].drop_duplicates()
    if len(series) <= most:
        return frame, 0
    has_default = set(series.loc[series["method_variant"] == "", "method"])
    kept = (frame["method_variant"] == "") | ~frame["method"].isin(has_default)
    return frame[kept], len(series) - len(frame.loc[kept, SERIES].drop_duplicates())


def lead_styles(
    data: ReportData, points: pd.DataFrame, *, lower_is_better: bool = False,
    most: int = MOST_SERIES, within: str | list[str] = "x",
) -> dict[str, Style]:  # fmt: skip
    """Return the style of every series; if there are too many, all but the leading ones are grey.

    Series are ranked by their `mean` among `points` with equal `within`.
    """
    first = points.drop_duplicates("series").set_index("series")
    leading = rank_series(points, within, most, lower_is_better=lower_is_better)
    rest = len(first) - len(leading)
    muted = Style("1 other" if rest == 1 else f"{rest} others", MUTED, "", (), ())
    looks = {str(key): data.style(row) if key in leading else muted
             for key, row in first.sort_values(SERIES).iterrows()}  # fmt: skip
    return dict(sorted(looks.items(), key=lambda item: item[1] == muted))


def rank_series(
    points: pd.DataFrame, within: str | list[str], most: int, *, lower_is_better: bool = False
) -> list[str]:
    """Return the leading series, best first: references, the best few, then common baselines."""
    rivals = points.groupby(within)["mean"]
    ranks = rivals.rank(ascending=lower_is_better) - 1  # scaled below: 0 is best, 1 is worst
    ranks /= (rivals.transform("count") - 1).clip(lower=1)
    ranked = list(ranks.groupby(points["series"]).mean().sort_values(kind="stable").index)
    if len(ranked) <= most:
        return ranked
    plain = {f"{method} ": method for method in set(points["method"])}
    references, usual = (
        [key for key in ranked if key in plain and role_of(plain[key]) in roles]
        for roles in ((BEST_VISIBLE_ROLE, REFERENCE), (USUAL,))
    )
    others = [key for key in ranked if key not in references]
    wanted = list(dict.fromkeys(chain(references, others[:_BEST], usual, others)))[:most]
    return sorted(wanted, key=ranked.index)


def average(runs: pd.DataFrame, keys: list[str], column: str) -> pd.DataFrame:
    """Return mean and 95 % interval of a column for each group of runs, NaN left out."""
    known = runs.dropna(subset=column)
    groups = {key: own[column].to_numpy(np.float64) for key, own in known.groupby(keys, sort=True)}
    rows: list[dict[str, Any]] = [
        {**dict(zip(keys, key, strict=True)), "seeds": len(values), "mean": values.mean(),
         "low": ends.low, "high": ends.high}
        for (key, values), ends in zip(
            groups.items(), mean_intervals([*groups.values()]), strict=True
        )
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=[*keys, "seeds", "mean", "low", "high"])


def average_curves(curves: pd.DataFrame, score: str) -> pd.DataFrame:
    """Return mean and 95 % interval of a score per size, series and iteration.

    The mean is NaN unless all seeds of the series have a value; else it would be over different
    seeds at each iteration.
    """
    keys, numbers = [*BY_SIZE, *SERIES], ["x", "seeds", "mean", "low", "high"]
    groups = sorted(curves.groupby(keys).indices.items())
    if not groups:
        return pd.DataFrame(columns=[*keys, *numbers])
    seed, iteration, scored = (curves[name].to_numpy() for name in ("seed", "iteration", score))
    parts = []
    for _, rows in groups:  # by NumPy: there are thousands
        (seeds, s), (steps, t) = (
            np.unique(column[rows], return_inverse=True) for column in (seed, iteration)
        )
        values = np.full((len(seeds), len(steps)), np.nan)  # (S, T)
        values[s, t] = scored[rows]
        counts = np.full(len(steps), len(seeds))
        parts.append((steps.astype(float), counts, values.mean(axis=0), *mean_band(values)))
    named = pd.DataFrame([key for key, _ in groups], columns=keys)
    points = named.loc[named.index.repeat([len(part[0]) for part in parts])].reset_index(drop=True)
    columns = map(np.concatenate, zip(*parts, strict=True))
    return points.assign(**dict(zip(numbers, columns, strict=True)))


def mark_lacking(data: ReportData, points: pd.DataFrame) -> pd.DataFrame:
    """Add `series`, and whether its mean is `lacking` seeds that were run or most methods have."""
    scores = data.scores
    short = scores[scores[LOST].sum(axis=1) > 0]
    known = set(short[[*BY_SIZE, *SERIES]].itertuples(index=False, name=None))
    keys = points[[*BY_SIZE, *SERIES]].itertuples(index=False, name=None)
    return points.assign(series=name_series(points), lacking=[key in known for key in keys])


def describe_lines(count: int, *, long: bool = False) -> str:
    """Explain the bands or bars of so many series."""
    if count <= MOST_BANDS:
        return "Bands are 95\u00a0% intervals of the mean."
    if long:
        return "Bars at the ends are 95\u00a0% intervals of the last mean."
    return "Bars are 95\u00a0% intervals of the mean; series are shifted sideways."


def describe_sample(
    data: ReportData, points: pd.DataFrame, styles: Mapping[str, Style], per: str = "method and d"
) -> list[str]:
    """Explain how many seeds were averaged or lost, and the signs and grey lines."""
    parts = [count_seeds(points["seeds"], per)] if len(points) else []
    if "lacking" in points and points["lacking"].any():
        keys = [*BY_SIZE, *SERIES]
        lost = data.scores.merge(points[keys].drop_duplicates(), on=keys)[LOST].sum()
        counts = ", ".join(f"{count} {name}" for name, count in lost.items() if count)
        parts.append(f"Hollow markers lack some seeds ({counts}).")
    grey = sum(style.color == MUTED for style in styles.values())
    if grey:
        parts.append(f"{grey} further series {'is' if grey == 1 else 'are'} grey.")
    return parts + [f"{note}." for note in explain_signs(styles.values())]


def count_seeds(counts: Iterable[int], per: str) -> str:
    """Return the sample size in a sentence, with a warning if it is small."""
    known = [int(count) for count in counts if count > 0]
    if not known:
        return "No seeds."
    fewest, most = min(known), max(known)
    seeds = f"{most}" if fewest == most else f"{fewest} to {most}"
    small = ", a small sample" if fewest < FEW else ""
    return f"{seeds} {'seed' if fewest == most == 1 else 'seeds'} per {per}{small}."

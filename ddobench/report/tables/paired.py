"""Differences on the same seeds: variants against the default, and method against method."""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from ddobench.report.tables.formatting import (
    DASH,
    INTERVAL_RULE,
    Column,
    Group,
    Row,
    Table,
    format_change,
    format_digits,
    format_p,
    format_percent,
    name_runs,
    number_column,
    row_stem,
    word_column,
)
from ddobench.report.tables.select import BY_N, BY_SIZE, BY_TASK, SERIES, plainest_variants
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import HEADLINE, contrasted_scores, find_score
from ddobench.stats.samples import (
    FEW,
    Difference,
    Sample,
    holm,
    mean_interval,
    paired_differences,
    smallest_p,
)

CHANGE = [
    *("pairs", "difference", "difference_low", "difference_high", "difference_interval"),
    *("p", "p_holm", "improvement"),
]
MOST = 6  # methods compared in all pairs; of more, the leader is compared with each
_ESTIMATE = ["seeds", "mean", "low", "high", "by_seed"]
_CONTROLS = [*BY_SIZE, *SERIES, "label", "reference", "score", *_ESTIMATE, *CHANGE]
_SIDES = ["first", "first_variant", "first_label", "second", "second_variant", "second_label"]
_PAIRS = [*BY_SIZE, *_SIDES, "score", "lost", *CHANGE]


def paired_changes(asked: Sequence[tuple[ArrayLike, ArrayLike, str]]) -> list[dict[str, Any]]:
    """Compare two samples of a score, given the score's name; i-th entries have the same seed.

    NaN marks a missing value. `improvement` is the share of pairs where the first is better, ties
    counted half.
    """
    whole = []
    for first, second, _ in asked:
        a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
        both = np.isfinite(a) & np.isfinite(b)
        whole.append((a[both], b[both]))
    found = iter(paired_differences([pair for pair in whole if len(pair[0])]))
    return [
        _describe(next(found), score) if len(pair[0]) else {"pairs": 0}
        for pair, (_, _, score) in zip(whole, asked, strict=True)
    ]


def _describe(found: Difference, score: str) -> dict[str, Any]:
    less_is_better = find_score(score).better == "lower"
    return {
        "pairs": found.pairs,
        "difference": found.mean,
        "difference_low": found.interval.low,
        "difference_high": found.interval.high,
        "difference_interval": found.interval.kind,
        "p": found.p,
        "improvement": 1 - found.improvement if less_is_better else found.improvement,
    }


def adjust_families(table: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Add p values adjusted after Holm; comparisons with the same keys are one family."""
    p = table["p"].to_numpy(dtype=float)
    adjusted = np.full(len(table), np.nan)
    for members in table.groupby(keys).indices.values():
        tested = members[np.isfinite(p[members])]
        if len(tested):
            adjusted[tested] = holm(p[tested])
    return table.assign(p_holm=adjusted)


def explain_few_pairs(most: int, compared: int) -> str:
    """Return a sentence on the smallest possible p, "" where there are many pairs."""
    if not compared or most >= FEW:
        return ""
    least = smallest_p(most)
    text = f" With {most} pairs the smallest possible p is {format_p(least)}"
    adjusted = f", and {format_p(min(1.0, least * compared))} after adjustment"
    return f"{text}{adjusted if compared > 1 else ''}."


def control_table(
    runs: pd.DataFrame, curves: pd.DataFrame, styles: Mapping[Key, Style]
) -> pd.DataFrame:
    """Return one row per size, variant and score, for methods that iterate and have variants.

    Differences are to the method's default, on the seeds that both have. All variants of a size are
    one family of comparisons for each score.
    """
    climbing = curves.loc[curves["iteration"] > 0, BY_N].drop_duplicates()
    used = [*BY_SIZE, *SERIES, "seed", *contrasted_scores()]  # copies of all would take longest
    runs = runs.loc[runs["status"] == "ok", [*dict.fromkeys(used)]].merge(climbing, on=BY_N)
    rows: list[dict[Any, Any]] = []
    for _, method in runs.groupby([*BY_SIZE, "method"], sort=True):
        if len(set(method["method_variant"])) > 1:
            rows += _compare_variants(method, styles)
    return adjust_families(pd.DataFrame(rows, columns=_CONTROLS), [*BY_SIZE, "score"])


def _compare_variants(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> list[dict[Any, Any]]:
    """Compare the variants of one method at one size, its default first."""
    variants = sorted(runs["method_variant"].unique(), key=lambda name: (len(name) > 0, name))
    reference = min(variants, key=lambda name: (len(name), name))
    variants.sort(key=lambda name: name != reference)
    default = runs[runs["method_variant"] == reference].set_index("seed")
    rows = []
    for variant in variants:
        own = runs[runs["method_variant"] == variant]
        named = {name: own[name].iloc[0] for name in [*BY_SIZE, *SERIES]}
        own = own.set_index("seed")
        named["label"] = styles[named["task"], named["method"], variant].label
        for score in contrasted_scores():
            row = named | {"reference": reference, "score": score} | _estimate(own[score])
            if variant != reference:
                first, second = own[score].align(default[score])
                row |= paired_changes([(first, second, score)])[0]
            rows.append(row)
    return rows


def _estimate(scores: "pd.Series[float]") -> dict[str, Any]:  # by seed
    values = scores.sort_index().dropna()
    if values.empty:
        return {"seeds": 0, "by_seed": ""}
    interval = mean_interval(values)
    return {"seeds": len(values), "mean": values.mean(), "low": interval.low,
            "high": interval.high, "by_seed": " ".join(map(repr, values.tolist()))}  # fmt: skip


def explain_controls(table: pd.DataFrame) -> str:
    """Explain the differences and their tests."""
    pairs = table["pairs"].dropna()
    compared = int(table.groupby([*BY_SIZE, "score"])["p"].count().max())
    return (
        "Differences are to the first variant of the same method, paired by seed, with 95\u00a0% "
        f"intervals ({INTERVAL_RULE}). p is Wilcoxon's signed-rank test, adjusted after Holm for "
        f"the {compared} comparison{'' if compared == 1 else 's'} of a score. Differences of "
        "invalid shares are in percentage points."
        f"{explain_few_pairs(int(pairs.max()), compared)}"
    )


def describe_controls(table: pd.DataFrame) -> Table:
    """Describe the variants of methods against their defaults, one group per size."""
    columns = [
        word_column("variant", "label"),
        *(
            _score_column(heading, score, over, key, text)
            for score, over in contrasted_scores().items()
            for heading, key, text in (
                ("mean", "mean", _format_mean), ("difference", "difference", format_change),
                ("p (Holm)", "p_holm", lambda row: format_p(row["p_holm"])),
            )
        ),
        number_column("pairs", "pairs", lambda n: f"{n:.0f}" if np.isfinite(n) else DASH),
    ]  # fmt: skip
    groups = []
    for _, size in table.groupby(BY_SIZE, sort=True):
        first = size.iloc[0]
        rows = [
            {"label": own["label"].iloc[0], "pairs": own["pairs"].max()}
            | {row["score"]: row for row in own.to_dict("records")}
            for _, own in size.groupby(SERIES, sort=False)
        ]
        groups.append(Group(name_runs(first, "n", "d"), row_stem("controls", first, "d", "n"),
                            rows, columns, explain_controls(size), str(first["task"])))  # fmt: skip
    return Table("controls", "Controls", "", table, groups)


def _score_column(
    heading: str, score: str, over: str, key: str, text: Callable[[Row], str]
) -> Column:
    """Return a column about one score; a row of the table has a row of the frame for each score."""
    return Column(heading, lambda row: text(row[score]), lambda row: row[score][key], over=over)


def _format_mean(row: Row) -> str:
    fraction = find_score(row["score"]).unit.fraction
    return format_percent(row["mean"]) if fraction else format_digits(row["mean"], 2)


def pair_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per size, pair of methods and score.

    Each method has its plainest variant; the one with the higher mean headline comes first. `lost`
    counts the seeds of the size that one of the two lacks. The pairs of a size are one family of
    comparisons for each score.
    """
    plain = plainest_variants(runs)
    rows: list[dict[str, Any]] = []
    asked: list[tuple[Sample, Sample, str]] = []
    columns = {str(name): plain[name].to_numpy() for name in plain}
    scores = contrasted_scores()
    for places in plain.groupby(BY_SIZE, sort=True).indices.values():
        size = {name: column[places] for name, column in columns.items()}
        named = {name: size[name][0] for name in BY_SIZE}
        keys = set(zip(size["task"], size["method"], size["method_variant"], strict=True))
        sides = {key[1]: [key[1], key[2], styles[key].label] for key in keys}
        tables = _by_method(size)
        for pair in _choose_pairs(tables[HEADLINE.name]):
            both = dict(zip(_SIDES, sides[pair[0]] + sides[pair[1]], strict=True))
            rows += [named | both | {"score": score} for score in scores]
            asked += [(tables[score][pair[0]], tables[score][pair[1]], score) for score in scores]
    rows = [
        row | change | {"lost": len(first) - change["pairs"]}
        for row, change, (first, _, _) in zip(rows, paired_changes(asked), asked, strict=True)
    ]
    return adjust_families(pd.DataFrame(rows, columns=_PAIRS), [*BY_SIZE, "score"])


def _by_method(size: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Sample]]:
    """Return each score of each method, one value per seed of the size, NaN where it has none."""
    seeds, order = np.unique(size["seed"], return_inverse=True)
    finished, methods = size["status"] == "ok", size["method"]
    tables: dict[str, dict[str, Sample]] = {}
    for score in contrasted_scores():
        values = size[score].astype(np.float64)
        tables[score] = {}
        for method in sorted(set(methods)):
            own = finished & (methods == method)
            tables[score][method] = np.full(len(seeds), np.nan)
            tables[score][method][order[own]] = values[own]
    return tables


def _choose_pairs(values: Mapping[str, Sample]) -> list[tuple[str, str]]:
    """Pair the methods with a score, the higher mean first: all pairs, or the leader with each."""
    means = {name: round(float(np.nanmean(own)), 9) for name, own in values.items()
             if np.isfinite(own).any()}  # fmt: skip
    order = sorted(means, key=lambda name: -means[name])
    if len(order) <= MOST:
        return list(combinations(order, 2))
    return [(order[0], name) for name in order[1:]]


def describe_pairs(table: pd.DataFrame) -> Table:
    """Describe method against method, one group per task, variant and budget."""
    columns = [
        number_column("n", "n"),
        number_column("d", "d"),
        word_column("first", "first_label"),
        word_column("second", "second_label"),
        *(
            _score_column(heading, score, over, key, text)
            for score, over in contrasted_scores().items()
            for heading, key, text in (
                ("difference", "difference", format_change),
                ("p (Holm)", "p_holm", lambda row: format_p(row["p_holm"])),
                ("P(better)", "improvement", lambda row: format_percent(row["improvement"])),
            )
        ),
        Column("pairs", _format_pairs, lambda row: row["pairs"]),
    ]  # fmt: skip
    groups = []
    for _, study in table.groupby(BY_TASK, sort=True):
        first = study.iloc[0]
        rows: dict[tuple[Any, ...], Row] = {}
        for row in study.to_dict("records"):
            pair = rows.setdefault(
                tuple(row[key] for key in [*BY_SIZE, "first", "second"]), {**row}
            )
            pair[row["score"]] = row
        groups.append(Group(name_runs(first), row_stem("pairs", first), [*rows.values()], columns,
                            explain_pairs(study), str(first["task"])))  # fmt: skip
    return Table("pairs", "Method against method", "", table, groups)


def explain_pairs(table: pd.DataFrame) -> str:
    """Explain the differences of one task, variant and budget."""
    compared = int(table.groupby([*BY_SIZE, "score"])["p"].count().max())
    lost = int(table.loc[table["score"] == HEADLINE.name, "lost"].sum())
    text = (
        "Mean difference, first minus second, over common seeds, with its 95\u00a0% interval "
        f"({INTERVAL_RULE}). p is Wilcoxon's signed-rank test, adjusted after Holm for the "
        "comparisons at a size. P(better) is the share of seeds where the first is better, ties "
        "counted half. Differences of invalid shares are in percentage points."
        f"{explain_few_pairs(int(table['pairs'].max()), compared)}"
    )
    return f"{text} Over all rows, {lost} seeds have no pair." if lost else text


def _format_pairs(row: Row) -> str:
    return f"{row['pairs']}" + (f", {row['lost']} lost" if row["lost"] else "")

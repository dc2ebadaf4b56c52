"""The tables of the field: percentiles of 128 designs, and our numbers beside published ones.

Papers on offline optimisation report the best and the median of 128 designs, some also the 80th
percentile, as mean and standard deviation over runs, normalised so that 0 is the least value of all
data and 1 the largest, and rank the methods by them. Here 0 is the least visible value and 1 the
optimum, which every task with an optimum has. On TFBind8 these are the least and the largest value
of all data: the rows that are hidden there are the best ones, and every sequence was measured.

What others have published is in `conf/published_numbers.yaml`, each number with its source.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
import yaml

from ddobench.report.tables.formatting import (
    DASH,
    MINUS,
    Column,
    Group,
    Row,
    Table,
    file_stem,
    format_digits,
    format_number,
    number_column,
    word_column,
)
from ddobench.report.tables.leaderboard import describe_scores
from ddobench.report.tables.select import BY_SIZE, SERIES, is_best_visible
from ddobench.report.tables.styles import Key, Style, paper_of
from ddobench.scores import BEST_VISIBLE, OPTIMUM, TOP_BEST, TOP_HIGH, TOP_MEDIAN, Score
from ddobench.seeds import parse_seeds

PACKAGED = "published_numbers.yaml"  # in ddobench.conf
NO_GAP = 0.03  # two labs with one protocol differ by as much on average
PERCENTILES: Mapping[str, Score] = {"100th": TOP_BEST, "80th": TOP_HIGH, "50th": TOP_MEDIAN}
LABS = ("authors", "ram", "root")
_BEST_LABEL = "D(best)"
_DIGITS = 3
_ROW = ["label", "method", "privileges"]  # what identifies a row of a table across tasks
_FIELD = [
    *(*BY_SIZE, *SERIES, "label", "privileges", "seeds", "lowest", "highest"),
    *(f"{name}_{part}" for name in PERCENTILES for part in ("mean", "sd")),
]
_PARITY = [
    *("task", "n", "name", "method", "method_variant", "paper", "doi", "seeds"),
    *("p100_mean", "p100_sd", *(f"p100_{lab}" for lab in LABS), "p100_difference"),
    *("p50_mean", "p50_sd", *(f"p50_{lab}" for lab in LABS), "p50_difference"),
    *("parity", "differs", "sources"),
]


def percentile_table(
    runs: pd.DataFrame, board: pd.DataFrame, styles: Mapping[Key, Style]
) -> pd.DataFrame:
    """Return the normalised percentiles of each method at the leading sizes of every task.

    The best visible design has a row of its own in place of the method that returns it. `lowest`
    and `highest` are the values that become 0 and 1, in the units of the task.
    """
    chosen = board.loc[board["lead"] > 0, [*BY_SIZE, *SERIES]]
    own = normalise_percentiles(runs[runs["status"] == "ok"].merge(chosen, on=[*BY_SIZE, *SERIES]))
    rows: list[dict[str, Any]] = []
    for key, size in own.groupby(BY_SIZE, sort=True):
        named = dict(zip(BY_SIZE, key, strict=True))
        seeds = size.drop_duplicates("seed")
        scale = {"lowest": seeds["y_min"].mean(), "highest": seeds["highest"].mean()}
        best = dict.fromkeys(PERCENTILES, seeds["best"])
        rows.append(named | scale | _summarise(best) | {
            "method": "", "method_variant": "", "label": _BEST_LABEL, "privileges": "",
            "seeds": len(seeds),
        })  # fmt: skip
        for (method, variant), series in size.groupby(SERIES, sort=True):
            if is_best_visible(str(method)):
                continue
            style = styles[str(named["task"]), str(method), str(variant)]
            found = _summarise({name: series[name] for name in PERCENTILES})
            rows.append(named | scale | found | {
                "method": method, "method_variant": variant,
                "label": style.label.removesuffix(f", {variant}"),
                "privileges": " ".join(style.privileges), "seeds": len(series),
            })  # fmt: skip
    return pd.DataFrame(rows, columns=_FIELD)


def normalise_percentiles(runs: pd.DataFrame) -> pd.DataFrame:
    """Add the percentiles, the best visible value and the largest one; no optimum, no row."""
    lowest = (runs["y_min"] - runs["y_mean"]) / runs["y_sd"]
    width = (runs[OPTIMUM.name] - lowest).where(lambda gap: gap > 0)
    scaled = {
        name: (runs[score.name] - lowest) / width
        for name, score in {**PERCENTILES, "best": BEST_VISIBLE}.items()
    }
    highest = runs["y_mean"] + runs["y_sd"] * runs[OPTIMUM.name]
    return runs.assign(**scaled, highest=highest)[width.notna()]


def _summarise(samples: Mapping[str, "pd.Series[float]"]) -> dict[str, float]:
    """Return mean and standard deviation of each percentile."""
    found = {}
    for name, values in samples.items():
        known = values.dropna()
        found[f"{name}_mean"] = float(known.mean()) if len(known) else np.nan
        found[f"{name}_sd"] = float(known.std()) if len(known) > 1 else np.nan
    return found


def describe_protocol(scores: pd.DataFrame, table: pd.DataFrame) -> Table:
    """Describe the percentiles across tasks, then all scores of other benchmarks by task."""
    groups = [
        group
        for budget, own in table.groupby("budget", sort=True)
        for name in PERCENTILES
        if own.loc[own["method"] != "", f"{name}_mean"].notna().any()
        for group in [_percentile_group(own, str(budget), name)]
    ]
    rest = describe_scores(scores, [], "protocol")
    note = (
        "The form of the field's own tables: a percentile of the 128 designs that a method ranks "
        "first, mean ± standard deviation over seeds, 0 the least visible value and 1 the optimum "
        "(on TFBind8 the least and the largest value of all data; the first two rows have these "
        "values, means over seeds). D(best) is the best visible "
        "design. Each method is in its plainest variant. Ranks are among the methods that have a "
        "number on every task of a table and use nothing but the visible rows. "
        f"By task: {rest.note}"
    )
    return Table("protocol", "Percentiles, as other papers report them", note, table,
                 [*groups, *rest.groups])  # fmt: skip


def _percentile_group(own: pd.DataFrame, budget: str, name: str) -> Group:
    sizes = [key for key, _ in own.groupby(BY_SIZE, sort=True)]
    cells = {
        (tuple(row[key] for key in _ROW), tuple(row[key] for key in BY_SIZE)): (
            row[f"{name}_mean"], row[f"{name}_sd"],
        )
        for row in own.to_dict("records")
    }  # fmt: skip
    keys = list(dict.fromkeys(key for key, _ in cells))
    found = {key: [cells.get((key, size), (np.nan, np.nan)) for size in sizes] for key in keys}
    ranks = _rank({key: [mean for mean, _ in line] for key, line in found.items()})
    rows: list[dict[str, Any]] = [
        {**dict(zip(_ROW, key, strict=True)), **ranks[key],
         **{f"{i}": cell for i, cell in enumerate(found[key])}}
        for key in keys
    ]  # fmt: skip
    rows.sort(key=lambda row: (row["method"] != "", np.nan_to_num(row["mean_rank"], nan=np.inf),
                               row["label"]))  # fmt: skip
    scales = own.drop_duplicates(BY_SIZE).sort_values(BY_SIZE)
    unranked = {"method": "", "mean_rank": np.nan, "median_rank": np.nan}
    rows[:0] = [
        {"label": label, **unranked, **{f"{i}": (x, np.nan) for i, x in enumerate(scales[column])}}
        for label, column in {"value at 0": "lowest", "value at 1": "highest"}.items()
    ]
    heads = [_name_size(dict(zip(BY_SIZE, size, strict=True))) for size in sizes]
    columns = [
        word_column("method", "label", link=lambda row: paper_of(row["method"]).link),
        *(_spread_column(head, str(i)) for i, head in enumerate(heads)),
        number_column("mean rank", "mean_rank", format_number),
        number_column("median rank", "median_rank", format_number),
    ]
    shown = "" if budget == "full" else budget
    title = f"{name} percentile" + (f", budget {shown}" if shown else "")
    return Group(title, file_stem("protocol", name, shown), rows, columns)


def _rank(means: Mapping[Any, Sequence[float]]) -> dict[Any, dict[str, float]]:
    """Return mean and median rank of each method that has a number everywhere; 1 is best.

    Methods that use more than the visible table have none.
    """
    complete = {
        key: line
        for key, line in means.items()
        for _, method, privileges in [key]
        if method and not privileges and np.isfinite(line).all()
    }
    table = pd.DataFrame([*complete.values()]).round(9)
    ranks = table.rank(ascending=False, method="average").to_numpy()  # a row for each method
    none = {"mean_rank": np.nan, "median_rank": np.nan}
    found = {
        key: {"mean_rank": float(line.mean()), "median_rank": float(np.median(line))}
        for key, line in zip(complete, ranks, strict=True)
    }
    return {key: found.get(key, none) for key in means}


def _name_size(row: Row) -> str:
    sizes = f"n = {row['n']}, d = {row['d']}"
    return ", ".join(filter(None, [str(row["task"]), str(row["task_variant"]), sizes]))


def _spread_column(heading: str, key: str, over: str = "") -> Column:
    """Return a column of means with standard deviations."""
    return Column(heading, lambda row: format_spread(*row[key]), lambda row: row[key][0], over=over)


def format_spread(mean: float, sd: float) -> str:
    """Format a mean with its standard deviation, if there is one."""
    text = format_digits(mean, _DIGITS)
    return text if DASH in (text, format_digits(sd, _DIGITS)) else (
        f"{text} ± {format_digits(sd, _DIGITS)}"
    )  # fmt: skip


@cache
def read_published() -> Mapping[str, Any]:
    """Return the numbers that others have published, with their sources."""
    text = resources.files("ddobench.conf").joinpath(PACKAGED).read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def parity_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return our numbers beside the published ones, one row for each that we have runs of."""
    sources = read_published()["sources"]
    finished = normalise_percentiles(runs[runs["status"] == "ok"])
    rows: list[dict[str, Any]] = []
    for task in read_published()["tasks"]:
        size = {"task_variant": "", **{name: task[name] for name in ("task", "n", "budget")}}
        here = finished[(finished[[*size]] == pd.Series(size)).all(axis=1)]
        here = here[here["seed"].isin([*parse_seeds(task["seeds"])])]
        for entry in task["rows"]:
            variant = entry.get("variant", "")
            own = here[(here["method"] == entry["method"]) & (here["method_variant"] == variant)]
            if own.empty:
                continue
            best = _compare(own["100th"], entry, "p100")
            middle = _compare(own["50th"], entry, "p50")
            used = [lab for lab in LABS if lab in entry]
            paper = paper_of(entry["method"])
            rows.append(
                {"task": task["task"], "n": task["n"], "name": entry["name"],
                 "method": entry["method"], "method_variant": variant, "paper": paper.title,
                 "doi": paper.doi, "seeds": len(own), **best, **middle,
                 "parity": f"best {_judge(best['p100_difference'])}, "
                           f"median {_judge(middle['p50_difference'])}",
                 "differs": "; ".join(entry.get("differs", ())),
                 "sources": "; ".join(entry[lab].get("where") or sources[lab] for lab in used)}
            )  # fmt: skip
    return pd.DataFrame(rows, columns=_PARITY)


def _compare(values: "pd.Series[float]", entry: Mapping[str, Any], name: str) -> dict[str, float]:
    """Return our mean and deviation, each lab's number, and our difference to their mean."""
    ours = _summarise({name: values})
    theirs = {lab: float(entry.get(lab, {}).get(name, np.nan)) for lab in LABS}
    same = [number for lab, number in theirs.items()
            if np.isfinite(number) and entry[lab].get("comparable", True)]  # fmt: skip
    return {
        **ours,
        **{f"{name}_{lab}": number for lab, number in theirs.items()},
        f"{name}_difference": ours[f"{name}_mean"] - float(np.mean(same)) if same else np.nan,
    }


def _judge(difference: float) -> str:
    """Return whether our number is as good as those that were published."""
    if not np.isfinite(difference):
        return "not published"
    if abs(difference) <= NO_GAP:
        return "reached"
    return "above" if difference > 0 else "not reached"


def describe_parity(table: pd.DataFrame) -> Table:
    """Describe our numbers beside the published ones, one group per task."""
    published = read_published()
    note = (
        f"Best and median of 128 designs, normalised. {published['note']} A difference, ours minus "
        f"the mean of the published numbers, of at most {NO_GAP} counts as reached. Numbers in "
        "brackets were made under another protocol and do not count. Settings are those of the "
        "reference code, declared before the runs; what still differs is in the last column."
    )
    groups = [
        Group(str(task), file_stem("parity", str(task)), _parity_rows(own), _parity_columns())
        for task, own in table.groupby("task", sort=True)
    ]
    return Table("parity", "Our baselines beside their published numbers", note, table, groups)


def _parity_rows(own: pd.DataFrame) -> Sequence[dict[str, Any]]:
    entries = {
        (task["task"], entry["name"]): entry
        for task in read_published()["tasks"]
        for entry in task["rows"]
    }
    rows = own.to_dict("records")
    for row in rows:
        entry = entries[row["task"], row["name"]]
        row["apart"] = {lab for lab in LABS if not entry.get(lab, {}).get("comparable", True)}
        deviations = {lab: entry[lab]["sd"] for lab in LABS if "sd" in entry.get(lab, {})}
        row["published"] = {"p100": deviations, "p50": {}}
        for name in ("p100", "p50"):
            row[name] = (row[f"{name}_mean"], row[f"{name}_sd"])
    return [{str(key): value for key, value in row.items()} for row in rows]


def _parity_columns() -> list[Column]:
    labels = read_published()["labels"]
    best, middle = "100th percentile", "50th percentile"

    def lab_column(name: str, lab: str, over: str) -> Column:
        def text(row: Row) -> str:
            number = format_spread(row[f"{name}_{lab}"], row["published"][name].get(lab, np.nan))
            return f"({number})" if lab in row["apart"] and number != DASH else number

        return Column(labels[lab], text, lambda row: row[f"{name}_{lab}"], over=over)

    def difference(name: str, over: str) -> Column:
        key = f"{name}_difference"
        return Column("difference", lambda row: _format_signed(row[key]), lambda row: row[key],
                      over=over)  # fmt: skip

    return [
        word_column("method", "name"),
        Column(
            "paper",
            _format_paper,
            words=True,
            width=0.18,
            link=lambda row: paper_of(row["method"]).link,
        ),
        _spread_column("ours", "p100", best),
        *(lab_column("p100", lab, best) for lab in LABS),
        difference("p100", best),
        _spread_column("ours", "p50", middle),
        lab_column("p50", "authors", middle),
        lab_column("p50", "ram", middle),
        difference("p50", middle),
        word_column("parity", "parity"),
        word_column("settings that differ", "differs", width=0.3),
    ]


def _format_paper(row: Row) -> str:
    """Return the authors, with whom a paper on a card begins, and the DOI."""
    return f"{row['paper'].partition(',')[0]}, doi:{row['doi']}" if row["doi"] else DASH


def _format_signed(value: float) -> str:
    if not np.isfinite(value):
        return DASH
    return f"{'+' if value >= 0 else MINUS}{abs(value):.{_DIGITS}f}"

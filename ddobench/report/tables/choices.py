"""What methods that choose among candidates chose, and why, as their runs stored it."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.report.tables.styles import Key, Style
from ddobench.report.tables.table import (
    DASH,
    Column,
    Group,
    Table,
    format_number,
    name_runs,
    number_column,
    row_stem,
    word_column,
)
from ddobench.scores import HELD_OUT_ERROR

CHOOSER = [*BY_SIZE, *SERIES]  # the columns that tell tables of choices apart
EXPLANATION = (
    "For each seed the candidates were fitted to some of the visible rows and judged on others, "
    "which they had not seen: the best rows above a percentile of the visible values, or as many "
    "at random where the rule is heldout_error. They are judged by the correlation of ranks, "
    "predicted and visible, which decides unless select= names another rule, and by the squared "
    "error as a share of the variance of all visible values. Numbers are means over the seeds "
    "where a candidate was judged. What is chosen without having been judged stands in where no "
    "candidate is better than chance."
)
_JUDGED = ["candidate", "rank", "error", "reason", "chosen"]
_COLUMNS = [*CHOOSER, "label", "candidate", "chosen", "seeds", "judged", "rank", "error", "reason"]
Read = Callable[[str], Mapping[str, Any]]  # what a run tells, by its path


def read_judgements(runs: pd.DataFrame, read: Read) -> pd.DataFrame:
    """Return one row per finished run and candidate, for the methods that have candidates.

    It costs a look at the file of every run of these. Where the first run of a configuration
    has no candidates, no other run of it has.
    """
    rows: list[dict[Any, Any]] = []
    silent: set[str] = set()
    shared = [*CHOOSER, "digest", "seed"]
    finished = runs[runs["status"] == "ok"]
    for run in (finished if "path" in runs else finished.head(0)).to_dict("records"):
        if run["digest"] in silent or not isinstance(run["path"], str):
            continue
        told = read(run["path"])  # nothing of a file that is gone or torn
        if told and "candidates" not in told:
            silent.add(run["digest"])
        named = {name: run[name] for name in shared}
        rows += [named | judgement for judgement in _judgements(told)]
    return pd.DataFrame(rows, columns=[*shared, *_JUDGED])


def _judgements(told: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what a run tells of its candidates, and of what it chose if that is none of them."""
    listed = told.get("candidates")
    judged = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    for one in judged:
        yield {
            "candidate": str(one.get("candidate", "")),
            "rank": _number(one.get("held_out_top_rank")),
            "error": _number(one.get(HELD_OUT_ERROR.name)),
            "reason": str(one.get("reason") or ""),
            "chosen": one.get("chosen") is True,
        }
    if judged and "chosen" in told and not any(one.get("chosen") is True for one in judged):
        yield {"candidate": str(told["chosen"]), "reason": "", "chosen": True}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def choice_table(judgements: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per cell, method and candidate, in the order of the candidates."""
    rows: list[dict[Any, Any]] = []
    for key, own in judgements.groupby(CHOOSER, sort=True):
        named: dict[str, Any] = dict(zip(CHOOSER, key, strict=True))
        style = styles[named["task"], named["method"], named["method_variant"]]
        named |= {"label": style.label, "seeds": own["seed"].nunique()}
        for candidate, judged in own.groupby("candidate", sort=False):
            ranks, errors = (judged[name].astype(float).dropna() for name in ("rank", "error"))
            reasons = [reason for reason in judged["reason"] if reason]
            rows.append(named | {
                "candidate": candidate,
                "chosen": int(judged["chosen"].astype(bool).sum()),
                "judged": len(ranks),
                "rank": ranks.mean() if len(ranks) else float("nan"),
                "error": errors.mean() if len(errors) else float("nan"),
                "reason": max(reasons, key=reasons.count) if reasons else "",
            })  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def describe_choices(table: pd.DataFrame) -> Table:
    """Describe the choices, one group per size and method."""
    columns = [
        word_column("candidate", "candidate"),
        Column("chosen", lambda row: f"{row['chosen']} of {row['seeds']}",
               lambda row: row["chosen"]),
        number_column("rank correlation", "rank", format_number),
        number_column("error", "error", format_number),
        number_column("judged", "judged"),
        Column("why not judged", lambda row: row["reason"] or DASH, words=True),
    ]  # fmt: skip
    groups = []
    for _, own in table.groupby(CHOOSER, sort=True):
        first = own.iloc[0]
        method = f"{first['method']} {first['method_variant']}".strip()
        title = f"{first['label']} on {name_runs(first, 'n', 'd')}"
        groups.append(Group(title, row_stem("choices", first, "d", "n", method=method),
                            own.to_dict("records"), columns, task=str(first["task"])))  # fmt: skip
    return Table("choices", "What was chosen, and why", EXPLANATION, table, groups)

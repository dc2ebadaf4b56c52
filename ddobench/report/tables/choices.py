"""What methods that choose among candidates chose, and why, from their stored diagnostics."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from ddobench.report.tables.formatting import (
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
from ddobench.report.tables.select import BY_SIZE, SERIES
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import HELD_OUT_ERROR

_KEYS = [*BY_SIZE, *SERIES]
EXPLANATION = (
    "For each seed the candidates were fitted to some of the visible rows and judged on held-out "
    "ones: the rows above a percentile of the visible values, or as many random rows with the rule "
    "heldout_error. The rank correlation of predictions and visible values decides, unless select= "
    "names another rule. The error is the squared error as a share of the variance of all visible "
    "values. Numbers are means over the seeds where a candidate was judged. A fallback, which is "
    "not judged, is chosen where no candidate is better than chance."
)
_JUDGED = ["candidate", "rank", "error", "reason", "chosen"]
_COLUMNS = [*_KEYS, "label", "candidate", "chosen", "seeds", "judged", "rank", "error", "reason"]
Read = Callable[[str], Mapping[str, Any]]  # returns the diagnostics of a run, by its path


def read_judgements(runs: pd.DataFrame, read: Read) -> pd.DataFrame:
    """Return one row per finished run and candidate, for the methods that have candidates.

    This opens the file of every such run. If the first run of a configuration has no candidates,
    its other runs are skipped.
    """
    rows: list[dict[Any, Any]] = []
    skipped: set[str] = set()
    shared = [*_KEYS, "digest", "seed"]
    finished = runs[runs["status"] == "ok"]
    for run in (finished if "path" in runs else finished.head(0)).to_dict("records"):
        if run["digest"] in skipped or not isinstance(run["path"], str):
            continue
        diagnostics = read(run["path"])  # empty if the file is missing or damaged
        if diagnostics and "candidates" not in diagnostics:
            skipped.add(run["digest"])
        named = {name: run[name] for name in shared}
        rows += [named | judgement for judgement in _judgements(diagnostics)]
    return pd.DataFrame(rows, columns=[*shared, *_JUDGED])


def _judgements(diagnostics: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the candidates of a run, and its choice if that is not one of them."""
    listed = diagnostics.get("candidates")
    judged = [one for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    for one in judged:
        yield {
            "candidate": str(one.get("candidate", "")),
            "rank": _number(one.get("held_out_top_rank")),
            "error": _number(one.get(HELD_OUT_ERROR.name)),
            "reason": str(one.get("reason") or ""),
            "chosen": one.get("chosen") is True,
        }
    if judged and "chosen" in diagnostics and not any(one.get("chosen") is True for one in judged):
        yield {"candidate": str(diagnostics["chosen"]), "reason": "", "chosen": True}


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def choice_table(judgements: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per size, method and candidate, in the order of the candidates."""
    rows: list[dict[Any, Any]] = []
    for key, own in judgements.groupby(_KEYS, sort=True):
        named: dict[str, Any] = dict(zip(_KEYS, key, strict=True))
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
    for _, own in table.groupby(_KEYS, sort=True):
        first = own.iloc[0]
        method = f"{first['method']} {first['method_variant']}".strip()
        title = f"{first['label']} on {name_runs(first, 'n', 'd')}"
        groups.append(Group(title, row_stem("choices", first, "d", "n", method=method),
                            own.to_dict("records"), columns, task=str(first["task"])))  # fmt: skip
    return Table("choices", "What was chosen, and why", EXPLANATION, table, groups)

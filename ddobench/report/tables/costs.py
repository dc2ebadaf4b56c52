"""What a seed of every method costs: CPU seconds to fit and propose, method by method and size."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.formats import DASH, escape_markdown, markdown_table, name_runs
from ddobench.report.tables.styles import Key, Style
from ddobench.scores import SECONDS_CPU

_COLUMNS = [*CELL, *SERIES, "label", "mean", "least", "most", "seeds"]
EXPLANATION = (
    "Mean CPU seconds to fit and propose, per seed. Seeds of a batch share its seconds equally, "
    "and a latent that an earlier run of the same task and seed has trained costs nothing again. "
    "Machines differ: compare methods, not digits. The CSV also has the range over seeds."
)


def cpu_table(runs: pd.DataFrame, styles: Mapping[Key, Style]) -> pd.DataFrame:
    """Return one row per cell, method and variant whose runs say what they cost."""
    timed = runs[(runs["status"] == "ok") & runs[SECONDS_CPU.name].notna()]
    rows: list[dict[str, Any]] = []
    for key, own in timed.groupby([*CELL, *SERIES], sort=True):
        named: dict[str, Any] = dict(zip([*CELL, *SERIES], key, strict=True))
        label = styles[named["task"], named["method"], named["method_variant"]].name
        seconds = own[SECONDS_CPU.name]
        rows.append(named | {"label": label, "mean": seconds.mean(), "least": seconds.min(),
                             "most": seconds.max(), "seeds": len(own)})  # fmt: skip
    return pd.DataFrame(rows, columns=_COLUMNS)


def cpu_markdown(table: pd.DataFrame) -> str:
    """Spell the costs for people: a table per task, a column per size, the cheapest first."""
    parts = ["# CPU seconds\n", f"{EXPLANATION}\n"]
    for _, study in table.groupby(["task", "task_variant", "budget"], sort=True):
        sizes = sorted({(int(d), int(n)) for d, n in zip(study["d"], study["n"], strict=True)})
        parts.append(f"## {escape_markdown(name_runs(study.iloc[0]))}\n")
        dearest = study.groupby("label")["mean"].max().sort_values(kind="stable")
        lines = []
        for label in dearest.index:
            own = study[study["label"] == label].set_index(["d", "n"])["mean"]
            lines.append([str(label), *(_format(own.get(size)) for size in sizes)])
        header = ["method", *(f"d = {d}, n = {n}" for d, n in sizes)]
        parts.append(markdown_table(header, lines, words=[0]))
    return "\n".join(parts)


def _format(seconds: float | None) -> str:
    """Spell seconds with as many digits as another run would repeat."""
    if seconds is None:
        return DASH
    return "< 0.1" if seconds < 0.1 else f"{seconds:.1f}" if seconds < 10 else f"{seconds:.0f}"

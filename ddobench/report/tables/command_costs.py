"""What the runs of a report cost, by the command that made them."""

from typing import Any

import pandas as pd

from ddobench.report.tables.formats import escape_markdown, format_number, markdown_table
from ddobench.scores import SECONDS_CPU

HEADER = ["command", "runs", "CPU hours"]
_HOUR = 3600.0


def cost_table(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per command, the costliest first; runs that do not tell count as nothing."""
    rows: list[dict[str, Any]] = [
        {
            "command": command,
            "runs": len(own),
            "cpu_hours": own[SECONDS_CPU.name].sum() / _HOUR,
            "untold": int(own[SECONDS_CPU.name].isna().sum()),
        }
        for command, own in runs.groupby("command", sort=True)
    ]
    table = pd.DataFrame(rows, columns=["command", "runs", "cpu_hours", "untold"])
    return table.sort_values(
        ["cpu_hours", "command"], ascending=[False, True], kind="stable", ignore_index=True
    )


def describe_costs(table: pd.DataFrame) -> str:
    """Say what all runs cost together."""
    runs, hours, untold = (table[name].sum() for name in ("runs", "cpu_hours", "untold"))
    text = f"{runs} runs took {format_number(hours)} CPU hours to fit and propose"
    return f"{text}, without {untold} that recorded no cost." if untold else f"{text}."


def cost_markdown(table: pd.DataFrame) -> str:
    """Spell the costs for people."""
    lines = [
        [row["command"] or "not recorded", str(row["runs"]), format_number(row["cpu_hours"])]
        for row in table.to_dict("records")
    ]
    return "\n".join(
        ["# Costs\n", f"{escape_markdown(describe_costs(table))}\n",
         markdown_table(HEADER, lines, words=[0])]
    )  # fmt: skip

"""The best visible design, which every method must beat: what it is worth, and how it is drawn."""

import pandas as pd

from ddobench.report.figures.drawing import FAINT
from ddobench.report.tables.columns import CELL
from ddobench.report.tables.normalised import normalise
from ddobench.report.tables.styles import Style

BEST_VISIBLE = Style("best visible design", FAINT, "", (1.5, 1.5), (), "best visible design")
DOTTED_NOTE = "Dotted: the best visible design, which is doing nothing."


def means_of_nothing(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what the best visible design has on average in each cell, each table counted once.

    The columns are `nothing_value` in sd, `nothing_share` of the optimum, and `nothing_regret` in
    the unit of the task.
    """
    tables = runs[runs["status"] == "ok"].drop_duplicates([*CELL, "seed"])
    scale = tables["y_sd"].where(tables["regret_unit"] == "raw", 1.0)
    numbers = tables[CELL].assign(
        nothing_value=tables["best_visible"],
        nothing_share=normalise(tables, "best_visible"),
        nothing_regret=(tables["optimum"] - tables["best_visible"]) * scale,
    )
    return numbers.groupby(CELL, as_index=False).mean()

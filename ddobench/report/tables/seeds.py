"""How many seeds a method should have, by what the others of its cell have."""

import pandas as pd

from ddobench.report.tables.columns import CELL


def expected_seeds(runs: pd.DataFrame) -> "pd.Series[int]":
    """Return, of every cell, how many seeds at least half of its methods have tried.

    What a few methods have beyond these (a control on fresh seeds, say) the others do not lack.
    """
    tried = runs.drop_duplicates([*CELL, "method", "seed"])
    methods = tried.groupby(CELL)["method"].nunique()
    having = tried.groupby([*CELL, "seed"])["method"].size()
    usual = having[2 * having >= methods.reindex(having.index.droplevel("seed")).to_numpy()]
    found = usual.groupby(CELL).size().reindex(methods.index, fill_value=0)
    return found.rename("expected")

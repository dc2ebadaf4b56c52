"""How many seeds a method should have, by what the others of its cell have."""

import pandas as pd

from ddobench.report.tables.columns import CELL


def expected_seeds(runs: pd.DataFrame) -> "pd.Series[int]":
    """Return, of every cell, how many seeds at least half of its methods have tried.

    What a few methods have beyond these (a control on fresh seeds, say) the others do not lack.
    """
    tried = runs[[*CELL, "method", "seed"]].drop_duplicates()
    methods = tried.groupby(CELL)["method"].transform("nunique")
    having = tried.groupby([*CELL, "seed"])["method"].transform("size")
    usual = tried["seed"].where(2 * having >= methods)  # NaN, which is not counted, elsewhere
    return usual.groupby([tried[name] for name in CELL]).nunique().rename("expected")

"""The score of a run that tasks can share: its headline value as a share of the optimum.

0 is the mean of the visible values and 1 the optimum. The gain over the best visible design would
be the other choice, but it divides by nothing where the best design is already visible, as on small
problems.
"""

import numpy as np
import pandas as pd

from ddobench.report.tables.columns import CELL
from ddobench.report.tables.lineups import SCORE
from ddobench.stats.samples import Sample

_DIGITS = 9  # what differs from the optimum by rounding only has reached it


def normalise(runs: pd.DataFrame, column: str = SCORE) -> "pd.Series[float]":
    """Return a value of every run as a share of the optimum, NaN where that is unknown."""
    return (runs[column] / runs["optimum"]).where(runs["optimum"] > 0).round(_DIGITS)


def strata_of(runs: pd.DataFrame, column: str = SCORE) -> list[Sample]:
    """Return the normalised scores of each cell, as far as they are known."""
    shares = normalise(runs, column).groupby([runs[name] for name in CELL], sort=True)
    cells = [np.asarray(own.dropna(), dtype=np.float64) for _, own in shares]
    return [cell for cell in cells if cell.size]

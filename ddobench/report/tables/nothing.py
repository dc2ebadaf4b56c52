"""Every method against doing nothing, paired by seed.

To do nothing is to propose the best visible design. On noisy values that is not worth what it
seems: so the runs of the method that does it are taken where a cell has them, and what the best
visible design seems to be worth only where it has none.
"""

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import pandas as pd

from ddobench.report.tables.columns import CELL, SERIES
from ddobench.report.tables.looks import NOTHING, role_of
from ddobench.scores import BEST_VISIBLE, HEADLINE
from ddobench.stats.samples import mean_intervals

GAIN = ("gain_mean", "gain_low", "gain_high", "gain_interval", "gain_pairs")
Standing = Literal["above", "below", "open", ""]  # where an interval lies; "": there is none


def does_nothing(methods: Iterable[str]) -> bool:
    """Tell whether one of these methods hands back the best visible design, by its card."""
    return any(role_of(method) == NOTHING for method in methods)


def find_gains(runs: pd.DataFrame) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return how far the value of each series is above doing nothing on the same seeds.

    By cell and series, as far as they have a pair; all zero for doing nothing itself.
    """
    scored = runs[(runs["status"] == "ok") & runs[HEADLINE.name].notna()]
    changes = (scored[HEADLINE.name] - nothing_values(scored)).dropna()
    keys = [scored.loc[changes.index, name] for name in [*CELL, *SERIES]]
    samples = {key: own.to_numpy(np.float64) for key, own in changes.groupby(keys)}
    return {
        key: dict(zip(GAIN, (sample.mean(), found.low, found.high, found.kind, sample.size),
                      strict=True))
        for (key, sample), found in zip(
            samples.items(), mean_intervals([*samples.values()]), strict=True
        )
    }  # fmt: skip


def nothing_values(runs: pd.DataFrame) -> "pd.Series[float]":
    """Return what doing nothing is worth to each of these runs, by its cell and seed."""
    idle = runs[(runs["method"].map(role_of) == NOTHING) & (runs["status"] == "ok")]
    idle = idle[idle[HEADLINE.name].notna()].drop_duplicates([*CELL, "seed"])
    keys = [*CELL, "seed"]
    known = idle.set_index(keys)[HEADLINE.name]
    places = pd.MultiIndex.from_frame(runs[keys])
    found = pd.Series(known.reindex(places).to_numpy(), index=runs.index)
    return found.where(found.notna(), runs[BEST_VISIBLE.name])


def standing_of(low: float, high: float) -> Standing:
    """Say where the interval of a gain lies."""
    if not (np.isfinite(low) and np.isfinite(high)):
        return ""
    return "above" if low > 0 else "below" if high < 0 else "open"

"""Definitions that tables and figures share, each in one place.

How runs are grouped, which runs and seeds count, the value of the best visible design, and the
share of the optimum.
"""

import numpy as np
import pandas as pd

from ddobench.report.tables.styles import BEST_VISIBLE_ROLE, role_of
from ddobench.scores import BEST_VISIBLE, HEADLINE
from ddobench.stats.samples import Sample

BY_TASK = ["task", "task_variant", "budget"]  # all sizes of a task
BY_N = ["task", "task_variant", "n", "budget"]  # one figure against dimension
BY_D = ["task", "task_variant", "d", "budget"]  # one figure against visible rows
BY_SIZE = [*BY_N, "d"]  # one size of a task
SERIES = ["method", "method_variant"]  # one curve
LOST = ["declined", "failed", "missing", "unscored"]  # seeds that a mean lacks, by reason
_DIGITS = 9  # a value that differs from the optimum only by rounding equals it


def scored_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the finished runs with a headline value."""
    return runs[(runs["status"] == "ok") & runs[HEADLINE.name].notna()]


def plainest_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep one variant of each method at each size: its default, or the one nearest to it."""
    variants = runs[[*BY_SIZE, *SERIES]].drop_duplicates()
    variants = variants.assign(length=variants["method_variant"].str.len())
    variants = variants.sort_values(["length", "method_variant"])
    chosen = variants.drop_duplicates([*BY_SIZE, "method"])[[*BY_SIZE, *SERIES]]
    return runs.merge(chosen, on=[*BY_SIZE, *SERIES])


def usual_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the seeds of each size that at least half of its methods have run.

    Seeds that only a few methods have, such as those of a control, do not count as missing.
    """
    tried = runs[[*BY_SIZE, "method", "seed"]].drop_duplicates()
    methods = tried.groupby(BY_SIZE)["method"].transform("nunique")
    having = tried.groupby([*BY_SIZE, "seed"])["method"].transform("size")
    return tried.loc[2 * having >= methods, [*BY_SIZE, "seed"]].drop_duplicates()


def expected_seeds(runs: pd.DataFrame) -> "pd.Series[int]":
    """Return how many usual seeds each size has."""
    counts = usual_seeds(runs).groupby(BY_SIZE).size()
    sizes = pd.MultiIndex.from_frame(runs[BY_SIZE].drop_duplicates())
    return counts.reindex(sizes, fill_value=0).rename("expected").astype(int)


def common_seeds(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep, at each size, the seeds on which its series can be compared.

    These are the seeds shared by all series that have at least half of the usual seeds. A series
    with fewer keeps those it has; one with none of them keeps all its seeds.
    """
    keys = [*BY_SIZE, *SERIES]
    seeds = runs[[*keys, "seed"]].drop_duplicates()
    usual = seeds.merge(usual_seeds(runs), on=[*BY_SIZE, "seed"])
    counts = usual.groupby(keys)["seed"].transform("size")
    needed = usual.groupby(BY_SIZE)["seed"].transform("nunique")
    whole = usual[2 * counts >= needed]
    having = whole.groupby([*BY_SIZE, "seed"])["method"].transform("size")
    series = whole[keys].drop_duplicates().groupby(BY_SIZE).size().rename("series").reset_index()
    shared = whole.merge(series, on=BY_SIZE)
    shared = shared[having.to_numpy() == shared["series"].to_numpy()]
    shared = shared[[*BY_SIZE, "seed"]].drop_duplicates().assign(shared=True)
    marked = runs.merge(shared, on=[*BY_SIZE, "seed"], how="left")
    kept = marked["shared"].eq(True)
    alone = ~kept.groupby([marked[name] for name in keys]).transform("any")
    return runs[(kept | alone).to_numpy()]


def share_of_optimum(runs: pd.DataFrame, column: str = HEADLINE.name) -> "pd.Series[float]":
    """Return a value of every run as a share of the optimum, NaN where that is unknown.

    0 is the mean of the visible values and 1 the optimum. Scaling from the best visible design
    instead would divide by 0 where the optimum is visible.
    """
    return (runs[column] / runs["optimum"]).where(runs["optimum"] > 0).round(_DIGITS)


def shares_by_size(runs: pd.DataFrame, column: str = HEADLINE.name) -> list[Sample]:
    """Return the known shares of the optimum of each size, one sample per size."""
    shares = share_of_optimum(runs, column).groupby([runs[name] for name in BY_SIZE], sort=True)
    sizes = [np.asarray(own.dropna(), dtype=np.float64) for _, own in shares]
    return [size for size in sizes if size.size]


def is_best_visible(method: str) -> bool:
    """Return whether a method returns the best visible design, by its card."""
    return role_of(method) == BEST_VISIBLE_ROLE


def best_visible_values(runs: pd.DataFrame) -> "pd.Series[float]":
    """Return the true value of the best visible design for each of these runs.

    The visible value may be noisy, so the score of the method that returns this design is taken, by
    size and seed, and the visible value only where there is no such run. `ReportData` stores it in
    the column `best_visible`, which is what tables and figures use.
    """
    keys = [*BY_SIZE, "seed"]
    own = scored_runs(runs[runs["method"].map(is_best_visible).astype(bool)]).drop_duplicates(keys)
    known = own.set_index(keys)[HEADLINE.name]
    found = pd.Series(
        known.reindex(pd.MultiIndex.from_frame(runs[keys])).to_numpy(), index=runs.index
    )
    return found.where(found.notna(), runs[BEST_VISIBLE.name])


def best_visible_means(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the mean of the best visible design at each size, each seed counted once.

    The columns are `best_visible_value` in sd, `best_visible_share` of the optimum,
    `best_visible_regret` in the unit of the task, and the mean `optimum`.
    """
    tables = runs[runs["status"] == "ok"].drop_duplicates([*BY_SIZE, "seed"])
    best = tables[BEST_VISIBLE.name]
    scale = tables["y_sd"].where(tables["regret_unit"] == "raw", 1.0)
    numbers = tables[BY_SIZE].assign(
        best_visible_value=best,
        best_visible_share=share_of_optimum(tables, BEST_VISIBLE.name),
        best_visible_regret=(tables["optimum"] - best) * scale,
        optimum=tables["optimum"],
    )
    return numbers.groupby(BY_SIZE, as_index=False).mean()

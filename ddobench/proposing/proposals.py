"""The designs that are handed back: ranked by the models, and what there is to know of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import spearmanr

from ddobench.errors import UsageError
from ddobench.proposing import distances
from ddobench.proposing.fitted import Codes, Fitted, Proposed
from ddobench.proposing.limits import Limits
from ddobench.tabular.encodings import Column, Encoding
from ddobench.tabular.rows import Values

PREDICTED = "predicted"  # by the model, in the units of the table
SPREAD = "predicted_sd"  # between the models of several seeds
DISTANCE = "distance"  # to the nearest visible row, in standard deviations of the columns
RATIO = "distance_ratio"  # to the typical distance between visible rows
OUTSIDE = "columns_outside"  # how many columns leave their visible range
SEED = "seed"  # whose proposal it is


@dataclass(frozen=True)
class Pool:
    """All that the seeds propose, pulled back to where designs may be; larger is better."""

    designs: pd.DataFrame  # K of all seeds
    codes: Codes  # (K, e)
    seeds: Values  # (K,)
    own: Values  # (K,) what the model that proposed it predicts, NaN without one
    by_all: Values | None  # (S, K) what the models of several seeds predict

    @property
    def predicted(self) -> Values:
        """The mean over the models of all seeds."""
        if self.by_all is None:
            return self.own
        means: Values = self.by_all.mean(axis=0)
        return means

    def agreement(self) -> float:
        """Return the mean rank correlation between what two seeds predict of the same designs."""
        if self.by_all is None or len(self.by_all) < 2 or self.by_all.shape[1] < 3:
            return float("nan")
        with np.errstate(invalid="ignore", divide="ignore"):
            pairs = [
                spearmanr(a, b).statistic
                for a, b in combinations(self.by_all, 2)
                if np.ptp(a) > 0 and np.ptp(b) > 0
            ]
        return float(np.mean(pairs)) if pairs else float("nan")


def gather(
    proposed: Sequence[Proposed], fitted: Fitted, limits: Limits, encoding: Encoding, k: int
) -> Pool:
    """Pull the proposals of every seed back and keep the k that its own model ranks first."""
    parts = [_best_of_one(one, fitted, limits, encoding, k) for one in proposed]
    designs = pd.concat([part[0] for part in parts], ignore_index=True)
    codes = encoding.encode(designs)
    return Pool(
        designs=designs,
        codes=codes,
        seeds=np.concatenate([np.full(len(part[0]), part[2]) for part in parts]),
        own=np.concatenate([part[1] for part in parts]),
        by_all=_of_models(fitted.predict(codes)) if len(proposed) > 1 else None,
    )


def _of_models(predicted: Values | None) -> Values | None:  # (S, K)
    """Leave out seeds that have no model; None if none has."""
    if predicted is None:
        return None
    sound = predicted[np.isfinite(predicted).all(axis=1)]
    return sound if len(sound) else None


def _best_of_one(
    proposed: Proposed, fitted: Fitted, limits: Limits, encoding: Encoding, k: int
) -> tuple[pd.DataFrame, Values, int]:
    """Return the k best designs of one seed, each once, with the predictions of its own model."""
    finite = np.isfinite(proposed.codes).all(axis=1)
    if not finite.any():
        raise UsageError(
            f"seed {proposed.seed} proposed no finite design; try fewer steps or another method"
        )
    codes = proposed.codes[finite]
    designs = limits.apply(encoding.decode(codes))
    predicted = None if proposed.predicted is None else proposed.predicted[finite]
    allowed = encoding.encode(designs)
    if not np.array_equal(allowed, codes):  # pulled back, so that the model has to look again
        by_all = fitted.predict(allowed)
        if by_all is not None:
            predicted = by_all[fitted.seeds.index(proposed.seed)]
    values = np.full(len(codes), np.nan) if predicted is None else predicted
    order = rank(values)
    once = order[~designs.iloc[order].duplicated().to_numpy()][:k]
    return designs.iloc[once], values[once], proposed.seed


def rank(values: Values) -> NDArray[np.intp]:
    """Return the order of values, the largest first; unknown ones last, as they came."""
    return np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")


@dataclass(frozen=True)
class Chosen:
    """The designs that are handed back, the most promising first."""

    designs: pd.DataFrame  # (k, d) as in the table
    codes: Codes  # (k, e) as numbers, whatever the method worked on
    told: pd.DataFrame  # what there is to know of each, in our names
    typical: float  # distance of a row to its nearest neighbour
    spread: float  # median distance of two designs

    @property
    def table(self) -> pd.DataFrame:
        """Designs and what there is to know of each; our names give way to those of the table."""
        clashes = {name: f"ddobench_{name}" for name in self.told if name in self.designs}
        return self.designs.join(self.told.rename(columns=clashes))


def choose(pool: Pool, placed: Codes, numbers: Encoding, k: int, minimise: bool) -> Chosen:
    """Take the k different designs that the models rank first.

    Distances are between designs as `numbers`, of which the rows are `placed` (N, e).
    """
    order = rank(pool.predicted)
    order = order[~pool.designs.iloc[order].duplicated().to_numpy()][:k]
    designs = pool.designs.iloc[order].reset_index(drop=True)
    codes = numbers.encode(designs)
    predicted = pool.predicted[order]
    told: dict[str, object] = {PREDICTED: -predicted if minimise else predicted}
    if pool.by_all is not None:
        told[SPREAD] = pool.by_all[:, order].std(axis=0)
    if len(np.unique(pool.seeds)) > 1:
        told[SEED] = pool.seeds[order].astype(int)
    far, usual = distances.nearest(codes, placed), distances.typical(placed)
    told |= {
        DISTANCE: far,
        RATIO: far / usual if usual > 0 else np.full(len(far), np.nan),
        OUTSIDE: count_outside(designs, numbers.columns),
    }
    spread = distances.between(codes, placed)
    return Chosen(designs, codes, pd.DataFrame(told), typical=usual, spread=spread)


def count_outside(designs: pd.DataFrame, columns: Sequence[Column]) -> NDArray[np.intp]:
    """Count for each design the columns that leave their visible range."""
    outside = np.zeros(len(designs), dtype=np.intp)
    for column in columns:
        if column.kind in ("number", "whole"):
            entries = designs[column.name].to_numpy(dtype=np.float64)
            outside += (entries < column.low) | (entries > column.high)
    return outside

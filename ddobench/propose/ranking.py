"""The designs that are returned: ranked by the models, apart from each other, and how far away."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr

from ddobench.errors import UsageError
from ddobench.planes import LocalPlanes
from ddobench.propose.constraints import Constraints
from ddobench.propose.fitting import Codes, FittedMethod, SeedProposals, finite_rows
from ddobench.tabular.encodings import Column, Encoding
from ddobench.tabular.rows import Values

PREDICTED = "predicted"  # by the model, in the units of the table
SPREAD = "predicted_sd"  # between the models of several seeds
DISTANCE = "distance"  # to the nearest row, in standard deviations of the columns
RATIO = "distance_ratio"  # to the typical distance between rows
OFF_SURFACE = "off_surface"  # distance from the plane of the nearest rows, by the rows' own
COLUMN = "column_distance"  # the largest, over columns, to the nearest row in that column alone
OUTSIDE = "columns_outside"  # how many columns leave the range of the rows
SEED = "seed"  # which seed proposed the design
_DISTANCE_ROWS = 2000  # that the typical distance is computed from
_MOST_DISTANCES = 10**7  # that are held at once


@dataclass(frozen=True)
class EncodedRows:
    """The rows of a table encoded one-hot, and the scale of distances to them."""

    encoding: Encoding
    codes: Codes  # (N, e)
    sd: Values  # (e,) of the columns, 1 where it is 0
    typical: float  # median distance of a row to its nearest neighbour, without repeated rows

    @classmethod
    def of(cls, encoding: Encoding, designs: pd.DataFrame) -> "EncodedRows":
        """Encode rows."""
        codes = encoding.encode(designs)
        sd = codes.std(axis=0)
        rows = cls(encoding, codes, np.where(sd > 0, sd, 1.0), 0.0)
        different = np.unique(codes, axis=0)
        if len(different) < 2:
            return rows
        places = np.linspace(0, len(different) - 1, min(len(different), _DISTANCE_ROWS)).astype(int)
        nearest = []
        for part in _blocks(different[places], len(different)):
            distances = cdist(part / rows.sd, different / rows.sd)
            distances[distances == 0] = np.inf  # to itself
            nearest.append(distances.min(axis=1))
        return cls(encoding, codes, rows.sd, float(np.median(np.concatenate(nearest))))

    def nearest(self, codes: Codes, among: NDArray[np.intp] | None = None) -> Values:
        """Return the distance of each of K designs to the nearest row, in standard deviations."""
        rows = (self.codes if among is None else self.codes[among]) / self.sd
        parts = [cdist(part / self.sd, rows).min(axis=1) for part in _blocks(codes, len(rows))]
        return np.concatenate([np.empty(0), *parts])

    def nearest_by_column(self, codes: Codes) -> Values:  # (K, e) -> (K,)
        """Return the distance to the nearest row in the column where that is largest."""
        largest = np.zeros(len(codes))
        for own, known, sd in zip(codes.T, np.sort(self.codes, axis=0).T, self.sd, strict=True):
            right = np.searchsorted(known, own).clip(1, len(known) - 1)
            gap = np.minimum(np.abs(own - known[right - 1]), np.abs(own - known[right]))
            largest = np.fmax(largest, gap / sd)
        return largest


@dataclass(frozen=True)
class RankedDesigns:
    """The designs that are returned, the most promising first."""

    designs: pd.DataFrame  # (k, d) as in the table
    codes: Codes  # (k, e) encoded one-hot
    assessment: pd.DataFrame  # the columns that are added to each design
    median_distance: float  # between two of the designs
    agreement: float  # mean rank correlation between the predictions of two seeds, NaN for one


def rank_designs(
    proposed: Sequence[SeedProposals],
    fitted: FittedMethod,
    constraints: Constraints,
    rows: EncodedRows,
    enough: tuple[float, float],
    k: int,
    least: float | None,
    minimise: bool,
) -> RankedDesigns:
    """Return the k designs that the models of all seeds rank first.

    Designs are moved to where the constraints allow them, and predicted there. They are at least
    `least` typical distances between rows apart, or if it is None only different. They are then
    predicted to be worth more than the first number of `enough`, and no rows of the table, unless
    there are no such designs. Those on the way to the last iteration must be worth more than the
    second number, and as near to the rows and their surface as rows are.
    """
    pool = [_moved(one, fitted, constraints) for one in proposed]
    if least is None:
        pool = [_first_different(part, k) for part in pool]
    candidates = _join(pool)
    by_seed = None  # (S, P)
    if len(proposed) > 1:
        by_seed = finite_rows(fitted.predict(fitted.encoding.encode(candidates.designs)))
    if by_seed is not None:
        candidates.predicted = by_seed.mean(axis=0)
    planes = None if rows.encoding.categorical else LocalPlanes.of(rows.codes)
    if least is None:
        order = _different_order(candidates)[:k]
    else:
        order = _spread_order(candidates, rows, planes, k, least, enough)
    chosen = candidates.designs.iloc[order].reset_index(drop=True)
    predicted = candidates.predicted[order]
    codes = rows.encoding.encode(chosen)
    assessment: dict[str, object] = {PREDICTED: -predicted if minimise else predicted}
    if by_seed is not None:
        assessment[SPREAD] = by_seed[:, order].std(axis=0)
    if len(np.unique(candidates.seeds)) > 1:
        assessment[SEED] = candidates.seeds[order]
    distance = rows.nearest(codes)
    unknown = np.full(len(distance), np.nan)
    assessment |= {
        DISTANCE: distance,
        RATIO: distance / rows.typical if rows.typical > 0 else unknown,
        COLUMN: rows.nearest_by_column(codes),
        OFF_SURFACE: (unknown if planes is None else planes.off_surface(codes).round(4)),
        OUTSIDE: _count_outside(chosen, rows.encoding.columns),
    }
    apart: Values = pdist(codes / rows.sd)
    return RankedDesigns(
        designs=chosen,
        codes=codes,
        assessment=pd.DataFrame(assessment),
        median_distance=float(np.median(apart)) if len(apart) else 0.0,
        agreement=_rank_agreement(None if by_seed is None else by_seed[:, order]),
    )


@dataclass
class _Candidates:
    """Designs that may be returned."""

    designs: pd.DataFrame  # (P, d)
    predicted: Values  # (P,) larger is better
    seeds: NDArray[np.intp]  # (P,) that proposed them
    last: NDArray[np.bool_]  # (P,) whether at the last iteration, not on the way there

    def take(self, which: NDArray[np.intp]) -> "_Candidates":
        return _Candidates(
            self.designs.iloc[which], self.predicted[which], self.seeds[which], self.last[which]
        )


def _moved(proposed: SeedProposals, fitted: FittedMethod, constraints: Constraints) -> _Candidates:
    """Return the designs of one seed where they are allowed, and its own predictions of them."""
    finite = np.asarray(np.isfinite(proposed.codes).all(axis=1))
    if not finite[proposed.last].any():
        raise UsageError(
            f"seed {proposed.seed} proposed no finite design; try fewer steps or another method"
        )
    codes = proposed.codes[finite]
    designs = constraints.apply(fitted.encoding.decode(codes))
    predicted = None if proposed.predicted is None else proposed.predicted[finite]
    allowed = fitted.encoding.encode(designs)
    if not np.array_equal(allowed, codes):  # moved by a constraint or by rounding: predict again
        by_seed = fitted.predict(allowed)
        if by_seed is not None:
            predicted = by_seed[fitted.seeds.index(proposed.seed)]
    values = np.full(len(codes), np.nan) if predicted is None else predicted
    kept = np.flatnonzero(constraints.allows(designs))
    if not len(kept):
        raise UsageError(
            "no proposed design can be moved to where the constraints allow it, with its levels "
            "and whole numbers; loosen a constraint or use continuous for a column with levels"
        )
    seeds = np.full(len(codes), proposed.seed)
    return _Candidates(designs, values, seeds, proposed.last[finite]).take(kept)


def _join(parts: Sequence[_Candidates]) -> _Candidates:
    return _Candidates(
        pd.concat([part.designs for part in parts], ignore_index=True),
        np.concatenate([part.predicted for part in parts]),
        np.concatenate([part.seeds for part in parts]),
        np.concatenate([part.last for part in parts]),
    )


def _first_different(candidates: _Candidates, k: int) -> _Candidates:
    return candidates.take(_different_order(candidates)[:k])


def _different_order(candidates: _Candidates) -> NDArray[np.intp]:
    """Return the different designs by decreasing predictions; NaN comes last, in given order."""
    values = candidates.predicted
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    different: NDArray[np.intp] = order[~candidates.designs.iloc[order].duplicated().to_numpy()]
    return different


def _spread_order(
    candidates: _Candidates,
    rows: EncodedRows,
    planes: LocalPlanes | None,
    k: int,
    least: float,
    enough: tuple[float, float],
) -> NDArray[np.intp]:
    """Return designs in order of promise, each far enough from those before it."""
    order = _different_order(candidates)
    promising = candidates.predicted > np.where(candidates.last, *enough)
    order = order[(promising if promising.any() else candidates.last)[order]]
    codes = rows.encoding.encode(candidates.designs.iloc[order])  # (P, e)
    new = rows.nearest(codes) > 0
    if planes is not None:
        way = ~candidates.last[order] & new
        new[way] = np.max(planes.ratios(codes[way]), axis=0) <= 1
    if new.any():
        order, codes = order[new], codes[new]
    places = codes / rows.sd
    apart = np.full(len(order), np.inf)  # from those chosen
    chosen: list[int] = []
    for i in range(len(order)):
        if apart[i] > 0 and apart[i] >= least * rows.typical:
            chosen.append(i)
            if len(chosen) == k:
                break
            apart = np.minimum(apart, np.linalg.norm(places - places[i], axis=1))
    return order[chosen]


def _rank_agreement(by_seed: Values | None) -> float:  # (S, K)
    """Return the mean rank correlation of two seeds' predictions, NaN if there are too few."""
    if by_seed is None or len(by_seed) < 2 or by_seed.shape[1] < 3:
        return float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        pairs = [
            spearmanr(a, b).statistic
            for a, b in combinations(by_seed, 2)
            if np.ptp(a) > 0 and np.ptp(b) > 0
        ]
    return float(np.mean(pairs)) if pairs else float("nan")


def _count_outside(designs: pd.DataFrame, columns: Sequence[Column]) -> NDArray[np.intp]:
    """Return for each design how many columns leave the range of the rows."""
    outside = np.zeros(len(designs), dtype=np.intp)
    for column in columns:
        if column.numeric:
            entries = designs[column.name].to_numpy(dtype=np.float64)
            outside += (entries < column.low) | (entries > column.high)
    return outside


def _blocks(codes: Codes, others: int) -> list[Codes]:
    """Split designs so that their distances to `others` rows fit into memory."""
    size = max(1, _MOST_DISTANCES // others)
    return [codes[start : start + size] for start in range(0, len(codes), size)]

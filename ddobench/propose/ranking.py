"""The designs that are returned: ranked by the models, with their distances to the rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, pdist
from scipy.stats import spearmanr

from ddobench.errors import UsageError
from ddobench.propose.constraints import Constraints
from ddobench.propose.fitting import Codes, FittedMethod, SeedProposals, finite_rows
from ddobench.tabular.encodings import Column, Encoding
from ddobench.tabular.rows import Values

PREDICTED = "predicted"  # by the model, in the units of the table
SPREAD = "predicted_sd"  # between the models of several seeds
DISTANCE = "distance"  # to the nearest row, in standard deviations of the columns
RATIO = "distance_ratio"  # to the typical distance between rows
OUTSIDE = "columns_outside"  # how many columns leave the range of the rows
SEED = "seed"  # which seed proposed the design
_DISTANCE_ROWS = 2000  # that the typical distance is computed from
_MOST_DISTANCES = 10**7  # that are held at once


@dataclass(frozen=True)
class RankedDesigns:
    """The designs that are returned, the most promising first."""

    designs: pd.DataFrame  # (k, d) as in the table
    codes: Codes  # (k, e) encoded one-hot
    assessment: pd.DataFrame  # the columns that are added to each design
    typical_distance: float  # median distance of a row to its nearest neighbour
    median_distance: float  # between two of the designs
    agreement: float  # mean rank correlation between the predictions of two seeds, NaN for one

    @property
    def table(self) -> pd.DataFrame:
        """Designs and their assessment; a name that the table has already gets a prefix."""
        names = {}
        for name in self.assessment:
            names[name] = str(name)
            while names[name] in self.designs:
                names[name] = f"ddobench_{names[name]}"
        return self.designs.join(self.assessment.rename(columns=names))


def rank_designs(
    proposed: Sequence[SeedProposals],
    fitted: FittedMethod,
    constraints: Constraints,
    one_hot: Encoding,
    rows: Codes,
    k: int,
    minimise: bool,
) -> RankedDesigns:
    """Return the k different designs that the models of all seeds rank first.

    Designs are moved to where the constraints allow them, and predicted there. Distances to the
    `rows` (N, e) are between designs encoded by `one_hot`.
    """
    best = [_best_of_seed(one, fitted, constraints, k) for one in proposed]
    designs = pd.concat([part for part, _ in best], ignore_index=True)
    predicted = np.concatenate([own for _, own in best])
    seeds = np.repeat([one.seed for one in proposed], [len(part) for part, _ in best])
    by_seed = None  # (S, K)
    if len(proposed) > 1:
        by_seed = finite_rows(fitted.predict(fitted.encoding.encode(designs)))
    if by_seed is not None:
        predicted = by_seed.mean(axis=0)
    order = _first_different(designs, predicted, k)
    chosen = designs.iloc[order].reset_index(drop=True)
    codes = one_hot.encode(chosen)
    distance, typical = _nearest_distances(codes, rows), _typical_distance(rows)
    assessment: dict[str, object] = {PREDICTED: (-predicted if minimise else predicted)[order]}
    if by_seed is not None:
        assessment[SPREAD] = by_seed[:, order].std(axis=0)
    if len(np.unique(seeds)) > 1:
        assessment[SEED] = seeds[order]
    assessment |= {
        DISTANCE: distance,
        RATIO: distance / typical if typical > 0 else np.full(len(distance), np.nan),
        OUTSIDE: _count_outside(chosen, one_hot.columns),
    }
    return RankedDesigns(
        designs=chosen,
        codes=codes,
        assessment=pd.DataFrame(assessment),
        typical_distance=typical,
        median_distance=_median_distance(codes, rows),
        agreement=_rank_agreement(by_seed),
    )


def _best_of_seed(
    proposed: SeedProposals, fitted: FittedMethod, constraints: Constraints, k: int
) -> tuple[pd.DataFrame, Values]:
    """Return the k best different designs of one seed and its own predictions of them."""
    finite = np.isfinite(proposed.codes).all(axis=1)
    if not finite.any():
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
    order = _first_different(designs, values, k)
    return designs.iloc[order], values[order]


def _first_different(designs: pd.DataFrame, values: Values, k: int) -> NDArray[np.intp]:
    """Return the k different designs with the largest values; NaN comes last, in given order."""
    order = np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
    first: NDArray[np.intp] = order[~designs.iloc[order].duplicated().to_numpy()][:k]
    return first


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
        if column.kind in ("number", "whole"):
            entries = designs[column.name].to_numpy(dtype=np.float64)
            outside += (entries < column.low) | (entries > column.high)
    return outside


def _nearest_distances(codes: Codes, rows: Codes) -> Values:  # (K, e), (N, e) -> (K,)
    """Return the distance of each design to the nearest row, in standard deviations of the rows."""
    scale = _scale(rows)
    parts = [cdist(part / scale, rows / scale).min(axis=1) for part in _blocks(codes, len(rows))]
    return np.concatenate(parts)


def _typical_distance(rows: Codes) -> float:  # (N, e)
    """Return the median distance of a row to its nearest neighbour, without repeated rows."""
    different = np.unique(rows, axis=0)
    if len(different) < 2:
        return 0.0
    scale = _scale(rows)
    places = np.linspace(0, len(different) - 1, min(len(different), _DISTANCE_ROWS)).astype(int)
    nearest = []
    for part in _blocks(different[places], len(different)):
        distances = cdist(part / scale, different / scale)
        distances[distances == 0] = np.inf  # to itself
        nearest.append(distances.min(axis=1))
    return float(np.median(np.concatenate(nearest)))


def _blocks(codes: Codes, others: int) -> list[Codes]:
    """Split designs so that their distances to `others` rows fit into memory."""
    size = max(1, _MOST_DISTANCES // others)
    return [codes[start : start + size] for start in range(0, len(codes), size)]


def _median_distance(codes: Codes, rows: Codes) -> float:  # (K, e), (N, e)
    """Return the median distance between two designs, in standard deviations of the rows."""
    distances: Values = pdist(codes / _scale(rows))
    return float(np.median(distances)) if len(distances) else 0.0


def _scale(rows: Codes) -> Values:
    sd: Values = rows.std(axis=0)
    return np.where(sd > 0, sd, 1.0)

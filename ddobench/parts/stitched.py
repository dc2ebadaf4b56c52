"""Stitched scores: normal scores for a table that consists of two clusters.

Normal scores undo a monotone map of single variables if what lies behind is normal. Behind a
mixture of two normals they bend: a linear function of the hidden coordinates has two humps, its
scores one. Within a cluster they do not. So each cluster gets scores of its own, and the second is
shifted onto the first, column by column, by the mean difference over the values that both have
seen. What is whitened is the spread within the clusters, which leaves them as far apart as they
are.

Whether there are two clusters is read off the rows: 2-means along the first principal component of
the plain scores, and the distance of the two centres in standard deviations within them. Cutting a
single normal in two gives 2.65; below `separation` there is one cluster, and the scores are those
of `latent=scores`. Ours; more than two clusters, or two of unlike shape, are not covered.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import UsageError
from ddobench.parts.latents import Matrix, Scores, Whitening, normal_scores
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache

ROUNDS = 100  # of 2-means at most
SEEN = 2.5  # scores beyond are extrapolated more than seen
GAP = 0.1  # between clusters that have no value in common
FEWEST = 20  # rows that make a cluster

Mask = NDArray[np.bool_]


@dataclass(kw_only=True)
class Stitched(Scores):
    """Normal scores within each of two clusters, if there are two, shifted to fit."""

    name: ClassVar[str] = "stitched"
    standardised: ClassVar[bool] = True  # within clusters; to scale columns again would undo that

    separation: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separation <= 0:
            raise UsageError(f"latent.separation must be positive, got {self.separation}")

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Look for two clusters in each seed, score, and whiten within them."""
        x = data.x.numpy()  # (S, N, d)
        plain = normal_scores(x, axis=1)
        scores, around = np.empty_like(plain), np.empty_like(plain)
        self._apart = []
        for s, rows in enumerate(plain):
            second, apart = cut_in_two(rows)
            self._apart.append(apart)
            if apart < self.separation or min(second.sum(), (~second).sum()) < FEWEST:
                scores[s], around[s] = rows, rows.mean(axis=0)
                continue
            scores[s] = stitch(x[s], second)
            for part in (second, ~second):
                around[s, part] = scores[s, part].mean(axis=0)
        whitening = Whitening.of(torch.from_numpy(scores), self.dim, torch.from_numpy(around))
        self._prepare(data.x, scores, whitening)

    def health(self) -> list[dict[str, Any]]:
        """Return how far two clusters are apart, and whether they count as two."""
        return [
            {"cluster_separation": apart, "clusters": 2 if apart >= self.separation else 1}
            for apart in self._apart
        ]


def cut_in_two(rows: Matrix) -> tuple[Mask, float]:  # (N, d) -> (N,) bool, separation
    """Return which rows are in the second cluster along the main direction, and how far apart."""
    centred = torch.from_numpy(rows - rows.mean(axis=0))
    main: Tensor = torch.linalg.eigh(centred.T @ centred).eigenvectors[:, -1]
    along = (centred @ main).numpy()  # (N,)
    second = along > np.median(along)
    for _ in range(ROUNDS):
        if second.all() or not second.any():
            return second, 0.0
        middle = (along[second].mean() + along[~second].mean()) / 2
        moved = along > middle
        if (moved == second).all():
            break
        second = moved
    low, high = along[~second], along[second]
    within = np.sqrt((low.var() * len(low) + high.var() * len(high)) / len(along))
    return second, float((high.mean() - low.mean()) / within) if within > 0 else 0.0


def stitch(x: Matrix, second: Mask) -> Matrix:  # (N, d), (N,) bool -> (N, d)
    """Score each cluster by itself, then shift the second so that both agree on shared values."""
    scores = np.empty_like(x)
    for part in (second, ~second):
        scores[part] = normal_scores(x[part], axis=0)
    for column in range(x.shape[1]):
        ours, theirs = (
            np.interp(x[:, column], np.sort(x[part, column]), np.sort(scores[part, column]))
            for part in (~second, second)
        )
        shared = (np.abs(ours) < SEEN) & (np.abs(theirs) < SEEN)
        if shared.any():
            scores[second, column] += (ours - theirs)[shared].mean()
        else:  # nothing in common: one begins a little after the other ends
            above = x[second, column].min() > x[~second, column].max()
            reach = GAP + (np.ptp(scores[~second, column]) + np.ptp(scores[second, column])) / 2
            scores[second, column] += reach if above else -reach
    return scores

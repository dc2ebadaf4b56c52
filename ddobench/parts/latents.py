"""Latents: designs as roughly Gaussian codes, and back.

A latent is fitted to the visible designs of all seeds at once. Codes and designs are float64 on the
CPU. Any K designs can be encoded, not only visible ones. The VAE is in `vae`.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Hidden, Privilege
from ddobench.errors import UsageError, check_whole
from ddobench.models.tensors import Standardiser, multiply
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache

NULL = 1e-3  # directions with less than this share of the largest variance are ignored

# of `Stitched`
ROUNDS = 100  # of 2-means at most
SEEN = 2.5  # scores beyond are mostly extrapolated
GAP = 0.1  # between clusters that have no value in common
FEWEST = 20  # rows of a cluster

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Codes:
    """The codes of K designs: a point each, or a normal distribution."""

    mean: Tensor  # (S, K, e)
    sd: Tensor | None = None  # (S, K, e)

    def sample(self, rng: Streams) -> Tensor:  # (S, K, e)
        """Draw one code for each design."""
        if self.sd is None:
            return self.mean
        return self.mean + self.sd * rng.normal(*self.mean.shape[1:], dtype=self.mean.dtype)


@dataclass(kw_only=True)
class Latent(ABC):
    """A way to encode designs; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    privileges: ClassVar[frozenset[Privilege]] = frozenset()
    standardised: ClassVar[bool] = False  # whether visible codes have mean 0 and deviation 1

    @abstractmethod
    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:
        """Learn from the visible designs."""

    @abstractmethod
    def encode(self, x: Tensor) -> Codes:  # (S, K, d)
        """Return the codes of designs."""

    @abstractmethod
    def decode(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Return the designs of codes."""

    def dimensions(self, data: Dataset) -> int:
        """Return the number of codes of a design."""
        return data.space.d

    def for_categories(self) -> "Latent":
        """Return the latent to use if designs are the codes of categories."""
        return self

    def failures(self) -> dict[int, str]:
        """Return the seeds (positions along S) whose fit failed, with reasons."""
        return {}

    def health(self) -> Sequence[dict[str, Any]]:
        """Return diagnostics of the fit, one mapping per seed; empty: none."""
        return []


@dataclass(kw_only=True)
class Identity(Latent):
    """The designs themselves, each variable standardised."""

    name: ClassVar[str] = "identity"
    standardised: ClassVar[bool] = True

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Compute means and standard deviations."""
        self._scale = Standardiser.of(data.x)

    def encode(self, x: Tensor) -> Codes:
        """Standardise."""
        return Codes(self._scale.apply(x))

    def decode(self, z: Tensor) -> Tensor:
        """Undo the standardisation."""
        return self._scale.undo(z)


@dataclass(kw_only=True)
class Oracle(Latent):
    """The hidden coordinates of the task: an upper bound for what a latent can find."""

    name: ClassVar[str] = "oracle"
    privileges: ClassVar[frozenset[Privilege]] = frozenset({"hidden"})

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Take the hidden coordinates from the harness."""
        if data.privileged.hidden is None:
            raise UsageError("latent=oracle needs a task with hidden coordinates")
        self._hidden: Hidden = data.privileged.hidden

    def dimensions(self, data: Dataset) -> int:
        """Return the number of hidden coordinates."""
        hidden = data.privileged.hidden
        return data.space.d if hidden is None else hidden.visible.shape[2]

    def encode(self, x: Tensor) -> Codes:
        """Return the pre-images."""
        return Codes(self._hidden.recover(x))

    def decode(self, z: Tensor) -> Tensor:
        """Return the designs of hidden coordinates."""
        return self._hidden.observe(z)


@dataclass(kw_only=True)
class PCA(Latent):
    """Principal components of the standardised designs, each scaled to variance one."""

    name: ClassVar[str] = "pca"

    dim: int | None = None

    def __post_init__(self) -> None:
        if self.dim is not None:
            check_whole("latent.dim", self.dim, 1, "null keeps every direction")

    def dimensions(self, data: Dataset) -> int:
        """Return the number of directions kept."""
        return min(self.dim or data.space.d, data.space.d)

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Diagonalise the covariance of each seed."""
        self._scale = Standardiser.of(data.x)
        self._whitening = Whitening.of(self._scale.apply(data.x), self.dim)

    def encode(self, x: Tensor) -> Codes:
        """Standardise, then whiten."""
        return Codes(self._whitening.apply(self._scale.apply(x)))

    def decode(self, z: Tensor) -> Tensor:
        """Undo both."""
        return self._scale.undo(self._whitening.undo(z))


@dataclass(kw_only=True)
class Scores(Latent):
    """Normal scores of each column by rank, then whitened.

    They undo any monotone map of single variables. Decoding interpolates between visible values, so
    that no variable leaves the range of the data. The codes of categories have only two or three
    values, so these are standardised instead.
    """

    name: ClassVar[str] = "scores"

    dim: int | None = None

    def __post_init__(self) -> None:
        if self.dim is not None:
            check_whole("latent.dim", self.dim, 1, "null keeps every direction")

    def dimensions(self, data: Dataset) -> int:
        """Return the number of directions kept."""
        return min(self.dim or data.space.d, data.space.d)

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Rank the columns, then diagonalise the covariance of the scores of each seed."""
        scores = normal_scores(data.x.numpy(), axis=1)  # (S, N, d)
        self._prepare(data.x, scores, Whitening.of(torch.from_numpy(scores), self.dim))

    def for_categories(self) -> Latent:
        """Return a latent that only standardises."""
        return Identity()

    def _prepare(self, x: Tensor, scores: Matrix, whitening: "Whitening") -> None:
        """Store visible values and their scores, (S, N, d) each, in increasing order."""
        self._columns = np.sort(x.numpy(), axis=1).transpose(0, 2, 1)  # (S, d, N)
        self._scores = np.sort(scores, axis=1).transpose(0, 2, 1)  # (S, d, N)
        self._whitening = whitening

    def encode(self, x: Tensor) -> Codes:
        """Look up the scores, then whiten."""
        scores = _interpolate(x.numpy(), self._columns, self._scores)
        return Codes(self._whitening.apply(torch.from_numpy(scores)))

    def decode(self, z: Tensor) -> Tensor:
        """Undo both."""
        scores = self._whitening.undo(z).numpy()
        return torch.from_numpy(_interpolate(scores, self._scores, self._columns))


@dataclass(frozen=True)
class Whitening:
    """A linear map of each seed to uncorrelated columns of variance one, and back.

    Directions without variance get the code 0.
    """

    forward: Tensor  # (S, d, e)
    backward: Tensor  # (S, e, d)
    mean: Tensor  # (S, 1, d)

    @classmethod
    def of(cls, x: Tensor, dim: int | None, around: Tensor | None = None) -> "Whitening":
        """Keep the `dim` directions of x (S, N, d) with the largest variance, all for None.

        The variance is that of rows around their mean, or each around a point `around` (S, N, d).
        """
        mean = x.mean(dim=1, keepdim=True)
        kept = min(dim or x.shape[2], x.shape[2])
        away = x - (mean if around is None else around)
        forward, backward = zip(*[_whiten(rows, kept) for rows in away], strict=True)
        return cls(torch.stack(forward), torch.stack(backward), mean)

    def apply(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        """Whiten."""
        return multiply(x - self.mean, self.forward)

    def undo(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Undo the whitening, up to the directions left out."""
        return multiply(z, self.backward) + self.mean


def normal_scores(x: Matrix, axis: int) -> Matrix:
    """Return the standard normal quantiles that belong to the ranks along an axis."""
    from scipy.stats import norm, rankdata  # slow to import, and a plan needs none

    scores: Matrix = norm.ppf((rankdata(x, axis=axis) - 0.5) / x.shape[axis])
    return scores


def _whiten(x: Tensor, kept: int) -> tuple[Tensor, Tensor]:  # (N, d) -> (d, e), (e, d)
    variances, directions = torch.linalg.eigh(x.T @ x / len(x))  # ascending
    variances, directions = variances.flip(0)[:kept], directions.flip(1)[:, :kept]
    full = variances > NULL * variances[0]
    sd = variances.clamp(min=0).sqrt() * full  # (e,)
    inverse = torch.where(full, 1 / sd.where(full, 1.0), 0.0)
    return directions * inverse, (directions * sd).T


def _interpolate(x: Matrix, at: Matrix, values: Matrix) -> Matrix:
    """Map x (S, K, d) column by column along the sorted points at, values (S, d, N)."""
    mapped = np.empty_like(x, dtype=np.float64)
    for seed, column in np.ndindex(values.shape[:2]):
        mapped[seed, :, column] = np.interp(
            x[seed, :, column], at[seed, column], values[seed, column]
        )
    return mapped


@dataclass(kw_only=True)
class Stitched(Scores):
    """Normal scores within each of two clusters, if there are two, shifted to match. Ours.

    Normal scores undo a monotone map of single variables if the hidden coordinates are normal. If
    these are a mixture of two normals, a linear function of them has two modes and its scores have
    one, so that scores of the whole column are distorted; scores within a cluster are not. So each
    cluster is scored separately, and the second is shifted onto the first, column by column, by the
    mean difference over the range of values that both share. The whitening uses the covariance
    within clusters, which preserves their distance.

    Clusters are found by 2-means along the first principal component of the plain scores. They
    count as two if their centres are at least `separation` standard deviations (within clusters)
    apart; splitting a single normal gives 2.65. Otherwise the result equals `latent=scores`. More
    than two clusters, or two of different shape, are not covered.
    """

    name: ClassVar[str] = "stitched"
    standardised: ClassVar[bool] = True  # within clusters, which scaling columns would undo

    separation: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.separation <= 0:
            raise UsageError(f"latent.separation must be positive, got {self.separation}")

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:  # noqa: ARG002
        """Find clusters in each seed, score, and whiten within clusters."""
        x = data.x.numpy()  # (S, N, d)
        plain = normal_scores(x, axis=1)
        scores, around = np.empty_like(plain), np.empty_like(plain)
        self._apart = []
        for s, rows in enumerate(plain):
            second, apart = find_two_clusters(rows)
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
        """Return the separation of the clusters, and whether they count as one or two."""
        return [
            {"cluster_separation": apart, "clusters": 2 if apart >= self.separation else 1}
            for apart in self._apart
        ]


def find_two_clusters(rows: Matrix) -> tuple[Mask, float]:  # (N, d) -> (N,) bool, separation
    """Return which rows are in the second cluster, and the separation of the two."""
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
    """Score each cluster separately, then shift the second to agree with the first."""
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
        else:  # no shared values: leave a small gap between the clusters
            above = x[second, column].min() > x[~second, column].max()
            reach = GAP + (np.ptp(scores[~second, column]) + np.ptp(scores[second, column])) / 2
            scores[second, column] += reach if above else -reach
    return scores

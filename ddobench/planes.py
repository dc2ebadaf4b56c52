"""How far designs are from the surface that rows lie on: the planes of their nearest rows.

Columns of a table often depend on each other, so that its rows lie near a curved surface in their
space. The principal directions of a design's nearest rows span a plane, and what of the design is
outside of that plane is its residual. Residuals of the rows, each judged by the others, are the
scale: a ratio of about 1 is usual for rows, and on rows that fill their space for everything near
them. The residual is necessary, not sufficient: where rows are sparse their plane follows a design,
so the distance to the nearest row counts as well.

Axes: N rows, K designs, k neighbours, d columns, q directions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

JUDGED = 1000  # of the rows, evenly spaced, that determine the scale
FEW = 200  # of the rows, evenly spaced, whose planes are counted
QUANTILE = 0.95  # of their residuals and distances
THINNEST = 1e-4  # least scale, in standard deviations: of rows on an exact plane
CHUNK = 4_000_000  # numbers of a temporary array


@dataclass(frozen=True)
class LocalPlanes:
    """Different rows in standard deviations of their columns, and the scale of their distances."""

    rows: Values  # (N, d)
    mean: Values  # (d,) of the columns
    sd: Values  # (d,), 1 for a constant column
    neighbours: int
    variance: float  # the share that a plane keeps of the variance of the nearest rows
    residual: float = 1.0  # quantile of the rows' own, in standard deviations
    distance: float = 1.0  # quantile of the rows' own distances to the nearest other row

    @classmethod
    def of(cls, rows: Values, neighbours: int = 40, variance: float = 0.98) -> "LocalPlanes":
        """Describe rows (N, d); repeated rows count once, and rows that are not finite do not."""
        rows = rows[np.isfinite(rows).all(axis=1)].astype(np.float64)
        rows = rows[different_rows(rows)]
        if len(rows) < 2:
            nowhere = np.zeros(rows.shape[1])
            return cls(rows, nowhere, nowhere + 1.0, 0, variance, np.nan, np.nan)
        mean, sd = rows.mean(axis=0), rows.std(axis=0)
        sd = np.where(sd > 0, sd, 1.0)
        planes = cls((rows - mean) / sd, mean, sd, min(neighbours, len(rows) - 1), variance)
        judged = np.unique(np.linspace(0, len(rows) - 1, JUDGED).astype(np.intp))
        residuals, distances = planes._measure(planes.rows[judged], judged)
        return cls(
            planes.rows, mean, sd, planes.neighbours, variance,
            residual=max(THINNEST, float(np.quantile(residuals, QUANTILE))),
            distance=max(THINNEST, float(np.quantile(distances, QUANTILE))),
        )  # fmt: skip

    def off_surface(self, designs: Values) -> Values:  # (K, d) -> (K,)
        """Return the residual of each design by the rows' own, NaN where it is not finite."""
        return self.ratios(designs)[0]

    def nearest(self, designs: Values) -> Values:  # (K, d) -> (K,)
        """Return the distance to the nearest row by the rows' own, NaN where it is not finite."""
        return self.ratios(designs)[1]

    def ratios(self, designs: Values) -> tuple[Values, Values]:  # (K, d) -> (K,), (K,)
        """Return `off_surface` and `nearest` at the price of one of them."""
        known = self._known(designs)
        both = np.full((2, len(designs)), np.nan)
        if known.any():
            residuals, distances = self._measure(self._standardise(designs[known]))
            both[:, known] = residuals / self.residual, distances / self.distance
        return both[0], both[1]

    def directions(self, designs: Values) -> Values:  # (K, d) -> (K, d, q)
        """Return orthonormal directions of each design's plane, in standard deviations.

        They are zero where a plane has fewer than the q of the largest plane, and where a design is
        not finite. To follow a gradient along the surface, project gradient * sd.
        """
        known = self._known(designs)
        planes = self._planes(self._standardise(designs[known]))[1]
        directions = np.zeros((len(designs), *planes.shape[1:]))
        directions[known] = planes
        return directions

    def filled(self) -> float:
        """Return the directions of a usual plane as a share of those that it could have."""
        if len(self.rows) < 2:
            return 1.0
        few = self.rows[:: max(1, len(self.rows) // FEW)]
        planes = self._planes(few)[1]
        used = (np.abs(planes).sum(axis=1) > 0).sum(axis=1)  # (few,)
        return float(used.mean() / max(1, min(self.rows.shape[1], self.neighbours - 1)))

    def land(self, designs: Values) -> tuple[Values, Values, Values]:
        """Return the nearest point of each design's plane, its directions, and `nearest` there.

        Designs (K, d) are finite. All is by the rows nearest to the designs as given: the price of
        one of them. A single row has no plane.
        """
        if len(self.rows) < 2:
            return designs, np.zeros((*designs.shape, 0)), np.full(len(designs), np.nan)
        z = self._standardise(designs)
        landed, distances = np.empty(z.shape), np.empty(len(z))
        found = []
        for part, near in self._nearest_rows(z):
            centre, planes = self._span(near)
            along = np.einsum("kdq,kd->kq", planes, z[part] - centre)
            landed[part] = centre + np.einsum("kdq,kq->kd", planes, along)
            distances[part] = np.linalg.norm(near - landed[part, None], axis=2).min(axis=1)
            found.append((part, planes))
        return self.mean + self.sd * landed, _pad(found, z.shape), distances / self.distance

    def _known(self, designs: Values) -> NDArray[np.bool_]:  # (K, d) -> (K,)
        """Return which designs can be judged: squares of their distances must be finite."""
        with np.errstate(over="ignore", invalid="ignore"):
            size = np.abs(self._standardise(designs)).max(axis=1)
        return (size < 1e100) & (len(self.rows) > 1)  # type: ignore[no-any-return]

    def _standardise(self, designs: Values) -> Values:
        return (designs - self.mean) / self.sd

    def _measure(self, z: Values, own: NDArray[np.intp] | None = None) -> tuple[Values, Values]:
        """Return residuals and distances to the nearest row of z (K, d), both (K,).

        `own` (K,): the rows that they are, each of which is judged without itself.
        """
        residuals, distances = np.empty(len(z)), np.empty(len(z))
        for part, near in self._nearest_rows(z, own):
            centre, planes = self._span(near)
            off = z[part] - centre
            off = off - np.einsum("kdq,kq->kd", planes, np.einsum("kdq,kd->kq", planes, off))
            residuals[part] = np.linalg.norm(off, axis=1)
            distances[part] = np.linalg.norm(near - z[part, None], axis=2).min(axis=1)
        return residuals, distances

    def _planes(self, z: Values) -> tuple[Values, Values]:  # (K, d) -> (K, d), (K, d, q)
        """Return the middle of the rows nearest to each of z, and the directions of their plane."""
        centres, found = np.empty(z.shape), []
        for part, near in self._nearest_rows(z):
            centres[part], planes = self._span(near)
            found.append((part, planes))
        return centres, _pad(found, z.shape)

    def _nearest_rows(
        self, z: Values, own: NDArray[np.intp] | None = None
    ) -> Iterator[tuple[slice, Values]]:
        """Yield the rows nearest to some of z, and which: a slice of K and (its length, k, d)."""
        size = max(1, CHUNK // (len(self.rows) + self.neighbours * self.rows.shape[1]))
        squares = (self.rows**2).sum(axis=1)  # (N,)
        for start in range(0, len(z), size):
            part = slice(start, min(start + size, len(z)))
            far = squares - 2.0 * z[part] @ self.rows.T  # squared distances minus those to 0
            if own is not None:
                far[np.arange(len(far)), own[part]] = np.inf
            chosen = np.argpartition(far, self.neighbours - 1, axis=1)[:, : self.neighbours]
            yield part, self.rows[chosen]

    def _span(self, near: Values) -> tuple[Values, Values]:  # (K, k, d) -> (K, d), (K, d, q)
        """Return the mean of rows, and the principal directions with most of their variance."""
        centre = near.mean(axis=1)
        spread = near - centre[:, None]
        turned = spread.transpose(0, 2, 1)
        if near.shape[1] < near.shape[2]:  # the smaller of two matrices with the same eigenvalues
            variances, vectors = np.linalg.eigh(spread @ turned)
            vectors = turned @ vectors
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
        else:
            variances, vectors = np.linalg.eigh(turned @ spread)
        variances, vectors = variances[:, ::-1].clip(0.0), vectors[:, :, ::-1]
        total = variances.sum(axis=1, keepdims=True)
        before = variances.cumsum(axis=1) - variances
        kept = (before < self.variance * total) & (variances > 1e-12 * total)  # (K, q)
        return centre, (vectors * kept[:, None])[:, :, : int(kept.sum(axis=1).max(initial=0))]


def _pad(found: Sequence[tuple[slice, Values]], shape: tuple[int, ...]) -> Values:
    """Join the directions (part of K, d, q) of parts, with zeros where a part has fewer."""
    width = max((planes.shape[2] for _, planes in found), default=0)
    directions = np.zeros((*shape, width))
    for part, planes in found:
        directions[part, :, : planes.shape[2]] = planes
    return directions


def different_rows(rows: Values) -> NDArray[np.intp]:  # (N, d) -> (at most N,)
    """Return where rows are that differ from all rows before them."""
    rows = np.ascontiguousarray(rows + 0.0)  # -0.0 becomes 0.0
    as_bytes = rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))[:, 0]
    return np.sort(np.unique(as_bytes, return_index=True)[1])

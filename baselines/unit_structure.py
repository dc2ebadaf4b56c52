"""Structure read off low-rank units: axes along which they look, and a graph between them. Ours.

If the value is a sum of functions of few unknown directions each, every unit finds some of these
directions, up to a turn among them. `UnitAxes` turns the codes so that as many units as possible
look along as few axes as possible: the axes that diagonalise all W_k' W_k together, as well as one
rotation can. `UnitGraph` joins codes that some unit looks along both.

They are parts for other models: `method=fgm latent=stitched axes=units graph=units` gives the
clique network of the paper a graph that was discovered, in axes in which there is one to discover;
`graph=stein` tests there as the paper does. Each fits units of its own to all visible rows.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.baselines.units import LowRankUnits
from ddobench.errors import UsageError, check_whole
from ddobench.graphs import Graph
from ddobench.models.units import Units
from ddobench.parts.axes import Axes
from ddobench.parts.discovery import Discovered, Discovery, GraphInputs, thin_out
from ddobench.rng import Streams

SWEEPS = 50  # over all pairs of axes, at most
STILL = 1e-6  # an angle that is no turn any more

Matrix = NDArray[np.float64]


@dataclass(kw_only=True)
class UnitAxes(Axes):
    """Axes that as few as possible of each unit looks along."""

    name: ClassVar[str] = "units"

    units: LowRankUnits

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor:  # (S, e, e)
        """Fit units to each seed, then turn."""
        model = self.units.learn(z.float(), y.float(), rng.child("units"))
        return torch.stack([align(one.units) for one in model.chosen])


@dataclass(kw_only=True)
class UnitGraph(Discovery):
    """An edge where some unit looks along both codes."""

    name: ClassVar[str] = "units"

    units: LowRankUnits
    share: float = 0.1
    most_cliques: int = 200

    def __post_init__(self) -> None:
        check_whole("graph.most_cliques", self.most_cliques, 1)
        if not 0 < self.share <= 0.5:
            raise UsageError(f"graph.share must be above 0 and at most 0.5, got {self.share}")

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Fit units to each seed, then read."""
        model = self.units.learn(inputs.z.float(), inputs.y.float(), inputs.rng.child("units"))
        return [self._read(one.units, inputs.z.shape[2]) for one in model.chosen]

    def _read(self, units: Units, e: int) -> Discovered:
        strength = np.zeros((e, e))
        for shares in energies(units):  # (e,)
            strength = np.maximum(strength, np.minimum.outer(shares, shares))
        pairs = combinations(range(e), 2)
        edges = [pair for pair in pairs if strength[pair] >= self.share]
        strongest = sorted(edges, key=lambda pair: -strength[pair])
        kept = thin_out(e, strongest, self.most_cliques)
        return Discovered(Graph.from_edges(e, kept), dropped=len(edges) - len(kept))


def energies(units: Units) -> Matrix:  # (U, e)
    """Return how much of what each unit looks along lies along each axis, as shares of one."""
    squares = units.directions.double().square().sum(dim=1).numpy()
    shares: Matrix = squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-12)
    return shares


def align(units: Units) -> Tensor:  # (e, e)
    """Return the rotation after which the units look along as few axes as possible."""
    directions = units.directions.double().numpy()  # (U, R, e)
    seen = np.einsum("kri,krj->kij", directions, directions)  # (U, e, e)
    return torch.from_numpy(diagonalise(seen))


def diagonalise(matrices: Matrix) -> Matrix:  # (U, e, e) -> (e, e)
    """Return the rotation that diagonalises symmetric matrices together, as well as one can.

    Jacobi turns of two axes at a time (Cardoso and Souloumiac 1996), from the eigenvectors of a
    weighted sum: where the matrices commute, these are the answer already.
    """
    weights = np.linspace(1.0, 2.0, len(matrices))
    start = np.tensordot(weights, matrices, axes=1) if len(matrices) else np.eye(matrices.shape[2])
    rotation: Matrix = np.linalg.eigh(start)[1]
    turned = rotation.T @ matrices @ rotation  # (U, e, e)
    for _ in range(SWEEPS):
        largest = 0.0
        for p, q in combinations(range(len(rotation)), 2):
            apart = turned[:, p, p] - turned[:, q, q]  # (U,)
            across = 2 * turned[:, p, q]
            on, off = apart @ apart - across @ across, 2 * (apart @ across)
            angle = float(0.5 * np.arctan2(off, on + np.hypot(on, off)))
            largest = max(largest, abs(angle))
            if abs(angle) < STILL:
                continue
            c, s = np.cos(angle), np.sin(angle)
            turn = np.array([[c, -s], [s, c]])
            turned[:, :, [p, q]] = turned[:, :, [p, q]] @ turn
            turned[:, [p, q], :] = turn.T @ turned[:, [p, q], :]
            rotation[:, [p, q]] = rotation[:, [p, q]] @ turn
        if largest < STILL:
            break
    return rotation

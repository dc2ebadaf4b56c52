"""Units: a sum of low-rank units, grown on the residual and pruned on held-out rows. Ours.

    f(z) = base + sum over k of height_k exp(-|W_k z - c_k|^2),   W_k (3, e) free

Neither a rotation nor a graph is estimated: if the value is a sum of functions of few unknown
directions each, the units find these directions, and the cliques can be read off them. On the
normal scores of the observed columns (`latent=scores`) the method needs neither the hidden
coordinates nor the graph.

For each seed, and for each of `restarts` random states (all trained as one stack):

1. New units are trained alone on the residual, in standard deviations of it.
2. They join the others; units that do not reduce the held-out error are removed.
3. All remaining units are fitted together again, once for each of `refit_decays`.
4. The result replaces the previous one if its held-out error is lower by a given factor. Rounds are
   repeated until `patience` of them in a row gave no improvement.
5. The restart with the lowest held-out error is trained once more on all rows.

**It knows the form of some tasks**: with `form: gaussian` a unit has the shape of the bumps that
`task=chain` is made of, so there it is a well-specified reference and not a fair competitor. With
`form: network` each unit is a small network of its directions and assumes no shape. `rank` should
be at least the size of a clique; 3 is the chain's.

Two other parts read structure off units, which they fit to all visible rows. `axes=units`
(`UnitAxes`) rotates the codes so that as many units as possible depend on as few axes as possible:
the rotation that best diagonalises all W_k' W_k jointly. `graph=units` (`UnitGraph`) joins codes on
which the same unit depends. `method=fgm latent=stitched axes=units graph=units` gives the clique
network of the paper a discovered graph, in axes in which there is one to discover; `graph=stein`
tests there as the paper does.

There is no paper. What was tried and did not help is in benchmarks/units.md.

Command: python -m ddobench -m method=units task=chain d=41 seed=0-9
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.graphs import Graph
from ddobench.models.training import TINY, take_rows
from ddobench.models.unit_models import (
    FORMS,
    Form,
    Plan,
    Units,
    UnitStack,
    UnitTable,
    append_one,
    make_form,
    train,
)
from ddobench.parts.coordinates import Axes
from ddobench.parts.discovery import Discovered, Discovery, GraphInputs, limit_cliques
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.progress import track
from ddobench.rng import Stream, Streams

SWEEPS = 50  # at most, over all pairs of axes
STILL = 1e-6  # smaller angles count as 0

Matrix = NDArray[np.float64]


@dataclass(kw_only=True)
class LowRankUnits(Surrogate):
    """Sums of low-rank units, chosen on held-out rows."""

    name: ClassVar[str] = "units"
    leaps: ClassVar[bool] = True

    form: str = "gaussian"
    rank: int = 3
    hidden: int = 6
    restarts: int = 4
    rounds: int = 12
    patience: int = 3
    gain: float = 0.99
    enough: float = 0.002
    first_units: int = 32
    more_units: int = 16
    first_steps: int = 8000
    more_steps: int = 4000
    rate: float = 0.03
    decay: float = 1.0
    spread: float = 0.5
    toward: float = 0.7
    height: float = 0.1
    use: float = 2.0
    refit_steps: int = 3000
    refit_rate: float = 0.01
    refit_decays: Sequence[float] = (0.0, 0.5)
    polish_steps: int = 6000
    batch: int = 100
    holdout: float = 0.1

    def __post_init__(self) -> None:
        check_one_of("surrogate.form", self.form, FORMS)
        for name in ("rank", "hidden", "restarts", "rounds", "patience", "first_units",
                     "more_units", "first_steps", "more_steps", "refit_steps", "polish_steps",
                     "batch"):  # fmt: skip
            check_whole(f"surrogate.{name}", getattr(self, name), 1)
        if not 0 < self.holdout < 1:
            raise UsageError(f"surrogate.holdout must be a share in (0, 1), got {self.holdout}")
        if not self.refit_decays:
            raise UsageError("surrogate.refit_decays must name at least one decay, got none")

    def fit(self, data: TrainingData, rng: Streams) -> "UnitModel":
        """Learn from the visible table."""
        return self.learn(data.means(), data.values(), rng)

    def learn(self, z: Tensor, y: Tensor, rng: Streams) -> "UnitModel":
        """Search from several random states, and polish the best of each seed.

        Coordinates z (S, N, e) and values y (S, N) are standardised.
        """
        table = UnitTable.of(z, y, self.holdout, rng.child("split"))
        form = make_form(self.form, self.hidden)
        candidates = [
            Candidate(seed, rng.child(f"restart{restart}").rows[seed])
            for seed in range(len(table.z))
            for restart in range(self.restarts)
        ]
        for candidate in candidates:
            candidate.start(table, self.rank, form)
        for number in track(range(self.rounds), "round"):
            live = [one for one in candidates if one.waited < self.patience]
            live = [one for one in live if one.error > self.enough]
            if not live:
                break
            self._grow(live, number, table, form)
        chosen = [
            min((one for one in candidates if one.seed == seed), key=lambda one: one.error)
            for seed in range(len(table.z))
        ]
        self._polish(chosen, table, form)
        errors = [
            [one.error for one in candidates if one.seed == seed] for seed in range(len(chosen))
        ]
        return UnitModel(chosen, errors, form, table)

    def _grow(self, live: list["Candidate"], number: int, table: UnitTable, form: Form) -> None:
        """Do one round for all candidates that are not done."""
        streams = [one.stream.child(f"round{number}") for one in live]
        seeds = [one.seed for one in live]
        left = [table.y[one.seed] - table.value(one.units, one.seed, form) for one in live]
        scales = [rows[table.trained[one.seed]].std() for one, rows in zip(live, left, strict=True)]
        scales = [scale.clamp(min=1e-6) for scale in scales]
        count = self.more_units if number else self.first_units
        fresh = [
            self._draw(count, table.z[one.seed], form, stream)
            for one, stream in zip(live, streams, strict=True)
        ]
        plan = Plan(
            steps=self.more_steps if number else self.first_steps, rate=self.rate, batch=self.batch
        )
        targets = [rows / scale for rows, scale in zip(left, scales, strict=True)]
        rows = [table.trained[seed] for seed in seeds]
        fresh = train(fresh, targets, rows, [self.decay] * len(live), seeds, plan, table, form,
                      [stream.child("grow") for stream in streams])  # fmt: skip
        joined = []
        for one, new, scale in zip(live, fresh, scales, strict=True):
            raised = Units(new.weight, form.scale(new.shape, scale), new.base * scale)
            joined.append(table.prune(one.units.join(raised), one.seed, self.use, form))
        plan = Plan(steps=self.refit_steps, rate=self.refit_rate, batch=self.batch)
        decays = list(self.refit_decays)
        many = len(decays)
        refits = train(
            [units for units in joined for _ in decays],
            [table.y[seed] for seed in seeds for _ in decays],
            [table.trained[seed] for seed in seeds for _ in decays],
            decays * len(live),
            [seed for seed in seeds for _ in decays],
            plan, table, form,
            [stream.child("refit") for stream in streams for _ in decays],
        )  # fmt: skip
        for i, one in enumerate(live):
            one.consider(refits[i * many : (i + 1) * many], decays, self.gain, table, form)

    def _draw(self, count: int, z: Tensor, form: Form, stream: Stream) -> Units:
        """Draw units with random directions, each near a visible design."""
        e = z.shape[1] - 1
        weight = torch.zeros(count, self.rank, e + 1)
        kept = min(self.rank, e)
        draws = stream.child("directions").normal(count, e, kept)
        weight[:, :kept, :e] = self.spread * torch.linalg.qr(draws).Q.mT
        rows = z[stream.child("centres").integers(len(z), count)]  # (U, e + 1)
        seen = (weight @ rows.unsqueeze(2)).squeeze(2)  # (U, R)
        weight[..., -1] = -self.toward * seen
        shape = form.draw(count, self.rank, self.height, stream.child("shape"))
        return Units(weight, shape, torch.zeros(()))

    def _polish(self, chosen: list["Candidate"], table: UnitTable, form: Form) -> None:
        """Train the chosen models once more on all rows, in place."""
        every = torch.arange(table.z.shape[1])
        polished = train(
            [one.units for one in chosen],
            [table.y[one.seed] for one in chosen],
            [every for _ in chosen],
            [one.decay for one in chosen],
            [one.seed for one in chosen],
            Plan(steps=self.polish_steps, rate=self.refit_rate, batch=self.batch), table, form,
            [one.stream.child("polish") for one in chosen],
        )  # fmt: skip
        for one, units in zip(chosen, polished, strict=True):
            one.units = units


@dataclass
class Candidate:
    """One restart of one seed, with its best model so far."""

    seed: int  # position along S
    stream: Stream
    units: Units = field(init=False)
    error: float = field(init=False)  # held-out
    decay: float = 0.0  # of the refit of that model
    waited: int = 0  # rounds without improvement
    rounds: int = 0

    def start(self, table: UnitTable, rank: int, form: Form) -> None:
        """Start without units."""
        empty = torch.zeros(0, rank, table.z.shape[2])
        shape = form.draw(0, rank, 0.0, self.stream.child("nothing"))
        self.units = Units(empty, shape, torch.zeros(()))
        self.error = table.error(self.units, self.seed, form)

    def consider(
        self,
        refits: Sequence[Units],
        decays: Sequence[float],
        gain: float,
        table: UnitTable,
        form: Form,
    ) -> None:
        """Keep the best of the refits if it is better than the current model."""
        errors = [table.error(units, self.seed, form) for units in refits]
        best = min(range(len(refits)), key=lambda i: errors[i])
        self.rounds += 1
        if errors[best] < gain * self.error:
            self.units, self.error, self.decay = refits[best], errors[best], decays[best]
            self.waited = 0
        else:
            self.waited += 1


class UnitModel(Model):
    """The chosen model of each seed."""

    def __init__(
        self,
        chosen: Sequence[Candidate],
        errors: Sequence[Sequence[float]],
        form: Form,
        table: UnitTable,
    ) -> None:
        self.chosen = chosen
        self.errors = errors
        self.form = form
        self.table = table
        self._stacks = [UnitStack([one.units], form) for one in chosen]
        self._peaks = [
            Peaks.of(one.units, stack, rows)
            for one, stack, rows in zip(chosen, self._stacks, table.z, strict=True)
        ]

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the value of coordinates."""
        rows = append_one(z.to(torch.float32))
        return torch.cat([stack.value(rows[i : i + 1]) for i, stack in enumerate(self._stacks)]).to(
            z.dtype
        )

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of coordinates z (S, K, e), (S, K), and their gradients."""
        rows = append_one(z.to(torch.float32))
        pairs = [stack.value_and_gradient(rows[i : i + 1]) for i, stack in enumerate(self._stacks)]
        values, gradients = zip(*pairs, strict=True)
        return torch.cat(values).to(z.dtype), torch.cat(gradients).to(z.dtype)

    def error(self) -> Tensor:  # (S,)
        """Return the held-out error, as a share of the variance."""
        held = take_rows(self.table.y, self.table.held_out).double()  # (S, H)
        spread = torch.stack([rows.var(correction=0) for rows in held])
        errors = torch.tensor([one.error for one in self.chosen], dtype=torch.float64)
        return errors / spread.clamp(min=TINY)

    def leap(self, z: Tensor, further: int, softness: float, rng: Streams) -> Tensor:
        """Return z (S, K, e) moved so that some overlapping units are at their peaks."""
        leapt = [
            peaks.leap(rows, further, softness, stream)
            for peaks, rows, stream in zip(self._peaks, z, rng.rows, strict=True)
        ]
        return torch.stack(leapt)

    def directions(self) -> list[Tensor]:
        """Return the directions of the units of each seed."""
        return [self.form.directions(one.units) for one in self.chosen]

    def describe(self) -> list[dict[str, Any]]:
        """Return the number of units, and the accuracy on held-out rows."""
        errors = self.error().tolist()
        return [
            {
                "units": len(one.units),
                "rounds": one.rounds,
                "held_out_r2": 1 - errors[i],
                "restart_errors": list(self.errors[i]),
            }
            for i, one in enumerate(self.chosen)
        ]


@dataclass(frozen=True)
class Peaks:
    """Where the units of one model are highest, and how much they overlap."""

    directions: Tensor  # (U, R, e)
    at: Tensor  # (U, R) the projection of a design at the peak of a unit
    rising: Tensor  # numbers of the units whose maximum exceeds minus their minimum
    overlap: Tensor  # (U, U) of the directions of two units; 0 for units that do not rise

    @classmethod
    def of(cls, units: Units, stack: UnitStack, z: Tensor) -> "Peaks":  # (N, e + 1)
        """Find the peaks: the centres of bumps, otherwise the best visible row."""
        directions = units.directions.to(torch.float64)
        outputs = stack.outputs(z[None])[0, :, : len(units)]  # (N, U)
        at = -units.weight[..., -1].to(torch.float64)
        if stack.form.size:
            rows = z[outputs.argmax(dim=0), :-1].to(torch.float64)  # (U, e)
            at = (directions @ rows.unsqueeze(2)).squeeze(2)
        rises = outputs.amax(dim=0) > -outputs.amin(dim=0)  # (U,)
        flat = directions.flatten(0, 1)
        count, rank = directions.shape[:2]
        shared = (flat @ flat.mT).square().view(count, rank, count, rank).sum(dim=(1, 3))
        return cls(directions, at, rises.nonzero()[:, 0], shared.fill_diagonal_(0.0) * rises)

    def leap(
        self, z: Tensor, further: int, softness: float, stream: Stream
    ) -> Tensor:  # (K, e) -> (K, e)
        """Move each design by the shortest step that brings a few random units to their peaks."""
        if not len(self.rising):
            return z
        picked = [self.rising[stream.integers(len(self.rising), len(z))]]  # (K,) each
        for _ in range(further):
            shares = self.overlap[picked[-1]].cumsum(dim=1)  # (K, U)
            draws = stream.uniform(len(z), 1, dtype=torch.float64) * shares[:, -1:]
            next_one = torch.searchsorted(shares, draws, right=True)[:, 0]
            picked.append(next_one.clamp(max=len(self.at) - 1))
        chosen = torch.stack(picked, dim=1)  # (K, 1 + further)
        along = self.directions[chosen].flatten(1, 2)  # (K, m, e)
        wanted = self.at[chosen].flatten(1).unsqueeze(2)  # (K, m, 1)
        gap = wanted - along @ z.to(torch.float64).unsqueeze(2)
        system = along @ along.mT + softness * torch.eye(along.shape[1], dtype=torch.float64)
        moved: Tensor = z + (along.mT @ torch.linalg.solve(system, gap)).squeeze(2)
        return moved.to(z.dtype)


@dataclass(kw_only=True)
class UnitAxes(Axes):
    """Axes such that each unit depends on as few of them as possible."""

    name: ClassVar[str] = "units"

    units: LowRankUnits

    def find(self, z: Tensor, y: Tensor, rng: Streams) -> Tensor:  # (S, e, e)
        """Fit units to each seed, and return the rotation."""
        model = self.units.learn(z.float(), y.float(), rng.child("units"))
        return torch.stack([align(one.units) for one in model.chosen])


@dataclass(kw_only=True)
class UnitGraph(Discovery):
    """An edge between two codes on which the same unit depends."""

    name: ClassVar[str] = "units"

    units: LowRankUnits
    share: float = 0.1
    most_cliques: int = 200

    def __post_init__(self) -> None:
        check_whole("graph.most_cliques", self.most_cliques, 1)
        if not 0 < self.share <= 0.5:
            raise UsageError(f"graph.share must be above 0 and at most 0.5, got {self.share}")

    def discover(self, inputs: GraphInputs) -> list[Discovered]:
        """Fit units to each seed, and return the graph."""
        model = self.units.learn(inputs.z.float(), inputs.y.float(), inputs.rng.child("units"))
        return [self._read(one.units, inputs.z.shape[2]) for one in model.chosen]

    def _read(self, units: Units, e: int) -> Discovered:
        strength = np.zeros((e, e))
        for shares in energies(units):  # (e,)
            strength = np.maximum(strength, np.minimum.outer(shares, shares))
        pairs = combinations(range(e), 2)
        edges = [pair for pair in pairs if strength[pair] >= self.share]
        strongest = sorted(edges, key=lambda pair: -strength[pair])
        kept = limit_cliques(e, strongest, self.most_cliques)
        return Discovered(Graph.from_edges(e, kept), dropped=len(edges) - len(kept))


def energies(units: Units) -> Matrix:  # (U, e)
    """Return the share of each axis in the directions of each unit."""
    squares = units.directions.double().square().sum(dim=1).numpy()
    shares: Matrix = squares / np.maximum(squares.sum(axis=1, keepdims=True), 1e-12)
    return shares


def align(units: Units) -> Tensor:  # (e, e)
    """Return the rotation after which units depend on as few axes as possible."""
    directions = units.directions.double().numpy()  # (U, R, e)
    seen = np.einsum("kri,krj->kij", directions, directions)  # (U, e, e)
    return torch.from_numpy(diagonalise(seen))


def diagonalise(matrices: Matrix) -> Matrix:  # (U, e, e) -> (e, e)
    """Return the rotation that best diagonalises symmetric matrices jointly.

    Jacobi rotations of two axes at a time (Cardoso and Souloumiac 1996), starting from the
    eigenvectors of a weighted sum, which are the solution if the matrices commute.
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

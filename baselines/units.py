"""Units: a sum of low-rank units, grown on the residual and pruned by held-out use. Ours.

    f(z) = base + sum over k of height_k exp(-|W_k z - c_k|^2),   W_k (3, e) free

No rotation is sought and no graph is tested: if the value is a sum of functions of few unknown
directions each, the units find these directions, and the cliques can be read off them. On the
normal scores of the observed columns (`latent=scores`) the method needs neither the hidden
coordinates nor the graph.

For each seed, and for each of `restarts` random states (all trained as one stack):

1. New units are trained alone on what is left unexplained, in standard deviations of it.
2. They join the others; units without use on held-out rows go.
3. All that are kept are fitted again together, once for each of `refit_decays`.
4. The result replaces the former one if its held-out error is lower by a stated factor. The round
   is repeated until `patience` of them in a row were in vain.
5. The restart with the lowest held-out error is trained once more on all rows.

**It knows the form of some tasks**: with `form: gaussian` the unit has the shape of the bumps that
`task=chain` is made of, so there it is a well-specified reference and not a fair competitor. With
`form: network` each unit is a small network of its directions and knows no shape. `rank` is at least
the size of a clique; 3 is the chain's.

There is no paper. What was tried and did not help is in benchmarks/units.md.

Its row: python -m ddobench -m method=units task=chain d=41 seed=0-9
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, pi, sqrt
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.models.training import Split, take_rows
from ddobench.models.units import FORMS, Form, Units, UnitStack, make_form
from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.progress import track
from ddobench.rng import Stream, Streams

WIDTH_STEP = 8  # models are stacked with those of equally many units, rounded up to this
BETAS = (0.9, 0.99)


@dataclass(kw_only=True)
class LowRankUnits(Surrogate):
    """Sums of low-rank units; how many and which is decided on held-out rows."""

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
        """Search from several random states, and polish the best of each seed."""
        table = Table.of(data, self.holdout, rng.child("split"))
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

    def _grow(self, live: list["Candidate"], number: int, table: "Table", form: Form) -> None:
        """Carry out one round for all candidates that are still at it."""
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
        """Draw units that look along random directions, each near some visible design."""
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

    def _polish(self, chosen: list["Candidate"], table: "Table", form: Form) -> None:
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


@dataclass(frozen=True)
class Table:
    """The visible rows in float32, and which of them are held out."""

    z: Tensor  # (S, N, e + 1), the last column is 1
    y: Tensor  # (S, N)
    trained: Tensor  # (S, N - H)
    held_out: Tensor  # (S, H)

    @classmethod
    def of(cls, data: TrainingData, holdout: float, rng: Streams) -> "Table":
        """Draw the rows to hold out."""
        z = append_one(data.means())
        held = min(max(1, round(holdout * data.n)), data.n - 1)
        order = rng.permutation(data.n)
        return cls(z, data.values(), order[:, held:], order[:, :held])

    @property
    def split(self) -> Split:
        """The same split as others know it."""
        return Split(self.trained, self.held_out)

    def value(self, units: Units, seed: int, form: Form) -> Tensor:  # (N,)
        """Return a model's value of all rows of a seed."""
        return UnitStack([units], form).value(self.z[seed : seed + 1])[0]

    def error(self, units: Units, seed: int, form: Form) -> float:
        """Return the mean squared error on held-out rows; the values have variance 1."""
        rows = self.held_out[seed]
        value = UnitStack([units], form).value(self.z[seed : seed + 1, rows])[0]
        return float((value - self.y[seed, rows]).square().mean())

    def prune(self, units: Units, seed: int, use: float, form: Form) -> Units:
        """Drop units whose absence would not be noticed on held-out rows.

        A unit's use is by how much the squared error grows with its mean in its place, in standard
        errors.
        """
        rows = self.held_out[seed]
        if len(rows) < 2:
            return units
        stack = UnitStack([units], form)
        outputs = stack.outputs(self.z[seed : seed + 1, rows])[0, :, : len(units)]  # (H, U)
        residual = (outputs.sum(dim=1) + units.base - self.y[seed, rows]).unsqueeze(1)
        without = residual - outputs + outputs.mean(dim=0)
        growth = without.square() - residual.square()  # (H, U)
        error = growth.std(dim=0) / sqrt(len(rows))
        return units.take(growth.mean(dim=0) > use * error)


@dataclass
class Candidate:
    """One restart of one seed: the best model so far."""

    seed: int  # position along S
    stream: Stream
    units: Units = field(init=False)
    error: float = field(init=False)  # held-out
    decay: float = 0.0  # of the refit that gave it
    waited: int = 0  # rounds in vain since
    rounds: int = 0

    def start(self, table: Table, rank: int, form: Form) -> None:
        """Begin without any unit."""
        empty = torch.zeros(0, rank, table.z.shape[2])
        shape = form.draw(0, rank, 0.0, self.stream.child("nothing"))
        self.units = Units(empty, shape, torch.zeros(()))
        self.error = table.error(self.units, self.seed, form)

    def consider(
        self,
        refits: Sequence[Units],
        decays: Sequence[float],
        gain: float,
        table: Table,
        form: Form,
    ) -> None:
        """Take the best of the refits if it is better than what there was."""
        errors = [table.error(units, self.seed, form) for units in refits]
        best = min(range(len(refits)), key=lambda i: errors[i])
        self.rounds += 1
        if errors[best] < gain * self.error:
            self.units, self.error, self.decay = refits[best], errors[best], decays[best]
            self.waited = 0
        else:
            self.waited += 1


@dataclass(frozen=True)
class Plan:
    """How units are trained: Adam with a rate that falls to 0 along a cosine."""

    steps: int
    rate: float
    batch: int


def train(
    models: Sequence[Units],
    targets: Sequence[Tensor],  # (N,) each
    rows: Sequence[Tensor],  # (R,) each, those trained on
    decays: Sequence[float],  # of the directions, decoupled
    seeds: Sequence[int],  # whose designs each model sees
    plan: Plan,
    table: Table,
    form: Form,
    streams: Sequence[Stream],
) -> list[Units]:
    """Return the models after training, each as if alone.

    Models of about equal size are trained as one stack, padded to a width that depends on none but
    the model itself.
    """
    widths = [max(1, -(-len(model) // WIDTH_STEP)) * WIDTH_STEP for model in models]
    trained: list[Units] = list(models)
    for width in sorted(set(widths)):
        chosen = [i for i, one in enumerate(widths) if one == width]
        stack = UnitStack([models[i] for i in chosen], form, width)
        _descend(
            stack,
            torch.stack([targets[i] for i in chosen]),
            [rows[i] for i in chosen],
            torch.tensor([decays[i] for i in chosen]),
            torch.tensor([seeds[i] for i in chosen]),
            plan, table,
            [streams[i] for i in chosen],
        )  # fmt: skip
        for i, units in zip(chosen, stack.models(), strict=True):
            trained[i] = units
    return trained


def _descend(
    stack: UnitStack,
    y: Tensor,  # (I, N)
    rows: Sequence[Tensor],  # (R,) each
    decay: Tensor,  # (I,)
    seeds: Tensor,  # (I,)
    plan: Plan,
    table: Table,
    streams: Sequence[Stream],
) -> None:
    """Train a stack in place."""
    n, models = y.shape[1], len(y)
    size = min(plan.batch, len(rows[0]))
    z, y = table.z.flatten(0, 1), y.flatten()  # (S * N, e + 1), (I * N,)
    to_z, to_y = seeds[:, None] * n, torch.arange(models)[:, None] * n
    directions = stack.weight[..., :-1]  # (I, R, U, e)
    optimiser = torch.optim.Adam([stack.flat], lr=plan.rate, betas=BETAS, fused=True)
    batches: list[Tensor] = []  # (I, B) each
    for step in range(plan.steps):
        if not batches:
            order = torch.stack(
                [
                    own[stream.permutation(len(own))]
                    for own, stream in zip(rows, streams, strict=True)
                ]
            )
            batches = list(torch.split(order[:, : order.shape[1] // size * size], size, dim=1))
        picked = batches.pop()
        stack.backprop_squared_error(
            z[(picked + to_z).flatten()].view(models, size, -1),
            y[(picked + to_y).flatten()].view(models, size),
        )
        rate = plan.rate * (1 + cos(pi * step / plan.steps)) / 2
        optimiser.param_groups[0]["lr"] = rate
        optimiser.step()
        directions.mul_((1 - rate * decay)[:, None, None, None])


class UnitModel(Model):
    """The chosen model of each seed."""

    def __init__(
        self,
        chosen: Sequence[Candidate],
        errors: Sequence[Sequence[float]],
        form: Form,
        table: Table,
    ) -> None:
        self.chosen = chosen
        self.errors = errors
        self.form = form
        self.table = table
        self._stacks = [UnitStack([one.units], form) for one in chosen]
        self._peaks = [self._find_peaks(seed) for seed in range(len(chosen))]

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
        held = take_rows(self.table.y, self.table.held_out)  # (S, H)
        spread = torch.stack([rows.var(correction=0) for rows in held]).clamp(min=1e-12)
        return torch.tensor([one.error for one in self.chosen], dtype=torch.float64) / spread

    def leap(self, z: Tensor, further: int, softness: float, rng: Streams) -> Tensor:
        """Return z (S, K, e) moved so that some units that overlap stand at their peaks."""
        return torch.stack(
            [
                self._leap_one(i, rows, further, softness, stream)
                for i, (rows, stream) in enumerate(zip(z, rng.rows, strict=True))
            ]
        )

    def _leap_one(
        self, seed: int, z: Tensor, further: int, softness: float, stream: Stream
    ) -> Tensor:  # (K, e) -> (K, e)
        directions, peaks, rising, overlap = self._peaks[seed]
        if not len(rising):
            return z
        picked = [rising[stream.integers(len(rising), len(z))]]  # (K,) each
        for _ in range(further):
            shares = overlap[picked[-1]].cumsum(dim=1)  # (K, U)
            draws = stream.uniform(len(z), 1, dtype=torch.float64) * shares[:, -1:]
            picked.append(torch.searchsorted(shares, draws).clamp(max=len(peaks) - 1)[:, 0])
        units = torch.stack(picked, dim=1)  # (K, 1 + further)
        b = directions[units].flatten(1, 2)  # (K, m, e)
        gap = peaks[units].flatten(1).unsqueeze(2) - b @ z.to(torch.float64).unsqueeze(2)
        system = b @ b.mT + softness * torch.eye(b.shape[1], dtype=torch.float64)
        return (z + (b.mT @ torch.linalg.solve(system, gap)).squeeze(2)).to(z.dtype)

    def _find_peaks(self, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return directions, where units are highest along them, which add, and overlaps.

        A unit's peak is what it sees of the visible row on which it is highest; for a bump, its
        centre.
        """
        units = self.chosen[seed].units
        directions = units.directions.to(torch.float64)  # (U, R, e)
        outputs = self._stacks[seed].outputs(self.table.z[seed : seed + 1])[0, :, : len(units)]
        rows = self.table.z[seed, outputs.argmax(dim=0), :-1].to(torch.float64)  # (U, e)
        peaks = (directions @ rows.unsqueeze(2)).squeeze(2)  # (U, R)
        if self.form.size == 0:
            peaks = -units.weight[..., -1].to(torch.float64)
        rises = outputs.max(dim=0).values > -outputs.min(dim=0).values  # (U,)
        flat = directions.flatten(0, 1)
        overlap = (flat @ flat.mT).square()
        count, rank = directions.shape[:2]
        overlap = overlap.view(count, rank, count, rank).sum(dim=(1, 3)).fill_diagonal_(0.0)
        overlap = (overlap + 1e-12) * rises
        return directions, peaks, rises.nonzero()[:, 0], overlap.fill_diagonal_(0.0) + 1e-300

    def describe(self) -> list[dict[str, Any]]:
        """Return how many units there are, and how well they predict held-out rows."""
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


def append_one(z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, e + 1)
    """Append a column of ones, so that a product adds the centre."""
    return torch.cat([z, torch.ones_like(z[..., :1])], dim=-1)

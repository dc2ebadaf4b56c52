"""Training of low-rank units: the table they learn from, and the steps they take.

Models of several seeds and restarts are trained as one stack; each as if alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sqrt

import torch
from torch import Tensor

from ddobench.models.units import Form, Units, UnitStack
from ddobench.rng import Stream, Streams

WIDTH_STEP = 8  # models are stacked with those of equally many units, rounded up to this
BETAS = (0.9, 0.99)  # of Adam


@dataclass(frozen=True)
class Table:
    """The visible rows in float32, and which of them are held out."""

    z: Tensor  # (S, N, e + 1), the last column is 1
    y: Tensor  # (S, N)
    trained: Tensor  # (S, N - H)
    held_out: Tensor  # (S, H)

    @classmethod
    def of(cls, z: Tensor, y: Tensor, holdout: float, rng: Streams) -> "Table":
        """Draw the rows of z (S, N, e) and y (S, N) to hold out."""
        rows = y.shape[1]
        held = min(max(1, round(holdout * rows)), rows - 1)
        order = rng.permutation(rows)
        return cls(append_one(z), y, order[:, held:], order[:, :held])

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


def append_one(z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, e + 1)
    """Append a column of ones, so that a product adds the centre."""
    return torch.cat([z, torch.ones_like(z[..., :1])], dim=-1)

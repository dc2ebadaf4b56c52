"""Low-rank units: functions of a few learned directions each, and their training.

    f(z) = base + sum over k of g(W_k z - c_k),    W_k (R, e) free, nothing shared between units

A Gaussian unit is a bump, g(u) = height exp(-|u|^2). A network unit is a small network of the same
few directions, g(u) = sum over j of v_j tanh(q_j u + s_j), without a prescribed shape.

`Units` are the units of one model. A `UnitStack` trains and evaluates I models at once (axis I:
seeds, and restarts of each), padded with units that are and stay 0 everywhere. No product mixes
models, so the result of a model does not depend on the others: see `multiply` in `tensors`. `train`
trains models of several seeds and restarts.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import cos, pi, sqrt

import torch
from torch import Tensor

from ddobench.models.networks import LANES
from ddobench.models.tensors import multiply
from ddobench.rng import Stream, Streams

FAR = 100.0  # the centre of a padding unit: exp(-FAR^2) is 0 in every precision
WIDTH_STEP = 8  # numbers of units are rounded up to a multiple of this to be stacked
BETAS = (0.9, 0.99)  # of Adam


@dataclass(frozen=True)
class Units:
    """The U units of one model; the last column of a direction is minus its centre."""

    weight: Tensor  # (U, R, e + 1)
    shape: tuple[Tensor, ...]  # parameters of the form, (U, ...) each
    base: Tensor  # ()

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, chosen: Tensor) -> "Units":  # (U,) bool
        """Return the chosen units with the same base."""
        return Units(self.weight[chosen], tuple(part[chosen] for part in self.shape), self.base)

    def join(self, other: "Units") -> "Units":
        """Return the sum of two models."""
        shape = tuple(torch.cat(pair) for pair in zip(self.shape, other.shape, strict=True))
        return Units(torch.cat([self.weight, other.weight]), shape, self.base + other.base)

    @property
    def directions(self) -> Tensor:  # (U, R, e)
        """The directions of each unit."""
        return self.weight[..., :-1]


class Form(ABC):
    """The function of R numbers that a unit computes, for I models of U units at once."""

    size: int = 0  # of the hidden layer, where there is one

    @abstractmethod
    def draw(self, units: int, rank: int, height: float, stream: Stream) -> tuple[Tensor, ...]:
        """Draw the parameters of the form, (U, ...) each."""

    @abstractmethod
    def pad(self, part: Tensor, width: int) -> Tensor:  # (U, ...) -> (width, ...)
        """Append units that are 0 everywhere."""

    @abstractmethod
    def scale(self, shape: tuple[Tensor, ...], factor: Tensor) -> tuple[Tensor, ...]:
        """Return the same units, `factor` times as high."""

    @abstractmethod
    def forward(self, seen: Tensor, shape: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return outputs (I, n, U) for projections (I, R, n, U), and what backward needs."""

    @abstractmethod
    def backward(
        self,
        seen: Tensor,  # (I, R, n, U), overwritten by the result
        kept: Tensor,
        error: Tensor,  # (I, n, 1)
        shape: Sequence[Tensor],
        gradients: Sequence[Tensor] | None,  # where to write those of `shape`; None: nowhere
    ) -> Tensor:
        """Return d loss / d seen from `error` = d loss / d value."""

    def directions(self, units: Units) -> Tensor:  # (U, R, e)
        """Return the directions of units, whose lengths are their effects on the value."""
        return units.directions


class Gaussian(Form):
    """A bump: height exp(-|u|^2)."""

    def draw(self, units: int, rank: int, height: float, stream: Stream) -> tuple[Tensor, ...]:  # noqa: ARG002
        """Start all bumps at the same height."""
        return (torch.full((units,), height),)

    def pad(self, part: Tensor, width: int) -> Tensor:
        """Append heights of 0."""
        return torch.cat([part, part.new_zeros(width - len(part))])

    def scale(self, shape: tuple[Tensor, ...], factor: Tensor) -> tuple[Tensor, ...]:
        """Raise the heights."""
        return (shape[0] * factor,)

    def forward(self, seen: Tensor, shape: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return heights times bumps, and the bumps."""
        distance = seen[:, 0].square()  # (I, n, U)
        for row in range(1, seen.shape[1]):
            distance.addcmul_(seen[:, row], seen[:, row])
        bump = distance.neg_().exp_()
        return bump * shape[0].unsqueeze(1), bump

    def backward(
        self,
        seen: Tensor,
        kept: Tensor,
        error: Tensor,
        shape: Sequence[Tensor],
        gradients: Sequence[Tensor] | None,
    ) -> Tensor:
        """Differentiate the bumps."""
        if gradients is not None:
            multiply(error.mT, kept, gradients[0].unsqueeze(1))
        slope = kept.mul_(error).mul_(shape[0].unsqueeze(1)).mul_(-2.0)  # (I, n, U)
        return seen.mul_(slope.unsqueeze(1))


class Network(Form):
    """A small network: sum over j of v_j tanh(q_j u + s_j)."""

    def __init__(self, size: int) -> None:
        self.size = size

    def draw(self, units: int, rank: int, height: float, stream: Stream) -> tuple[Tensor, ...]:
        """Draw inner weights (U, J, R + 1) and outer ones (U, J)."""
        inner = stream.child("inner").normal(units, self.size, rank + 1)
        outer = stream.child("outer").normal(units, self.size)
        return inner, outer * (height / self.size**0.5)

    def pad(self, part: Tensor, width: int) -> Tensor:
        """Append weights of 0."""
        return torch.cat([part, part.new_zeros(width - len(part), *part.shape[1:])])

    def scale(self, shape: tuple[Tensor, ...], factor: Tensor) -> tuple[Tensor, ...]:
        """Raise the outer weights."""
        return shape[0], shape[1] * factor

    def forward(self, seen: Tensor, shape: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the sums over hidden values, and the hidden values (I, J, n, U)."""
        inner, outer = shape  # (I, U, J, R + 1), (I, U, J)
        hidden = torch.stack(
            [
                sum(
                    (seen[:, r] * inner[:, None, :, j, r] for r in range(seen.shape[1])),
                    start=inner[:, None, :, j, -1],
                )
                for j in range(self.size)
            ],
            dim=1,
        ).tanh_()  # (I, J, n, U)
        return sum(hidden[:, j] * outer[:, None, :, j] for j in range(self.size)), hidden  # type: ignore[return-value]

    def backward(
        self,
        seen: Tensor,
        kept: Tensor,
        error: Tensor,
        shape: Sequence[Tensor],
        gradients: Sequence[Tensor] | None,
    ) -> Tensor:
        """Pass the error back through the hidden values."""
        inner, outer = shape
        result = torch.zeros_like(seen)
        ones = torch.ones_like(error).mT  # (I, 1, n)
        for j in range(self.size):
            hidden = kept[:, j]  # (I, n, U)
            slope = (1 - hidden.square()) * outer[:, None, :, j] * error
            if gradients is not None:
                gradients[1][..., j] = multiply(error.mT, hidden)[:, 0]
                gradients[0][..., j, -1] = multiply(ones, slope)[:, 0]
            for r in range(seen.shape[1]):
                result[:, r].addcmul_(slope, inner[:, None, :, j, r])
                if gradients is not None:
                    gradients[0][..., j, r] = multiply(ones, slope * seen[:, r])[:, 0]
        return result

    def directions(self, units: Units) -> Tensor:  # (U, J, e)
        """Return the directions of the hidden values; W and q alone are not unique."""
        inner, outer = units.shape  # (U, J, R + 1), (U, J)
        return outer.unsqueeze(2) * (inner[..., :-1] @ units.directions)


FORMS = ("gaussian", "network")


def make_form(name: str, hidden: int) -> Form:
    """Return a form by its name; `hidden` is the size of a network."""
    return Gaussian() if name == "gaussian" else Network(hidden)


class UnitStack:
    """I models of at most U units each, evaluated and differentiated together.

    All parameters are views of the vector `flat`, all gradients views of `flat.grad`: an optimiser
    of `[flat]` updates the whole stack with one kernel.
    """

    def __init__(self, models: Sequence[Units], form: Form, width: int | None = None) -> None:
        self.form = form
        self.counts = [len(model) for model in models]
        width = max(1, *self.counts) if width is None else width
        weight = torch.stack([_pad_weight(model.weight, width) for model in models])
        shapes = [[form.pad(part, width) for part in model.shape] for model in models]
        parts = [
            weight.transpose(1, 2),  # (I, R, U, e + 1)
            torch.stack([model.base for model in models]),  # (I,)
            *[torch.stack(part) for part in zip(*shapes, strict=True)],  # (I, U, ...) each
        ]
        self.flat, views = _flatten(parts)
        self.flat.grad, gradients = _flatten([torch.zeros_like(part) for part in parts])
        self.weight, self.base, *self.shape = views
        self._weight_gradient, self._base_gradient, *self._shape_gradients = gradients

    def models(self) -> list[Units]:
        """Return copies of the models without padding."""
        weight = self.weight.transpose(1, 2)  # (I, U, R, e + 1)
        return [
            Units(
                weight[i, :count].clone(),
                tuple(part[i, :count].clone() for part in self.shape),
                self.base[i].clone(),
            )
            for i, count in enumerate(self.counts)
        ]

    def outputs(self, z: Tensor) -> Tensor:  # (I, n, e + 1) -> (I, n, U)
        """Return the output of each unit."""
        return self.form.forward(self._see(z), self.shape)[0]

    def value(self, z: Tensor) -> Tensor:  # (I, n, e + 1) -> (I, n)
        """Return the values of rows whose last column is 1."""
        return self._sum(self.outputs(z))

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of z (I, n, e + 1), (I, n), and their gradients, (I, n, e)."""
        seen = self._see(z)
        outputs, kept = self.form.forward(seen, self.shape)
        value = self._sum(outputs)
        ones = torch.ones_like(value).unsqueeze(2)
        slopes = self.form.backward(seen, kept, ones, self.shape, None)  # (I, R, n, U)
        directions = self.weight[..., :-1]  # (I, R, U, e)
        gradient = multiply(slopes[:, 0], directions[:, 0])
        for row in range(1, slopes.shape[1]):
            gradient += multiply(slopes[:, row], directions[:, row])
        return value, gradient

    def backprop_squared_error(self, z: Tensor, y: Tensor) -> None:
        """Write the gradient of each model's mean squared error on z (I, n, e + 1), y (I, n)."""
        seen = self._see(z)
        outputs, kept = self.form.forward(seen, self.shape)
        error = (self._sum(outputs) - y).mul_(2 / y.shape[1]).unsqueeze(2)  # (I, n, 1)
        slopes = self.form.backward(seen, kept, error, self.shape, self._shape_gradients)
        multiply(error.mT, torch.ones_like(error), self._base_gradient.view(-1, 1, 1))
        for row in range(slopes.shape[1]):
            multiply(slopes[:, row].mT, z, self._weight_gradient[:, row])

    def _see(self, z: Tensor) -> Tensor:  # (I, n, e + 1) -> (I, R, n, U)
        """Return the projections of each row on the directions."""
        models, rank, width, _ = self.weight.shape
        seen = z.new_empty(models, rank, z.shape[1], width)
        for row in range(rank):
            seen[:, row] = multiply(z, self.weight[:, row].mT)
        return seen

    def _sum(self, outputs: Tensor) -> Tensor:  # (I, n, U) -> (I, n)
        ones = outputs.new_ones(len(outputs), outputs.shape[2], 1)
        return multiply(outputs, ones).squeeze(2).add_(self.base.unsqueeze(1))


def _pad_weight(weight: Tensor, width: int) -> Tensor:  # (U, R, e + 1) -> (width, R, e + 1)
    """Append units without directions, far from any row, whose output is 0."""
    padding = weight.new_zeros(width - len(weight), *weight.shape[1:])
    padding[..., -1] = FAR
    return torch.cat([weight, padding])


def _flatten(parts: Sequence[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return one vector of all parts, padded to whole registers, and each part as its view."""
    total = sum(part.numel() for part in parts)
    flat = torch.cat([*[part.flatten() for part in parts], torch.zeros(-total % LANES)])
    sizes = [part.numel() for part in parts]
    pieces = torch.split(flat[:total], sizes)
    return flat, [piece.view(part.shape) for piece, part in zip(pieces, parts, strict=True)]


@dataclass(frozen=True)
class UnitTable:
    """The visible rows in float32, split into trained and held-out rows."""

    z: Tensor  # (S, N, e + 1), the last column is 1
    y: Tensor  # (S, N)
    trained: Tensor  # (S, N - H)
    held_out: Tensor  # (S, H)

    @classmethod
    def of(cls, z: Tensor, y: Tensor, holdout: float, rng: Streams) -> "UnitTable":
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
        """Remove units that do not reduce the error on held-out rows.

        A unit stays if replacing it by its mean increases the squared error by more than `use`
        standard errors.
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
    """Settings of a training: Adam with a rate that decreases to 0 along a cosine."""

    steps: int
    rate: float
    batch: int


def train(
    models: Sequence[Units],
    targets: Sequence[Tensor],  # (N,) each
    rows: Sequence[Tensor],  # (R,) each, those trained on
    decays: Sequence[float],  # decoupled weight decay of the directions
    seeds: Sequence[int],  # of the rows of each model
    plan: Plan,
    table: UnitTable,
    form: Form,
    streams: Sequence[Stream],
) -> list[Units]:
    """Return the models after training, each independent of the others.

    Models of about equal size are trained as one stack, padded to a width that depends only on the
    model itself.
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
    table: UnitTable,
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
    """Append a column of ones, for the centres."""
    return torch.cat([z, torch.ones_like(z[..., :1])], dim=-1)

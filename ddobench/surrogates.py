"""Learned models of the value: what a method fits, climbs, asks for predictions, and reports on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.networks import Differentiated, StackedMLP
from ddobench.standardisation import Standardiser
from ddobench.streams import Streams
from ddobench.training import History, Split, Training, squared_error, take_rows

ROWS_AT_ONCE = 1024  # designs predicted in one go
CURVE_POINTS = 50  # points kept of a curve over training steps

# values of E members (E, S, K) -> the joint value (S, K) and its slope in each member (E, S, K)
Aggregate = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Table:
    """The visible table, standardised per seed, in float32 on the device of the fit."""

    x: Tensor  # (S, N, d)
    y: Tensor  # (S, N)
    x_scale: Standardiser  # in float64, on the same device
    y_scale: Standardiser

    @classmethod
    def of(cls, data: Dataset, device: torch.device) -> "Table":
        """Standardise what is visible."""
        x_scale, y_scale = Standardiser.of(data.x), Standardiser.of(data.y)
        return cls(
            x=x_scale.apply(data.x).to(device, torch.float32),
            y=y_scale.apply(data.y).to(device, torch.float32),
            x_scale=x_scale.to(device),
            y_scale=y_scale.to(device),
        )

    @classmethod
    def standardised(
        cls, x: Tensor, y: Tensor, y_scale: Standardiser, device: torch.device
    ) -> "Table":
        """Take coordinates and values that are standardised already."""
        return cls(
            x=x.to(device, torch.float32),
            y=y.to(device, torch.float32),
            x_scale=Standardiser.none(x).to(device),
            y_scale=y_scale.to(device),
        )


class Surrogate:
    """One or more stacks of networks that together value designs in standardised units."""

    def __init__(
        self, table: Table, members: Sequence[StackedMLP], aggregate: Aggregate | None = None
    ) -> None:
        self.table = table
        self.members = members
        self.aggregate = aggregate or mean_value
        self._passes = [member.passes() for member in members]

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Return the value of standardised designs z (S, K, d) and its gradient, in z's dtype."""
        pairs = [passes.value_and_gradient(z.to(torch.float32)) for passes in self._passes]
        values = [value.to(z.dtype) for value, _ in pairs]
        gradients = [gradient.to(z.dtype) for _, gradient in pairs]
        value, slopes = self.aggregate(torch.stack(values))  # (S, K), (E, S, K)
        return value, (slopes[..., None] * torch.stack(gradients)).sum(dim=0)

    def value(self, z: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the value of standardised designs."""
        pieces = []
        for piece in torch.split(z.to(torch.float32), ROWS_AT_ONCE, dim=1):
            outputs = [passes.value(piece).to(z.dtype) for passes in self._passes]
            pieces.append(self.aggregate(torch.stack(outputs))[0])
        return torch.cat(pieces, dim=1)

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the value of designs, both in the units of the visible table."""
        z = self.table.x_scale.apply(x.to(self.table.x.device))
        return self.table.y_scale.undo(self.value(z)).cpu()


def fit_regression(
    table: Table, hidden: Sequence[int], training: Training, split: Split, rng: Streams, what: str
) -> tuple[StackedMLP, History]:
    """Fit one stack of networks to the values by least squares."""
    network = StackedMLP([table.x.shape[2], *hidden, 1], rng.child("weights"), table.x.device)
    passes, checking = network.passes(), network.passes()
    history = training.run(
        [network],
        [table.x, table.y],
        split,
        step=lambda x, y: squared_error(passes, x, y),
        check=lambda x, y: mean_squared_error(checking, x, y),
        rng=rng.child("minibatches"),
        what=what,
    )
    return network, history


def mean_squared_error(passes: Differentiated, x: Tensor, y: Tensor) -> Tensor:
    """Return the mean squared error of each seed on x (S, B, d) and y (S, B), (S,)."""
    return (passes.value(x) - y).square().mean(dim=1)


def mean_value(values: Tensor) -> tuple[Tensor, Tensor]:  # (E, S, K) -> (S, K), (E, S, K)
    """Value a design by the mean of the members."""
    return values.mean(dim=0), torch.full_like(values, 1 / len(values))


def min_value(values: Tensor) -> tuple[Tensor, Tensor]:  # (E, S, K) -> (S, K), (E, S, K)
    """Value a design by its most pessimistic member."""
    lowest = values.min(dim=0, keepdim=True)
    return lowest.values[0], torch.zeros_like(values).scatter_(0, lowest.indices, 1.0)


def lower_bound(kappa: float) -> Aggregate:
    """Value a design by the mean of the members minus kappa standard deviations."""

    def aggregate(values: Tensor) -> tuple[Tensor, Tensor]:  # (E, S, K) -> (S, K), (E, S, K)
        sd = values.std(dim=0, correction=0)
        away = (values - values.mean(dim=0)) / sd.where(sd > 0, 1.0)
        return values.mean(dim=0) - kappa * sd, (1 - kappa * away) / len(values)

    return aggregate


def describe_fit(
    surrogate: Surrogate, split: Split, histories: Sequence[History]
) -> list[dict[str, Any]]:
    """Return for each seed the loss over training and how well held-out values are predicted.

    Curves are means over the members. Without held-out rows the last two numbers are NaN.
    """
    table = surrogate.table
    truth = take_rows(table.y, split.held_out).cpu().numpy()  # (S, H)
    predicted = surrogate.value(take_rows(table.x, split.held_out)).cpu().numpy()  # (S, H)
    reports = []
    for seed in range(len(truth)):
        losses = [history.losses[:, seed].numpy() for history in histories]
        steps = min(map(len, losses))  # a member may stop early
        checks = min(len(history.check_steps) for history in histories)
        held = [history.held_out[:checks, seed].numpy() for history in histories]
        reports.append(
            {
                "training_loss": thin(np.mean([loss[:steps] for loss in losses], axis=0)),
                "training_steps": steps,
                "kept_steps": [int(history.kept_step[seed]) for history in histories],
                "held_out_loss": np.mean(held, axis=0).tolist(),
                "held_out_steps": list(histories[0].check_steps[:checks]),
                "held_out_r2": explained(predicted[seed], truth[seed]),
                "held_out_rank_correlation": rank_correlation(predicted[seed], truth[seed]),
            }
        )
    return reports


def thin(curve: NDArray[Any]) -> list[float]:  # (steps,) -> (at most CURVE_POINTS,)
    """Return the means of equal stretches of a curve."""
    stretches = np.array_split(curve, min(CURVE_POINTS, len(curve)))
    return [float(stretch.mean()) for stretch in stretches]


def explained(predicted: NDArray[Any], truth: NDArray[Any]) -> float:  # (H,), (H,)
    """Return R squared: the share of the variance of the truth that is predicted."""
    if len(truth) < 2 or truth.var() == 0:
        return float("nan")
    return float(1 - np.mean((predicted - truth) ** 2) / truth.var())


def rank_correlation(predicted: NDArray[Any], truth: NDArray[Any]) -> float:  # (H,), (H,)
    """Return the correlation of ranks (Spearman), NaN where one side is constant."""
    if len(truth) < 2 or np.ptp(predicted) == 0 or np.ptp(truth) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(predicted), rankdata(truth))[0, 1])

"""The training loop of stacked networks, and statistics of fits.

Every seed has its own minibatches. On one machine, with one number of threads, its result is the
same to the bit as without the other seeds: see `multiply` in `tensors`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.models.networks import Differentiated, StackedMLP
from ddobench.progress import track
from ddobench.rng import Streams

CHECKS = 20  # held-out checks per training
DIVERGED = 1e4  # times the first loss (or 1, if that is larger)
CURVE_POINTS = 50  # points kept of a curve over training steps
TINY = 1e-12  # the least variance that is divided by

Step = Callable[..., Tensor]  # minibatch tables (S, B, ...) -> loss (S,), gradients written
Check = Callable[..., Tensor]  # held-out tables (S, H, ...) -> loss (S,)


@dataclass(frozen=True)
class Split:
    """Which rows of each seed are trained on and which are held out."""

    trained: Tensor  # (S, N - H)
    held_out: Tensor  # (S, H)


@dataclass(frozen=True)
class History:
    """The course of the training of each seed."""

    losses: Tensor  # (steps taken, S) the loss of each minibatch
    held_out: Tensor  # (checks, S) the loss on held-out rows; (0, S) without any
    check_steps: tuple[int, ...]  # number of steps before each check
    kept_step: Tensor  # (S,) number of steps after which the kept parameters were reached
    failures: dict[int, str]  # position along S -> reason


@dataclass(kw_only=True)
class Training:
    """Settings of the training; the result of a seed does not depend on the other seeds."""

    name: ClassVar[str] = "training"

    steps: int = 1000
    batch: int = 128
    rate: float = 1e-3
    weight_decay: float = 0.0
    holdout: float = 0.1
    patience: int | None = None

    def __post_init__(self) -> None:
        check_whole("training.steps", self.steps, 1)
        check_whole("training.batch", self.batch, 1)
        if not 0 <= self.holdout < 1:
            raise UsageError(f"training.holdout must be a share in [0, 1), got {self.holdout}")
        if self.patience is not None:
            check_whole("training.patience", self.patience, 1, "null switches early stopping off")
            if self.holdout == 0:
                raise UsageError(
                    "training.patience needs held-out rows, got holdout=0; use holdout=0.1"
                )

    def split(self, rows: int, rng: Streams) -> Split:
        """Draw the rows to hold out."""
        held = min(round(self.holdout * rows), rows - 1)
        order = rng.permutation(rows)
        return Split(trained=order[:, held:], held_out=order[:, :held])

    def run(
        self,
        networks: Sequence[StackedMLP],
        tables: Sequence[Tensor],  # (S, N, ...) each
        split: Split,
        step: Step,
        check: Check,
        rng: Streams,
        what: str,
    ) -> History:
        """Train the networks in place with AdamW; `step` returns losses and writes gradients.

        With `patience`, a seed keeps the parameters of its best check, and is done after that many
        checks without a better one; the loop ends when all seeds are done.
        """
        flat = [network.flat for network in networks]
        optimiser = torch.optim.AdamW(
            flat, lr=self.rate, weight_decay=self.weight_decay, fused=True
        )
        stopping = EarlyStopping(networks, self.patience)
        held = [take_rows(table, split.held_out) for table in tables]
        batches = Minibatches(tables, split.trained, self.batch, rng)
        every = max(1, self.steps // CHECKS)
        # One table: small tensors kept from each step leave holes that large ones do not fit.
        losses = flat[0].new_empty(self.steps, len(tables[0]))
        for done in track(range(1, self.steps + 1), what):
            losses[done - 1] = step(*next(batches))
            optimiser.step()
            if (done % every == 0 or done == self.steps) and split.held_out.shape[1]:
                stopping.note(done, check(*held))
                if stopping.over():
                    break
        stopping.restore()
        history = losses[:done].cpu()
        return History(
            losses=history,
            held_out=torch.stack(stopping.losses) if stopping.losses else history[:0],
            check_steps=tuple(stopping.steps),
            kept_step=stopping.kept_step(done),
            failures=_failures(history, networks, what),
        )


class EarlyStopping:
    """Keeps a copy of each seed's best parameters; without patience it only records losses."""

    def __init__(self, networks: Sequence[StackedMLP], patience: int | None) -> None:
        self.networks = networks
        self.patience = patience
        self.losses: list[Tensor] = []  # (S,) each
        self.steps: list[int] = []
        seeds = networks[0].weights[0].shape[0]
        self._best = torch.full((seeds,), torch.inf)
        self._best_step = torch.zeros(seeds, dtype=torch.long)
        self._waited = torch.zeros(seeds, dtype=torch.long)
        self._copies = [network.snapshot() for network in networks] if patience else []

    def note(self, step: int, loss: Tensor) -> None:  # (S,)
        """Record the held-out loss after `step` steps."""
        loss = loss.cpu()
        self.losses.append(loss)
        self.steps.append(step)
        if self.patience is None:
            return
        better = (loss < self._best) & (self._waited < self.patience)
        self._best = loss.where(better, self._best)
        self._best_step[better] = step
        self._waited = torch.where(better, 0, self._waited + 1)
        for network, copy in zip(self.networks, self._copies, strict=True):
            network.store(copy, better.to(network.flat.device))

    def over(self) -> bool:
        """Return whether all seeds are done."""
        return self.patience is not None and bool((self._waited >= self.patience).all())

    def restore(self) -> None:
        """Restore the best parameters of every seed."""
        if self.patience is None:
            return
        for network, copy in zip(self.networks, self._copies, strict=True):
            network.restore(copy)

    def kept_step(self, last: int) -> Tensor:
        """Return the number of steps of each seed's parameters, (S,)."""
        return torch.full_like(self._best_step, last) if self.patience is None else self._best_step


class Minibatches(Iterator[list[Tensor]]):
    """Endless minibatches (S, B, ...) of the tables, reshuffled for every pass, per seed.

    Buffers are reused for each minibatch. Rows at the end of a pass that do not fill a minibatch
    are left out.
    """

    def __init__(self, tables: Sequence[Tensor], rows: Tensor, size: int, rng: Streams) -> None:
        seeds, n = tables[0].shape[:2]
        self._tables = [table.flatten(0, 1) for table in tables]  # (S * N, ...) each
        self._rows = rows + n * torch.arange(seeds)[:, None]  # (S, R) into the flattened rows
        self._size = min(size, rows.shape[1])
        self._batch = [
            table.new_empty(seeds, self._size, *table.shape[2:]) for table in tables
        ]  # (S, B, ...) each
        self._flat = [one.flatten(0, 1) for one in self._batch]  # (S * B, ...) each
        self._rng = rng
        self._left: list[Tensor] = []  # (S * B,) rows of the remaining minibatches of this pass

    def __next__(self) -> list[Tensor]:
        """Fill the buffers with the next minibatch of each seed."""
        if not self._left:
            self._left = self._shuffle()
        picked = self._left.pop()
        for table, flat in zip(self._tables, self._flat, strict=True):
            torch.index_select(table, 0, picked, out=flat)
        return self._batch

    def _shuffle(self) -> list[Tensor]:
        """Draw the minibatches of one pass."""
        seeds, rows = self._rows.shape
        count = rows // self._size
        order = self._rows.gather(1, self._rng.permutation(rows)[:, : count * self._size])
        passes = order.view(seeds, count, self._size).transpose(0, 1).reshape(count, -1)
        return list(passes.to(self._tables[0].device).unbind())


def backprop_squared_error(passes: Differentiated, x: Tensor, y: Tensor) -> Tensor:
    """Return the mean squared error of each seed on x (S, B, d), y (S, B), and write gradients."""
    residual = passes.forward(x).squeeze(2) - y  # (S, B)
    passes.backward((residual * (2 / y.shape[1])).unsqueeze(2))
    return residual.square().mean(dim=1)


def take_rows(table: Tensor, rows: Tensor) -> Tensor:  # (S, N, ...), (S, R) -> (S, R, ...)
    """Return the given rows of each seed."""
    seeds = torch.arange(len(rows))[:, None]
    return table[seeds, rows]


def _failures(losses: Tensor, networks: Sequence[StackedMLP], what: str) -> dict[int, str]:
    """Return for each seed whose training failed when and how it did."""
    finite = torch.stack([network.finite().cpu() for network in networks]).all(dim=0)  # (S,)
    failures = {}
    for seed, column in enumerate(losses.T):
        sound = column.abs() < DIVERGED * column[0].abs().clamp(min=1)  # false for NaN
        if not sound[-1]:
            first = int((~sound).nonzero()[0])
            failures[seed] = (
                f"{what}: the loss diverged, {float(column[first]):.3g} at step {first + 1} "
                f"of {len(column)}"
            )
        elif not finite[seed]:
            failures[seed] = f"{what}: parameters were no longer finite after the last step"
    return failures


def describe_training(history: History) -> list[dict[str, Any]]:
    """Return the loss of each seed over training, and that on held-out rows."""
    return [
        {
            "training_loss": thin(history.losses[:, seed].numpy()),
            "training_steps": len(history.losses),
            "held_out_loss": history.held_out[:, seed].tolist(),
            "held_out_steps": list(history.check_steps),
        }
        for seed in range(history.losses.shape[1])
    ]


def thin(curve: NDArray[Any]) -> list[float]:  # (steps,) -> (at most CURVE_POINTS,)
    """Return a curve of fewer points: the means of equal intervals."""
    intervals = np.array_split(curve, min(CURVE_POINTS, len(curve)))
    return [float(interval.mean()) for interval in intervals]


def explained(predicted: NDArray[Any], truth: NDArray[Any]) -> float:  # (H,), (H,)
    """Return R squared: the explained share of the variance of the truth."""
    if len(truth) < 2 or truth.var() == 0:
        return float("nan")
    return float(1 - np.mean((predicted - truth) ** 2) / truth.var())


def rank_correlation(predicted: NDArray[Any], truth: NDArray[Any]) -> float:  # (H,), (H,)
    """Return Spearman's rank correlation, NaN if one side is constant."""
    from scipy.stats import rankdata  # slow to import, and a plan needs none

    if len(truth) < 2 or np.ptp(predicted) == 0 or np.ptp(truth) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(predicted), rankdata(truth))[0, 1])


def unexplained(predicted: Tensor, truth: Tensor) -> Tensor:  # (S, H), (S, H) -> (S,)
    """Return the mean squared error of each seed as a share of the variance of its truth."""
    shares = [
        (one - rows).square().mean() / rows.var(correction=0).clamp(min=TINY)
        for one, rows in zip(predicted.double(), truth.double(), strict=True)
    ]
    return torch.stack(shares)

"""COMs: conservative objective models (Trabucco, Kumar, Geng, Levine 2021).

GA whose network is taught not to promise too much: in every training step each row of the minibatch
climbs the current network for 50 steps, and the network is pushed down where these negatives arrive
and up at the data. With a negative x- for every row x,

    loss = mean (f(x) - y)^2 + alpha (mean f(x-) - mean f(x)),

and log alpha ascends alpha (gap - limit), so that the gap settles at the limit. No gradient flows
through the climb.

Where we differ from the reference implementation:
- two hidden layers of 256 ReLU units, as the paper of FGM states for all methods, instead of 2048
  leaky ones;
- no entropy bonus in the climb and no noise on the inputs: its paper has neither;
- alpha starts at 0.1, as in its scripts (its code defaults to 1).

Its row: python -m ddobench -m method=coms task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.ascent import Ascent
from ddobench.contracts import Dataset, Method, Proposal
from ddobench.devices import pick_device
from ddobench.errors import UsageError, check_whole
from ddobench.networks import Passes, StackedMLP
from ddobench.streams import Streams
from ddobench.surrogates import Surrogate, Table, describe_fit, mean_squared_error, thin
from ddobench.training import Training


@dataclass(kw_only=True)
class COMs(Method):
    """Fit an MLP that does not overestimate what its own ascent finds, then climb it."""

    name: ClassVar[str] = "coms"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 10

    training: Training
    ascent: Ascent
    width: int = 256
    depth: int = 2
    negative_steps: int = 50
    negative_rate: float = 0.05
    alpha: float = 0.1
    alpha_rate: float = 0.01
    limit: float = 0.5
    device: str = "auto"

    def __post_init__(self) -> None:
        check_whole("method.width", self.width, 1)
        check_whole("method.depth", self.depth, 0)
        check_whole("method.negative_steps", self.negative_steps, 1)
        if self.alpha <= 0:
            raise UsageError(f"method.alpha must be positive, its log is learned, got {self.alpha}")
        self._failures: dict[int, str] = {}
        self._believed: list[Tensor] = []  # (S,) mean prediction at each iteration

    def declines(self, data: Dataset) -> str | None:
        """Decline designs without a gradient."""
        return "coms climbs continuous designs only" if data.space.categorical else None

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Train network and multiplier together."""
        table = Table.of(data, pick_device(self.device))
        self._split = self.training.split(data.n, rng.child("split"))
        streams = rng.child("surrogate")
        sizes = [data.space.d, *[self.width] * self.depth, 1]
        network = StackedMLP(sizes, streams.child("weights"), table.x.device)
        self._step = ConservativeStep(
            network,
            negative_steps=self.negative_steps,
            negative_rate=self.negative_rate * data.space.d**0.5,
            alpha=self.alpha,
            alpha_rate=self.alpha_rate,
            limit=self.limit,
        )
        checking = Passes(network)
        self._history = self.training.run(
            [network],
            [table.x, table.y],
            self._split,
            step=self._step,
            check=lambda x, y: mean_squared_error(checking, x, y),
            rng=streams.child("minibatches"),
            what="surrogate",
        )
        self._surrogate = Surrogate(table, [network])
        self._failures |= self._history.failures

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Climb from the starts."""
        table = self._surrogate.table
        z = table.x_scale.apply(starts.to(table.x.device))  # (S, K, d)
        for ledge in self.ascent.climb(z, self._surrogate.value_and_gradient, self._failures):
            self._believed.append(ledge.value.mean(dim=1).cpu())
            yield Proposal(
                table.x_scale.undo(ledge.x), table.y_scale.undo(ledge.value), ledge.iteration
            )

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the surrogate's value."""
        return self._surrogate.predict(x)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training or ascent broke down."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return what GA reports, and alpha and the gap over training."""
        reports = describe_fit(self._surrogate, self._split, [self._history])
        alphas, gaps = torch.stack(self._step.alphas).cpu(), torch.stack(self._step.gaps).cpu()
        for seed, report in enumerate(reports):
            report["believed"] = [float(mean[seed]) for mean in self._believed]
            report["alpha"] = thin(alphas[:, seed].numpy())
            report["gap"] = thin(gaps[:, seed].numpy())
        return reports


class ConservativeStep:
    """One training step: writes the gradient, moves alpha, returns the squared error."""

    def __init__(
        self,
        network: StackedMLP,
        *,
        negative_steps: int,
        negative_rate: float,
        alpha: float,
        alpha_rate: float,
        limit: float,
    ) -> None:
        self.negative_steps = negative_steps
        self.negative_rate = negative_rate
        self.limit = limit
        self.alphas: list[Tensor] = []  # (S,) used in each step
        self.gaps: list[Tensor] = []  # (S,) found in each step
        seeds = network.weights[0].shape[0]
        self.log_alpha = torch.full((seeds,), alpha, device=network.flat.device).log()
        self._dual = torch.optim.Adam([self.log_alpha], lr=alpha_rate)
        self._climbing, self._fitting = Passes(network), Passes(network)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:  # (S, B, d), (S, B) -> (S,)
        """Take the gradient on a minibatch."""
        rows = y.shape[1]
        both = torch.cat([x, self.negatives(x)], dim=1)  # (S, 2B, d)
        value = self._fitting.forward(both)[..., 0]  # (S, 2B)
        residual = value[:, :rows] - y  # (S, B)
        gap = value[:, rows:].mean(dim=1) - value[:, :rows].mean(dim=1)  # (S,)
        alpha = self.log_alpha.exp()  # (S,)
        push = (alpha / rows)[:, None].expand(-1, rows)  # (S, B)
        error = torch.cat([residual * (2 / rows) - push, push], dim=1)  # (S, 2B)
        self._fitting.backward(error[..., None])
        self.log_alpha.grad = alpha * (self.limit - gap)
        self._dual.step()
        self.alphas.append(alpha)
        self.gaps.append(gap)
        return residual.square().mean(dim=1)

    def negatives(self, x: Tensor) -> Tensor:  # (S, B, d) -> (S, B, d)
        """Return where every row arrives by plain gradient ascent; the minibatch stays as it is."""
        x = x.clone()
        up = torch.ones_like(x[..., :1])
        for _ in range(self.negative_steps):
            self._climbing.forward(x)
            x.add_(self._climbing.backward_to_input(up), alpha=self.negative_rate)
        return x

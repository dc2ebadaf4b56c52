"""RWR: reward-weighted regression (Peters and Schaal 2007) on a learned model of the value.

Every start becomes the mean of a Gaussian of its own, with standard deviation 1 in standardised
units. In each iteration one design x is drawn from each Gaussian, and its mean and log standard
deviation follow the gradient of the weighted log-likelihood

    mean over the designs of w(x) log N(x; mu, sigma^2),   w(x) = exp(f(x) / temperature),

with w clamped to [1e-6, 1e3] and not differentiated. The means are the proposals.

Details as in the authors' later code: Adam at rate 0.05 sqrt(d), one sample per design, the clamp.
With temperature 0.05 the clamp holds w constant beyond f = 0.35 standard deviations, so most of
what moves the means is noise; `normalise` puts the best sample of a seed at w = 1 instead.

Its row: python -m ddobench -m method=rwr task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal
from ddobench.devices import pick_device
from ddobench.errors import UsageError, check_whole
from ddobench.streams import Streams
from ddobench.surrogates import Surrogate, Table, describe_fit, fit_regression
from ddobench.training import Training


@dataclass(kw_only=True)
class RWR(Method):
    """Fit an MLP, then move a Gaussian around each start towards what the MLP values."""

    name: ClassVar[str] = "rwr"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 10

    training: Training
    width: int = 256
    depth: int = 2
    steps: int = 50
    rate: float = 0.05
    root_d: bool = True
    temperature: float = 0.05
    least_weight: float = 1e-6
    most_weight: float = 1e3
    normalise: bool = False
    record_every: int = 1
    device: str = "auto"

    def __post_init__(self) -> None:
        check_whole("method.width", self.width, 1)
        check_whole("method.depth", self.depth, 0)
        check_whole("method.steps", self.steps, 1)
        check_whole("method.record_every", self.record_every, 1)
        if self.temperature <= 0:
            raise UsageError(f"method.temperature must be positive, got {self.temperature}")
        self._failures: dict[int, str] = {}
        self._believed: list[Tensor] = []  # (S,) mean prediction at each iteration

    def declines(self, data: Dataset) -> str | None:
        """Decline designs without a density."""
        return "rwr moves continuous designs only" if data.space.categorical else None

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit the same network as GA."""
        table = Table.of(data, pick_device(self.device))
        self._split = self.training.split(data.n, rng.child("split"))
        network, self._history = fit_regression(
            table,
            [self.width] * self.depth,
            self.training,
            self._split,
            rng.child("surrogate"),
            "surrogate",
        )
        self._surrogate = Surrogate(table, [network])
        self._failures |= self._history.failures

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Move the Gaussians and yield their means."""
        table, noise = self._surrogate.table, rng.child("noise")
        mean = table.x_scale.apply(starts.to(table.x.device))  # (S, K, d)
        log_sd = torch.zeros_like(mean)  # (S, K, d)
        _, designs, d = mean.shape
        optimiser = torch.optim.Adam(
            [mean, log_sd], lr=self.rate * (d**0.5 if self.root_d else 1.0), maximize=True
        )
        for iteration in range(self.steps + 1):
            if iteration % self.record_every == 0 or iteration == self.steps:
                value = self._surrogate.value(mean)  # (S, K)
                self._believed.append(value.mean(dim=1).cpu())
                yield Proposal(table.x_scale.undo(mean), table.y_scale.undo(value), iteration)
            if iteration == self.steps:
                break
            draw = noise.normal(designs, d).to(mean)  # (S, K, d)
            sample = mean + log_sd.exp() * draw
            share = self.weights(self._surrogate.value(sample))[..., None] / designs  # (S, K, 1)
            mean.grad = share * draw / log_sd.exp()
            log_sd.grad = share * (draw.square() - 1)
            self._note_failures(mean.grad, iteration)
            optimiser.step()

    def weights(self, value: Tensor) -> Tensor:  # (S, K) -> (S, K)
        """Return how much each sample counts, from its standardised value."""
        if self.normalise:
            value = value - value.max(dim=1, keepdim=True).values
        return (value / self.temperature).exp().clamp(self.least_weight, self.most_weight)

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the surrogate's value."""
        return self._surrogate.predict(x)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training or ascent broke down."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the quality of the fit, and the mean prediction (sd units) along the way."""
        reports = describe_fit(self._surrogate, self._split, [self._history])
        for seed, report in enumerate(reports):
            report["believed"] = [float(mean[seed]) for mean in self._believed]
        return reports

    def _note_failures(self, gradient: Tensor, iteration: int) -> None:
        sound = torch.isfinite(gradient).flatten(1).all(dim=1)  # (S,)
        for seed in (~sound).nonzero().flatten().tolist():
            reason = f"rwr: a gradient was not finite at iteration {iteration}"
            self._failures.setdefault(seed, reason)

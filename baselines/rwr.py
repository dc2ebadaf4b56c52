"""RWR: reward-weighted regression (Peters and Schaal 2007) on a learned model of the value.

Every start is the mean of its own Gaussian, with standard deviation 1 in standardised units. In
each iteration one design x is drawn from each Gaussian, and its mean and log standard
deviation follow the gradient of the weighted log-likelihood

    mean over the designs of w(x) log N(x; mu, sigma^2),   w(x) = exp(f(x) / temperature),

with w clamped to [1e-6, 1e3] and not differentiated. The means are the proposals.

Details as in the authors' later code: Adam at rate 0.05 sqrt(d), one sample per design, the clamp.
With temperature 0.05 the clamp makes w constant beyond f = 0.35 standard deviations, so that the
means mostly follow noise; `normalise` scales w to 1 for the best sample of a seed instead.

Command: python -m ddobench -m method=rwr task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import AscentStep, Search, note_broken_gradient
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


@dataclass(kw_only=True)
class RWR(Search):
    """Move a Gaussian around each start towards high values of the model."""

    name: ClassVar[str] = "rwr"
    uses_gradient: ClassVar[bool] = False

    steps: int = 50
    rate: float = 0.05
    root_d: bool = True
    temperature: float = 0.05
    least_weight: float = 1e-6
    most_weight: float = 1e3
    normalise: bool = False
    record_every: int = 1

    def __post_init__(self) -> None:
        check_whole("search.steps", self.steps, 1)
        check_whole("search.record_every", self.record_every, 1)
        if self.temperature <= 0:
            raise UsageError(f"search.temperature must be positive, got {self.temperature}")

    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Move the Gaussians and yield their means."""
        noise = rng.child("noise")
        mean = start.clone()  # (S, K, e)
        log_sd = torch.zeros_like(mean)  # (S, K, e)
        _, designs, e = mean.shape
        optimiser = torch.optim.Adam(
            [mean, log_sd], lr=self.rate * (e**0.5 if self.root_d else 1.0), maximize=True
        )
        for iteration in range(self.steps + 1):
            if iteration % self.record_every == 0 or iteration == self.steps:
                yield AscentStep(iteration, mean.clone(), model.value(mean))
            if iteration == self.steps:
                break
            draw = noise.normal(designs, e).to(mean)  # (S, K, e)
            sample = mean + log_sd.exp() * draw
            share = self.weights(model.value(sample))[..., None] / designs  # (S, K, 1)
            mean.grad = share * draw / log_sd.exp()
            log_sd.grad = share * (draw.square() - 1)
            note_broken_gradient("rwr", mean.grad, iteration, failures)
            optimiser.step()

    def weights(self, value: Tensor) -> Tensor:  # (S, K) -> (S, K)
        """Return the weight of each sample, from its standardised value."""
        if self.normalise:
            value = value - value.max(dim=1, keepdim=True).values
        return (value / self.temperature).exp().clamp(self.least_weight, self.most_weight)

"""REINFORCE on a learned model of the value (Williams 1992): one normal distribution of designs.

The distribution has a mean and a standard deviation for each coordinate, at first those of the best
128 visible rows. In each of 200 updates 500 designs x are drawn from it, and mean and log standard
deviation follow the gradient of

    mean over the draws of f(x) log N(x; mean, sd^2),

with f the value by the model, standardised over the draws, through Adam at rate 0.01. The proposals
are 128 draws.

The settings are those of Design-Bench (Trabucco, Geng, Kumar, Levine 2022), on the mean of five
bootstrapped networks. Deviations:
- the proposals of all iterations share their standard normals, so that a curve shows how the
  distribution changes and not how draws differ;
- the standard deviation is the exponential of its parameter (theirs a softplus of a logarithm, so
  that it does not start at that of the rows);
- on categories theirs draws categories from one distribution for each variable; here a normal one
  of the codes is drawn from, as on real designs, and the largest code is the category;
- the ensemble is fitted by least squares (theirs by likelihood, with an embedding of categories).

As in its code, the values of the draws are standardised in each update (`baseline`), which changes
the size of a gradient and, in expectation, not its direction. Records from before this setting have
`search.baseline=false`.

On categories each update draws 256 designs, and the networks have one hidden layer of 256 units and
100 epochs of batches of 100 at rate 1e-3, as in its script for TFBind8 (`reinforce/experiments.py`
of brandontrabucco/design-baselines at 785dbcf).

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=reinforce task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import UsageError, check_whole
from ddobench.models.tensors import Standardiser
from ddobench.models.training import TINY
from ddobench.parts.search import (
    AscentStep,
    Search,
    check_beginning,
    note_broken_gradient,
    pick_beginning,
)
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams

STANDARDISED = "standardised"
BASELINES = (False, True, STANDARDISED)  # how the values of draws are shifted and scaled


@dataclass(kw_only=True)
class Reinforce(Search):
    """Move one distribution of designs towards high values of the model."""

    name: ClassVar[str] = "reinforce"

    begin_at: str = "top"
    designs: int = 128
    steps: int = 200
    draws: int = 500
    rate: float = 0.01
    baseline: bool | str = "standardised"
    record_every: int = 4

    def __post_init__(self) -> None:
        check_beginning(self.begin_at, self.designs)
        check_whole("search.steps", self.steps, 1)
        check_whole("search.draws", self.draws, 2)
        check_whole("search.record_every", self.record_every, 1)
        if self.baseline not in BASELINES:
            raise UsageError(
                "search.baseline must be standardised, true (centred) or false (as they are), "
                f"got {self.baseline!r}"
            )
        if self.rate <= 0:
            raise UsageError(f"search.rate must be positive, got {self.rate}")

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # (S, K, d) -> (S, at most K, d)
        """Return the rows that define the initial distribution."""
        return pick_beginning(self.begin_at, self.designs, starts, data)

    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Move the distribution of each seed, and yield draws from it."""
        _, designs, e = start.shape
        rows = Standardiser.of(start)
        mean, log_sd = rows.mean.clone(), rows.scale.log()  # (S, 1, e) each
        shown = rng.child("shown").normal(designs, e, dtype=start.dtype).to(start)  # (S, K, e)
        noise = rng.child("noise")
        optimiser = torch.optim.Adam([mean, log_sd], lr=self.rate, maximize=True)
        for iteration in range(self.steps + 1):
            if iteration % self.record_every == 0 or iteration == self.steps:
                proposed = mean + log_sd.exp() * shown
                yield AscentStep(iteration, proposed, model.value(proposed))
            if iteration == self.steps:
                break
            draw = noise.normal(self.draws, e, dtype=start.dtype).to(start)  # (S, draws, e)
            reward = model.value(mean + log_sd.exp() * draw)[..., None]  # (S, draws, 1)
            if self.baseline:
                reward = reward - average(reward)
            if self.baseline == STANDARDISED:
                reward = reward / average(reward.square()).clamp(min=TINY).sqrt()
            mean.grad = average(reward * draw) / log_sd.exp()
            log_sd.grad = average(reward * (draw.square() - 1))
            note_broken_gradient(self.name, log_sd.grad, iteration, failures)
            optimiser.step()


def average(table: Tensor) -> Tensor:  # (S, K, ...) -> (S, 1, ...)
    """Return the mean over the rows, seed by seed."""
    return torch.stack([rows.mean(dim=0, keepdim=True) for rows in table])

"""Searches: how designs move up a fitted model of the value.

A `Search` is a part of a method: its fields are hyper-parameters. `Ascent` is the ordinary one:
every design climbs on its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams

OPTIMISERS = ("gradient", "adam")

# designs (S, K, d) -> their values (S, K) and the gradient of each value (S, K, d)
Objective = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class AscentStep:
    """Where the designs stand at one iteration."""

    iteration: int
    x: Tensor  # (S, K, d)
    value: Tensor  # (S, K) by the objective


@dataclass(kw_only=True)
class Search(ABC):
    """A way to find better designs by a model; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    leaps: ClassVar[bool] = False  # whether it needs a model that knows where to leap
    reads_posterior: ClassVar[bool] = False  # whether it needs the posterior of a Gaussian process

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # noqa: ARG002
        """Return the visible designs to search from, (S, at most K, d).

        Unless a search declares otherwise these are `starts` (S, K, d), the same for all methods.
        """
        return starts

    @abstractmethod
    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Yield where coordinates start (S, K, e) and where they are after recorded iterations.

        A seed that breaks down is noted in `failures` unless it is there already.
        """

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - a default for all searches
        """Return why coordinates of a space cannot be searched, or None if they can.

        Categories arrive here as the real codes of `relaxation`.
        """
        return None


@dataclass(kw_only=True)
class Ascent(Search):
    """Gradient ascent in standardised (or latent) coordinates."""

    name: ClassVar[str] = "ascent"

    steps: int = 50
    rate: float = 0.05
    root_d: bool = True
    optimiser: str = "gradient"
    prior: float = 0.0
    prior_end: float | None = None
    caution: float = 0.0
    record_every: int = 1

    def __post_init__(self) -> None:
        check_whole("search.steps", self.steps, 1)
        check_whole("search.record_every", self.record_every, 1)
        check_one_of("search.optimiser", self.optimiser, OPTIMISERS)
        if self.rate <= 0:
            raise UsageError(f"search.rate must be positive, got {self.rate}")
        if self.caution < 0:
            raise UsageError(f"search.caution must be 0 or more, got {self.caution}")

    def step_size(self, d: int) -> float:
        """Return the rate for designs of d variables."""
        return self.rate * sqrt(d) if self.root_d else self.rate

    def prior_weight(self, iteration: int) -> float:
        """Return lambda of the prior term; with `prior_end` it moves there along a line."""
        if self.prior_end is None or self.steps == 1:
            return self.prior
        share = iteration / (self.steps - 1)
        return self.prior + (self.prior_end - self.prior) * share

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,  # noqa: ARG002 - nothing is drawn
        failures: MutableMapping[int, str],
    ) -> Iterator[AscentStep]:
        """Climb the model from every start."""
        more = weigh_error(model, self.caution) if self.caution else 0.0
        return self.climb(start, model.value_and_gradient, failures, more)

    def climb(
        self,
        start: Tensor,
        objective: Objective,
        failures: MutableMapping[int, str],
        more: Tensor | float = 0.0,  # (S, 1, 1)
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first step and after every `record_every`-th.

        Each step follows g - lambda x: the gradient of the value and, weighted by `prior` (and
        `more`), that of a standard normal log density. A design whose gradient is not finite stays
        where it is, and its seed is noted in `failures` unless it is there already.
        """
        x = start.clone()  # (S, K, d)
        move = self._mover(x)
        for iteration in range(self.steps + 1):
            value, gradient = objective(x)
            if iteration % self.record_every == 0 or iteration == self.steps:
                yield AscentStep(iteration, x.clone(), value)
            if iteration == self.steps:
                break
            sound = torch.isfinite(gradient).all(dim=-1, keepdim=True)  # (S, K, 1)
            note_failures(sound, iteration, failures)
            direction = gradient - (self.prior_weight(iteration) + more) * x
            move(direction.where(sound, 0.0))

    def _mover(self, x: Tensor) -> Callable[[Tensor], None]:
        """Return what moves x in place along a direction (S, K, d)."""
        kind = torch.optim.Adam if self.optimiser == "adam" else torch.optim.SGD
        optimiser = kind([x], lr=self.step_size(x.shape[2]), maximize=True)

        def move(direction: Tensor) -> None:
            x.grad = direction
            optimiser.step()

        return move


def weigh_error(model: Model, caution: float) -> Tensor:  # (S, 1, 1)
    """Return a prior weight that grows with the held-out error: caution sqrt(error).

    An error counts as 4 at most, four times that of no model: rows that are held out may all have
    nearly the same value, and then the error has no scale, and designs would be thrown about.
    """
    error = model.error()
    if error is None:
        raise UsageError(
            f"search.caution={caution:g} needs a surrogate that holds rows out; "
            "use caution=0 or a holdout above 0"
        )
    return caution * error.clamp(0, 4).sqrt()[:, None, None]


def note_failures(sound: Tensor, iteration: int, failures: MutableMapping[int, str]) -> None:
    lost = (~sound).flatten(1).sum(dim=1)  # (S,)
    if lost.any():
        for seed in lost.nonzero().flatten().tolist():
            failures.setdefault(
                seed,
                f"ascent: the gradient of {int(lost[seed])} of {sound.shape[1]} designs was not "
                f"finite at iteration {iteration}",
            )


def note_broken_gradient(
    what: str, gradient: Tensor, iteration: int, failures: MutableMapping[int, str]
) -> None:
    """Note the seeds of which some gradient (S, ...) is not finite, unless they are there."""
    sound = torch.isfinite(gradient).flatten(1).all(dim=1)  # (S,)
    for seed in (~sound).nonzero().flatten().tolist():
        failures.setdefault(seed, f"{what}: a gradient was not finite at iteration {iteration}")

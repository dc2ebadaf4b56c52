"""Searches: how designs move up a fitted model of the value.

A `Search` is a part of a method: its fields are hyper-parameters. In `Ascent` every design climbs
independently. `TopAscent` starts at the best visible rows, `Cautious` chooses its prior weight by
the held-out error of the model, and `Hop` also moves designs from peak to peak.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.parts.surrogates import Model, Surrogate
from ddobench.rng import Streams

OPTIMISERS = ("gradient", "adam")
BEGINNINGS = ("top", "starts")  # the best visible rows, or the starts of all methods

Encode = Callable[[Tensor], Tensor]  # designs (S, K, d) -> their coordinates (S, K, e)
# designs (S, K, d) -> their values (S, K) and the gradient of each value (S, K, d)
Objective = Callable[[Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class AscentStep:
    """The designs at one iteration."""

    iteration: int
    x: Tensor  # (S, K, d)
    value: Tensor  # (S, K) by the objective


@dataclass(kw_only=True)
class Search(ABC):
    """A way to find better designs by a model; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    leaps: ClassVar[bool] = False  # whether it needs a model with a `leap`
    reads_posterior: ClassVar[bool] = False  # whether it needs the posterior of a Gaussian process
    uses_gradient: ClassVar[bool] = True  # whether it needs a model with a gradient
    needs_categories: ClassVar[bool] = False  # whether it is for categorical designs only

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # noqa: ARG002
        """Return the visible designs to search from, (S, at most K, d).

        By default these are `starts` (S, K, d), which are the same for all methods.
        """
        return starts

    def prepare(self, rows: Tensor, encode: Encode, snap: Encode) -> None:  # noqa: B027
        """Take the coordinates of the visible rows (S, N, e) and two maps, if a search needs them.

        `encode` maps designs to coordinates. `snap` replaces coordinates (S, K, e) by those of the
        design that they are decoded to, which differ where designs have whole categories.
        """

    def refuses(self, surrogate: Surrogate) -> str | None:  # noqa: ARG002 - a default for all
        """Return why models of a surrogate cannot be searched, or None if they can."""
        return None

    @abstractmethod
    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Yield the coordinates (S, K, e) at the start and after recorded iterations.

        A seed that fails is added to `failures`, unless it is there already.
        """

    def declines(self, space: Space) -> str | None:  # noqa: ARG002 - a default for all searches
        """Return why coordinates of a space cannot be searched, or None if they can.

        Categories are represented by the real codes of `relaxation` here.
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
        """Return lambda of the prior term; with `prior_end` it changes linearly."""
        if self.prior_end is None or self.steps == 1:
            return self.prior
        share = iteration / (self.steps - 1)
        return self.prior + (self.prior_end - self.prior) * share

    def objective(self, start: Tensor, model: Model, rng: Streams) -> Objective:  # noqa: ARG002
        """Return what is climbed; by default the model."""
        return model.value_and_gradient

    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Climb from every start."""
        more = weigh_error(model, self.caution) if self.caution else 0.0
        return self.climb(start, self.objective(start, model, rng), failures, more)

    def climb(
        self,
        start: Tensor,
        objective: Objective,
        failures: MutableMapping[int, str],
        more: Tensor | float = 0.0,  # (S, 1, 1)
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first step and after every `record_every`-th.

        Each step follows g - lambda x: the gradient of the value and, weighted by `prior` (plus
        `more`), that of a standard normal log density. A design whose gradient is not finite does
        not move, and its seed is added to `failures`, unless it is there already.
        """
        x = start.clone()  # (S, K, d)
        move = self._mover(x)
        for iteration in range(self.steps + 1):
            value, gradient = objective(x)
            if iteration % self.record_every == 0 or iteration == self.steps:
                yield AscentStep(iteration, x.clone(), value)
            if iteration == self.steps:
                break
            finite = torch.isfinite(gradient).all(dim=-1, keepdim=True)  # (S, K, 1)
            note_failures(finite, iteration, failures)
            direction = gradient - (self.prior_weight(iteration) + more) * x
            move(direction.where(finite, 0.0))

    def _mover(self, x: Tensor) -> Callable[[Tensor], None]:
        """Return a function that moves x in place along a direction (S, K, d)."""
        kind = torch.optim.Adam if self.optimiser == "adam" else torch.optim.SGD
        optimiser = kind([x], lr=self.step_size(x.shape[2]), maximize=True)

        def move(direction: Tensor) -> None:
            x.grad = direction
            optimiser.step()

        return move


def weigh_error(model: Model, caution: float) -> Tensor:  # (S, 1, 1)
    """Return a prior weight that grows with the held-out error: caution sqrt(error).

    The error is limited to 4, four times that of predicting the mean: if all held-out rows have
    nearly the same value, the share is arbitrarily large, and the step would be unbounded.
    """
    error = model.error()
    if error is None:
        raise UsageError(
            f"search.caution={caution:g} needs a surrogate that holds rows out; "
            "use caution=0 or a holdout above 0"
        )
    return caution * error.clamp(0, 4).sqrt()[:, None, None]


def note_failures(finite: Tensor, iteration: int, failures: MutableMapping[int, str]) -> None:
    """Add the seeds with a gradient that is not `finite` (S, K, 1), unless they are there."""
    lost = (~finite).flatten(1).sum(dim=1)  # (S,)
    if lost.any():
        for seed in lost.nonzero().flatten().tolist():
            failures.setdefault(
                seed,
                f"ascent: the gradient of {int(lost[seed])} of {finite.shape[1]} designs was not "
                f"finite at iteration {iteration}",
            )


def note_broken_gradient(
    what: str, gradient: Tensor, iteration: int, failures: MutableMapping[int, str]
) -> None:
    """Add the seeds with a gradient (S, ...) that is not finite, unless they are there."""
    finite = torch.isfinite(gradient).flatten(1).all(dim=1)  # (S,)
    for seed in (~finite).nonzero().flatten().tolist():
        failures.setdefault(seed, f"{what}: a gradient was not finite at iteration {iteration}")


@dataclass(kw_only=True)
class TopAscent(Ascent):
    """Gradient ascent of few designs, from the best visible rows.

    Most published methods climb from the best 128 rows of the table; by default methods here share
    random visible starts. Where a search starts can matter more than the model, so it is a declared
    setting. Both choices read only the visible table.
    """

    name: ClassVar[str] = "top_ascent"

    begin_at: str = "top"
    designs: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_beginning(self.begin_at, self.designs)

    def begin(self, starts: Tensor, data: Dataset) -> Tensor:  # (S, K, d) -> (S, at most K, d)
        """Return the rows to climb from."""
        return pick_beginning(self.begin_at, self.designs, starts, data)


def check_beginning(begin_at: str, designs: int) -> None:
    """Raise an error if the settings of the start are invalid."""
    check_one_of("search.begin_at", begin_at, BEGINNINGS)
    check_whole("search.designs", designs, 1)


def pick_beginning(begin_at: str, designs: int, starts: Tensor, data: Dataset) -> Tensor:
    """Return the best visible rows, best first, or the first of starts (S, K, d), (S, few, d).

    There are at most as many as starts, and as rows.
    """
    few = min(designs, starts.shape[1])
    if begin_at == "starts":
        return starts[:, :few]
    order = data.y.sort(dim=1, descending=True, stable=True).indices[:, :few]  # (S, few)
    return torch.take_along_dim(data.x, order[..., None], dim=1)


@dataclass(kw_only=True)
class Cautious(Ascent):
    """Gradient ascent with a prior weight chosen by the held-out error of the model. Ours.

    A standard normal prior holds designs near the data: each step follows g - lambda z. If the
    weight is too small, designs leave the region that the model knows; if it is too large, they
    stay near the mean. The smallest weight is taken for which the designs end within the radius
    mean |z|^2 / e <= 1 - error, with the held-out squared error as a share of the variance. Visible
    designs have mean |z|^2 / e = 1, so a perfect model may move as far out as they are, and a
    useless one not at all. The rule was found on few instances; it reads only visible rows.
    """

    name: ClassVar[str] = "cautious"

    weights: Sequence[float] = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
    scouts: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("search.scouts", self.scouts, 1)
        if not self.weights or min(self.weights) < 0:
            raise UsageError(f"search.weights must be numbers >= 0, got {self.weights}")

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,  # noqa: ARG002 - nothing is drawn
        failures: MutableMapping[int, str],
    ) -> Iterator[AscentStep]:
        """Try the weights on some starts, smallest first, then climb from all starts."""
        error = model.error()
        if error is None:
            raise UsageError("search=cautious needs a surrogate that holds rows out; use holdout>0")
        allowed = (1 - error).clamp(min=0.0).to(start)  # (S,)
        chosen = torch.full_like(allowed, max(self.weights))
        found = torch.zeros_like(allowed, dtype=torch.bool)
        for weight in sorted(self.weights):
            if found.all():
                break
            *_, last = self.climb(start[:, : self.scouts], model.value_and_gradient, {}, weight)
            radius = torch.stack([rows.square().mean() for rows in last.x])  # (S,)
            inside = radius <= allowed  # false for NaN
            chosen = torch.where(inside & ~found, weight, chosen)
            found |= inside
        self.chosen = chosen.tolist()
        return self.climb(start, model.value_and_gradient, failures, chosen[:, None, None])


@dataclass(kw_only=True)
class Hop(Search):
    """Climb with a decreasing prior weight, then repeatedly leap to other peaks and climb again.

    Gradients lead to the nearest peak. A model that is a sum of bumps knows where its other peaks
    are: designs leap to where a few overlapping parts are highest, climb again, and keep the new
    place only if it is higher.

    The designs climb value - L |z|^2 / 2 with L = prior + caution sqrt(error), where error is the
    held-out squared error as a share of the variance. Stages with larger weights come first, which
    lead towards the middle of the data.
    """

    name: ClassVar[str] = "hop"
    leaps: ClassVar[bool] = True

    rate: float = 0.05
    root_d: bool = True
    stages: Sequence[float] = (0.3, 0.2, 0.1, 0.05)
    steps: int = 60
    prior: float = 0.0
    caution: float = 0.3
    hops: int = 60
    hop_steps: int = 30
    further: int = 2
    softness: float = 0.1
    record_every: int = 30

    def __post_init__(self) -> None:
        for name in ("steps", "hop_steps", "record_every"):
            check_whole(f"search.{name}", getattr(self, name), 1)
        check_whole("search.hops", self.hops, 0)
        check_whole("search.further", self.further, 0)
        for name in ("rate", "softness"):
            if getattr(self, name) <= 0:
                raise UsageError(f"search.{name} must be positive, got {getattr(self, name)}")
        for name in ("prior", "caution"):
            if getattr(self, name) < 0:
                raise UsageError(f"search.{name} must be 0 or more, got {getattr(self, name)}")

    def run(
        self, start: Tensor, model: Model, rng: Streams, failures: MutableMapping[int, str]
    ) -> Iterator[AscentStep]:
        """Yield the designs before the first step, while they climb, and after hops."""
        least = self.prior + weigh_error(model, self.caution).to(start)  # (S, 1, 1)
        climber = Climber(
            model, self.rate * (sqrt(start.shape[2]) if self.root_d else 1.0), failures
        )
        z = start.clone()  # (S, K, e)
        yield AscentStep(0, z, model.value(z))
        for weight in [least.clamp(min=stage) for stage in self.stages] + [least]:
            for _ in range(self.steps):
                z = climber.step(z, weight)
                if climber.taken % self.record_every == 0:
                    yield AscentStep(climber.taken, z, model.value(z))
        streams = rng.child("hops")
        height = climber.height(z, least)
        for hop in range(self.hops):
            leapt = model.leap(z, hop % (self.further + 1), self.softness, streams)
            for _ in range(self.hop_steps):
                leapt = climber.step(leapt, least)
            reached = climber.height(leapt, least)
            better = reached > height  # (S, K); false where not finite
            z, height = leapt.where(better[..., None], z), reached.where(better, height)
            if (hop + 1) % max(1, self.record_every // self.hop_steps) == 0 or hop + 1 == self.hops:
                yield AscentStep(climber.taken, z, model.value(z))


class Climber:
    """Takes and counts gradient steps."""

    def __init__(self, model: Model, size: float, failures: MutableMapping[int, str]) -> None:
        self.model = model
        self.size = size
        self.failures = failures
        self.taken = 0

    def step(self, z: Tensor, weight: Tensor) -> Tensor:  # (S, K, e), (S, 1, 1) -> (S, K, e)
        """Move along the gradient of value - weight |z|^2 / 2, where that is finite."""
        gradient = self.model.value_and_gradient(z)[1]
        finite = torch.isfinite(gradient).all(dim=-1, keepdim=True)  # (S, K, 1)
        note_failures(finite, self.taken, self.failures)
        self.taken += 1
        return z + self.size * (gradient - weight * z).where(finite, 0.0)

    def height(self, z: Tensor, weight: Tensor) -> Tensor:  # (S, K, e), (S, 1, 1) -> (S, K)
        """Return value - weight |z|^2 / 2."""
        return self.model.value(z) - weight[..., 0] * z.square().sum(dim=-1) / 2

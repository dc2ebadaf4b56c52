"""What tasks and methods promise each other, and nothing else.

Axes have fixed letters everywhere: S seeds, N visible rows, d design variables, K designs,
T recorded iterations. Larger y is always better. An invalid design has the value NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from ddobench.coverage import Instance
from ddobench.errors import UsageError, check_whole
from ddobench.graphs import Graph
from ddobench.identity import declared_name
from ddobench.rng import Stream, Streams
from ddobench.store.cache import ArrayCache

Privilege = Literal["graph", "hidden"]

LARGEST = torch.finfo(torch.float32).max  # that a value can have, as runs store them in float32


@dataclass(frozen=True)
class Space:
    """The space of designs: R^d, or one category out of `sizes[i]` for each variable i."""

    d: int
    sizes: tuple[int, ...] | None = None

    @property
    def categorical(self) -> bool:
        """Whether every variable takes one of finitely many whole values."""
        return self.sizes is not None

    def contains(self, x: Tensor) -> Tensor:  # (..., d) -> (...)
        """Return which designs are finite and, in a categorical space, of existing categories."""
        inside = torch.isfinite(x)
        if self.sizes is not None:
            top = torch.tensor(self.sizes, dtype=x.dtype, device=x.device)
            inside &= (x == x.round()) & (x >= 0) & (x < top)
        return inside.all(dim=-1)


@dataclass(frozen=True)
class Hidden:
    """The coordinates behind the observed designs, and the way from either to the other."""

    visible: Tensor  # (S, N, d_hidden) behind the visible designs
    observe: Callable[[Tensor], Tensor]  # (S, K, d_hidden) -> (S, K, d)
    recover: Callable[[Tensor], Tensor]  # (S, K, d) -> (S, K, d_hidden), NaN where there is none


@dataclass(frozen=True)
class Privileged:
    """What only the harness may know; a field is filled only for a method that asks by name."""

    graphs: tuple[Graph, ...] | None = None  # one per seed
    hidden: Hidden | None = None

    @property
    def granted(self) -> frozenset[Privilege]:
        """What was filled: a task may not have what a method asks for."""
        known: dict[Privilege, object] = {"graph": self.graphs, "hidden": self.hidden}
        return frozenset(name for name, value in known.items() if value is not None)


@dataclass(frozen=True)
class Dataset:
    """All a method ever sees: the visible table of S problem instances, in float64."""

    x: Tensor  # (S, N, d)
    y: Tensor  # (S, N)
    space: Space
    privileged: Privileged = field(default=Privileged())

    def __post_init__(self) -> None:
        if self.x.ndim != 3 or self.y.shape != self.x.shape[:2] or self.x.shape[2] != self.space.d:
            raise ValueError(
                f"a dataset needs x (S, N, {self.space.d}) and y (S, N), "
                f"got {tuple(self.x.shape)} and {tuple(self.y.shape)}"
            )

    @property
    def n(self) -> int:
        """The number of visible rows N."""
        return self.x.shape[1]

    def best(self) -> Tensor:
        """Return the best visible design of each seed, (S, d)."""
        top = self.y.argmax(dim=1)
        return self.x[torch.arange(len(top)), top]


@dataclass(frozen=True)
class HiddenRows:
    """Held-out rows of a table: the harness compares predictions with them."""

    x: Tensor  # (S, H, d)
    y: Tensor  # (S, H)


@dataclass(frozen=True)
class Problem(ABC):
    """S instances of a task: the visible table and, for the harness alone, the oracle."""

    data: Dataset
    optimum: Tensor | None  # (S,) the largest value any valid design has, where known exactly
    graphs: tuple[Graph, ...] | None  # the true graph of each instance, where known
    hidden: Tensor | None = None  # (S, N, d_hidden) coordinates behind data.x, where there are any
    held_out: HiddenRows | None = None  # where there are any
    full_range: Tensor | None = None  # (S, 2) least and largest value of all data, where known
    lower_bound: Tensor | None = None  # (S,) what some design attains, where no optimum is known

    @property
    def measures(self) -> bool:
        """Whether new designs have a value at all; False: only rows of a table do."""
        return True

    @property
    def exact(self) -> bool:
        """Whether the oracle has made the visible values; False: it is a model of them."""
        return True

    def evaluate(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the true value of each design in float64, NaN where the design is invalid."""
        seeds, _, d = self.data.x.shape
        if x.ndim != 3 or x.shape[0] != seeds or x.shape[2] != d:
            raise ValueError(f"designs must be (S={seeds}, K, d={d}), got {tuple(x.shape)}")
        x = x.to(torch.float64)
        inside = self.data.space.contains(x)
        y = self._evaluate(torch.where(inside[..., None], x, torch.ones_like(x)))
        if not isinstance(y, Tensor) or y.shape != inside.shape:
            got = tuple(y.shape) if isinstance(y, Tensor) else type(y).__name__
            raise ValueError(f"_evaluate must return (S, K) = {tuple(inside.shape)}, got {got}")
        values = torch.where(inside, y.to(torch.float64), torch.nan)
        if (values.abs() > LARGEST).any():
            raise ValueError(
                f"values must be finite and at most {LARGEST:.1e}, or NaN for an invalid design, "
                f"got {float(values[values.abs() > LARGEST][0]):g}"
            )
        return values

    @abstractmethod
    def _evaluate(self, x: Tensor) -> Tensor:
        """Compute the values of finite float64 designs, NaN where one is invalid."""

    def measure(self, x: Tensor) -> dict[str, Tensor]:  # noqa: ARG002 - a default for all tasks
        """Return further per-design measurements, each (S, K), such as an off-surface residual."""
        return {}

    def best_designs(self) -> Tensor | None:
        """Return a design of each seed that attains the optimum, (S, d), where one is known."""
        return None

    def theory(self) -> list[Instance]:
        """Return what the terms of the paper's theorem are computed from, for each seed.

        A task that knows more than its graph and a best design adds it to what this returns.
        """
        found = [Instance(x.numpy(), self.data.space.sizes) for x in self.data.x]
        best = self.best_designs()
        if best is not None:
            found = [replace(one, best=own.numpy()) for one, own in zip(found, best, strict=True)]
        if self.graphs is not None:
            graphs = zip(found, self.graphs, strict=True)
            found = [replace(one, cliques=graph.cliques) for one, graph in graphs]
        return found

    def visible_to(self, privileges: frozenset[Privilege]) -> Dataset:
        """Return the table with exactly the privileged knowledge that was asked for by name."""
        return replace(
            self.data,
            privileged=Privileged(
                graphs=self.graphs if "graph" in privileges else None,
                hidden=(
                    Hidden(self.hidden, self.observe, self.recover)
                    if "hidden" in privileges and self.hidden is not None
                    else None
                ),
            ),
        )

    def observe(self, hidden: Tensor) -> Tensor:  # (S, K, d_hidden) -> (S, K, d)
        """Return the designs with the given hidden coordinates; without a map they are the same."""
        return hidden

    def recover(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, d_hidden)
        """Return the hidden coordinates of designs, NaN where there are none."""
        return x


@dataclass(frozen=True)
class Description:
    """The text about a task in the report."""

    title: str
    formula: str  # plain text with Unicode symbols
    text: str


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """A family of problems; its fields are its settings, a seed picks the instance."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    regret_unit: ClassVar[Literal["sd", "raw"]] = "sd"

    d: int
    n: int

    def __post_init__(self) -> None:
        check_whole("d", self.d, 1)
        check_whole("n", self.n, 2)

    def problem(self, seeds: Sequence[int]) -> Problem:
        """Draw the instances of the given seeds, all at once."""
        return self._draw(self.streams(seeds))

    def streams(self, seeds: Sequence[int]) -> Streams:
        """Return the data streams, named by the task alone so that all methods share them."""
        name = declared_name(type(self)) or type(self).__name__
        return Streams(seeds, f"task/{name}")

    @abstractmethod
    def describe(self) -> Description:
        """Describe the task for the report."""

    @abstractmethod
    def _draw(self, rng: Streams) -> Problem:
        """Draw one instance per seed of `rng`."""


@dataclass(frozen=True)
class Proposal:
    """The designs of one iteration, best first unless the method predicts their values."""

    designs: Tensor  # (S, K, d)
    predicted: Tensor | None = None  # (S, K); None: the harness asks the method's predict()
    iteration: int | None = None  # None: one more than the iteration before


@dataclass(frozen=True)
class Insight:
    """The codes and graph of a fitted method for the designs of one seed, for diagnostics."""

    codes: Tensor  # (K, e) the coordinates it works in
    reconstructed: Tensor  # (K, d) the designs these coordinates stand for
    graph: Graph  # between the coordinates
    directions: Tensor | None = None  # (U, R, e) in which each unit of its model looks


@dataclass(kw_only=True)
class Method(ABC):
    """A way to propose designs from a table; its fields are its hyper-parameters."""

    name: ClassVar[str] = ""  # in digests; every class declares its own
    version: ClassVar[int] = 1  # bump when the numbers of an unchanged config change
    seeds_at_once: ClassVar[int | None] = None  # the most seeds worth stacking; None: all of them

    # what runs of the same task and seed share; the harness brings one that lasts
    cache: ArrayCache = field(init=False, default_factory=ArrayCache, repr=False, compare=False)

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002 - a default for all
        """Return the privileged knowledge this configuration asks for on designs of a space."""
        return frozenset()

    def declines(self, data: Dataset) -> str | None:  # noqa: ARG002 - a default for all methods
        """Return why this method cannot work on such data, or None if it can."""
        return None

    def working_bytes(self, n: int, d: int) -> float:  # noqa: ARG002 - a default for all methods
        """Return the memory that a fit takes once, however many seeds it has, beside their rows."""
        return 0.0

    @abstractmethod
    def fit(self, data: Dataset, rng: Streams) -> None:
        """Learn from the visible table."""

    @abstractmethod
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the designs at each iteration, the first before any step.

        `starts` (S, K, d) are visible designs, the same for every method of a seed; a method may
        propose fewer than K designs, never more.
        """

    def predict(self, x: Tensor) -> Tensor | None:  # noqa: ARG002 - a default for all methods
        """Return the model's value of each design in the units of y, (S, K), or None."""
        return None

    def insight(self, x: Tensor) -> Sequence[Insight | None]:  # noqa: ARG002 - a default for all
        """Return codes and graph of designs x (S, K, d) for each seed, None without a latent.

        Empty: no seed has one.
        """
        return []

    def failures(self) -> Mapping[int, str]:
        """Return the seeds (positions along S) whose fit or ascent broke down, and why."""
        return {}

    def diagnostics(self) -> Sequence[Mapping[str, Any]]:
        """Return what to store beside the scores, one JSON-like mapping per seed."""
        return []


class OneSeedMethod(Method):
    """An adapter for methods that take one seed at a time: the harness loops over seeds."""

    seeds_at_once: ClassVar[int | None] = 1

    @abstractmethod
    def fit_one(self, x: Tensor, y: Tensor, space: Space, rng: Stream) -> None:
        """Learn from one visible table: x (N, d), y (N,)."""

    @abstractmethod
    def propose_one(self, starts: Tensor, rng: Stream) -> Iterator[Tensor]:
        """Yield designs (K, d) at each iteration, from visible designs `starts` (K, d)."""

    def predict_one(self, x: Tensor) -> Tensor | None:  # noqa: ARG002 - a default for all methods
        """Return the model's value of each design, (K,), or None."""
        return None

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Learn from the only seed there is."""
        if len(rng.rows) != 1:
            raise UsageError(f"a one-seed method was given {len(rng.rows)} seeds at once")
        self.fit_one(data.x[0], data.y[0], data.space, rng.rows[0])

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the designs of the only seed there is."""
        for designs in self.propose_one(starts[0], rng.rows[0]):
            yield Proposal(designs[None])

    def predict(self, x: Tensor) -> Tensor | None:
        """Return the model's values for the only seed there is."""
        y = self.predict_one(x[0])
        return None if y is None else y[None]

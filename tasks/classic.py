"""Classic test functions in a box: Rastrigin, Rosenbrock, Styblinski-Tang and Dixon-Price.

They show whether a finding is about structure or about Gaussian bumps, which the chain family
cannot. The functions are well known, and so are their graphs. Rastrigin and Styblinski-Tang have no
edges, Rosenbrock and Dixon-Price are chains. With `rotated=true` all variables interact.

Functions and boxes are those of Surjanovic and Bingham's Virtual Library of Simulation Experiments,
negated, as larger is better. The optimum is exact: each seed moves it to another place inside the
box, as in BBOB (Hansen et al. 2009), by f(R(x - place) + z*), where z* is the maximiser over all of
R^d. Visible designs are uniform in the box, and a design outside of it is invalid. Values decrease
so steeply that the best of 5,000 such designs at d=20 is at 93 % of the way from their mean to the
optimum (Rastrigin: 50 %). By default the better half is therefore hidden, which leaves 29 % (12 %).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import pi
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_one_of, check_truncation, check_whole
from ddobench.graphs import Graph
from ddobench.rng import Stream, Streams
from ddobench.tasks.truncation import fill_below


@dataclass(frozen=True)
class Function:
    """A function to be maximised, in its textbook form."""

    title: str
    formula: str
    low: float
    high: float
    chained: bool  # whether neighbours interact; no other variables do
    value: Callable[[Tensor], Tensor]  # (..., d) -> (...)
    maximiser: Callable[[int], Tensor]  # d -> (d,)


def _rastrigin(z: Tensor) -> Tensor:
    return -(z.square() - 10.0 * torch.cos(2.0 * pi * z) + 10.0).sum(dim=-1)


def _styblinski_tang(z: Tensor) -> Tensor:
    return -0.5 * (z.pow(4) - 16.0 * z.square() + 5.0 * z).sum(dim=-1)


def _rosenbrock(z: Tensor) -> Tensor:
    bend = z[..., 1:] - z[..., :-1].square()
    return -(100.0 * bend.square() + (1.0 - z[..., :-1]).square()).sum(dim=-1)


def _dixon_price(z: Tensor) -> Tensor:
    weight = torch.arange(2, z.shape[-1] + 1, dtype=z.dtype)
    bend = 2.0 * z[..., 1:].square() - z[..., :-1]
    return -(z[..., 0] - 1.0).square() - (weight * bend.square()).sum(dim=-1)


def _everywhere(z: float) -> Callable[[int], Tensor]:
    return lambda d: torch.full((d,), z, dtype=torch.float64)


def _dixon_price_maximiser(d: int) -> Tensor:
    power = 2.0 ** torch.arange(1, d + 1, dtype=torch.float64)
    return 2.0 ** -((power - 2.0) / power)


FUNCTIONS = {
    "rastrigin": Function(
        "Rastrigin", "-Σ (zᵢ² - 10 cos 2πzᵢ + 10)", -5.12, 5.12, False, _rastrigin,
        _everywhere(0.0),
    ),
    "styblinski_tang": Function(
        "Styblinski-Tang", "-½ Σ (zᵢ⁴ - 16 zᵢ² + 5 zᵢ)", -5.0, 5.0, False, _styblinski_tang,
        _everywhere(-2.9035340277711771),  # a root of 4 z³ - 32 z + 5
    ),
    "rosenbrock": Function(
        "Rosenbrock", "-Σ (100 (zᵢ₊₁ - zᵢ²)² + (1 - zᵢ)²)", -5.0, 10.0, True, _rosenbrock,
        _everywhere(1.0),
    ),
    "dixon_price": Function(
        "Dixon-Price", "-(z₁ - 1)² - Σ i (2 zᵢ² - zᵢ₋₁)²", -10.0, 10.0, True, _dixon_price,
        _dixon_price_maximiser,
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Instance:
    """A function moved and rotated, in its box."""

    function: Function
    place: Tensor  # (d,) of the optimum
    rotation: Tensor | None  # (d, d); None: not rotated

    def __call__(self, x: Tensor) -> Tensor:  # (K, d) -> (K,)
        """Return the values of designs, NaN outside the box."""
        z = x - self.place
        if self.rotation is not None:
            z = z @ self.rotation
        value = self.function.value(z + self.function.maximiser(len(self.place)))
        inside = (x >= self.function.low) & (x <= self.function.high)
        return torch.where(inside.all(dim=-1), value, torch.nan)


@dataclass(frozen=True, kw_only=True)
class ClassicProblem(Problem):
    """Classic functions with the place and the rotation of each seed."""

    instances: tuple[Instance, ...]

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.stack([f(rows) for f, rows in zip(self.instances, x, strict=True)])

    def best_designs(self) -> Tensor:
        """Return the design of each seed that attains the optimum, (S, d)."""
        return torch.stack([f.place for f in self.instances])


@dataclass(frozen=True, kw_only=True)
class Classic(Task):
    """Uniform designs in the box of a classic function."""

    name: ClassVar[str] = "Classic"

    function: str = "rosenbrock"
    rotated: bool = False
    shift: float = 0.8
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("task.function", self.function, tuple(FUNCTIONS))
        check_whole("d", self.d, 2, "a single variable has no graph")
        if not 0.0 <= self.shift <= 1.0:
            raise UsageError(
                "task.shift must be from 0 (the optimum at its textbook place) to 1 (anywhere in "
                f"the box), got {self.shift}"
            )
        check_truncation(self.truncate)

    def describe(self) -> Description:
        """Describe the task."""
        function = FUNCTIONS[self.function]
        turned = "R(x - c)" if self.rotated else "x - c"
        text = [f"{self.n} designs, uniform in a box, are visible; designs outside are invalid."]
        if self.truncate is not None:
            text.append(f"Values above their percentile {self.truncate:g} are hidden.")
        if self.shift:
            text.append("Each seed has its own place c of the optimum.")
        if self.rotated:
            text.append("All variables interact, by a random rotation R.")
        else:
            text.append("Neighbours interact." if function.chained else "No variables interact.")
        return Description(
            title=f"{'Rotated ' * self.rotated}{function.title} function, d={self.d}",
            formula=f"f(x) = {function.formula}, z = {turned} + z*, "
            f"x ∈ [{function.low:g}, {function.high:g}]^{self.d}",
            text=" ".join([*text, "The optimum is exact."]),
        )

    def _draw(self, rng: Streams) -> ClassicProblem:
        seeds = len(rng.seeds)
        instances = tuple(self._draw_instance(stream) for stream in rng.rows)
        x = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for s, stream in enumerate(rng.rows):
            pilot = partial(self._take, stream.child("pilot"), instances[s])
            rows = partial(self._take, stream.child("designs"), instances[s])
            fill_below(x[s], y[s], self.truncate, pilot=pilot, rows=rows)
        function = FUNCTIONS[self.function]
        return ClassicProblem(
            data=Dataset(x=x, y=y, space=Space(self.d)),
            optimum=function.value(function.maximiser(self.d)).repeat(seeds),
            graphs=(self._graph(),) * seeds,
            instances=instances,
        )

    def _take(self, designs: Stream, instance: Instance, rows: int) -> tuple[Tensor, Tensor]:
        """Draw the next designs (rows, d) and their values (rows,)."""
        x = _draw_in_box(designs, instance.function, rows, self.d)
        return x, instance(x)

    def _draw_instance(self, stream: Stream) -> Instance:
        function = FUNCTIONS[self.function]
        classic = function.maximiser(self.d)
        place = classic + self.shift * (_draw_in_box(stream.child("place"), function, 1, self.d)[0]
                                        - classic)  # fmt: skip
        rotation = None
        if self.rotated:
            gauss = stream.child("rotation").normal(self.d, self.d, dtype=torch.float64)
            rotation, triangle = torch.linalg.qr(gauss)
            rotation = (
                rotation * triangle.diagonal().sign()
            )  # for a uniform distribution over rotations
        return Instance(function, place, rotation)

    def _graph(self) -> Graph:
        if self.rotated:
            return Graph.from_cliques(self.d, [range(self.d)])
        chained = FUNCTIONS[self.function].chained
        return Graph.from_edges(self.d, [(i, i + 1) for i in range(self.d - 1)] if chained else [])


def _draw_in_box(stream: Stream, function: Function, rows: int, d: int) -> Tensor:
    """Draw uniform designs, (rows, d)."""
    width = function.high - function.low
    return function.low + width * stream.uniform(rows, d, dtype=torch.float64)

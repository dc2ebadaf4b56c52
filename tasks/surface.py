"""Designs on a curved surface: many columns, all of them functions of few hidden variables.

Most tables of real designs are like this: columns depend on each other, and a design off the
surface of the rows cannot be built, whatever the range of each column allows. A model of the rows
knows nothing about designs off the surface, so a search that climbs it freely leaves.

The hidden variables z are standard normal. A random network observes them,
x = (tanh(zA + b)B - mean) / sd, so that every column has mean 0 and standard deviation 1, and rows
are scattered a little around the surface. The value of a design is that of the nearest point of the
surface: the largest of several Gaussian bumps in the hidden variables, the highest of which has the
centre that is the optimum, exactly. A design that is farther from the surface than `thickness` is
invalid. Distances are root mean squares over the columns.

The nearest point is found by damped Gauss-Newton steps from the nearest of many points of the
surface; a design that is slightly off after the first search gets several starts. The distance of a
design that is far off is an upper bound.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.errors import UsageError, check_whole
from ddobench.rng import Stream, Streams

UNITS = 64  # of the network
GAIN = 2.0  # standard deviation of the inputs of its units
SHIFT = 0.5  # standard deviation of their thresholds
HEIGHT = 5.0  # of the highest bump
OTHERS = 5  # lower bumps among the rows
LOWEST, LOWER = 1.5, 3.5  # range of their heights
PILOT = 4_000  # points of the surface that determine mean and standard deviation of the columns
STARTS = 8  # for a design that is off the surface by the first
LIBRARY = 4_000  # points of the surface to start from
WIDER = 1.5  # standard deviation of their hidden variables: beyond most rows
FAR = 3.0  # times the thickness: a design that is farther off has one start
STEPS = 30
CLOSE = 1e-11  # change of the hidden variables at which a search ends
ROUNDING = 1e-12  # relative, of a squared distance: a step that changes less is taken
SLOW = 1e-4  # relative change of the squared distance at which it ends off the surface
ABSURD = 1e6  # a design with a larger entry is not compared with the surface
BLOCK = 8_192  # designs at once


@dataclass(frozen=True)
class Instance:
    """The surface and the bumps of one instance."""

    inner: Tensor  # (h, units)
    threshold: Tensor  # (units,)
    outer: Tensor  # (units, d)
    mean: Tensor  # (d,)
    starts: Tensor  # (L, h)
    centres: Tensor  # (bumps, h), the first is the optimum
    heights: Tensor  # (bumps,)
    width: float

    def observe(self, hidden: Tensor) -> Tensor:  # (K, h) -> (K, d)
        """Return the points of the surface with the given hidden variables."""
        return torch.tanh(hidden @ self.inner + self.threshold) @ self.outer - self.mean

    def value(self, hidden: Tensor) -> Tensor:  # (K, h) -> (K,)
        """Return the height of the highest bump."""
        squares = (hidden[:, None] - self.centres).square().sum(dim=2)  # (K, bumps)
        return (self.heights * torch.exp(-squares / (2 * self.width**2))).amax(dim=1)

    def recover(self, x: Tensor, thickness: float) -> tuple[Tensor, Tensor]:
        """Return the hidden variables of the nearest points (K, h), and the distances (K,)."""
        size = x.abs().amax(dim=1)
        safe = torch.where((size < ABSURD)[:, None], x, 0.0)
        parts = [self._recover(rows, thickness) for rows in torch.split(safe, BLOCK)]
        hidden, distance = (torch.cat(part) for part in zip(*parts, strict=True))
        return hidden, torch.where(size < ABSURD, distance, size)

    def _recover(self, x: Tensor, thickness: float) -> tuple[Tensor, Tensor]:
        library = self.observe(self.starts)
        near = torch.cdist(x, library).topk(STARTS, dim=1, largest=False).indices  # (K, STARTS)
        hidden, distance = self._descend(x, self.starts[near[:, 0]], thickness)
        for start in near.T[1:]:
            off = ((distance > thickness) & (distance < FAR * thickness)).nonzero()[:, 0]
            again, farther = self._descend(x[off], self.starts[start[off]], thickness)
            nearer = farther < distance[off]
            hidden[off[nearer]], distance[off[nearer]] = again[nearer], farther[nearer]
        return hidden, distance

    def _descend(self, x: Tensor, hidden: Tensor, thickness: float) -> tuple[Tensor, Tensor]:
        """Move hidden variables (K, h) to the points nearest to x (K, d), and return distances."""
        d, h = x.shape[1], hidden.shape[1]
        slopes = (self.outer[:, :, None] * self.inner.T[:, None]).flatten(1)  # (units, d h)
        hidden = hidden.clone()
        off = x - self.observe(hidden)
        error = off.square().sum(dim=1)
        damping = torch.full((len(x),), 1e-2, dtype=x.dtype)
        moving = torch.arange(len(x))
        for _ in range(STEPS):
            z, rest, damp, before = hidden[moving], off[moving], damping[moving], error[moving]
            active = torch.tanh(z @ self.inner + self.threshold)
            jacobian = ((1 - active.square()) @ slopes).reshape(-1, d, h)
            turned = jacobian.transpose(1, 2)
            normal = turned @ jacobian
            normal.diagonal(dim1=1, dim2=2).add_((damp + 1e-12)[:, None])
            step = torch.linalg.solve(normal, turned @ rest[..., None])[..., 0]
            new = x[moving] - self.observe(z + step)
            after = new.square().sum(dim=1)
            better = after <= before * (1 + ROUNDING)
            taken = moving[better]
            hidden[taken], off[taken], error[taken] = (z + step)[better], new[better], after[better]
            damping[moving] = torch.where(better, damp / 10, damp * 10)
            slow = better & (after > (1 - SLOW) * before) & (after > d * thickness**2)
            moving = moving[(step.abs().amax(dim=1) > CLOSE) & ~slow]
            if not len(moving):
                break
        return hidden, (error / d).sqrt()


@dataclass(frozen=True, kw_only=True)
class SurfaceProblem(Problem):
    """Designs near the surface of each seed."""

    instances: tuple[Instance, ...]
    thickness: float
    last: dict[str, Tensor] = field(default_factory=dict, init=False, repr=False, compare=False)

    def _evaluate(self, x: Tensor) -> Tensor:
        distance, value = self._nearest(x)
        return torch.where(distance <= self.thickness, value, torch.nan)

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        """Return the distance of each design to the surface and the value of the nearest point."""
        inside = self.data.space.contains(x)
        distance, value = self._nearest(torch.where(inside[..., None], x, 1.0).to(torch.float64))
        return {
            "surface_distance": torch.where(inside, distance, torch.nan),
            "surface_value": torch.where(inside, value, torch.nan),
        }

    def _nearest(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the distance to the surface and the value of its nearest point, (S, K) each.

        Those of the last designs are kept, as a run both evaluates and measures its designs.
        """
        if self.last and torch.equal(self.last["x"], x):
            return self.last["distance"], self.last["value"]
        found = [s.recover(rows, self.thickness) for s, rows in zip(self.instances, x, strict=True)]
        values = [s.value(hidden) for s, (hidden, _) in zip(self.instances, found, strict=True)]
        distances = [distance for _, distance in found]
        self.last.update(x=x.clone(), distance=torch.stack(distances), value=torch.stack(values))
        return self.last["distance"], self.last["value"]

    def best_designs(self) -> Tensor:
        """Return the design of each seed that attains the optimum, (S, d)."""
        return torch.cat([surface.observe(surface.centres[:1]) for surface in self.instances])


@dataclass(frozen=True, kw_only=True)
class Surface(Task):
    """Rows near a surface of few hidden variables in d columns."""

    name: ClassVar[str] = "Surface"

    hidden: int = 5
    thickness: float = 0.2
    scatter: float = 0.02
    reach: float = 2.5
    width: float = 1.0
    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("task.hidden", self.hidden, 1)
        check_whole("d", self.d, 2 * self.hidden + 1, "a surface in fewer columns crosses itself")
        if not self.thickness > 0:
            raise UsageError(f"task.thickness must be a distance above 0, got {self.thickness}")
        if not 0 <= self.scatter <= self.thickness / 5:
            raise UsageError(
                "task.scatter must be from 0 to a fifth of task.thickness, so that rows are valid, "
                f"got {self.scatter} and {self.thickness}"
            )
        if not self.width > 0:
            raise UsageError(f"task.width must be a distance above 0, got {self.width}")
        for name, value in (("reach", self.reach), ("noise", self.noise)):
            if not value >= 0:
                raise UsageError(f"task.{name} must be at least 0, got {value}")

    def describe(self) -> Description:
        """Describe the task."""
        text = [
            f"{self.n} designs are visible, near a surface of {self.hidden} hidden variables.",
            f"A design that is farther from it than {self.thickness:g} standard deviations of the "
            "columns is invalid; the others have the value of the nearest point.",
            f"The optimum is {self.reach:g} sd from the middle of the hidden variables, exact.",
        ]
        if self.noise:
            text.insert(1, f"Their values have noise of {self.noise:g} standard deviations.")
        return Description(
            title=f"Curved surface of {self.hidden} hidden variables, d={self.d}",
            formula=f"f(z) = max_j h_j exp(-|z - c_j|² / 2w²), z ~ N(0, I) ∈ R^{self.hidden}, "
            f"observed as tanh(zA + b)B ∈ R^{self.d}",
            text=" ".join(text),
        )

    def _draw(self, rng: Streams) -> SurfaceProblem:
        drawn = [self._draw_rows(self._draw_instance(stream), stream) for stream in rng.rows]
        instances, x, y = zip(*drawn, strict=True)
        return SurfaceProblem(
            data=Dataset(x=torch.stack(x), y=torch.stack(y), space=Space(self.d)),
            optimum=torch.full((len(instances),), HEIGHT, dtype=torch.float64),
            graphs=None,
            instances=instances,
            thickness=self.thickness,
        )

    def _draw_instance(self, stream: Stream) -> Instance:
        h, network, bumps = self.hidden, stream.child("network"), stream.child("bumps")
        inner = GAIN * network.normal(h, UNITS, dtype=torch.float64) / h**0.5
        threshold = SHIFT * network.normal(UNITS, dtype=torch.float64)
        outer = network.normal(UNITS, self.d, dtype=torch.float64)
        pilot = stream.child("pilot").normal(PILOT, h, dtype=torch.float64)
        columns = torch.tanh(pilot @ inner + threshold) @ outer
        outer = outer / columns.std(dim=0)
        direction = bumps.normal(1, h, dtype=torch.float64)
        others = bumps.normal(OTHERS, h, dtype=torch.float64)
        heights = LOWEST + (LOWER - LOWEST) * bumps.uniform(OTHERS, dtype=torch.float64)
        return Instance(
            inner=inner,
            threshold=threshold,
            outer=outer,
            mean=columns.mean(dim=0) / columns.std(dim=0),
            starts=WIDER * stream.child("starts").normal(LIBRARY, h, dtype=torch.float64),
            centres=torch.cat([self.reach * direction / direction.norm(), others]),
            heights=torch.cat([torch.tensor([HEIGHT], dtype=torch.float64), heights]),
            width=self.width,
        )

    def _draw_rows(self, instance: Instance, stream: Stream) -> tuple[Instance, Tensor, Tensor]:
        """Return an instance that finds every row, designs (N, d) and values (N,) with noise."""
        hidden = stream.child("hidden").normal(self.n, self.hidden, dtype=torch.float64)
        scatter = stream.child("scatter").normal(self.n, self.d, dtype=torch.float64)
        x = instance.observe(hidden) + self.scatter * scatter
        lost = instance.recover(x, self.thickness)[1] > self.thickness  # hardly ever one
        instance = replace(instance, starts=torch.cat([instance.starts, hidden[lost]]))
        y = instance.value(instance.recover(x, self.thickness)[0])
        if self.noise:
            pilot = instance.starts[:LIBRARY] / WIDER
            noise = stream.child("noise").normal(self.n, dtype=torch.float64)
            y = y + self.noise * instance.value(pilot).std() * noise
        return instance, x, y

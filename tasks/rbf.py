"""Sums of Gaussian bumps over the cliques of a graph, plain or behind a softplus map.

One class with several configurations: `rbf` observes the coordinates directly, `chain` and
`mixture` behind an affine map and a softplus, and `toy3d` is the smallest. The function of a seed
does not depend on the map, the base, n, noise, correlation or truncation, so that variants of a
task are comparable. Rows are drawn one after the other, so that a smaller table is the beginning of
a larger one. Bumps of all forms have the same centres and weights, and networks the same weights.

The optimum is exact, with a certificate, for every form: see `ddobench.exact.optimum`.
"""

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Problem, Space, Task
from ddobench.coverage import CliqueFunctions, Instance, NormalRows, Values
from ddobench.errors import UsageError, check_one_of, check_truncation, check_whole
from ddobench.exact.families import choose_family
from ddobench.exact.maps import MAPS, ORDERS, Observation, draw_observation
from ddobench.exact.optimum import find_peak
from ddobench.exact.terms import TERMS, CliqueSum
from ddobench.graphs import Graph
from ddobench.rng import Stream, Streams
from ddobench.tasks.truncation import HIDDEN, PILOT, fill_below

BASES = ("normal", "mixture")
WORST_CONDITION = 1e6  # the oracle inverts the map, which costs as many digits


@dataclass(frozen=True, kw_only=True)
class RBFProblem(Problem):
    """Sums over cliques with the function and the map of each seed."""

    functions: tuple[CliqueSum, ...]
    maps: tuple[Observation, ...] | None  # None: the coordinates are observed directly
    peaks: Tensor  # (S, d) the hidden coordinates of the optimum
    rows: NormalRows | str  # what the hidden coordinates are drawn from, or why that is unknown

    def _evaluate(self, x: Tensor) -> Tensor:
        hidden = self.recover(x)
        return torch.stack([f(rows) for f, rows in zip(self.functions, hidden, strict=True)])

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        """Return the distance of each design to the image of an over-complete map, (S, K)."""
        if self.maps is None or self.peaks.shape[1] == self.data.space.d:
            return {}
        valid = ~self.evaluate(x).isnan()  # (S, K)
        safe = torch.where(valid[..., None], x.to(torch.float64), 1.0)
        residual = torch.stack([pair[1] for pair in self._recover(safe)])
        return {"residual": torch.where(valid, residual, torch.nan)}

    def best_designs(self) -> Tensor:
        """Return an observed design of each seed that attains the optimum, (S, d_obs)."""
        if self.maps is None:
            return self.peaks
        return torch.cat([m.observe(z[None]) for m, z in zip(self.maps, self.peaks, strict=True)])

    def theory(self) -> list[Instance]:
        """Add all that the task draws; the coordinates are the hidden ones."""
        assert self.hidden is not None
        drawn = zip(super().theory(), self.hidden, self.peaks, self.functions, strict=True)
        return [
            replace(
                one, visible=hidden.numpy(), best=peak.numpy(), rows=self.rows,
                functions=CliqueFunctions(f.cliques, partial(_values_of_cliques, f)),
            )
            for one, hidden, peak, f in drawn
        ]  # fmt: skip

    def observe(self, hidden: Tensor) -> Tensor:  # (S, K, d) -> (S, K, d_obs)
        """Return the designs with the given hidden coordinates."""
        if self.maps is None:
            return hidden
        return torch.stack([m.observe(rows) for m, rows in zip(self.maps, hidden, strict=True)])

    def recover(self, x: Tensor) -> Tensor:  # (S, K, d_obs) -> (S, K, d)
        """Return the least-squares pre-images, NaN where there is none."""
        return torch.stack([pair[0] for pair in self._recover(x.to(torch.float64))])

    def _recover(self, x: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Return the pre-images (K, d) and residuals (K,) of each seed."""
        if self.maps is None:
            return [(rows, torch.zeros(len(rows), dtype=x.dtype)) for rows in x]
        return [m.recover(rows) for m, rows in zip(self.maps, x, strict=True)]


def _values_of_cliques(function: CliqueSum, x: Values) -> Values:  # (K, d) -> (K, C)
    values: Values = torch.stack([*function.parts(torch.from_numpy(x))], dim=1).numpy()
    return values


@dataclass(frozen=True, kw_only=True)
class RBF(Task):
    """Designs drawn from a Gaussian base; y is a weighted sum of one term per clique."""

    name: ClassVar[str] = "RBF"

    family: str = "chain"
    clique_size: int | None = None
    overlap: int | None = None
    bump: str = "gaussian"
    base: str = "normal"
    correlation: float = 0.0
    map: str = "identity"
    d_obs: int | None = None
    order: str = "affine_softplus"
    condition: float | None = None
    noise: float = 0.0
    truncate: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        choose_family(self.family, self.clique_size, self.overlap).check(self.d)
        check_one_of("task.bump", self.bump, tuple(TERMS))
        TERMS[self.bump].check(self.clique_size or 0)
        check_one_of("task.base", self.base, BASES)
        if not -1.0 < self.correlation < 1.0:
            raise UsageError(
                "task.correlation must lie between -1 and 1, for neighbouring coordinates, "
                f"got {self.correlation}; use 0 for independent ones"
            )
        check_one_of("task.map", self.map, ("identity", *MAPS))
        check_one_of("task.order", self.order, ORDERS)
        if not 0.0 <= self.noise < inf:
            raise UsageError(f"task.noise must be a standard deviation >= 0, got {self.noise}")
        check_truncation(self.truncate)
        if self.map == "identity":
            self._check_unmapped()
            return
        if self.d_obs is not None:
            check_whole("task.d_obs", self.d_obs, self.d, f"use null or d={self.d} or more")
        if self.condition is not None and not 1.0 <= self.condition <= WORST_CONDITION:
            raise UsageError(
                f"task.condition must be from 1 to {WORST_CONDITION:g}, got {self.condition}; "
                "use null for the map as it is drawn"
            )

    def _check_unmapped(self) -> None:
        for name, value in (("d_obs", self.d_obs), ("condition", self.condition)):
            if value is not None:
                raise UsageError(
                    f"task.{name} must be null without a map, got {value}; "
                    "use map=orthogonal or map=gaussian"
                )

    @property
    def observed(self) -> int:
        """The number of observed design variables."""
        if self.d_obs is not None:
            return self.d_obs
        return self.d + 10 if self.map == "gaussian" else self.d

    def describe(self) -> Description:
        """Describe the task."""
        title = choose_family(self.family, self.clique_size, self.overlap).title
        term = TERMS[self.bump]
        spread = "R" if self.correlation else "I"
        base = {"normal": "N(0, {0})", "mixture": "½ N(-1, {0}) + ½ N(+1, {0})"}[self.base]
        formula = f"f(x) = Σ_C w_C {term.formula}, x ∈ R^{self.d}, x ~ {base.format(spread)}"
        text = [f"One {term.noun} per clique of {title}; {self.n} designs are visible."]
        if self.correlation:
            formula += f", R_ij = ({self.correlation:g})^|i-j|"
            text.append(f"Neighbouring coordinates are correlated by {self.correlation:g}.")
        if self.map != "identity":
            warp = {"affine_softplus": "softplus(xA + b)", "softplus_affine": "softplus(x)A + b"}
            formula += f", observed as {warp[self.order]} ∈ R^{self.observed}"
            text.append(f"A is {self.map}; a design is valid if it has a pre-image.")
        if self.condition is not None:
            text.append(f"The condition number of A is {self.condition:g}.")
        if self.noise:
            text.append(
                f"The visible values carry noise of {self.noise:g} standard deviations of the "
                "noise-free ones, so that the largest of them may exceed the optimum."
            )
        if self.truncate is not None:
            text.append(f"Values above their percentile {self.truncate:g} are hidden.")
        text.append("The optimum is that of the noise-free function, exact.")
        name = f"{term.noun.capitalize()}s on {title}, d={self.d}"
        return Description(name, formula, " ".join(text))

    def _draw(self, rng: Streams) -> RBFProblem:
        seeds = len(rng.seeds)
        functions = tuple(self._draw_function(stream) for stream in rng.rows)
        maps = None
        if self.map != "identity":
            maps = tuple(self._draw_map(stream.child("map")) for stream in rng.rows)
        hidden = torch.empty(seeds, self.n, self.d, dtype=torch.float64)
        x = hidden
        if maps is not None:
            x = torch.empty(seeds, self.n, self.observed, dtype=torch.float64)
        y = torch.empty(seeds, self.n, dtype=torch.float64)
        for s, stream in enumerate(rng.rows):
            self._fill(hidden[s], y[s], functions[s], stream)
            if maps is not None:
                x[s] = maps[s].observe(hidden[s])
        found = [find_peak(f) for f in functions]
        return RBFProblem(
            data=Dataset(x=x, y=y, space=Space(self.observed)),
            optimum=torch.tensor([peak.value for peak in found], dtype=torch.float64),
            graphs=tuple(Graph.from_cliques(self.d, f.cliques) for f in functions),
            hidden=hidden,
            functions=functions,
            maps=maps,
            peaks=torch.stack([torch.from_numpy(peak.x) for peak in found]),
            rows=self._rows(),
        )

    def _rows(self) -> NormalRows | str:
        """Return what hidden designs are drawn from, unless some of them are hidden."""
        if self.truncate is not None:
            return HIDDEN
        steps = np.arange(self.d)
        spread = float(self.correlation) ** np.abs(steps[:, None] - steps)  # 0^0 is 1
        shift = np.ones(self.d) if self.base == "mixture" else None
        return NormalRows(np.zeros(self.d), spread, shift)

    def _draw_function(self, stream: Stream) -> CliqueSum:
        family = choose_family(self.family, self.clique_size, self.overlap)
        cliques = family.draw(self.d, stream.child("graph"))
        return TERMS[self.bump].draw(self.d, cliques, stream.child("function"))

    def _draw_map(self, stream: Stream) -> Observation:
        return draw_observation(self.map, self.d, self.observed, self.order, self.condition, stream)

    def _fill(self, hidden: Tensor, y: Tensor, function: CliqueSum, stream: Stream) -> None:
        """Fill hidden (N, d) and y (N,) with the first rows below the percentile."""
        noise = 0.0
        pilot = _Rows(stream.child("pilot"), self, function)
        if self.noise or self.truncate is not None:
            noise = self.noise * float(pilot.take(PILOT, 0.0)[1].std())
        rows = _Rows(stream.child("data"), self, function)
        fill_below(
            hidden, y, self.truncate,
            pilot=partial(pilot.take, noise=noise), rows=partial(rows.take, noise=noise),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Toy3D(RBF):
    """Two bumps on a path of three variables, small enough to plot."""

    name: ClassVar[str] = "Toy3D"

    family: str = "path"
    map: str = "orthogonal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d != 3:
            raise UsageError(
                f"d must be 3 for the three-dimensional toy, got {self.d}; "
                "use task=chain task.family=path for a longer path"
            )


class _Rows:
    """The rows of one instance, drawn in blocks; the rows do not depend on the size of blocks."""

    def __init__(self, stream: Stream, task: RBF, function: CliqueSum) -> None:
        self.designs = stream.child("designs")
        self.component = stream.child("component")
        self.noise = stream.child("noise")
        self.task = task
        self.function = function

    def take(self, rows: int, noise: float) -> tuple[Tensor, Tensor]:
        """Return the next hidden designs (rows, d) and their values (rows,)."""
        hidden = self.designs.normal(rows, self.function.d, dtype=torch.float64)
        if self.task.correlation:
            _correlate(hidden, self.task.correlation)
        if self.task.base == "mixture":
            hidden += torch.where(self.component.uniform(rows, 1) < 0.5, -1.0, 1.0)
        y = self.function(hidden)
        if noise:
            y += noise * self.noise.normal(rows, dtype=torch.float64)
        return hidden, y


def _correlate(hidden: Tensor, rho: float) -> None:
    """Correlate each coordinate of hidden (rows, d) with the one before it, in place.

    One coordinate after the other, as the rounding of a matrix product depends on the block.
    """
    fresh = (1.0 - rho**2) ** 0.5
    for i in range(1, hidden.shape[1]):
        hidden[:, i] = rho * hidden[:, i - 1] + fresh * hidden[:, i]

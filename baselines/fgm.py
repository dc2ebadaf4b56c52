"""FGM: optimisation with a functional graphical model (Grudzien, Uehara, Levine, Abbeel 2024).

Continuous designs: Algorithm 1 of the paper, each line a part of the pipeline.

    Line 1: take the data set (values in standard deviations).
    Line 2: preprocess the designs so that they follow a standard normal: `latent`, `axes`.
    Line 3: approximate the cliques of the functional graphical model: `graph`.
    Line 4: learn the functions of the cliques by least squares: `surrogate`, see `Cliques` below.
    Line 5: maximise the learned sum over the cliques: `search`.
    Line 6: invert the preprocessing: `latent`.

Where the paper is silent or we deviate:
- the VAE's decoder has a fixed variance of 0.01: with variance 1, or a learned one, the posterior
  collapses and decoded designs lose their value;
- the value is standardised before the pseudo-Hessian is computed: otherwise the test is invalid;
- graphs with more than `graph.most_cliques` maximal cliques lose their weakest edges;
- the network is trained on fresh samples of the posterior of the codes, as in the authors' later
  code; the search starts from its means.

The network is trained for 50 epochs at 3e-4, by the paper's sentence that it used "the same
hyperparameters" as COMs for all methods (`training=paper`). The first published runs had 1,000
steps at 1e-3 (`training=adam`). What COMs' training changes in the final value, by the method's own
ranking, in sd (chain, seeds 0-9, paired 95 % interval; `experiment=training`, then
`python benchmarks/trainings.py`); all of them stay below the best visible design:

    rows, d       FGM                   VAE-GA                COMs
    2,000, 11     -0.23 [-0.34, -0.11]  -0.43 [-0.64, -0.25]  -0.07 [-0.34, 0.07]
    2,000, 21     -0.09 [-0.15, -0.05]  -0.12 [-0.24, -0.02]   0.18 [0.01, 0.42]
    2,000, 31     -0.02 [-0.06, 0.02]    0.03 [-0.10, 0.15]    0.23 [0.12, 0.32]
    2,000, 41      0.00 [-0.09, 0.09]    0.30 [0.04, 0.71]     0.13 [0.05, 0.22]
    10,000, 11     0.10 [0.07, 0.12]     0.10 [0.05, 0.17]    -0.01 [-0.14, 0.16]
    10,000, 21     0.10 [0.06, 0.17]    -0.02 [-0.20, 0.16]   -0.23 [-0.34, -0.11]
    10,000, 31     0.13 [0.08, 0.19]    -0.17 [-0.47, 0.15]   -0.10 [-0.29, 0.13]
    10,000, 41     0.12 [0.05, 0.18]     0.19 [-0.08, 0.41]    0.09 [-0.00, 0.21]

The ascent takes 50 plain gradient steps of 0.005 sqrt(d) in the codes (`search=ascent_codes`), by
the paper's sentence that "methods that use VAEs have 10 times smaller gradient ascent learning
rate" than COMs. `search=ascent` has ten times that rate.

Categorical designs (`DiscreteFGM`): Eq. "simple2" of the paper, least squares on the one-hot code
of every clique, then the argmax. The other parts are not used.

*With a known graph*, as in the paper's regret figure (a task that knows its graph, unless
`graph=pairs`): a table for each clique, and one design, the maximiser. Where the paper is silent:
- the one-hot features are dependent (on a cycle of d bits their rank is 2d + 1), so the solution of
  smallest norm is taken; `ridge` > 0 reduces the interpolation peak of noisy data at N near 2d;
- the argmax is found exactly by max-sum, as the designs cannot be enumerated.

*With a discovered graph* (`graph=pairs`, or a task that knows none): ours, as the paper's test
is for normal codes.
- Edges are the pairs found by a test of two-way tables: see `Pairs` in ddobench/parts/discovery.py.
- A table over a large clique has more cells than there are rows. Cliques above some size are
  covered by their subsets of that size; the size is the largest (at least 2) for which all cells
  together are at most half of the rows, and at most 4096.
- Unless `ridge` is given, it is chosen on a tenth of the rows held out, then all rows are fitted.
- The best 128 different designs of the fitted sum are proposed (`+method.designs`), found exactly
  by max-sum. If a table of max-sum would have more than 100,000 cells, the starts climb by changes
  of single variables instead. The record says which (`found_by`). The headline is then a mean over
  128 different designs, whereas an ascent may propose one design 128 times.

Commands: python -m ddobench -m method=fgm task=chain d=41 seed=0-9
          python -m ddobench -m method=fgm task=quadratic seed=0-49
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, prod
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Insight, Method, Privilege, Proposal, Space
from ddobench.errors import UsageError, check_whole
from ddobench.exact.max_sum import LARGEST_TABLE, Scope, Table, maximise
from ddobench.exact.table_sums import TableSum, fit_tables, largest_table, split_into_tables
from ddobench.graphs import Graph
from ddobench.models.cliques import CliqueMLP
from ddobench.models.least_squares import NormalEquations, OneHot, Values, count_cells, one_hot
from ddobench.models.networks import StackedMLP
from ddobench.parts.discovery import Discovered, GraphInputs, Pairs
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.surrogates import MLP, FitStep, TrainingData
from ddobench.rng import Streams

MOST_CELLS = 4096  # of all tables: the equations take seconds and some 100 MB each
EXACT, CLIMBED = "max-sum", "single changes"  # how designs were found


@dataclass(kw_only=True)
class Cliques(MLP):
    """One shared network on the members of each clique of the graph, averaged over the cliques."""

    name: ClassVar[str] = "cliques"
    uses_graph: ClassVar[bool] = True
    plain_networks: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("surrogate.depth", self.depth, 1)

    def make_network(self, sizes: Sequence[int], data: TrainingData, rng: Streams) -> CliqueMLP:
        """Return a network over the cliques of each seed's graph."""
        return CliqueMLP(sizes, [found.graph for found in data.found], rng, data.device)

    def make_step(self, network: StackedMLP, data: TrainingData) -> "FitStep":
        """Return a step that also updates the graphs, if they change during the training."""
        assert isinstance(network, CliqueMLP)
        return WatchedStep(network, data, self.training.steps)


class WatchedStep(FitStep):
    """A training step after which the graphs may change."""

    def __init__(self, network: CliqueMLP, data: TrainingData, steps: int) -> None:
        super().__init__(network)
        self.cliques = network
        self.steps = steps
        self.watcher = data.graph.watcher()
        self.taken = 0
        self.found: list[Discovered] = []

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:  # (S, B, e), (S, B) -> (S,)
        """Take the gradient, then update the graphs."""
        loss = super().__call__(z, y)
        self.taken += 1
        changed = self.watcher(z, y, self.taken / self.steps) if self.watcher else None
        if changed:
            self.found = changed
            self.cliques.graphs = [found.graph for found in changed]
        return loss

    def graphs(self) -> list[Discovered]:
        """Return the final graphs, if they changed."""
        return self.found


@dataclass(kw_only=True)
class DiscreteFGM(Method):
    """Fit one table per clique of the graph, then take the best designs of their sum."""

    ridge: float = 0.0
    graph: Pairs | None = None  # None: the graph of the task, discovered if that is unknown
    designs: int = 128
    ridges: Sequence[float] = (0.1, 1.0, 10.0, 100.0, 1000.0)
    holdout: float = 0.1
    rows_per_cell: float = 2.0

    _found: Sequence[Discovered] = field(init=False, default=(), repr=False)
    _found_by: list[str] = field(init=False, default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.ridge < 0:
            raise UsageError(f"method.ridge must be 0 or more, got {self.ridge}")
        check_whole("method.designs", self.designs, 1)

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002 - in any space
        """Ask for the true graph, unless it is to be discovered."""
        return frozenset({"graph"}) if self.graph is None else frozenset()

    def declines(self, data: Dataset) -> str | None:
        """Decline what is not categorical."""
        return None if data.space.categorical else "these tables are for categorical designs only"

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Solve the least-squares problem of each seed."""
        assert data.space.sizes is not None
        sizes = data.space.sizes
        tables = [(x.numpy(), y.numpy()) for x, y in zip(data.x, data.y, strict=True)]
        known = data.privileged.graphs
        if known is not None:
            self._sums = [
                TableSum(fit_tables(x, y, graph.cliques, sizes, self.ridge), sizes)
                for (x, y), graph in zip(tables, known, strict=True)
            ]
            return
        inputs = GraphInputs(data.x, data.y, data.privileged, rng.child("graph"))
        self._found = (self.graph or Pairs()).discover(inputs)
        orders = rng.child("split").permutation(data.n).numpy()  # (S, N)
        fits = [
            self._fit_found(x, y, found.graph, sizes, order)
            for (x, y), found, order in zip(tables, self._found, orders, strict=True)
        ]
        self._sums, self._fits = [fit[0] for fit in fits], [fit[1] for fit in fits]

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the designs that maximise the fitted sum, for each seed."""
        best = [self._search(model, x.numpy()) for model, x in zip(self._sums, starts, strict=True)]
        self._found_by = [how for _, _, how in best]
        designs = torch.from_numpy(np.stack([designs for _, designs, _ in best]))
        yield Proposal(
            designs.to(starts.dtype), torch.from_numpy(np.stack([values for values, _, _ in best]))
        )

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the sum of the fitted tables at each design."""
        rows = [model(designs.numpy()) for model, designs in zip(self._sums, x, strict=True)]
        return torch.from_numpy(np.stack(rows))

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return the graph between the variables if it was discovered."""
        return [
            Insight(codes=designs, reconstructed=designs, graph=found.graph)
            for designs, found in zip(x, self._found, strict=bool(self._found))
        ]

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the discovered graph, the fit, and how designs were found."""
        searched = [{"found_by": how} for how in self._found_by]
        if not self._found:
            return searched if CLIMBED in self._found_by else []
        return [
            {**found.describe(), **fit, **how}
            for found, fit, how in zip(
                self._found, self._fits, searched or [{}] * len(self._fits), strict=True
            )
        ]

    def _search(self, model: TableSum, starts: Values) -> tuple[Values, Values, str]:
        """Return the values (K,) of the best designs, these (K, d), and how they were found."""
        if self._found:
            count = min(self.designs, len(starts), prod(model.sizes))
            values, designs, exact = model.find_best(count, starts)
            return values, designs.astype(float), EXACT if exact else CLIMBED
        if largest_table([table.scope for table in model.tables], model.sizes) <= LARGEST_TABLE:
            value, design = maximise(model.tables, model.sizes)  # (1,), (1, d)
            return value, design.astype(float), EXACT
        ends = model.climb(starts)
        best = ends[[model(ends).argmax()]]
        return model(best), best, CLIMBED

    def _fit_found(
        self, x: Values, y: Values, graph: Graph, sizes: tuple[int, ...], order: NDArray[np.int64]
    ) -> tuple[TableSum, dict[str, Any]]:
        """Fit tables over a discovered graph; return them and a report of the fit."""
        scopes = cover(graph, sizes, min(len(y) / self.rows_per_cell, MOST_CELLS))
        features = one_hot(x, scopes, sizes)  # (N, P)
        held = max(1, round(self.holdout * len(y)))
        shift = y.mean()
        errors = {}
        some = normal_equations(features.take(order[held:]), (y - shift)[order[held:]])
        others, truth = features.take(order[:held]), y[order[:held]]
        for ridge in self.ridges if self.ridge == 0 else (self.ridge,):
            missed = truth - shift - others.apply(some.solve(ridge).numpy())
            errors[ridge] = float(np.mean(missed**2) / max(truth.var(), 1e-12))
        ridge = min(errors, key=lambda one: errors[one])
        grown = ridge * len(y) / max(1, len(y) - held)
        weights = normal_equations(features, y - shift).solve(grown).numpy()
        tables = [*split_into_tables(weights, scopes, sizes), Table((), np.array([shift]))]
        report = {
            "ridge": ridge,
            "held_out_r2": 1 - errors[ridge],
            "largest_clique": max(map(len, scopes)),
        }
        return TableSum(tables, sizes), report


def normal_equations(features: OneHot, y: Values) -> NormalEquations:  # (N, P), (N,)
    """Return the normal equations of sparse features."""
    return NormalEquations(torch.from_numpy(features.gram()), torch.from_numpy(features.moment(y)))


def cover(graph: Graph, sizes: Sequence[int], most_cells: float) -> list[Scope]:
    """Return the cliques, split to the largest size with at most `most_cells` cells of tables.

    Pairs are never split.
    """
    for most in range(max(map(len, graph.cliques)), 1, -1):
        if sum(comb(len(clique), min(most, len(clique))) for clique in graph.cliques) > most_cells:
            continue
        scopes = _split(graph, most)
        if sum(count_cells(scope, sizes) for scope in scopes) <= most_cells:
            return scopes
    return _split(graph, 2)


def _split(graph: Graph, most: int) -> list[Scope]:
    """Return the cliques, those of more than `most` variables as their subsets of that size."""
    return sorted(
        {part for clique in graph.cliques for part in combinations(clique, min(most, len(clique)))}
    )


@dataclass(kw_only=True)
class FGM(Pipeline):
    """The pipeline with a graph, or tables over cliques if designs are categorical."""

    name: ClassVar[str] = "fgm"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 5

    ridge: float = 0.0  # of the tables
    designs: int = (
        128  # proposed with a discovered graph; in no YAML, so that digests are unchanged
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = self.graph if isinstance(self.graph, Pairs) else None
        self._tables = DiscreteFGM(ridge=self.ridge, graph=pairs, designs=self.designs)
        self._categorical = False

    def privileges(self, space: Space) -> frozenset[Privilege]:
        """Ask for what the parts need, or for the graph if designs are categorical."""
        return self._tables.privileges(space) if space.categorical else super().privileges(space)

    def declines(self, data: Dataset) -> str | None:
        """Decline what the tables or the parts cannot handle."""
        return self._tables.declines(data) if data.space.categorical else super().declines(data)

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Lines 1 to 4."""
        self._categorical = data.space.categorical
        (self._tables.fit if self._categorical else super().fit)(data, rng)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Lines 5 and 6."""
        return (self._tables.propose if self._categorical else super().propose)(starts, rng)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the model's value of designs."""
        return (self._tables.predict if self._categorical else super().predict)(x)

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return coordinates and graph."""
        return (self._tables.insight if self._categorical else super().insight)(x)

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the diagnostics of the pipeline, or of the tables."""
        return (self._tables.diagnostics if self._categorical else super().diagnostics)()

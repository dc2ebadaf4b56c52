"""FGM: optimisation with a functional graphical model (Grudzien, Uehara, Levine, Abbeel 2024).

On continuous designs Algorithm 1 of the paper; comments in `fit` and `propose` number its lines.
Five stages, each a configuration group or node of its own: `latent` (designs as roughly Gaussian
codes), `axes` (a rotation of them), `graph` (which codes interact), the clique network (`width`,
`depth`, `training`) and `ascent`. On categorical designs the paper's Eq. "simple2" with the graph
known, as in its regret figure: see `fgm_discrete`.

Where the paper is silent or we differ:
- the VAE's decoder has a fixed variance of 0.01: with variance 1, or a learned one, the posterior
  collapses and decoded designs lose their value;
- the value is standardised before the pseudo-Hessian is taken: the test is meaningless otherwise;
- more than `graph.most_cliques` maximal cliques are thinned out, weakest edges first;
- the network is trained on fresh samples of the posterior of the codes, as in the authors' later
  code; the designs that are climbed start from its means;
- the ascent takes plain gradient steps at GA's rate. The paper's is ten times smaller for methods
  with a VAE (`method.ascent.rate=0.005`), which only stretches the curves.

Its row: python -m ddobench -m method=fgm task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ddobench.ascent import Ascent
from ddobench.axes import Axes
from ddobench.baselines.fgm_discrete import DiscreteFGM
from ddobench.chart import Chart, rotate
from ddobench.cliques import CliqueMLP
from ddobench.contracts import Dataset, Insight, Method, Privilege, Proposal, Space
from ddobench.devices import pick_device
from ddobench.discovery import Clues, Discovered, Discovery, Watcher
from ddobench.errors import UsageError, check_whole
from ddobench.latents import Latent
from ddobench.standardisation import Standardiser
from ddobench.streams import Streams
from ddobench.surrogates import Surrogate, Table, describe_fit, mean_squared_error
from ddobench.training import History, Training, squared_error


@dataclass(kw_only=True)
class FGM(Method):
    """Encode, find the graph, fit a network over its cliques, climb it, decode."""

    name: ClassVar[str] = "fgm"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 5

    latent: Latent
    axes: Axes
    graph: Discovery
    training: Training
    ascent: Ascent
    width: int = 256
    depth: int = 2
    ensemble: int = 1
    ridge: float = 0.0
    device: str = "auto"

    def __post_init__(self) -> None:
        for name, kind in (("latent", Latent), ("axes", Axes), ("graph", Discovery)):
            stage = getattr(self, name)
            if not isinstance(stage, kind):
                raise UsageError(f"method.{name} must be a stage, got {stage!r}; write {name}=NAME")
        check_whole("method.width", self.width, 1)
        check_whole("method.depth", self.depth, 1)
        check_whole("method.ensemble", self.ensemble, 1)
        self._tables = DiscreteFGM(ridge=self.ridge)
        self._categorical = False
        self._failures: dict[int, str] = {}
        self._believed: list[Tensor] = []  # (S,) mean prediction at each iteration

    def privileges(self, space: Space) -> frozenset[Privilege]:
        """Ask for what the latent and the graph need."""
        if space.categorical:
            return self._tables.privileges(space)
        return self.latent.privileges | self.graph.privileges

    def declines(self, data: Dataset) -> str | None:
        """Decline where knowledge that was asked for does not exist."""
        if data.space.categorical:
            return self._tables.declines(data)
        asked, known = self.privileges(data.space), data.privileged
        if "hidden" in asked and known.hidden is None:
            return "latent=oracle needs hidden coordinates, and this task has none"
        if "graph" in asked:
            if known.graphs is None:
                return "graph=true needs a known graph, and this task has none"
            nodes, codes = known.graphs[0].d, self.latent.dimensions(data)
            if nodes != codes:
                return f"graph=true has {nodes} nodes, but a design has {codes} codes"
        return None

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Algorithm 1, lines 1 to 4."""
        self._categorical = data.space.categorical
        if self._categorical:
            self._tables.fit(data, rng)
            return
        # Line 1: the data set; values in standard deviations.
        y_scale = Standardiser.of(data.y)
        y = y_scale.apply(data.y)  # (S, N)
        # Line 2: preprocess the designs so that they follow a standard normal approximately.
        self.latent.fit(data, rng.child("latent"), self.memory)
        self._failures |= self.latent.failures()
        self._chart = Chart.draw(self.latent, self.axes, data.x, y, rng)
        # Line 3: approximate the cliques of the functional graphical model.
        clues = Clues(self._chart.z, y, data.privileged, rng.child("graph"))
        self._found = self.graph.discover(clues)
        # Line 4: learn the functions of the cliques by minimising the mean squared error.
        z = rotate(self._chart.visible.mean, self._chart.rotation)  # (S, N, e)
        table = Table.standardised(z, y, y_scale, pick_device(self.device))
        self._split = self.training.split(data.n, rng.child("split"))
        fits = [self._learn(table, member, rng) for member in range(self.ensemble)]
        networks, self._histories = zip(*fits, strict=True)
        self._surrogate = Surrogate(table, networks)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Algorithm 1, lines 5 and 6."""
        if self._categorical:
            yield from self._tables.propose(starts, rng)
            return
        table = self._surrogate.table
        z = self._chart.encode(starts).to(table.x.device)  # (S, K, e)
        # Line 5: maximise the learned sum over the cliques.
        for ledge in self.ascent.climb(z, self._surrogate.value_and_gradient, self._failures):
            self._believed.append(ledge.value.mean(dim=1).cpu())
            # Line 6: invert the preprocessing.
            designs = self._chart.decode(ledge.x.cpu())
            yield Proposal(designs, table.y_scale.undo(ledge.value), ledge.iteration)

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the model's value of the codes of designs."""
        if self._categorical:
            return self._tables.predict(x)
        return self._surrogate.predict(self._chart.encode(x))

    def insight(self, x: Tensor) -> Insight | None:
        """Return the codes of designs, what they decode to, and the graph between them."""
        if self._categorical:
            return None
        z = self._chart.encode(x)
        graphs = tuple(found.graph for found in self._found)
        return Insight(codes=z, reconstructed=self._chart.decode(z), graphs=graphs)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training or ascent broke down."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the graph, the health of the latent, and what GA reports."""
        if self._categorical:
            return []
        reports = describe_fit(self._surrogate, self._split, self._histories)
        health = self.latent.health() or [{}] * len(reports)
        for seed, report in enumerate(reports):
            report["believed"] = [float(mean[seed]) for mean in self._believed]
            report |= self._found[seed].describe() | health[seed]
        return reports

    def _learn(self, table: Table, member: int, rng: Streams) -> tuple[CliqueMLP, History]:
        """Fit one stack of clique networks."""
        streams = rng.child("surrogate" if member == 0 else f"surrogate{member}")
        network = CliqueMLP(
            [table.x.shape[2], *[self.width] * self.depth, 1],
            [found.graph for found in self._found],
            streams.child("weights"),
            table.x.device,
        )
        codes, watcher = self._chart.visible, self.graph.watcher()
        step = CodeStep(network, self._chart, watcher, self.training.steps, streams.child("noise"))
        known = [part for part in (codes.mean, codes.sd) if part is not None]  # (S, N, e) each
        history = self.training.run(
            [network],
            [*[part.to(table.x) for part in known], table.y],
            self._split,
            step=step,
            check=step.check,
            rng=streams.child("minibatches"),
            what="surrogate",
        )
        self._found = step.found or self._found
        self._failures = history.failures | self._failures
        return network, history


class CodeStep:
    """One training step on codes that are drawn afresh; the graphs may change on the way."""

    def __init__(
        self, network: CliqueMLP, chart: Chart, watcher: Watcher | None, steps: int, rng: Streams
    ) -> None:
        self.network = network
        self.steps = steps
        self.chart = chart
        self.watcher = watcher
        self.rng = rng
        self.taken = 0
        self.found: list[Discovered] = []  # the graphs that came last, if they changed
        self._fitting, self._checking = network.passes(), network.passes()

    def __call__(self, mean: Tensor, *rest: Tensor) -> Tensor:
        """Take the gradient on codes (S, B, e), their deviations if any, and values (S, B)."""
        *sd, y = rest
        z = mean + sd[0] * self.rng.normal(*mean.shape[1:]).to(mean.device) if sd else mean
        z = rotate(z, self.chart.rotation)
        loss = squared_error(self._fitting, z, y)
        self.taken += 1
        news = self.watcher(z, y, self.taken / self.steps) if self.watcher else None
        if news:
            self.found = news
            self.network.graphs = [found.graph for found in news]
        return loss

    def check(self, mean: Tensor, *rest: Tensor) -> Tensor:  # (S, H, e), ..., (S, H) -> (S,)
        """Return the squared error at the means of held-out codes."""
        return mean_squared_error(self._checking, rotate(mean, self.chart.rotation), rest[-1])

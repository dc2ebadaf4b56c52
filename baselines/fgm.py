"""FGM: optimisation with a functional graphical model (Grudzien, Uehara, Levine, Abbeel 2024).

On continuous designs Algorithm 1 of the paper, each line a part of the pipeline:

    Line 1: take the data set (values in standard deviations).
    Line 2: preprocess the designs so that they follow a standard normal: `latent`, `axes`.
    Line 3: approximate the cliques of the functional graphical model: `graph`.
    Line 4: learn the functions of the cliques by least squares: `surrogate`, see `Cliques` below.
    Line 5: maximise the learned sum over the cliques: `search`.
    Line 6: invert the preprocessing: `latent`.

On categorical designs the paper's Eq. "simple2" with the graph known, as in its regret figure, or
with discovered pairs (`graph=pairs`, and wherever no graph is known): see `fgm_discrete`. The other
parts play no role there.

Where the paper is silent or we differ:
- the VAE's decoder has a fixed variance of 0.01: with variance 1, or a learned one, the posterior
  collapses and decoded designs lose their value;
- the value is standardised before the pseudo-Hessian is taken: the test is meaningless otherwise;
- more than `graph.most_cliques` maximal cliques are thinned out, weakest edges first;
- the network is trained on fresh samples of the posterior of the codes, as in the authors' later
  code; the designs that are climbed start from its means;
- the network is trained for 1000 steps at 1e-3; the paper's text ("the same hyperparameters" as
  COMs) means 50 epochs at 3e-4 (`training=paper`).

The ascent takes 50 plain gradient steps of 0.005 sqrt(d) in the codes (`search=ascent_codes`), by
the paper's sentence that "methods that use VAEs have 10 times smaller gradient ascent learning
rate" than COMs. `search=ascent` goes ten times further.

Its row: python -m ddobench -m method=fgm task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ddobench.baselines.fgm_discrete import DiscreteFGM
from ddobench.contracts import Dataset, Insight, Privilege, Proposal, Space
from ddobench.errors import check_whole
from ddobench.models.cliques import CliqueMLP
from ddobench.models.networks import StackedMLP
from ddobench.parts.discovery import Discovered
from ddobench.parts.pairs import Pairs
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.surrogates import MLP, FitStep, TrainingData
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Cliques(MLP):
    """One shared network on the members of each clique of the graph, averaged over the cliques."""

    name: ClassVar[str] = "cliques"
    uses_graph: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("surrogate.depth", self.depth, 1)

    def make_network(self, sizes: Sequence[int], data: TrainingData, rng: Streams) -> CliqueMLP:
        """Return a network over the cliques of each seed's graph."""
        return CliqueMLP(sizes, [found.graph for found in data.found], rng, data.device)

    def make_step(self, network: StackedMLP, data: TrainingData) -> "FitStep":
        """Return the ordinary step, with an eye on graphs that change during the training."""
        assert isinstance(network, CliqueMLP)
        return WatchedStep(network, data, self.training.steps)


class WatchedStep(FitStep):
    """A step after which the graphs may change."""

    def __init__(self, network: CliqueMLP, data: TrainingData, steps: int) -> None:
        super().__init__(network)
        self.cliques = network
        self.steps = steps
        self.watcher = data.graph.watcher()
        self.taken = 0
        self.found: list[Discovered] = []

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:  # (S, B, e), (S, B) -> (S,)
        """Take the gradient, then let the watcher look at the minibatch."""
        loss = super().__call__(z, y)
        self.taken += 1
        news = self.watcher(z, y, self.taken / self.steps) if self.watcher else None
        if news:
            self.found = news
            self.cliques.graphs = [found.graph for found in news]
        return loss

    def graphs(self) -> list[Discovered]:
        """Return the graphs that came last, if they changed."""
        return self.found


@dataclass(kw_only=True)
class FGM(Pipeline):
    """The pipeline with a graph; on categorical designs tables over its cliques."""

    name: ClassVar[str] = "fgm"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 5

    ridge: float = 0.0  # of the tables
    designs: int = 128  # the best of discovered tables; in no YAML, so that digests stay

    def __post_init__(self) -> None:
        super().__post_init__()
        pairs = self.graph if isinstance(self.graph, Pairs) else None
        self._tables = DiscreteFGM(ridge=self.ridge, graph=pairs, designs=self.designs)
        self._categorical = False

    def privileges(self, space: Space) -> frozenset[Privilege]:
        """Ask for what the parts need, on categorical designs for the graph unless it is found."""
        return self._tables.privileges(space) if space.categorical else super().privileges(space)

    def declines(self, data: Dataset) -> str | None:
        """Decline where knowledge that was asked for does not exist."""
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
        """Return how designs are seen."""
        return (self._tables.insight if self._categorical else super().insight)(x)

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return what the pipeline reports, or the tables."""
        return (self._tables.diagnostics if self._categorical else super().diagnostics)()

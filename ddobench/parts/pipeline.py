"""A method as a sequence of parts: coordinates, a graph between them, a model, a search.

    latent     which coordinates represent a design, and how are they decoded?
    axes       how are the coordinates rotated?
    graph      which coordinates interact?
    surrogate  what is the value of a design?
    search     how is the surrogate maximised?

Each part is a configuration group, so that it can be replaced on the command line:
`method=ga latent=vae search=ascent_codes` is vae_ga, with the same results.

Categorical designs are relaxed to real codes before any part sees them (`relaxation`), and
proposals are decoded to whole categories. The predicted value of a proposal is that of these
categories, not of the codes where the search ended.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor

from ddobench.contracts import Dataset, Insight, Method, Privilege, Proposal, Space
from ddobench.errors import UsageError, check_one_of
from ddobench.models.tensors import Standardiser, pick_device
from ddobench.parts.coordinates import Axes, Coordinates
from ddobench.parts.discovery import Complete, Discovery, GraphInputs
from ddobench.parts.latents import Identity, Latent
from ddobench.parts.relaxation import RELAXATIONS, Relaxation
from ddobench.parts.search import Search
from ddobench.parts.surrogates import Surrogate, TrainingData
from ddobench.rng import Streams

PARTS = {
    "latent": Latent,
    "axes": Axes,
    "graph": Discovery,
    "surrogate": Surrogate,
    "search": Search,
}


@dataclass(kw_only=True)
class Pipeline(Method):
    """Encode, find the graph, fit a model, search it, decode."""

    name: ClassVar[str] = "pipeline"
    seeds_at_once: ClassVar[int | None] = 10

    latent: Latent
    axes: Axes
    graph: Discovery
    surrogate: Surrogate
    search: Search
    device: str = "auto"
    relaxation: str = "logits"  # of categorical designs; in no YAML, so that digests are unchanged

    def __post_init__(self) -> None:
        for name, kind in PARTS.items():
            part = getattr(self, name)
            if not isinstance(part, kind):
                raise UsageError(f"method.{name} must be a part, got {part!r}; write {name}=NAME")
        check_one_of("method.relaxation", self.relaxation, RELAXATIONS)
        self._failures: dict[int, str] = {}
        self._predicted: list[Tensor] = []  # (S,) mean prediction at each iteration

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002
        """Ask for what the latent and the graph need."""
        return self.latent.privileges | self.graph.privileges

    def declines(self, data: Dataset) -> str | None:
        """Decline what a part cannot handle, and tasks without the knowledge that a part needs."""
        first = replace(data, x=data.x[:, :1], y=data.y[:, :1])
        _, relaxed = self._relax(first)
        codes = self._choose_latent(data.space).dimensions(relaxed)
        refusal = (
            self.graph.declines(data.space)
            or self.surrogate.declines(data.n, codes)
            or self.search.declines(relaxed.space)
            or self.search.refuses(self.surrogate)
        )
        if refusal is not None:
            return refusal
        if self.search.leaps and not self.surrogate.leaps:
            return "search=hop needs a model that knows its peaks; use surrogate=units"
        if self.search.reads_posterior and not self.surrogate.has_posterior:
            return "search=qlogei needs the posterior of a Gaussian process; use surrogate=gp"
        if self.search.uses_gradient and not self.surrogate.has_gradient:
            return (
                f"the search {self.search.name} needs a gradient, which the surrogate "
                f"{self.surrogate.name} does not have; use search=evolution, tangent, cma, "
                "reinforce or rwr"
            )
        if self.search.needs_categories and not data.space.categorical:
            return "this search is for categories; use search=reinforce"
        asked, known = self.privileges(data.space), relaxed.privileged
        if "hidden" in asked and known.hidden is None:
            return "latent=oracle needs hidden coordinates, and this task has none"
        if "graph" in asked:
            if not self.surrogate.uses_graph:
                return (
                    "graph=true has no effect, as this surrogate uses no graph; use graph=complete"
                )
            if known.graphs is None:
                return "graph=true needs a known graph, and this task has none"
            nodes = known.graphs[0].d
            if nodes != codes:
                return f"graph=true has {nodes} nodes, but a design has {codes} codes"
        return None

    def working_bytes(self, n: int, d: int) -> float:
        """Return the memory of the surrogate, assuming as many codes as variables."""
        return self.surrogate.working_bytes(n, d)

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit the parts one after the other, without any state of an earlier fit."""
        self._data = data
        self._failures, self._predicted = {}, []
        self._relaxation, relaxed = self._relax(data)
        self._latent = self._choose_latent(data.space)
        self._y_scale = Standardiser.of(data.y)
        y = self._y_scale.apply(data.y)  # (S, N)
        self._latent.fit(relaxed, rng.child("latent"), self.cache)
        self._coordinates = Coordinates.draw(self._latent, self.axes, relaxed.x, y, rng)
        inputs = GraphInputs(self._coordinates.z, y, relaxed.privileged, rng.child("graph"))
        found = self.graph.discover(inputs)
        device = pick_device(self.device)
        self._model = self.surrogate.fit(
            TrainingData(self._coordinates, y, found, self.graph, device), rng
        )
        self._found = self._model.graphs() or found
        self._failures |= {**self._model.failures(), **self._latent.failures()}

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Search, and decode the results."""
        self.search.prepare(self._coordinates.z, self._encode, self._snap)
        begun = self.search.begin(starts, self._data)  # (S, at most K, d)
        z = self._encode(begun).to(pick_device(self.device))  # (S, at most K, e)
        for step in self.search.run(z, self._model, rng, self._failures):
            designs = self._decode(step.x.cpu())
            value = step.value.cpu() if self._relaxation is None else self._value(designs)
            self._predicted.append(value.mean(dim=1))
            yield Proposal(designs, self._y_scale.undo(value), step.iteration)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the value of designs by the model."""
        return self._y_scale.undo(self._value(x))

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return the coordinates of designs, the decoded designs, the graph and the directions."""
        found_directions = self._model.directions()
        if isinstance(self._latent, Identity) and not (self._has_graph() or found_directions):
            return []
        directions: Sequence[Tensor | None] = found_directions or [None] * len(x)
        z = self._encode(x)
        decoded = self._decode(z)
        return [
            Insight(codes=z[i], reconstructed=decoded[i], graph=found.graph, directions=along)
            for i, (found, along) in enumerate(zip(self._found, directions, strict=True))
        ]

    def failures(self) -> dict[int, str]:
        """Return the seeds whose fit or search failed."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return diagnostics of the fit, the graph and the latent, and mean predictions."""
        seeds = len(self._found)
        nothing: list[dict[str, Any]] = [{} for _ in range(seeds)]
        reports = [
            {**fit, **health}
            for fit, health in zip(
                self._model.describe() or nothing, self._latent.health() or nothing, strict=True
            )
        ]
        for seed, report in enumerate(reports):
            report["predicted"] = [float(mean[seed]) for mean in self._predicted]
            if self._has_graph():
                report |= self._found[seed].describe()
        return reports

    def _relax(self, data: Dataset) -> tuple[Relaxation | None, Dataset]:
        """Return the relaxation, None for real designs, and the data that the parts work on."""
        if not data.space.categorical:
            return None, data
        relaxation = Relaxation.of(data.space, self.relaxation)
        return relaxation, relaxation.relax(data)

    def _choose_latent(self, space: Space) -> Latent:
        """Return the latent for designs of a space."""
        return self.latent.for_categories() if space.categorical else self.latent

    def _encode(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        """Return the coordinates of designs."""
        return self._coordinates.encode(
            x if self._relaxation is None else self._relaxation.encode(x)
        )

    def _decode(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Return the designs of coordinates; categories are the nearest ones."""
        x = self._coordinates.decode(z)
        return x if self._relaxation is None else self._relaxation.decode(x)

    def _snap(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, e)
        """Return the coordinates of whole categories; those of real designs are unchanged."""
        return z if self._relaxation is None else self._encode(self._decode(z.cpu())).to(z)

    def _value(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the standardised value of designs by the model."""
        return self._model.value(self._encode(x).to(pick_device(self.device))).cpu()

    def _has_graph(self) -> bool:
        """Return whether the graph is used, or was searched for."""
        return self.surrogate.uses_graph or not isinstance(self.graph, Complete)

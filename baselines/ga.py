"""GA: gradient ascent on a learned model of the value, in the space of the designs.

The baseline of Grudzien, Uehara, Levine, Abbeel (2024) and of most offline optimisation: fit an MLP
to the visible table, then follow its gradient from visible designs. `ensemble` > 1 fits several and
climbs their mean, their minimum, or their mean minus `kappa` standard deviations.

Where the paper is silent:
- the ascent takes plain gradient steps of 0.05 sqrt(d) in standardised units, as the reference
  implementation of COMs does (Adam at that rate leaves the data within two steps);
- a tenth of the rows is held out, so that the fit can be judged; early stopping on it is an option.

Its row: python -m ddobench -m method=ga task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from ddobench.ascent import Ascent
from ddobench.contracts import Dataset, Method, Proposal
from ddobench.devices import pick_device
from ddobench.errors import check_one_of, check_whole
from ddobench.streams import Streams
from ddobench.surrogates import (
    Surrogate,
    Table,
    describe_fit,
    fit_regression,
    lower_bound,
    mean_value,
    min_value,
)
from ddobench.training import Training

AGGREGATES = ("mean", "min", "lcb")


@dataclass(kw_only=True)
class GA(Method):
    """Fit an MLP (or an ensemble), then climb it."""

    name: ClassVar[str] = "ga"
    version: ClassVar[int] = 2
    seeds_at_once: ClassVar[int | None] = 10

    training: Training
    ascent: Ascent
    width: int = 256
    depth: int = 2
    ensemble: int = 1
    aggregate: str = "mean"
    kappa: float = 1.0
    device: str = "auto"

    def __post_init__(self) -> None:
        check_whole("method.width", self.width, 1)
        check_whole("method.depth", self.depth, 0)
        check_whole("method.ensemble", self.ensemble, 1)
        check_one_of("method.aggregate", self.aggregate, AGGREGATES)
        self._failures: dict[int, str] = {}
        self._believed: list[Tensor] = []  # (S,) mean prediction at each iteration

    def declines(self, data: Dataset) -> str | None:
        """Decline designs without a gradient."""
        return "ga climbs continuous designs only" if data.space.categorical else None

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit the members one after the other, all on the same rows."""
        table = Table.of(data, pick_device(self.device))
        self._split = self.training.split(data.n, rng.child("split"))
        fits = [
            fit_regression(
                table,
                [self.width] * self.depth,
                self.training,
                self._split,
                rng.child("surrogate" if member == 0 else f"surrogate{member}"),
                "surrogate" if self.ensemble == 1 else f"surrogate {member + 1}",
            )
            for member in range(self.ensemble)
        ]
        aggregates = {"mean": mean_value, "min": min_value, "lcb": lower_bound(self.kappa)}
        networks, self._histories = zip(*fits, strict=True)
        self._surrogate = Surrogate(table, networks, aggregates[self.aggregate])
        for history in reversed(self._histories):
            self._failures |= history.failures

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Climb from the starts."""
        table = self._surrogate.table
        z = table.x_scale.apply(starts.to(table.x.device))  # (S, K, d)
        for ledge in self.ascent.climb(z, self._surrogate.value_and_gradient, self._failures):
            self._believed.append(ledge.value.mean(dim=1).cpu())
            yield Proposal(
                table.x_scale.undo(ledge.x), table.y_scale.undo(ledge.value), ledge.iteration
            )

    def predict(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the surrogate's value."""
        return self._surrogate.predict(x)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training or ascent broke down."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the quality of the fit, and the mean prediction (sd units) along the ascent."""
        reports = describe_fit(self._surrogate, self._split, self._histories)
        for seed, report in enumerate(reports):
            report["believed"] = [float(mean[seed]) for mean in self._believed]
        return reports

"""Auto: choose a method by what it would have predicted of the best rows. Ours.

A user with one table has no oracle to choose by. What counts is how a model does beyond the data it
has seen, so each candidate is fitted to the rows below a percentile of the value and judged on the
rows above it: does it put them in the right order (rank correlation), and by how much is it wrong
(squared error as a share of the variance of all visible values)? The candidate with the best order
is then fitted to all rows and proposes. If no candidate's order is better than chance allows, the
best visible design is proposed: doing nothing is a candidate. Of a table with few rows more are
judged by (the percentile in `conf/method/auto.yaml` falls), so that 40 rows are enough.

Nothing is chosen by the oracle. Every candidate is a method as it stands in `conf/method`, so what
is learned about it there holds here. Categorical designs have two candidates more, which need no
training: ridge regression on the codes, and FGM's tables over discovered pairs (`on_categories`; in
no YAML, so that the digests of runs on continuous designs stay).

Its row: python -m ddobench -m method=auto task=chain d=41 seed=0-9
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import ClassVar

from ddobench.baselines.choosing import NOTHING, Chooser, Judgement, Trial
from ddobench.baselines.fgm_discrete import DiscreteFGM
from ddobench.baselines.linear import Linear
from ddobench.contracts import Dataset, Method
from ddobench.errors import UsageError
from ddobench.parts.axes import Identity as OwnAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.latents import Identity
from ddobench.parts.pairs import Pairs
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Auto(Chooser):
    """Judge the candidates on the best visible rows, and hand over to one of them."""

    name: ClassVar[str] = "auto"
    version: ClassVar[int] = 2  # as many iterations beside any companions
    seeds_at_once: ClassVar[int | None] = 10

    percentile: float = 90.0
    chance: float = 2.0
    least_rows: int = 20
    on_categories: Mapping[str, Method] = field(default_factory=lambda: categorical_candidates())

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.percentile < 100:
            raise UsageError(f"method.percentile must be between 0 and 100, got {self.percentile}")

    def list_candidates(self, data: Dataset) -> Mapping[str, Method]:
        """Return the candidates, with those for categories where designs are of these."""
        more = self.on_categories if data.space.categorical else {}
        return {**self.candidates, **more}

    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Return for each seed how every candidate did on the best rows."""
        return self.judge_by(Trial.above(data, self.percentile), data, self.least_rows, rng)

    def choose(self, told: Sequence[Judgement], data: Dataset) -> str:
        """Return the candidate with the best order, or nothing if that may be chance."""
        known = [one for one in told if isfinite(one.rank)]
        best = max(known, key=lambda one: one.rank, default=None)
        top = data.n - round(data.n * self.percentile / 100)
        if best is None or best.rank < self.chance / sqrt(max(top, 1)):
            return NOTHING
        return best.candidate


def categorical_candidates() -> dict[str, Method]:
    """Return what is tried on categorical designs beside the candidates of any designs."""
    linear = Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=Linear(), search=Ascent()
    )
    return {"linear": linear, "pairs": DiscreteFGM(graph=Pairs())}

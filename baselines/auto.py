"""Auto: choose a method by how well it predicts the best rows. Ours.

A user with one table has no oracle to choose by. What matters is how a model extrapolates, so each
candidate is fitted to the rows below a percentile of the value and judged on the rows above it: by
the rank correlation, and by the squared error as a share of the variance of all visible values. The
candidate with the highest rank correlation is then fitted to all rows and proposes. If no
correlation is higher than chance allows, the best visible design is proposed. Small tables hide a
larger share of their rows (the percentile in `conf/method/auto.yaml` decreases), so that 40 rows
are enough.

Nothing is chosen by the oracle. Every candidate has the settings of its file in `conf/method`, so
results of that method apply here. Categorical designs have two more candidates, which need no
training: ridge regression on the codes, and FGM's tables over discovered pairs (`on_categories`; it
is in no YAML, so that the digests of runs on continuous designs are unchanged).

Command: python -m ddobench -m method=auto task=chain d=41 seed=0-9
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, sqrt
from typing import ClassVar

from ddobench.baselines.fgm import DiscreteFGM
from ddobench.baselines.linear import Linear
from ddobench.baselines.naive import Naive
from ddobench.contracts import Dataset, Method
from ddobench.errors import UsageError
from ddobench.parts.choosing import Chooser, Judgement, Trial
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete, Pairs
from ddobench.parts.latents import Identity
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.rng import Streams

NONE_TRUSTED = "naive"  # the choice if no candidate is better than chance


@dataclass(kw_only=True)
class Auto(Chooser):
    """Judge the candidates on the best visible rows, and use one of them."""

    name: ClassVar[str] = "auto"
    version: ClassVar[int] = 2  # the number of iterations is independent of the other seeds
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
        """Return the candidates, with those for categories if designs are categorical."""
        more = self.on_categories if data.space.categorical else {}
        return {**self.candidates, **more}

    def judge(self, data: Dataset, rng: Streams) -> list[list[Judgement]]:
        """Judge every candidate on the best rows, for each seed."""
        return self.judge_by(Trial.above(data, self.percentile), data, self.least_rows, rng)

    def choose(self, judgements: Sequence[Judgement], data: Dataset) -> str:
        """Return the candidate with the highest correlation, or `naive` if that may be chance."""
        known = [one for one in judgements if isfinite(one.rank)]
        best = max(known, key=lambda one: one.rank, default=None)
        top = data.n - round(data.n * self.percentile / 100)
        if best is None or best.rank < self.chance / sqrt(max(top, 1)):
            return NONE_TRUSTED
        return best.candidate

    def find_method(self, name: str) -> Method:
        """Return a candidate, or the best visible design if none is trusted."""
        return self._known[name] if name in self._known else Naive()


def categorical_candidates() -> dict[str, Method]:
    """Return the candidates that are tried on categorical designs only."""
    linear = Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), surrogate=Linear(), search=Ascent()
    )
    return {"linear": linear, "pairs": DiscreteFGM(graph=Pairs())}

"""Naive: the best design in the table (Eq. "simple" of the paper).

The reading without any inductive bias, and the reference for every method. No deviations.
Command: python -m ddobench -m method=naive task=quadratic seed=0-49
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Naive(Method):
    """Propose the visible design with the largest visible value."""

    name: ClassVar[str] = "naive"

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002 - nothing is drawn
        """Find the best row."""
        self._best = data.best()[:, None, :]  # (S, 1, d)
        self._value = data.y.max(dim=1, keepdim=True).values  # (S, 1)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield that row."""
        yield Proposal(self._best, self._value)

"""Random: the start designs themselves, without optimisation.

A control: these are the designs that every method starts from.

Command: python -m ddobench -m method=random task=chain d=41 seed=0-9
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Random(Method):
    """Propose the random visible designs that all methods start from."""

    name: ClassVar[str] = "random"

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Do nothing."""

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the starts."""
        yield Proposal(starts)

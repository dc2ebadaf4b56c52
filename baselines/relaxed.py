"""Methods of continuous designs without parts, on categories as well.

Categorical designs reach such a method as real codes, and what it proposes goes back to the nearest
categories: see `ddobench.parts.relaxation`. Its own prediction is then asked of those.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal, Space
from ddobench.errors import check_one_of
from ddobench.parts.relaxation import RELAXATIONS, Relaxation
from ddobench.rng import Streams


@dataclass(kw_only=True)
class RelaxedMethod(Method):
    """A method that sees continuous designs only."""

    relaxation: str = "logits"

    def __post_init__(self) -> None:
        check_one_of("method.relaxation", self.relaxation, RELAXATIONS)

    @abstractmethod
    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Learn from a continuous table."""

    @abstractmethod
    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield continuous designs at each iteration, from visible ones (S, K, e)."""

    def predict_codes(self, x: Tensor) -> Tensor | None:  # noqa: ARG002 - a default for all methods
        """Return the model's value of continuous designs (S, K, e), (S, K), or None."""
        return None

    def count_codes(self, space: Space) -> int:
        """Return how many codes designs of a space have."""
        relaxed = self._relax(space)
        return space.d if relaxed is None else len(relaxed.levels)

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Learn from the table, relaxed if need be."""
        self._relaxed = self._relax(data.space)
        self.fit_codes(data if self._relaxed is None else self._relaxed.relax(data), rng)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield designs, of whole categories if need be."""
        for proposal in self.propose_codes(self._encode(starts), rng):
            if self._relaxed is None:
                yield proposal
            else:
                designs = self._relaxed.decode(proposal.designs)
                yield Proposal(designs, iteration=proposal.iteration)

    def predict(self, x: Tensor) -> Tensor | None:  # (S, K, d) -> (S, K)
        """Return the model's value of designs."""
        return self.predict_codes(self._encode(x))

    def _relax(self, space: Space) -> Relaxation | None:
        return Relaxation.of(space, self.relaxation) if space.categorical else None

    def _encode(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, e)
        return x if self._relaxed is None else self._relaxed.encode(x)

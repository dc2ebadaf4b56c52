"""Methods of continuous designs on categories."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from torch import Tensor

from ddobench.baselines.relaxed import RelaxedMethod
from ddobench.contracts import Dataset, Proposal, Space
from ddobench.errors import UsageError
from ddobench.rng import Streams

RNG = Streams([0], "test")
LETTERS = Dataset(
    torch.tensor([[[0.0, 2.0], [1.0, 0.0]]]), torch.tensor([[1.0, 2.0]]), Space(2, (2, 3))
)
REALS = Dataset(LETTERS.x / 3, LETTERS.y, Space(2))


@dataclass(kw_only=True)
class Nudge(RelaxedMethod):
    """Add a little to every code, and value designs by the first."""

    name: ClassVar[str] = "nudge"

    def fit_codes(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        self.seen = data

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(starts + 0.1, starts[..., 0], 7)

    def predict_codes(self, x: Tensor) -> Tensor:
        return x[..., 0]


def test_categories_are_seen_as_codes_and_proposed_whole() -> None:
    method = Nudge()
    method.fit(LETTERS, RNG)
    assert not method.seen.space.categorical
    assert method.seen.space.d == 3  # one code of the bit, two of the letter
    (proposal,) = method.propose(LETTERS.x, RNG)
    assert torch.equal(proposal.designs, LETTERS.x)
    assert proposal.iteration == 7
    assert proposal.predicted is None  # what was predicted of codes is not true of categories
    assert torch.equal(method.predict(LETTERS.x), torch.tensor([[-1.0, 1.0]], dtype=torch.float64))  # type: ignore[arg-type]


def test_real_designs_are_left_alone() -> None:
    method = Nudge()
    method.fit(REALS, RNG)
    assert method.seen is REALS
    (proposal,) = method.propose(REALS.x, RNG)
    assert torch.equal(proposal.designs, REALS.x + 0.1)
    assert proposal.predicted is not None


def test_an_unknown_relaxation_is_refused() -> None:
    with pytest.raises(UsageError, match=r"relaxation must be one of logits, onehot, got 'bits'"):
        Nudge(relaxation="bits")

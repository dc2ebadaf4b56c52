"""AdamW on flat vectors, against the one of PyTorch."""

import pytest
import torch

from ddobench.optimisers import AdamW
from ddobench.streams import Stream


@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
def test_the_numbers_are_those_of_torch_to_the_bit(weight_decay: float) -> None:
    stream = Stream(0, "test")
    ours = [stream.normal(size) for size in (1000, 17)]
    theirs = [one.clone() for one in ours]
    for one in (*ours, *theirs):
        one.grad = torch.zeros_like(one)
    optimiser = AdamW(ours, rate=0.01, weight_decay=weight_decay)
    reference = torch.optim.AdamW(theirs, lr=0.01, weight_decay=weight_decay, fused=True)
    for _ in range(20):
        for one, other in zip(ours, theirs, strict=True):
            assert one.grad is not None
            one.grad.copy_(stream.normal(len(one)))
            other.grad = one.grad.clone()
        optimiser.step()
        reference.step()
    assert all(torch.equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_a_vector_without_a_gradient_is_refused() -> None:
    with pytest.raises(ValueError, match="every vector must have a gradient"):
        AdamW([torch.zeros(3)], rate=0.1)

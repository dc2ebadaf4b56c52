"""Stand-ins for `torch.bmm` that round as some CPU's library does, to be met on any machine.

Each adds one unit in the last place to some of the results. `lone_column` does so where MKL takes
another way with a lone matrix; `by_address` where MKL without a mode (see `ddobench.determinism`)
looks at where in memory a result lies. A promise about bits that holds with the first and breaks
with the second does not owe its success to the machine at hand.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

multiply = torch.bmm  # the real one
MKL = bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]
without_mkl = pytest.mark.skipif(MKL, reason="what holds without MKL; this build has it")
needs_mkl = pytest.mark.skipif(
    not MKL, reason="bits beside other companions are promised only where PyTorch has MKL"
)


def lone_column(left: Tensor, right: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round a lone product with a single column, or one shared out by threads, differently."""
    shared_out = torch.get_num_threads() > 1
    odd = len(left) == 1 and (right.shape[2] == 1 or shared_out)
    return _nudge(multiply(left, right), lambda _: odd, out)


def by_address(left: Tensor, right: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Round every second matrix of a stack differently, as if it lay across a boundary."""
    product = multiply(left, right)
    place = product.shape[1] * product.shape[2] * product.element_size()  # bytes of a matrix
    return _nudge(product, lambda seed: seed * place % 16 != 0, out)


def _nudge(product: Tensor, odd: Callable[[int], bool], out: Tensor | None) -> Tensor:
    up = torch.nextafter(product.detach(), torch.full_like(product, math.inf)) - product.detach()
    up[[seed for seed in range(len(product)) if not odd(seed)]] = 0
    product = product + up  # not in place, for the sake of autograd
    return product if out is None else out.copy_(product)

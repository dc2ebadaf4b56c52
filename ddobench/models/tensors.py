"""Tensors stacked over seeds: their device, their products, and standardisation per seed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from ddobench.determinism import prefers_onednn
from ddobench.errors import UsageError, check_one_of

DEVICES = ("auto", "cpu", "cuda")
NARROW = 16  # rows or columns below which a product is left to MKL
SMALL = 16**3  # multiplications up to which PyTorch leaves a product to MKL, too
_ONEDNN = prefers_onednn()


def pick_device(name: str) -> torch.device:
    """Return the device with the given name; `auto` is the GPU if there is one.

    All operations used here are deterministic on both kinds of device: no atomic sums, and no
    reduced precision in float32 products. Results agree between devices up to rounding only.
    """
    check_one_of("device", name, DEVICES)
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise UsageError("device=cuda needs a GPU that PyTorch can see; use device=cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def send(drawn: Tensor, device: torch.device) -> Tensor:
    """Return a tensor from the CPU on a device, without waiting for the copy to a GPU.

    Noise is drawn on the CPU at every step, so that it is the same on every device.
    """
    return drawn.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else drawn


def multiply(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return the products (S, m, n) of left (S, m, k) and right (S, k, n), in `out` if given.

    The product of a seed is the same to the bit in a stack of any size. MKL multiplies every matrix
    of a stack on one thread and with one kernel, but treats a single matrix differently: it has
    other kernels for results with one column, and on Intel CPUs with one row, and distributes sums
    over several threads. So the product of a single seed runs on one thread, and one with a single
    column or row runs beside a copy of itself (these are the smallest products of a network). Of
    3,600 products of up to (1024, 256) x (256, 256), all are equal to the bit in stacks of 1, 2, 3
    and 10, with 1 and 2 threads, with these rules and the MKL mode that `determinism` sets; without
    them 256 are not on an AMD CPU.
    """
    with fast_products(left, right):
        return _multiply(left, right, out)


def _multiply(left: Tensor, right: Tensor, out: Tensor | None) -> Tensor:
    if len(left) != 1 or left.is_cuda:
        return torch.bmm(left, right) if out is None else torch.bmm(left, right, out=out)
    if 1 in (left.shape[1], right.shape[2]):
        product = torch.bmm(left.expand(2, -1, -1), right.expand(2, -1, -1))[:1]
        return product if out is None else out.copy_(product)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return torch.bmm(left, right) if out is None else torch.bmm(left, right, out=out)
    finally:
        torch.set_num_threads(threads)


@contextmanager
def fast_products(left: Tensor, right: Tensor) -> Iterator[None]:
    """Let PyTorch multiply left (..., m, k) and right (..., k, n) by the faster library.

    Which one it is depends on a single product, so that it is the same in a stack of any size.
    Narrow products are never oneDNN's. With PyTorch 2.13 it leaves an output with one row unwritten
    if the row lies in memory like a column, and then the next products of the same shape, too.
    """
    (m, k), n = left.shape[-2:], right.shape[-1]
    if not _ONEDNN or min(m, n) < NARROW or m * k * n <= SMALL or left.is_cuda:
        yield
        return
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(precision)


def affine(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """Return bias (S, 1, n) + x (S, m, k) weight (S, k, n), for autograd."""
    result: Tensor = _Affine.apply(bias, x, weight)  # type: ignore[no-untyped-call]
    return result


class _Affine(torch.autograd.Function):
    """The products of the backward pass are by the faster library, too."""

    @staticmethod
    def forward(ctx: Any, bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        with fast_products(x, weight):
            return torch.baddbmm(bias, x, weight)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> tuple[Tensor | None, ...]:
        (x, weight), (slope,) = ctx.saved_tensors, slopes
        wanted = ctx.needs_input_grad
        along_x = along_weight = None
        if wanted[1]:
            with fast_products(slope, weight.mT):
                along_x = torch.bmm(slope, weight.mT)
        if wanted[2]:
            with fast_products(x.mT, slope):
                along_weight = torch.bmm(x.mT, slope)
        return slope.sum(dim=1, keepdim=True) if wanted[0] else None, along_x, along_weight


@dataclass(frozen=True)
class Standardiser:
    """Shifts and scales every column of every seed to mean 0 and standard deviation 1."""

    mean: Tensor  # (S, 1, ...)
    scale: Tensor  # (S, 1, ...)

    @classmethod
    def of(cls, table: Tensor) -> Self:  # (S, N, ...)
        """Compute mean and standard deviation over the rows; a constant column is only shifted.

        Seed by seed, as PyTorch distributes the rows of a single column over threads.
        """
        mean = torch.stack([rows.mean(dim=0, keepdim=True) for rows in table])
        sd = torch.stack([rows.std(dim=0, correction=0, keepdim=True) for rows in table])
        return cls(mean, sd.where(sd > 0, 1.0))

    @classmethod
    def none(cls, table: Tensor) -> Self:  # (S, N, ...)
        """Return a standardiser that changes nothing."""
        like = table[:, :1]
        return cls(torch.zeros_like(like), torch.ones_like(like))

    def apply(self, values: Tensor) -> Tensor:  # (S, K, ...) -> (S, K, ...)
        """Standardise values."""
        return (values - self.mean) / self.scale

    def undo(self, values: Tensor) -> Tensor:  # (S, K, ...) -> (S, K, ...)
        """Return standardised values in their original units."""
        return values * self.scale + self.mean

    def to(self, device: torch.device) -> Self:
        """Return the same on another device."""
        return type(self)(self.mean.to(device), self.scale.to(device))

"""Per-seed named random streams: the only source of randomness in the harness.

A stream is named by (seed, name) and nothing else, so what a seed draws never depends on which
seeds run beside it, on the order in which other streams are used, or on the global generators.
Numbers are drawn by NumPy on the CPU and handed over as tensors, so they are the same on every
device.
"""

import hashlib
from collections.abc import Sequence
from typing import Self

import numpy as np
import torch
from torch import Tensor


class Stream:
    """The random numbers of one seed under one name. Draws advance it; children are independent."""

    def __init__(self, seed: int, name: str) -> None:
        self.seed = seed
        self.name = name
        key = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=16).digest()
        self.generator = np.random.Generator(np.random.PCG64(int.from_bytes(key, "big")))

    def child(self, name: str) -> Self:
        """Return the independent stream `name` below this one."""
        return type(self)(self.seed, f"{self.name}/{name}")

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normals of the given shape."""
        kind = np.float32 if dtype == torch.float32 else np.float64
        return torch.from_numpy(self.generator.standard_normal(shape, dtype=kind)).to(dtype)

    def uniform(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw uniforms on [0, 1) of the given shape."""
        kind = np.float32 if dtype == torch.float32 else np.float64
        return torch.from_numpy(self.generator.random(shape, dtype=kind)).to(dtype)

    def integers(self, high: int, *shape: int) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1."""
        return torch.from_numpy(self.generator.integers(0, high, shape, dtype=np.int64))

    def permutation(self, n: int) -> Tensor:
        """Draw an ordering of 0 to `n` - 1."""
        return torch.from_numpy(self.generator.permutation(n))

    def sample(self, n: int, k: int) -> Tensor:
        """Draw `k` of `n` positions, without repetition where `k` allows."""
        return self.permutation(n)[:k] if k <= n else self.integers(n, k)


class Streams:
    """The streams of S seeds under one name; every draw has the seed axis in front."""

    def __init__(self, seeds: Sequence[int], name: str) -> None:
        self.seeds = tuple(seeds)
        self.name = name
        self.rows = [Stream(seed, name) for seed in self.seeds]

    def child(self, name: str) -> Self:
        """Return the independent streams `name` below these."""
        return type(self)(self.seeds, f"{self.name}/{name}")

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw standard normals, (S, *shape)."""
        return torch.stack([row.normal(*shape, dtype=dtype) for row in self.rows])

    def uniform(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        """Draw uniforms on [0, 1), (S, *shape)."""
        return torch.stack([row.uniform(*shape, dtype=dtype) for row in self.rows])

    def integers(self, high: int, *shape: int) -> Tensor:
        """Draw whole numbers from 0 to `high` - 1, (S, *shape)."""
        return torch.stack([row.integers(high, *shape) for row in self.rows])

    def permutation(self, n: int) -> Tensor:
        """Draw an ordering of 0 to `n` - 1 for each seed, (S, n)."""
        return torch.stack([row.permutation(n) for row in self.rows])

    def sample(self, n: int, k: int) -> Tensor:
        """Draw `k` of `n` positions for each seed, (S, k), without repetition where possible."""
        return torch.stack([row.sample(n, k) for row in self.rows])

"""Mean 0 and standard deviation 1, each seed by its own table."""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class Standardiser:
    """Shifts and scales every column of every seed by what was visible of it."""

    mean: Tensor  # (S, 1, ...)
    scale: Tensor  # (S, 1, ...)

    @classmethod
    def of(cls, table: Tensor) -> Self:  # (S, N, ...)
        """Read off mean and standard deviation over the rows; a constant column is only shifted.

        Seed by seed: threads share out the rows of a lone column, but not those of several.
        """
        mean = torch.stack([rows.mean(dim=0, keepdim=True) for rows in table])
        sd = torch.stack([rows.std(dim=0, correction=0, keepdim=True) for rows in table])
        return cls(mean, sd.where(sd > 0, 1.0))

    @classmethod
    def none(cls, table: Tensor) -> Self:  # (S, N, ...)
        """Leave values as they are."""
        like = table[:, :1]
        return cls(torch.zeros_like(like), torch.ones_like(like))

    def apply(self, values: Tensor) -> Tensor:  # (S, K, ...) -> (S, K, ...)
        """Express values in standard deviations above the visible mean."""
        return (values - self.mean) / self.scale

    def undo(self, values: Tensor) -> Tensor:  # (S, K, ...) -> (S, K, ...)
        """Express standardised values in the units of the table."""
        return values * self.scale + self.mean

    def to(self, device: torch.device) -> Self:
        """Return the same on another device."""
        return type(self)(self.mean.to(device), self.scale.to(device))

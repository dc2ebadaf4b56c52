"""Weights by value: rows that count more the better they are, as in MINs (Kumar and Levine 2020).

The values of a seed are counted in bins. A bin is wanted by the softmax of its upper edge, less if
few rows are in it, and its rows share what it is wanted:

    p_b ~ exp(edge_b / temperature) h_b / (h_b + smallest),    weight of a row of b = p_b / h_b,

with h_b the share of rows in bin b, p summing to one, and weights cut off at `most`. DDOM uses them
as well. The temperature is given, or the distance from the 90th percentile to the largest value.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.errors import UsageError, check_whole

Values = NDArray[np.float64]

SMALLEST_SHARE = 1e-3
SMALLEST_TEMPERATURE = 1e-3
PERCENTILE = 90.0


@dataclass(kw_only=True)
class ValueWeights:
    """How rows are weighted by their values."""

    name: ClassVar[str] = "value_weights"

    bins: int = 20
    temperature: float | None = None
    most: float = 5.0

    def __post_init__(self) -> None:
        check_whole("method.weights.bins", self.bins, 1)
        if self.temperature is not None and self.temperature <= 0:
            raise UsageError(
                f"method.weights.temperature must be positive, got {self.temperature}; "
                "null takes it from the values"
            )

    def of(self, y: Tensor) -> Tensor:  # (S, N) -> (S, N)
        """Return the weight of each row of each seed."""
        return torch.stack([torch.from_numpy(self._of(rows)) for rows in y.numpy()])

    def _of(self, y: Values) -> Values:  # (N,) -> (N,)
        counts, edges = np.histogram(y, bins=self.bins)
        share = counts / counts.sum()  # (bins,)
        wanted = np.exp((edges[1:] - y.max()) / self._temperature(y)) * (
            share / (share + SMALLEST_SHARE)
        )
        wanted /= wanted.sum()
        bin_of = np.minimum(np.searchsorted(edges[1:], y, side="right"), self.bins - 1)  # (N,)
        weights: Values = np.minimum(wanted[bin_of] / share[bin_of], self.most)
        return weights

    def _temperature(self, y: Values) -> float:
        if self.temperature is not None:
            return self.temperature
        return max(float(y.max() - np.percentile(y, PERCENTILE)), SMALLEST_TEMPERATURE)

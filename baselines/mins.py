"""MINs: model inversion networks (Kumar and Levine 2020). An adaptation.

A generator learns designs x given a value y from the rows, weighted by value (`ValueWeights`), and
is then conditioned on the largest visible value. Its samples are the proposals. No model of the
value ranks them, so the designs that count are those drawn first.

The largest value may be an outlier, so that a single row determines what is drawn. On chains (d =
11, N = 2000, budget=small), in standard deviations:

    seed    largest value, next    designs
    1001    4.6, 4.1               4.6 on average, none invalid
    1000    6.5, 4.5               all invalid

Deviations from the paper:
- the generator is a conditional VAE, not a GAN with a gradient penalty: encoder and decoder also
  get the value as an input. It is as cheap as the other methods here, and its training does not
  depend on a balance between two networks;
- the generator is conditioned on the largest visible value and codes are drawn from their prior, as
  in the implementation of COMs' authors; the paper also searches over values and codes for those
  that a second, forward model agrees with;
- proposals are means of the decoder, as for all methods here with a VAE.

On categories there are 32 codes and 200 epochs, as in the script for TFBind8 (`mins/experiments.py`
of brandontrabucco/design-baselines at 785dbcf), whose GAN has three layers of 1024 units.

Beside its published numbers: python -m ddobench -m experiment=parity

Command: python -m ddobench -m method=mins task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Proposal
from ddobench.errors import UsageError, check_whole
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.tensors import Standardiser, pick_device
from ddobench.models.training import Training, describe_training
from ddobench.parts.relaxation import RelaxedMethod
from ddobench.parts.vae import BoundStep, append
from ddobench.rng import Streams

Values = NDArray[np.float64]

SMALLEST_SHARE = 1e-3  # added to the share of a bin
SMALLEST_TEMPERATURE = 1e-3
PERCENTILE = 90.0  # of the values, from which the temperature is measured


@dataclass(kw_only=True)
class ValueWeights:
    """Weights of rows that increase with their values, also used by DDOM.

    The values of a seed are counted in bins. With h_b the share of rows in bin b,

        p_b ~ exp(edge_b / temperature) h_b / (h_b + smallest),    weight of a row of b = p_b / h_b,

    where edge_b is the upper edge of the bin, p sums to one, and weights are at most `most`. The
    temperature is given, or the distance from the 90th percentile to the largest value.
    """

    name: ClassVar[str] = "value_weights"

    bins: int = 20
    temperature: float | None = None
    most: float = 5.0  # the largest weight

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


@dataclass(kw_only=True)
class MINs(RelaxedMethod):
    """Decode codes from the prior, given the largest visible value."""

    name: ClassVar[str] = "mins"
    seeds_at_once: ClassVar[int | None] = 10

    training: Training
    weights: ValueWeights
    dim: int
    width: int = 256
    depth: int = 2
    variance: float = 0.01
    beta: float = 1.0
    warmup: float = 0.1
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("method.dim", self.dim, 1)
        check_whole("method.width", self.width, 1)
        check_whole("method.depth", self.depth, 0)
        if self.variance <= 0:
            raise UsageError(f"method.variance must be positive, got {self.variance}")
        if not 0 <= self.warmup <= 1:
            raise UsageError(f"method.warmup must be a share of the steps, got {self.warmup}")

    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Train the generator."""
        device = pick_device(self.device)
        self._scale = Standardiser.of(data.x)
        x = self._scale.apply(data.x).to(device, torch.float32)  # (S, N, d)
        values = Standardiser.of(data.y).apply(data.y)  # (S, N)
        weights, y = self.weights.of(values).to(x), values.to(x)
        self._goal = y.max(dim=1).values  # (S,)
        hidden, d = [self.width] * self.depth, x.shape[2]
        encoder = StackedMLP([d + 1, *hidden, 2 * self.dim], rng.child("encoder"), device)
        decoder = StackedMLP([self.dim + 1, *hidden, d], rng.child("decoder"), device)
        warmup = round(self.warmup * self.training.steps)
        settings = (encoder, decoder, self.variance, self.beta)
        self._history = self.training.run(
            [encoder, decoder],
            [x, weights, y[..., None]],
            self.training.split(data.n, rng.child("split")),
            step=BoundStep(*settings, warmup, rng.child("noise")),
            check=BoundStep(*settings, 0, rng.child("check")).loss,
            rng=rng.child("minibatches"),
            what="conditional vae",
        )
        self._decoder = Passes(decoder)

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield one sample for each start; the starts themselves are not used."""
        codes = rng.normal(starts.shape[1], self.dim).to(self._goal)  # (S, K, e)
        goal = self._goal[:, None, None].expand(-1, starts.shape[1], 1)
        drawn = self._decoder.forward(append(codes, goal))  # (S, K, d)
        yield Proposal(self._scale.undo(drawn.to("cpu", torch.float64)))

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training diverged."""
        return self._history.failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the loss over training."""
        return describe_training(self._history)

"""MINs: model inversion networks (Kumar and Levine 2020). An adaptation.

A generator of designs for a value: it learns x given y from the rows, which count by value (see
`value_weights`), and is then asked for the largest visible value. Samples are proposals; no model
of the value ranks them, so those that count are those that were drawn first.

The largest value may be a lone one, and then one row tells what to draw. On chains (d = 11,
N = 2000, budget=small) seed 1001, whose largest value is 4.6 standard deviations and the next 4.1,
gets designs of 4.6 on average, none invalid; seed 1000, with 6.5 and 4.5, only invalid ones.

Where we differ from the paper:
- the generator is a conditional VAE, not a GAN with a gradient penalty: encoder and decoder are
  given the value beside design and code. It is as light as the other methods here, and its training
  does not depend on a balance between two networks;
- the value asked for is the largest visible one and codes are drawn from their prior, as in the
  implementation of COMs' authors; the paper also searches over values and codes for those that a
  second, forward model agrees with;
- proposals are means of the decoder, as for all methods here with a VAE.

Its row: python -m ddobench -m method=mins task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.baselines.relaxed import RelaxedMethod
from ddobench.baselines.value_weights import ValueWeights
from ddobench.contracts import Dataset, Proposal
from ddobench.errors import UsageError, check_whole
from ddobench.models.devices import pick_device
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.standardise import Standardiser
from ddobench.models.training import Training
from ddobench.parts.surrogates import describe_training
from ddobench.parts.vae import BoundStep, append
from ddobench.rng import Streams


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
        """Yield one sample for each start, which has no other part in it."""
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

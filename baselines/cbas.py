"""CbAS: conditioning by adaptive sampling (Brookes, Park, Listgarten 2019). An adaptation.

A VAE p_0 of the visible designs is bent, in a few iterations, towards designs whose value exceeds a
rising level. Each iteration draws codes z and designs x from the current decoder q_t(x | z), takes
the level gamma_t that a fifth of them exceed by an ensemble's mean, and trains q_t further on these
designs, weighted by

    w(x) = (p_0(x | z) / q_t(x | z)  P(y >= gamma_t | x))^temper,

so that q_t approaches p_0 conditioned on the value. The same codes are decoded after each iteration
and ranked by the mean of the ensemble, which knows no invalid designs: on chains it ranks them high
(d = 11, N = 2000, budget=small, seeds 1000 and 1001: the best 32 of 256 by the truth rise from 1.8
and 2.2 to 3.7 and 5.2 standard deviations, those it ranks best from 0.4 and 1.0 to -0.6 and 1.1).

Where we differ from the reference implementation, which is that of COMs' authors:
- the VAE is that of `latent=vae`, the very networks of fgm and vae_ga: a decoder of fixed variance
  0.01 and as many codes as variables (there 32 codes and a learned variance);
- proposals are means of the decoder, as for all methods here with a VAE; the designs that it is
  trained on are drawn from it;
- weights of an iteration are scaled to mean 1 over all its designs, there over each minibatch.

Its row: python -m ddobench -m method=cbas task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.baselines.gaussian_heads import GaussianHeads
from ddobench.baselines.relaxed import RelaxedMethod
from ddobench.contracts import Dataset, Proposal
from ddobench.errors import UsageError, check_whole
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.standardise import Standardiser
from ddobench.models.training import Training
from ddobench.parts.vae import VAE, BoundStep
from ddobench.rng import Streams

TINY = 1e-30  # the least probability whose logarithm is taken


@dataclass(kw_only=True)
class CbAS(RelaxedMethod):
    """Train a VAE further on its own better samples, weighted by how far it has gone."""

    name: ClassVar[str] = "cbas"
    seeds_at_once: ClassVar[int | None] = 10

    vae: VAE
    heads: GaussianHeads
    refit: Training
    iterations: int = 20
    samples: int = 1000
    percentile: float = 80.0
    temper: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("method.iterations", self.iterations, 1)
        check_whole("method.samples", self.samples, 2)
        if not 0 <= self.percentile < 100:
            raise UsageError(f"method.percentile must be in [0, 100), got {self.percentile}")
        if self.temper <= 0:
            raise UsageError(f"method.temper must be positive, got {self.temper}")
        self._failures: dict[int, str] = {}
        self._told: list[dict[str, Tensor]] = []  # of each iteration, (S,) each

    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Train the VAE and the ensemble."""
        self.vae.fit(data, rng.child("latent"), self.cache)
        self._y_scale = Standardiser.of(data.y)
        x = self.vae.standardise(data.x)
        self._device = x.device
        y = self._y_scale.apply(data.y).to(x)
        self._ensemble = self.heads.fit(x, y, rng.child("heads"))
        self._failures |= {**self._ensemble.failures(), **self.vae.failures()}

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield what the same codes stand for before the first iteration and after each."""
        prior = Passes(self.vae.copy_networks()[1])
        encoder, decoder = self.vae.copy_networks()
        codes = rng.child("codes").normal(starts.shape[1], self.vae.dim)  # (S, K, e)
        codes, draws = codes.to(self._device), rng.child("draws")
        yield self._decode(decoder, codes)
        for iteration in range(1, self.iterations + 1):
            x, weights = self._sample(prior, Passes(decoder), draws)
            streams = rng.child(f"refit{iteration}")
            step = BoundStep(
                encoder, decoder, self.vae.variance, self.vae.beta, 0, streams.child("noise")
            )
            history = self.refit.run(
                [encoder, decoder],
                [x, weights],
                self.refit.split(self.samples, streams.child("split")),
                step=step,
                check=step.loss,
                rng=streams.child("minibatches"),
                what=f"iteration {iteration}",
            )
            self._failures = {**history.failures, **self._failures}
            yield self._decode(decoder, codes)

    def predict_codes(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
        """Return the mean of the ensemble."""
        return self._value(self.vae.standardise(x))

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training diverged."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the level of each iteration and how many samples its weights amount to."""
        return [
            {name: [float(one[name][seed]) for one in self._told] for name in self._told[0]}
            for seed in range(len(self._y_scale.mean))
        ]

    def _sample(self, prior: Passes, current: Passes, rng: Streams) -> tuple[Tensor, Tensor]:
        """Draw designs (S, n, d) from the current decoder; return them with weights (S, n)."""
        codes = rng.normal(self.samples, self.vae.dim).to(self._device)
        middle = current.forward(codes)  # (S, n, d)
        noise = rng.normal(*middle.shape[1:]).to(middle) * self.vae.variance**0.5
        x = middle + noise
        from_prior = x - prior.forward(codes)
        log_ratio = (noise.square() - from_prior.square()).sum(dim=2) / (2 * self.vae.variance)
        level = self._ensemble.mean(x).quantile(self.percentile / 100, dim=1)  # (S,)
        log_weight = log_ratio + self._ensemble.exceed(x, level).clamp(min=TINY).log()
        weights = (self.temper * log_weight).softmax(dim=1)  # (S, n)
        self._told.append(
            {
                "level": self._y_scale.undo(level[:, None].cpu().double())[:, 0],
                "effective_samples": 1 / weights.square().sum(dim=1),
            }
        )
        return x, weights * self.samples

    def _decode(self, decoder: StackedMLP, codes: Tensor) -> Proposal:  # (S, K, e)
        x = Passes(decoder).forward(codes)  # (S, K, d)
        return Proposal(self.vae.restore_units(x), self._value(x))

    def _value(self, x: Tensor) -> Tensor:  # (S, K, d) standardised -> (S, K)
        return self._y_scale.undo(self._ensemble.mean(x).to("cpu", torch.float64))

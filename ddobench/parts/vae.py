"""A variational auto-encoder (Kingma & Welling 2013) per seed, stacked.

Encoder and decoder are MLPs; the prior is a standard normal and the decoder a normal of fixed
variance. With a variance of 1, or a learned one, the posterior collapses to the prior: few latent
dimensions are used, and decoded designs lose their value. A warning says so.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from math import log as ln
from math import pi
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from ddobench.contracts import Dataset
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.tensors import Standardiser, pick_device, send
from ddobench.models.training import Training, thin
from ddobench.parts.latents import Codes, Latent
from ddobench.rng import Streams
from ddobench.seeds import format_seeds
from ddobench.store.cache import ArrayCache, Arrays, Shapes

log = logging.getLogger(__name__)

CODES = ("samples", "means")
ROWS_AT_ONCE = 1024
ACTIVE = 0.01  # a dimension is in use if its posterior mean has a larger variance
COLLAPSED = 0.5  # warn if a smaller share of dimensions is in use


@dataclass(kw_only=True)
class VAE(Latent):
    """Codes from the encoder, designs from the decoder; trained once for each seed of a task."""

    name: ClassVar[str] = "vae"
    version: ClassVar[int] = 2

    dim: int
    training: Training
    width: int = 256
    depth: int = 2
    variance: float = 0.01
    beta: float = 1.0
    warmup: float = 0.1
    codes: str = "samples"
    device: str = "auto"

    def __post_init__(self) -> None:
        check_whole("latent.dim", self.dim, 1)
        check_whole("latent.width", self.width, 1)
        check_whole("latent.depth", self.depth, 0)
        check_one_of("latent.codes", self.codes, CODES)
        if self.variance <= 0:
            raise UsageError(f"latent.variance must be positive, got {self.variance}")
        if not 0 <= self.warmup <= 1:
            raise UsageError(f"latent.warmup must be a share of the steps, got {self.warmup}")
        self._failures: dict[int, str] = {}

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:
        """Train the seeds that are not in the cache."""
        device = pick_device(self.device)
        self._scale = Standardiser.of(data.x)
        self._x = self._scale.apply(data.x).to(device, torch.float32)  # (S, N, d)
        key = {**self._key(), "stream": rng.name}
        self._encoder, self._decoder = self._networks(rng, device)
        shapes: Shapes = {
            **_shapes(self._encoder, "encoder"),
            **_shapes(self._decoder, "decoder"),
            "losses": None,  # training may stop early
        }
        kept = [cache.get("vae", key, seed, shapes) for seed in rng.seeds]
        missing = [i for i, arrays in enumerate(kept) if arrays is None]
        if missing:
            streams = Streams([rng.seeds[i] for i in missing], rng.name)
            for i, arrays, failure in self._train(self._x[missing], missing, streams):
                kept[i] = arrays
                if failure:
                    self._failures[i] = failure
                else:
                    cache.put("vae", key, rng.seeds[i], arrays)
        everything = [arrays for arrays in kept if arrays is not None]
        _unpack(self._encoder, "encoder", everything)
        _unpack(self._decoder, "decoder", everything)
        self._losses = [arrays["losses"] for arrays in everything]
        self._warn_of_collapse(rng.seeds)

    def dimensions(self, data: Dataset) -> int:  # noqa: ARG002
        """Return the configured number."""
        return self.dim

    def encode(self, x: Tensor) -> Codes:  # (S, K, d)
        """Return the posterior of the codes."""
        mean, log_variance = self._posterior(self.standardise(x))
        sd = _deviation(log_variance).to("cpu", torch.float64)
        return Codes(mean.to("cpu", torch.float64), sd if self.codes == "samples" else None)

    def decode(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K, d)
        """Return the means of the decoder."""
        rows = torch.split(z.to(self._x), ROWS_AT_ONCE, dim=1)
        passes = Passes(self._decoder)
        decoded = torch.cat([passes.forward(piece).clone() for piece in rows], dim=1)
        return self.restore_units(decoded)

    def failures(self) -> dict[int, str]:
        """Return the seeds whose training diverged."""
        return self._failures

    def health(self) -> list[dict[str, Any]]:
        """Return the dimensions in use and the reconstruction error of each seed."""
        mean, log_variance = self._posterior(self._x)
        divergence = _divergence(mean, _deviation(log_variance), log_variance).mean(dim=1)  # (S, e)
        decoder = Passes(self._decoder)
        error = (
            torch.stack(
                [
                    (decoder.forward(codes) - rows).square().mean(dim=2).sum(dim=1)
                    for codes, rows in zip(
                        torch.split(mean, ROWS_AT_ONCE, dim=1),
                        torch.split(self._x, ROWS_AT_ONCE, dim=1),
                        strict=True,
                    )
                ]
            ).sum(dim=0)
            / self._x.shape[1]
        )  # (S,)
        active = _active(mean)
        return [
            {
                "latent_dimensions": self.dim,
                "active_dimensions": int(active[seed]),
                "divergence": divergence[seed].tolist(),
                "reconstruction_error": float(error[seed]),
                "latent_loss": thin(self._losses[seed]),
            }
            for seed in range(len(mean))
        ]

    def copy_networks(self) -> tuple[StackedMLP, StackedMLP]:
        """Return copies of encoder and decoder, to be trained further."""
        overwritten = Streams(range(len(self._x)), "overwritten")
        copies = self._networks(overwritten, self._x.device)
        for copy, network in zip(copies, (self._encoder, self._decoder), strict=True):
            copy.restore(network.snapshot())
        return copies

    def standardise(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, d)
        """Return designs as inputs of the encoder."""
        return self._scale.apply(x).to(self._x)

    def restore_units(self, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K, d)
        """Return outputs of the decoder in the units of the table."""
        return self._scale.undo(x.to("cpu", torch.float64))

    def _key(self) -> dict[str, Any]:
        """Return everything that a trained network depends on besides data and seed."""
        key = {name: value for name, value in asdict(self).items() if name not in _NOT_FOR_TRAINING}
        return {**key, "version": self.version}

    def _networks(self, rng: Streams, device: torch.device) -> tuple[StackedMLP, StackedMLP]:
        d = self._x.shape[2]
        hidden = [self.width] * self.depth
        return (
            StackedMLP([d, *hidden, 2 * self.dim], rng.child("encoder"), device),
            StackedMLP([self.dim, *hidden, d], rng.child("decoder"), device),
        )

    def _train(
        self, x: Tensor, positions: Sequence[int], rng: Streams
    ) -> Iterator[tuple[int, Arrays, str | None]]:
        """Train on x (S', N, d); yield position, parameters and losses, and a failure if any."""
        encoder, decoder = self._networks(rng, x.device)
        warmup = round(self.warmup * self.training.steps)
        step = BoundStep(encoder, decoder, self.variance, self.beta, warmup, rng.child("noise"))
        check = BoundStep(encoder, decoder, self.variance, self.beta, 0, rng.child("check"))
        history = self.training.run(
            [encoder, decoder],
            [x],
            self.training.split(x.shape[1], rng.child("split")),
            step=step,
            check=check.loss,
            rng=rng.child("minibatches"),
            what="vae",
        )
        for row, i in enumerate(positions):
            arrays = {**_pack(encoder, "encoder", row), **_pack(decoder, "decoder", row)}
            arrays["losses"] = history.losses[:, row].numpy()
            yield i, arrays, history.failures.get(row)

    def _posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and log variance, (S, K, e) each, of standardised designs x (S, K, d)."""
        passes = Passes(self._encoder)
        rows = torch.split(x, ROWS_AT_ONCE, dim=1)
        mean, log_variance = torch.cat(
            [passes.forward(piece).clone() for piece in rows], dim=1
        ).chunk(2, dim=2)
        return mean, log_variance

    def _warn_of_collapse(self, seeds: Sequence[int]) -> None:
        active = _active(self._posterior(self._x)[0]).tolist()
        collapsed = [
            seed for seed, n in zip(seeds, active, strict=True) if n < COLLAPSED * self.dim
        ]
        if collapsed:
            log.warning(
                "vae: the posterior collapsed, as few as %d of %d latent dimensions are in use "
                "(seed %s); try more steps, or a smaller latent.variance or latent.beta",
                min(active),
                self.dim,
                format_seeds(collapsed),
            )


_NOT_FOR_TRAINING = ("codes", "device")


@dataclass(kw_only=True)
class ReseededVAE(VAE):
    """A VAE whose weights, minibatches and noise also depend on `reseed`.

    The seed of a run determines its instance and all random numbers of its method. With `reseed`
    the VAE, or the surrogate (`ReseededMLP`), is trained again on the same rows, which separates
    the variance due to its training from that of the instance:
    python -m ddobench -m experiment=vae_spread
    """

    name: ClassVar[str] = "vae_reseeded"

    reseed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("latent.reseed", self.reseed, 0)

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:
        """Train the seeds that are not in the cache for this `reseed`."""
        super().fit(data, rng.child(f"reseed{self.reseed}"), cache)


class BoundStep:
    """One training step: writes the gradient of the negative evidence lower bound, returns it.

    The divergence from the prior has the factor beta, which grows linearly over the first `warmup`
    steps. Rows can have weights. `given` is a further input of encoder and decoder.
    """

    def __init__(
        self,
        encoder: StackedMLP,
        decoder: StackedMLP,
        variance: float,
        beta: float,
        warmup: int,
        rng: Streams,
    ) -> None:
        self.variance = variance
        self.beta = beta
        self.warmup = warmup
        self.rng = rng
        self.taken = 0
        self._encoder, self._decoder = Passes(encoder), Passes(decoder)

    def __call__(
        self,
        x: Tensor,  # (S, B, d)
        weights: Tensor | None = None,  # (S, B)
        given: Tensor | None = None,  # (S, B, g)
    ) -> Tensor:  # (S,)
        """Take the gradient on a minibatch."""
        rows = x.shape[1]
        self.taken += 1
        beta = self.beta * min(1.0, self.taken / self.warmup) if self.warmup else self.beta
        mean, log_variance, sd = self._posterior(x, given)
        step = sd * self._noise(mean)  # (S, B, e) from the mean to the code
        residual = self._decoder.forward(append(mean + step, given)).sub_(x)  # (S, B, d)
        loss = self._bound(mean, sd, log_variance, residual, beta, weights)
        to_code = self._decoder.backward_to_input(
            _weigh(residual, weights).mul_(1 / (self.variance * rows)), weights=True
        )[..., : mean.shape[2]]  # (S, B, e)
        to_mean = to_code.add(_weigh(mean, weights), alpha=beta / rows)
        excess = _weigh(sd * sd - 1, weights)  # (S, B, e)
        to_log_variance = excess.mul_(beta / rows).addcmul_(to_code, step)
        self._encoder.backward(torch.cat([to_mean, to_log_variance.mul_(0.5)], dim=2))
        return loss

    def loss(
        self, x: Tensor, weights: Tensor | None = None, given: Tensor | None = None
    ) -> Tensor:  # as above -> (S,)
        """Return the negative bound at full beta."""
        mean, log_variance, sd = self._posterior(x, given)
        code = mean + sd * self._noise(mean)
        residual = self._decoder.forward(append(code, given)).sub_(x)
        return self._bound(mean, sd, log_variance, residual, self.beta, weights)

    def _posterior(self, x: Tensor, given: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, log variance and standard deviation of the codes, (S, B, e) each."""
        mean, log_variance = self._encoder.forward(append(x, given)).chunk(2, dim=2)
        log_variance = log_variance.contiguous()  # strided halves of rows are slow
        return mean.contiguous(), log_variance, _deviation(log_variance)

    def _noise(self, like: Tensor) -> Tensor:
        return send(self.rng.normal(*like.shape[1:]), like.device)

    def _bound(
        self,
        mean: Tensor,
        sd: Tensor,
        log_variance: Tensor,
        residual: Tensor,
        beta: float,
        weights: Tensor | None,
    ) -> Tensor:
        """Return the negative bound, (S,), from sums over rows, which is faster than by entry.

        Log variances are summed in two steps, as one sum of a single seed would use threads.
        """
        rows, d = residual.shape[1:]
        if weights is not None:
            missed = residual.square().sum(dim=2) / self.variance + d * ln(2 * pi * self.variance)
            divergence = _divergence(mean, sd, log_variance).sum(dim=2)  # (S, B)
            return (weights * (missed / 2 + beta * divergence)).mean(dim=1)
        missed = _sum_of_squares(residual) / self.variance + rows * d * ln(2 * pi * self.variance)
        excess = _sum_of_squares(mean) + _sum_of_squares(sd) - log_variance.sum(dim=2).sum(dim=1)
        divergence = excess - mean[0].numel()
        return (missed + beta * divergence) / (2 * rows)


def append(x: Tensor, given: Tensor | None) -> Tensor:  # (S, B, k), (S, B, g) -> (S, B, k + g)
    """Append further inputs to rows, if there are any."""
    return x if given is None else torch.cat([x, given], dim=2)


def _weigh(x: Tensor, weights: Tensor | None) -> Tensor:  # (S, B, k), (S, B) -> (S, B, k)
    return x if weights is None else x * weights[..., None]


def _sum_of_squares(x: Tensor) -> Tensor:  # (S, B, e) -> (S,)
    norm: Tensor = torch.linalg.vector_norm(x, dim=(1, 2))
    return norm.square()


def _divergence(mean: Tensor, sd: Tensor, log_variance: Tensor) -> Tensor:  # (S, B, e) each
    """Return KL(N(mean, sd^2) | N(0, 1)) of every dimension in nats, (S, B, e)."""
    return (mean * mean + sd * sd - 1 - log_variance) / 2


def _deviation(log_variance: Tensor) -> Tensor:  # (S, B, e) -> (S, B, e)
    """Return the standard deviation."""
    return (log_variance / 2).exp_()


def _active(mean: Tensor) -> Tensor:  # (S, N, e) -> (S,)
    """Count the dimensions whose posterior mean varies with the design."""
    return (mean.var(dim=1) > ACTIVE).sum(dim=1)


def _pack(network: StackedMLP, name: str, seed: int) -> Arrays:
    return {
        f"{name}{k}": parameter.detach()[seed].cpu().numpy()
        for k, parameter in enumerate(network.parameters())
    }


def _shapes(network: StackedMLP, name: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the arrays of `_pack`."""
    return {
        f"{name}{k}": tuple(parameter.shape[1:]) for k, parameter in enumerate(network.parameters())
    }


def _unpack(network: StackedMLP, name: str, seeds: Sequence[Arrays]) -> None:
    count = len(list(network.parameters()))
    network.restore(
        [
            torch.from_numpy(np.stack([arrays[f"{name}{k}"] for arrays in seeds]))
            for k in range(count)
        ]
    )

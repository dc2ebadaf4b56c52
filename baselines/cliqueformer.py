"""Cliqueformer (Kuba, Abbeel, Levine 2024): a transformer with latent variables in given cliques.

A VAE whose latent variables form a fixed chain of cliques, with a regressor that is a mean over the
cliques. The graph is not discovered: the encoder has to map the data to it. With codes z drawn from
the encoder and k one random clique for each row,

    loss = beta (10 (f(z) - y)^2 + KL(q(z_k | x) | N(0, I))) - log p(x | z),    beta rising to 1,

and designs climb f from the codes of the starts by AdamW, whose weight decay pulls codes to 0, the
mean of the prior. They climb a running average of f (Polyak). The networks are in
`ddobench.models.clique_transformer`. An adaptation; the deviations are listed below.

`told` takes number, size and overlap of the cliques from the true graph, as the authors' settings
do on their RBF tasks. Otherwise the chain has `clique_size` and `overlap` on every task, and is as
long as it needs to be to have a latent variable for each design variable.

With a learned variance and few steps the posterior nearly collapses, so that all decoded designs
seem to be near the mean design (whose own value was not measured). The best 32 of 256 starts at
d = 11, N = 2000, budget=small, in standard deviations:

    seed                     1000    1001
    decoded starts           3.4     5.1
    after the climb          3.5     5.2
    told: decoded starts     3.6     2.8
    told: after the climb    3.6     4.4

After 300 training steps (seed 1000) the codes have standard deviations of 0.06 to 0.8 around 0, and
their posteriors of 0.8 to 1.1. Compare a climb with its iteration 0.

Deviations from the authors' code:
- 2000 minibatches of 128 at rate 1e-3; theirs 40,000 of 512 at 1e-4, which take hours on a CPU;
- the average of the regressor also averages the statistics of its batch normalisation; theirs keep
  mean 0 and variance 1;
- standard deviations of codes and designs are exp of the outputs, within the same limits;
- designs climb 1000 steps, as theirs on all tasks but RBF, where 50 steps hardly move a design (the
  curves show iteration 50); they start from the starts of all methods, theirs from 1000 random
  rows;
- categorical designs are relaxed to real codes with a normal likelihood (`RelaxedMethod`); their
  decoder has a softmax at each position;
- designs of more than 128 codes are declined: a seed with 80 takes 280 CPU seconds already.

On categories the chain has cliques of 3 and a latent variable for each variable of the design: on
TFBind8 these are the 4 cliques of 3 of `configs/tfbind8` (znowu/cliqueformer-code at 46501f7). Its
published number there has another protocol: the best fifth of the rows is hidden, and the mean of
the best 10 of 1000 designs is reported.

Commands: python -m ddobench -m method=cliqueformer method.told=false,true task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import log as ln
from math import pi
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from ddobench.contracts import Dataset, Privilege, Proposal, Space
from ddobench.errors import UsageError, check_whole
from ddobench.models.clique_transformer import (
    ClippedAdamW,
    CliqueChain,
    Decoder,
    Encoder,
    Regressor,
    Shape,
)
from ddobench.models.tensors import Standardiser, pick_device
from ddobench.models.training import Minibatches, Training, explained, rank_correlation, thin
from ddobench.parts.relaxation import RelaxedMethod
from ddobench.progress import track
from ddobench.rng import Stream, Streams

MOST_CODES = 128  # tokens of a design; memory and time of attention are quadratic in them


@dataclass(kw_only=True)
class Cliqueformer(RelaxedMethod):
    """Climb a mean over cliques of latent variables that a transformer learns."""

    name: ClassVar[str] = "cliqueformer"
    version: ClassVar[int] = 2  # of categories, a latent variable for each variable, not each code
    seeds_at_once: ClassVar[int | None] = 1

    training: Training
    told: bool = False
    clique_size: int = 4
    overlap: int = 1
    width: int = 64
    heads: int = 2
    feed: int = 128
    blocks: int = 2
    hidden: int = 256
    dropout: float = 0.5
    value_weight: float = 10.0
    warmup: float = 0.025
    polyak: float = 5e-3
    steps: int = 1000
    rate: float = 3e-4
    weight_decay: float = 0.5
    record_every: int = 50
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("clique_size", "width", "heads", "feed", "hidden", "steps", "record_every"):
            check_whole(f"method.{name}", getattr(self, name), 1)
        check_whole("method.overlap", self.overlap, 0)
        check_whole("method.blocks", self.blocks, 0)
        if self.overlap >= self.clique_size:
            raise UsageError(
                f"method.overlap must be below method.clique_size, got {self.overlap} and "
                f"{self.clique_size}"
            )
        if self.width % (2 * self.heads):
            raise UsageError(
                "method.width must be an even number of features for each of method.heads, "
                f"got {self.width} and {self.heads}"
            )
        if self.training.patience is not None:
            raise UsageError(
                f"method.training.patience must be null here, got {self.training.patience}; "
                "cliqueformer trains for all its steps"
            )
        self._failures: dict[int, str] = {}

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002
        """Ask for the graph if `told`."""
        return frozenset({"graph"}) if self.told else frozenset()

    def declines(self, data: Dataset) -> str | None:
        """Decline tasks without a graph if `told`, and designs with too many codes."""
        codes = self.count_codes(data.space)
        if codes > MOST_CODES:
            return f"attention between {codes:,} codes takes too long; it has at most {MOST_CODES}"
        if self.told and data.privileged.graphs is None:
            return "told=true needs a known graph, and this task has none; use method.told=false"
        return None

    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Train encoder, decoder and regressor together."""
        device, stream = pick_device(self.device), rng.rows[0]
        self._scale, self._y_scale = Standardiser.of(data.x), Standardiser.of(data.y)
        x = self._scale.apply(data.x).to(device, torch.float32)  # (1, N, d)
        y = self._y_scale.apply(data.y).to(x)  # (1, N)
        self._chain = self._choose_chain(data)
        self._networks = self._draw_networks(x.shape[2], stream).to(device)
        self._members = self._chain.members().to(device)  # (C, c)
        self._climbed = deepcopy(self._networks["regressor"]).requires_grad_(False)
        split = self.training.split(data.n, rng.child("split"))
        batches = Minibatches([x, y], split.trained, self.training.batch, rng.child("minibatches"))
        self._losses = self._train(batches, stream)
        self._networks.eval()
        self._climbed.eval()
        if not torch.isfinite(self._losses[-1]):
            self._failures[0] = "cliqueformer: the loss was no longer finite"
        held = split.held_out[0]
        predicted = self._value(self._encode_rows(x[0, held]))
        self._held_out = predicted.cpu().numpy(), y[0, held].cpu().numpy()

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Climb from the codes of the starts."""
        z = self._encode_rows(self._standardise(starts))  # (K, e)
        z.requires_grad_()
        optimiser = torch.optim.AdamW(
            [z],
            lr=self.rate * self._chain.latent**0.5,
            weight_decay=self.weight_decay,
            maximize=True,
        )
        for iteration in range(self.steps + 1):
            if iteration % self.record_every == 0 or iteration == self.steps:
                yield self._decode(z.detach(), iteration)
            if iteration < self.steps:
                value = self._climbed(z[:, self._members])  # (K,)
                (z.grad,) = torch.autograd.grad(value.sum(), [z])
                optimiser.step()

    def predict_codes(self, x: Tensor) -> Tensor:  # (1, K, d) -> (1, K)
        """Return the value of the codes of designs."""
        value = self._value(self._encode_rows(self._standardise(x)))
        return self._y_scale.undo(value[None].to("cpu", torch.float64))

    def failures(self) -> dict[int, str]:
        """Return the seed if its training failed."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the shape of the chain, the loss over training, and the held-out accuracy."""
        predicted, truth = self._held_out
        chain = {name: getattr(self._chain, name) for name in ("count", "size", "overlap")}
        return [
            {
                "clique_chain": chain,  # not `cliques`, which are those of a discovered graph
                "training_loss": thin(self._losses.numpy()),
                "training_steps": len(self._losses),
                "held_out_r2": explained(predicted, truth),
                "held_out_rank_correlation": rank_correlation(predicted, truth),
            }
        ]

    def _choose_chain(self, data: Dataset) -> CliqueChain:
        if self.told:
            assert data.privileged.graphs is not None
            return CliqueChain.like(data.privileged.graphs[0])
        variables = data.space.d if self._relaxed is None else len(self._relaxed.sizes)
        return CliqueChain.cover(variables, self.clique_size, self.overlap)

    def _draw_networks(self, d: int, stream: Stream) -> nn.ModuleDict:
        shape = Shape(self.width, self.heads, self.feed, self.blocks, self.hidden, self.dropout)
        chain = self._chain
        return nn.ModuleDict(
            {
                "encoder": Encoder(d, chain.latent, shape, stream.child("encoder")),
                "decoder": Decoder(d, chain, shape, stream.child("decoder")),
                "regressor": Regressor(chain, shape, stream.child("regressor")),
            }
        )

    def _train(self, batches: Minibatches, stream: Stream) -> Tensor:  # (steps,)
        """Train for all steps and return their losses."""
        parameters = list(self._networks.parameters())
        optimiser = ClippedAdamW([(parameters, self.training.weight_decay)], self.training.rate)
        noise, warmup = stream.child("noise"), self.warmup * self.training.steps
        losses = []
        for done in track(range(1, self.training.steps + 1), "cliqueformer"):
            x, y = (table[0] for table in next(batches))  # (B, d), (B,)
            loss = self.loss(x, y, min(1.0, done / max(warmup, 1.0)), noise)
            optimiser.step(loss)
            follow(self._climbed, self._networks["regressor"], self.polyak)
            losses.append(loss.detach())
        return torch.stack(losses).cpu()

    def loss(self, x: Tensor, y: Tensor, beta: float, noise: Stream) -> Tensor:
        """Return the loss on rows x (B, d), y (B,)."""
        mean, sd = self._networks["encoder"](x)  # (B, e) each
        z = mean + sd * noise.normal(*mean.shape).to(mean)
        cliques = z[:, self._members]  # (B, C, c)
        middle, spread = self._networks["decoder"](cliques)  # (B, d) each
        missed = ((x - middle) / spread).square() / 2 + spread.log() + ln(2 * pi) / 2
        squared_error = (self._networks["regressor"](cliques, noise) - y).square().mean()
        divergence = (mean.square() + sd.square() - 1) / 2 - sd.log()  # (B, e)
        picked = self._members[noise.integers(self._chain.count, len(x))]  # (B, c)
        kl = divergence.gather(1, picked.to(x.device)).sum(dim=1).mean()
        regularised = beta * (self.value_weight * squared_error + kl)
        total: Tensor = regularised + missed.sum(dim=1).mean()
        return total

    def _standardise(self, x: Tensor) -> Tensor:  # (1, K, d) -> (K, d)
        return self._scale.apply(x)[0].to(self._members.device, torch.float32)

    @torch.no_grad()
    def _encode_rows(self, x: Tensor) -> Tensor:  # (K, d) -> (K, e)
        """Return the means of the codes."""
        mean: Tensor = self._networks["encoder"](x)[0]
        return mean.clone()

    @torch.no_grad()
    def _value(self, z: Tensor) -> Tensor:  # (K, e) -> (K,)
        value: Tensor = self._climbed(z[:, self._members])
        return value

    @torch.no_grad()
    def _decode(self, z: Tensor, iteration: int) -> Proposal:  # (K, e)
        x = self._networks["decoder"](z[:, self._members])[0]  # (K, d)
        designs, value = (one[None].to("cpu", torch.float64) for one in (x, self._value(z)))
        return Proposal(self._scale.undo(designs), self._y_scale.undo(value), iteration)


@torch.no_grad()
def follow(copy: nn.Module, original: nn.Module, share: float) -> None:
    """Move the parameters and statistics of a copy by a share towards the original."""
    for own, target in zip(copy.state_dict().values(), original.state_dict().values(), strict=True):
        own.lerp_(target, share)

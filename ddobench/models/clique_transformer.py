"""The networks of Cliqueformer: tokens, transformer blocks, and a chain of cliques.

They are for one seed at a time: attention computes a single matrix differently than a stack, and
stacks are hardly faster on a CPU, as products and attention take most of the time
(`benchmarks/transformers.py`). All weights and all dropout are drawn from a stream. BONET uses the
layers, the block and the optimiser too.

B rows, T tokens of w features, e latent variables, C cliques of c of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import torch
from torch import Tensor, nn
from torch.nn import functional

from ddobench.graphs import Graph
from ddobench.models.tensors import affine, send
from ddobench.rng import Stream

LEAST_SD, MOST_SD = 1e-3, 1e2  # of codes and designs
CLIP = 1.0  # the largest norm of a gradient


@dataclass(frozen=True)
class CliqueChain:
    """A chain of cliques of the same size, neighbours sharing some latent variables."""

    count: int
    size: int
    overlap: int

    @classmethod
    def cover(cls, d: int, size: int, overlap: int) -> "CliqueChain":
        """Return the shortest chain with at least d latent variables."""
        size = min(size, d)
        overlap = min(overlap, size - 1)
        return cls(max(1, ceil((d - overlap) / (size - overlap))), size, overlap)

    @classmethod
    def like(cls, graph: Graph) -> "CliqueChain":
        """Return a chain with as many cliques as a graph, of its largest size and overlap."""
        members = [set(clique) for clique in graph.cliques]
        shared = [
            len(one & other) for i, one in enumerate(members) for other in members[i + 1 :]
        ]  # of any two
        size = max(map(len, members))
        return cls(len(members), size, max(shared, default=0))

    @property
    def latent(self) -> int:
        """The number of latent variables e."""
        return (self.size - self.overlap) * (self.count - 1) + self.size

    def members(self) -> Tensor:  # (C, c)
        """Return the latent variables of each clique."""
        firsts = torch.arange(self.count)[:, None] * (self.size - self.overlap)
        return firsts + torch.arange(self.size)


class Linear(nn.Module):
    """A linear layer, drawn as torch.nn.Linear draws it."""

    def __init__(self, fan_in: int, fan_out: int, rng: Stream) -> None:
        super().__init__()
        bound = fan_in**-0.5
        self.weight = nn.Parameter((2 * rng.uniform(fan_out, fan_in) - 1) * bound)
        self.bias = nn.Parameter((2 * rng.uniform(fan_out) - 1) * bound)

    def forward(self, x: Tensor) -> Tensor:  # (..., in) -> (..., out)
        """Apply it."""
        rows = x.reshape(1, -1, x.shape[-1])
        return affine(self.bias[None, None], rows, self.weight.T[None]).view(*x.shape[:-1], -1)


class TokenNorm(nn.Module):
    """Batch normalisation of each token, over rows and features, with running statistics."""

    mean: Tensor
    variance: Tensor

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(tokens))
        self.bias = nn.Parameter(torch.zeros(tokens))
        self.register_buffer("mean", torch.zeros(tokens))
        self.register_buffer("variance", torch.ones(tokens))

    def forward(self, x: Tensor) -> Tensor:  # (B, T) or (B, T, w), the same
        """Apply it, and update the statistics while training."""
        return functional.batch_norm(
            x, self.mean, self.variance, self.weight, self.bias, self.training
        )


class LayerNorm(nn.Module):
    """Normalisation of the features of each token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:  # (B, T, w) -> (B, T, w)
        """Apply it."""
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Positions(nn.Module):
    """Positional encoding: a small network of sines and cosines of the position."""

    waves: Tensor

    def __init__(self, tokens: int, width: int, rng: Stream) -> None:
        super().__init__()
        self.first, self.second = (Linear(width, width, rng) for _ in range(2))
        angles = torch.arange(tokens)[:, None] / 10_000 ** (torch.arange(0, width, 2) / width)
        self.register_buffer("waves", torch.cat([angles.sin(), angles.cos()], dim=1)[:, :width])

    def forward(self) -> Tensor:  # (T, w)
        """Return the encoding of all tokens."""
        placed: Tensor = self.second(functional.gelu(self.first(self.waves)))
        return placed


class Block(nn.Module):
    """Attention, then a small network of each token; each added, then normalised."""

    def __init__(self, width: int, heads: int, feed: int, rng: Stream) -> None:
        super().__init__()
        self.heads = heads
        self.ask = Linear(width, 3 * width, rng)
        self.answer = Linear(width, width, rng)
        self.widen, self.narrow = Linear(width, feed, rng), Linear(feed, width, rng)
        self.norms = nn.ModuleList([LayerNorm(width), LayerNorm(width)])

    def forward(self, x: Tensor) -> Tensor:  # (B, T, w) -> (B, T, w)
        """Apply it."""
        x = self.norms[0](x + self.attend(x))
        added: Tensor = self.norms[1](x + self.feed(x))
        return added

    def attend(self, x: Tensor, *, causal: bool = False) -> Tensor:  # (B, T, w) -> (B, T, w)
        """Return what each token hears from all, or, if `causal`, from itself and those before."""
        rows, tokens, width = x.shape
        asked = self.ask(x).view(rows, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = asked.unbind()  # (B, heads, T, w / heads) each
        heard = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
        answered: Tensor = self.answer(heard.transpose(1, 2).reshape(rows, tokens, width))
        return answered

    def feed(self, x: Tensor) -> Tensor:  # (B, T, w) -> (B, T, w)
        """Apply the small network to each token."""
        fed: Tensor = self.narrow(functional.gelu(self.widen(x)))
        return fed


class Tokens(nn.Module):
    """Inputs of T tokens (B, T, i), through blocks, to outputs of each (B, T, o)."""

    def __init__(self, tokens: int, sizes: tuple[int, int], shape: "Shape", rng: Stream) -> None:
        super().__init__()
        width = shape.width
        self.begin = Linear(sizes[0], width, rng)
        self.begin_norm = TokenNorm(tokens)
        self.positions = Positions(tokens, width, rng)
        self.blocks = nn.ModuleList(
            [Block(width, shape.heads, shape.feed, rng) for _ in range(shape.blocks)]
        )
        self.end = Linear(width, sizes[1], rng)
        self.end_norm = TokenNorm(tokens)

    def forward(self, x: Tensor) -> Tensor:  # (B, T, i) -> (B, T, o)
        """Apply it."""
        x = self.begin_norm(functional.gelu(self.begin(x))) + self.positions()
        for block in self.blocks:
            x = block(x)
        ended: Tensor = self.end_norm(functional.gelu(self.end(x)))
        return ended


@dataclass(frozen=True)
class Shape:
    """The sizes of the networks."""

    width: int
    heads: int
    feed: int
    blocks: int
    hidden: int  # of the regressor
    dropout: float


class Encoder(nn.Module):
    """Designs to normal codes: one token for each variable."""

    def __init__(self, d: int, latent: int, shape: Shape, rng: Stream) -> None:
        super().__init__()
        self.tokens = Tokens(d, (1, 1), shape, rng)
        self.read = Linear(d, 2 * latent, rng)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # (B, d) -> (B, e), (B, e)
        """Return means and deviations."""
        return _normal(self.read(self.tokens(x[..., None]).squeeze(2)))


class Decoder(nn.Module):
    """Codes to normal designs: one token for each clique."""

    def __init__(self, d: int, chain: CliqueChain, shape: Shape, rng: Stream) -> None:
        super().__init__()
        self.tokens = Tokens(chain.count, (chain.size, chain.size), shape, rng)
        self.read = Linear(chain.count * chain.size, 2 * d, rng)

    def forward(self, cliques: Tensor) -> tuple[Tensor, Tensor]:  # (B, C, c) -> (B, d), (B, d)
        """Return means and deviations."""
        return _normal(self.read(self.tokens(cliques).flatten(1)))


class Regressor(nn.Module):
    """The value: one network with positional encoding, shared by and averaged over the cliques."""

    def __init__(self, chain: CliqueChain, shape: Shape, rng: Stream) -> None:
        super().__init__()
        width = shape.hidden
        self.dropout = shape.dropout
        self.layers = nn.ModuleList([Linear(chain.size, width, rng), Linear(width, width, rng)])
        self.norms = nn.ModuleList([TokenNorm(chain.count), TokenNorm(chain.count)])
        self.positions = Positions(chain.count, width, rng)
        self.read = Linear(width, 1, rng)

    def forward(self, cliques: Tensor, noise: Stream | None = None) -> Tensor:  # (B, C, c) -> (B,)
        """Return the values; `noise` draws the dropout while training."""
        h = self._layer(0, cliques, noise) + self.positions()
        h = self._layer(1, h, noise)
        values: Tensor = self.read(h).squeeze(2)  # (B, C)
        return values.mean(dim=1)

    def _layer(self, layer: int, h: Tensor, noise: Stream | None) -> Tensor:
        h = self.norms[layer](functional.gelu(self.layers[layer](h)))
        if noise is None or self.dropout == 0:
            return h
        kept = send(noise.uniform(*h.shape), h.device).ge_(self.dropout).div_(1 - self.dropout)
        return h * kept


class ClippedAdamW:
    """AdamW, after a clip of the norm of all gradients.

    The parameters of a group become views of one vector, which one kernel updates.
    """

    def __init__(
        self,
        groups: Sequence[tuple[Sequence[nn.Parameter], float]],  # parameters, their weight decay
        rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
    ) -> None:
        self._parameters = [one for parameters, _ in groups for one in parameters]
        sizes = [sum(one.numel() for one in parameters) for parameters, _ in groups]
        vector = torch.cat([one.detach().flatten() for one in self._parameters])
        self._gradient = torch.zeros_like(vector)
        pieces = torch.split(vector, [one.numel() for one in self._parameters])
        for one, piece in zip(self._parameters, pieces, strict=True):
            one.data = piece.view(one.shape)
        flat = torch.split(vector, sizes)
        for group, gradient in zip(flat, torch.split(self._gradient, sizes), strict=True):
            group.grad = gradient
        self._optimiser = torch.optim.AdamW(
            [
                {"params": [group], "weight_decay": decay}
                for group, (_, decay) in zip(flat, groups, strict=True)
            ],
            lr=rate,
            betas=betas,
            fused=True,
        )

    def step(self, loss: Tensor) -> None:
        """Descend the loss by one step."""
        gradients = torch.autograd.grad(loss, self._parameters)
        torch.cat([one.flatten() for one in gradients], out=self._gradient)
        share = CLIP / (self._gradient.norm() + 1e-6)  # as torch.nn.utils.clip_grad_norm_
        self._gradient.mul_(share.clamp(max=1.0))
        self._optimiser.step()


def _normal(both: Tensor) -> tuple[Tensor, Tensor]:  # (B, 2k) -> (B, k), (B, k)
    mean, log_sd = both.chunk(2, dim=1)
    return mean, log_sd.exp().clamp(LEAST_SD, MOST_SD)

"""What a step of Cliqueformer's training costs, and what a stack of seeds would save.

First trains Cliqueformer for some steps by turns with AdamW on one vector, as it does, and with a
kernel for each parameter. Then runs blocks of its transformer forward and backward, one after the
other and as a stack with batched products. Prints the medians of CPU seconds and their ratio. There
is no limit: the first ratio is why `ClippedAdamW` is there, the second why seeds are not stacked.

Run: python benchmarks/transformers.py [--sizes 11 21 41] [--steps 20] [--repeats 5] [--threads 1]
"""

import argparse
import time
from collections.abc import Callable, Sequence
from statistics import median
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn import functional

from ddobench.baselines import cliqueformer
from ddobench.contracts import Dataset, Space
from ddobench.models.clique_transformer import CLIP, Block, ClippedAdamW
from ddobench.models.training import Training
from ddobench.rng import Streams
from ddobench.runner.provenance import describe_machine

SEEDS, ROWS, WIDTH, HEADS, FEED = 10, 128, 64, 2, 128


class OneByOne:
    """The same optimiser with a kernel for each parameter."""

    def __init__(self, groups: Sequence[tuple[list[nn.Parameter], float]], rate: float) -> None:
        ((self.parameters, decay),) = groups
        self.optimiser = torch.optim.AdamW(self.parameters, lr=rate, weight_decay=decay)

    def step(self, loss: Tensor) -> None:
        """Descend the loss by one step."""
        gradients = torch.autograd.grad(loss, self.parameters)
        for one, gradient in zip(self.parameters, gradients, strict=True):
            one.grad = gradient
        torch.nn.utils.clip_grad_norm_(self.parameters, CLIP)
        self.optimiser.step()


def train(d: int, steps: int, optimiser: type) -> Callable[[], object]:
    """Return a training of Cliqueformer with an optimiser."""
    rng = Streams([0], "benchmark")
    x = rng.normal(2000, d, dtype=torch.float64)
    data = Dataset(x, x.sum(dim=2), Space(d))

    def run() -> None:
        training = Training(steps=steps, batch=ROWS)
        method = cliqueformer.Cliqueformer(training=training, device="cpu")
        with patch.object(cliqueformer, "ClippedAdamW", optimiser):
            method.fit(data, rng)

    return run


def run_stacked(x: Tensor, weights: dict[str, Tensor]) -> Tensor:  # (S, B, T, w) -> (S, B * T, w)
    """Apply a stack of blocks, with their weights (S, ...)."""
    seeds, rows, tokens, width = x.shape

    def linear(name: str, h: Tensor) -> Tensor:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return torch.baddbmm(bias[:, None], h, weight.mT)

    def normalise(name: str, h: Tensor) -> Tensor:
        weight, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return functional.layer_norm(h, (width,)) * weight[:, None] + bias[:, None]

    h = x.reshape(seeds, rows * tokens, width)
    asked = linear("ask", h).view(seeds * rows, tokens, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
    query, key, value = asked.unbind()
    heard = functional.scaled_dot_product_attention(query, key, value)
    h = normalise("norms.0", h + linear("answer", heard.transpose(1, 2).reshape(h.shape)))
    return normalise("norms.1", h + linear("narrow", functional.gelu(linear("widen", h))))


def blocks(tokens: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return the passes of one block after the other, and of their stack."""
    rng = Streams(range(SEEDS), "benchmark")
    lone = [Block(WIDTH, HEADS, FEED, row) for row in rng.rows]
    x = rng.normal(ROWS, tokens, WIDTH)
    weights = {
        name: torch.stack([block.get_parameter(name).detach() for block in lone]).requires_grad_()
        for name, _ in lone[0].named_parameters()
    }
    torch.testing.assert_close(
        run_stacked(x, weights).view(x.shape),
        torch.stack([block(rows) for block, rows in zip(lone, x, strict=True)]),
    )

    def one_after_the_other() -> None:
        for block, rows in zip(lone, x, strict=True):
            torch.autograd.grad(block(rows).square().sum(), list(block.parameters()))

    def stacked() -> None:
        torch.autograd.grad(run_stacked(x, weights).square().sum(), list(weights.values()))

    return one_after_the_other, stacked


def compare(what: str, sides: Sequence[Callable[[], object]], repeats: int) -> None:
    """Run two sides by turns, after a first time, and print the ratio of their CPU seconds."""
    taken: list[list[float]] = [[], []]
    for _ in range(repeats + 1):
        for side, seconds in zip(sides, taken, strict=True):
            began = time.process_time()
            side()
            seconds.append(time.process_time() - began)
    before, after = (median(seconds[1:]) for seconds in taken)
    print(f"{what}: {before:.2f} and {after:.2f} CPU s, ratio {before / after:.2f}", flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[11, 21, 41])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"{describe_machine()['cpu']}, {options.threads} threads")
    for d in options.sizes:
        sides = [train(d, options.steps, side) for side in (OneByOne, ClippedAdamW)]
        compare(f"d={d}, AdamW by parameter and on one vector", sides, options.repeats)
        compare(f"d={d}, {SEEDS} blocks alone and stacked", blocks(d), options.repeats)


if __name__ == "__main__":
    main()

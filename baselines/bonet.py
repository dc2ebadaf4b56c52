"""BONET: generative pretraining for black-box optimisation (Mashkaria et al., ICML 2023).

The rows are made into trajectories that look like runs of an optimiser: rows are drawn from ranges
of values, more of them from high and well-filled ranges, and sorted from low to high values. With
regrets r_t = optimum - y_t, each point x_t has a regret-to-go R_t = r_t + ... + r_T. A causal
transformer reads R_1, x_1, R_2, x_2, ... and predicts each x_t from all that stands before it. New
designs continue the lower half of a trajectory, with a regret-to-go that is and stays close to 0.

There is no model of the value: nothing ranks the designs, and there is no prediction.

Nothing is drawn at random after the first half of a trajectory, so that designs repeat. On TFBind8
(budget=few_designs, seed 1000) the 128 designs have 8 different values, the best 0.635 and the
median 0.450. After training the loss of held-out trajectories is 11.09, that of random letters (8
ln 4). On seeds 20 to 27 the best design has 0.527 and the median 0.367 of the optimum; published
are 0.798 and 0.476 (RaM's tables). They are not reached with 1 % of the minibatches, an eighth as
large. More training was not tried: 500 steps take 50 seconds of CPU.

The settings are those of its code (siddarthk97/bonet at 14b506a, `scripts/tf-bind-8/train.sh`,
`test.sh` and `scripts/sorted_binning.py`).

Deviations from its code, with reasons:
- 500 minibatches of 16 windows at rate 1e-3 and 4 layers; theirs are 54,000 of 128 at 1e-4 and 8,
  which would take days on a CPU;
- no dropout, as few windows are seen twice; weights are drawn as torch.nn.Linear draws them;
- the optimum is twice the range of the visible values above the least of them. Theirs is the
  largest value of the oracle, which no method may know here (on TFBind8, 2.3 times the range);
- the numbers of rows from each range of values are rounded so that they have the right sum; theirs
  are corrected in the best range. A temperature is at least the width of a range;
- on categories one linear layer predicts all of them, as in its later files (`..._new`). Those that
  `train.sh` and `test.sh` run have outputs that are no parameters of the network: they are not
  trained, not stored, and drawn anew for the designs;
- categories are read as codes (`RelaxedMethod`); theirs are read as the numbers 0, 1, 2, 3;
- while designs are made, the position of a window is that of its first point, as in training;
  theirs is that of its last point, and positions in the second half were never trained;
- 128 designs are two trajectories of 64, with the first two values of the regret-to-go; theirs are
  four, with all values. With more designs the values are used in turn.

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=bonet task=chain d=41 seed=0-9
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from ddobench.contracts import Dataset, Proposal
from ddobench.errors import UsageError, check_whole
from ddobench.models.clique_transformer import Block, ClippedAdamW, LayerNorm, Linear
from ddobench.models.tensors import Standardiser, pick_device
from ddobench.models.training import Training, thin
from ddobench.parts.relaxation import RelaxedMethod
from ddobench.progress import track
from ddobench.rng import Stream, Streams

BETAS = (0.9, 0.95)  # of Adam


@dataclass(kw_only=True)
class BONET(RelaxedMethod):
    """Continue rising trajectories with a small regret-to-go."""

    name: ClassVar[str] = "bonet"
    seeds_at_once: ClassVar[int | None] = 1

    training: Training
    trajectories: int = 800
    length: int = 128
    bins: int = 64
    smoothing: float = 0.03
    optimum: float = 2.0
    context: int = 64
    width: int = 128
    heads: int = 8
    blocks: int = 4
    prefix: int = 64
    regrets: Sequence[float] = (0.0, 0.01, 0.05, 0.1)
    device: str = "auto"

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("bins", "context", "width", "heads"):
            check_whole(f"method.{name}", getattr(self, name), 1)
        check_whole("method.trajectories", self.trajectories, 2)
        check_whole("method.blocks", self.blocks, 0)
        check_whole("method.prefix", self.prefix, 0)
        check_whole("method.length", self.length, max(self.context, self.prefix + 1))
        if self.smoothing <= 0:
            raise UsageError(f"method.smoothing must be positive, got {self.smoothing}")
        if self.optimum < 1:
            raise UsageError(
                f"method.optimum must be 1, the largest visible value, or more, got {self.optimum}"
            )
        if self.width % self.heads:
            raise UsageError(
                "method.width must be a multiple of method.heads, "
                f"got {self.width} and {self.heads}"
            )
        if not self.regrets:
            raise UsageError("method.regrets must have a value, got none; use [0.0]")
        if self.training.patience is not None:
            raise UsageError(
                f"method.training.patience must be null here, got {self.training.patience}; "
                "bonet trains for all its steps"
            )
        self._failures: dict[int, str] = {}

    def fit_codes(self, data: Dataset, rng: Streams) -> None:
        """Draw the trajectories, and train the transformer on windows of them."""
        device, stream = pick_device(self.device), rng.rows[0]
        codes = data.x
        self._scale = Standardiser.of(codes) if self._relaxed is None else Standardiser.none(codes)
        self._x = self._scale.apply(codes)[0].to(device, torch.float32)  # (N, e)
        self._regret = regret_of(data.y[0], self.optimum)  # (N,)
        rows = self._draw(self.trajectories, stream.child("trajectories"))  # (M, L)
        self._network = CausalTransformer(
            self._x.shape[1],
            (self.length, self.context),
            (self.width, self.heads, self.blocks),
            stream.child("weights"),
        ).to(device)
        split = self.training.split(self.trajectories, rng.child("split"))
        self._losses = self._train(rows[split.trained[0]], stream.child("windows"))
        if not torch.isfinite(self._losses[-1]):
            self._failures[0] = "bonet: the loss was no longer finite"
        held = rows[split.held_out[0]]
        with torch.no_grad():
            begins = torch.full((len(held),), self.length - self.context)
            self._held_out = [float(self.loss(held, begins))] if len(held) else []

    def propose_codes(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the continuations of as many trajectories as needed; starts only count."""
        wanted = starts.shape[1]
        count = ceil(wanted / (self.length - self.prefix))
        rows = self._draw(count, rng.rows[0])  # (R, L)
        low = torch.tensor([self.regrets[one % len(self.regrets)] for one in range(count)])
        designs = self._continue(rows[:, : self.prefix], low).flatten(0, 1)[:wanted]
        yield Proposal(self._scale.undo(designs[None].to("cpu", torch.float64)))

    def failures(self) -> dict[int, str]:
        """Return the seed if its training failed."""
        return self._failures

    def diagnostics(self) -> Sequence[dict[str, Any]]:
        """Return the loss over training, and that of the ends of held-out trajectories."""
        return [
            {
                "training_loss": thin(self._losses.numpy()),
                "training_steps": len(self._losses),
                "held_out_loss": self._held_out,
                "held_out_steps": [len(self._losses)] * len(self._held_out),
            }
        ]

    def loss(self, rows: Tensor, begins: Tensor) -> Tensor:  # (B, L), (B,) -> ()
        """Return the error of windows of trajectories that begin at the given points."""
        to_go = regret_to_go(self._regret[rows])  # (B, L)
        window = begins[:, None] + torch.arange(self.context)  # (B, P)
        x = self._x[rows.gather(1, window)]  # (B, P, e)
        predicted = self._network(x, to_go.gather(1, window).to(x), begins.to(x.device))
        if self._relaxed is None:
            return functional.mse_loss(predicted, x)
        table = self._relaxed.tabulate(predicted).flatten(0, 2)  # (B P d, q)
        categories = self._relaxed.decode(x.cpu()).flatten().long().to(x.device)
        return len(self._relaxed.sizes) * functional.cross_entropy(table, categories)

    def _draw(self, count: int, stream: Stream) -> Tensor:  # (count, L)
        return draw_trajectories(
            self._regret, (count, self.length), self.bins, self.smoothing, stream
        )

    def _train(self, rows: Tensor, stream: Stream) -> Tensor:  # (M, L) -> (steps,)
        """Train for all steps and return their losses."""
        parameters = list(self._network.parameters())
        matrices = [one for one in parameters if one.ndim == 2]
        others = [one for one in parameters if one.ndim != 2]
        optimiser = ClippedAdamW(
            [(matrices, self.training.weight_decay), (others, 0.0)], self.training.rate, BETAS
        )
        last = self.length - self.context
        losses = []
        for _ in track(range(self.training.steps), "bonet"):
            picked = rows[stream.integers(len(rows), self.training.batch)]
            # windows that would reach over the end are the last one: half of all, as in its code
            begins = stream.integers(self.length, self.training.batch).clamp(max=last)
            loss = self.loss(picked, begins)
            optimiser.step(loss)
            losses.append(loss.detach())
        return torch.stack(losses).cpu()

    @torch.no_grad()
    def _continue(self, rows: Tensor, low: Tensor) -> Tensor:  # (R, P), (R,) -> (R, L - P, e)
        """Return the designs that follow the rows, with a regret-to-go that stays `low`."""
        count, prefix = rows.shape
        x = self._x.new_zeros(count, self.length, self._x.shape[1])  # unknown points are not read
        x[:, :prefix] = self._x[rows]
        to_go = low[:, None].expand(-1, self.length).to(x).clone()
        to_go[:, :prefix] += regret_to_go(self._regret[rows]).to(x)
        designs = []
        for now in range(prefix, self.length):
            first = max(0, now + 1 - self.context)
            seen = slice(first, now + 1)
            begins = torch.full((count,), first, device=x.device)
            predicted = self._network(x[:, seen], to_go[:, seen], begins)[:, -1]  # (R, e)
            designs.append(predicted)
            if self._relaxed is not None:  # whole categories are read
                categories = self._relaxed.decode(predicted[None].cpu())
                predicted = self._relaxed.encode(categories)[0].to(x)
            x[:, now] = predicted
        return torch.stack(designs, dim=1)


def regret_of(y: Tensor, optimum: float) -> Tensor:  # (N,) -> (N,)
    """Return 1 - value, where the least value is 0 and the presumed optimum is 1."""
    span = y.max() - y.min()
    return 1 - (y - y.min()) / (optimum * span.where(span > 0, 1.0))


def regret_to_go(regret: Tensor) -> Tensor:  # (M, L) -> (M, L)
    """Return the sum of the regret of each point and of those after it."""
    return regret.flip(1).cumsum(dim=1).flip(1)


def draw_trajectories(
    regret: Tensor, shape: tuple[int, int], bins: int, smoothing: float, stream: Stream
) -> Tensor:  # (N,) -> (M, L)
    """Draw M trajectories of L rows from bins of equal ranges of regret, the worst rows first.

    Of a bin with n of N rows and a mean regret r, the share is n / (n + smoothing N) exp(-r / tau),
    with tau = 1 - r of the 90th percentile.
    """
    least, most = regret.min(), regret.max()
    width = (most - least) / bins if most > least else torch.ones_like(most)
    inside = ((regret - least) / width).long().clamp(max=bins - 1)  # (N,)
    filled = inside.bincount(minlength=bins)  # (bins,)
    tau = (1 - regret.quantile(0.9)).clamp(min=width)
    weights = (
        filled / (filled + smoothing * len(regret)) * (-torch.arange(bins) * width / tau).exp()
    )
    total = (weights.cumsum(dim=0) / weights.sum() * shape[1]).round().long()
    drawn = total.diff(prepend=total.new_zeros(1))  # (bins,) of each trajectory
    order = regret.argsort(stable=True)  # the best row first, the rows of a bin together
    source = torch.arange(bins).repeat_interleave(drawn)  # (L,)
    before = filled.cumsum(dim=0) - filled
    shift = (stream.uniform(*shape, dtype=torch.float64) * filled[source]).long()
    return order[(before[source] + shift).sort(dim=1, descending=True).values]


class CausalBlock(Block):
    """Attention to what stands before, then a small network of each token; of normalised tokens."""

    def forward(self, x: Tensor) -> Tensor:  # (B, T, w) -> (B, T, w)
        """Apply it."""
        x = x + self.attend(self.norms[0](x), causal=True)
        return x + self.feed(self.norms[1](x))


class CausalTransformer(nn.Module):
    """Each point of a window from its regret-to-go and from what stands before."""

    def __init__(
        self, codes: int, points: tuple[int, int], shape: tuple[int, int, int], rng: Stream
    ) -> None:
        super().__init__()
        length, context = points
        width, heads, blocks = shape
        self.read_regret, self.read_point = Linear(1, width, rng), Linear(codes, width, rng)
        self.places = nn.Parameter(torch.zeros(1, 2 * context, width))
        self.begins = nn.Parameter(torch.zeros(length - context + 1, 1, width))
        self.blocks = nn.ModuleList(
            [CausalBlock(width, heads, 4 * width, rng) for _ in range(blocks)]
        )
        self.norm = LayerNorm(width)
        self.head = Linear(width, codes, rng)

    def forward(self, x: Tensor, to_go: Tensor, begins: Tensor) -> Tensor:
        """Return predictions (B, P, e) of points x (B, P, e) with regrets-to-go (B, P).

        The windows begin at points `begins` (B,) of their trajectories.
        """
        pairs = [self.read_regret(to_go[..., None]).tanh(), self.read_point(x).tanh()]
        tokens = torch.stack(pairs, dim=2).flatten(1, 2)  # (B, 2P, w)
        tokens = tokens + self.places[:, : tokens.shape[1]] + self.begins[begins]
        for block in self.blocks:
            tokens = block(tokens)
        predicted: Tensor = self.head(self.norm(tokens[:, ::2]))
        return predicted

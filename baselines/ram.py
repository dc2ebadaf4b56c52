"""RaM: offline optimisation by learning to rank (Tan et al., ICLR 2025, arXiv 2410.11502).

An MLP that is trained to rank designs instead of predicting their values. Each training step
draws a list of rows; with y and f the values and predictions along the list,

    ListNet     - sum softmax(y / temperature) log softmax(f)
    RankCosine  1 - cos(y - mean y, f - mean f), centred as in its code

Then f is shifted and scaled to mean 0 and deviation 1 over the visible rows ("output adaptation"),
and the best 128 visible rows climb it with Adam: 200 steps at rate 1e-3 (`search=top_adam`), on
categories 100 steps at 0.1 (`search=top_adam_categories`), as smaller steps change no category.

The settings are those of its code (lamda-bbo/Offline-RaM at 389e4bc, `config/default.yaml` and
`main_from_scratch.py`). It means to keep the network with the lowest loss on a fifth of the lists.
These lists share their rows with the others, and what it keeps is a reference to parameters that
continue to change: in effect it keeps the last network, and so does `surrogate=ranking_last`.

`surrogate=ranking` is our first version: 2000 steps, a fifth of the *rows* in no list, and the
best of 20 checks on these is kept. On TFBind8 that is a network of 300 to 500 steps, and its
designs are worse: `experiment=early_stopping` tests whether held-out rows of the lower half are a
poor guide to the hidden upper half.

Deviations from its code, with reasons:
- two hidden layers of 256 units, as all methods here; theirs have 2048;
- one list for each of 6200 steps, drawn when it is needed; the lists of a pass over the rows are
  disjoint. Theirs are 8,000 lists drawn beforehand, 128 of them in each of 6200 steps (62 in each
  of 100 epochs; the paper has 200 epochs); such a step costs a hundred times as much;
- a list has 1000 rows, or all rows if there are fewer;
- weight decay is decoupled;
- on TFBind8 each sequence is one row; in Design-Bench palindromes are two.

With ListNet, the default, it reaches the published best and median of TFBind8. RankCosine does not
(0.924 and 0.469 on seeds 20-27, published 0.982 and 0.544). With fewer steps the median is reached
and the best is nearer, so that our network is trained for too long:

                                best     median
    as it is, 6200 steps        0.925    0.439    seed 1000
    512 units                   0.889    0.442    seed 1000
    weight decay inside Adam    0.933    0.439    seed 1000
    1500 steps                  0.958    0.528    seeds 1000-1002

Why 6200 steps are not too many in its code is not known; 2048 units or 128 lists a step were not
tried. The number of steps stays that of its code.

The values in a list are standardised over the visible rows, so that the softmax at temperature 1
[P] depends mostly on the few best rows of a list, as in the published loss.

Beside its published numbers: python -m ddobench -m experiment=parity

Command: python -m ddobench -m method=ram task=chain d=41 seed=0-9
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_one_of
from ddobench.models.networks import StackedMLP
from ddobench.models.tensors import Standardiser
from ddobench.models.training import TINY
from ddobench.parts.surrogates import MLP, FitStep, TrainingData, value_in_pieces

# predictions (S, B), values (S, B) -> loss (S,), its gradient in the predictions (S, B)
ListLoss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
LOSSES = ("listnet", "rank_cosine")


@dataclass(kw_only=True)
class Ranking(MLP):
    """A network of all coordinates that learns to rank rows."""

    name: ClassVar[str] = "ranking"

    loss: str = "listnet"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("surrogate.loss", self.loss, LOSSES)
        if self.temperature <= 0:
            raise UsageError(f"surrogate.temperature must be positive, got {self.temperature}")

    def make_step(self, network: StackedMLP, data: TrainingData) -> "ListStep":  # noqa: ARG002
        """Return the step with the loss of a list."""
        losses = {"listnet": list_net(self.temperature), "rank_cosine": rank_cosine}
        return ListStep(network, losses[self.loss])

    def finish(self, network: StackedMLP, data: TrainingData) -> None:
        """Scale the predictions of the visible rows to mean 0 and standard deviation 1."""
        value = value_in_pieces(network.passes(), data.means())  # (S, N)
        scale = Standardiser.of(value)
        with torch.no_grad():
            network.biases[-1].sub_(scale.mean[..., None]).div_(scale.scale[..., None])
            network.weights[-1].div_(scale.scale[..., None])


class ListStep(FitStep):
    """One training step: writes the gradient of the loss of one list and returns it."""

    def __init__(self, network: StackedMLP, loss: ListLoss) -> None:
        super().__init__(network)
        self.loss = loss

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:  # (S, B, e), (S, B) -> (S,)
        """Take the gradient on a list."""
        loss, slope = self.loss(self._fitting.forward(z).squeeze(2), y)
        self._fitting.backward(slope.unsqueeze(2))
        return loss

    def check(self, z: Tensor, y: Tensor) -> Tensor:  # (S, H, e), (S, H) -> (S,)
        """Return the loss of the list of all held-out rows."""
        return self.loss(self._checking.value(z), y)[0]


def list_net(temperature: float) -> ListLoss:
    """Return the cross-entropy of the softmax distributions of values and predictions."""

    def loss(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # (S, B), (S, B) -> (S,), (S, B)
        wanted, predicted = (y / temperature).softmax(dim=1), f.log_softmax(dim=1)
        return -(wanted * predicted).sum(dim=1), predicted.exp() - wanted

    return loss


def rank_cosine(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:  # (S, B), (S, B) -> (S,), (S, B)
    """Return one minus the correlation of predictions and values."""
    f, y = f - f.mean(dim=1, keepdim=True), y - y.mean(dim=1, keepdim=True)
    length = f.square().sum(dim=1, keepdim=True).clamp(min=TINY).sqrt()  # (S, 1)
    towards = f / length
    aim = y / y.square().sum(dim=1, keepdim=True).clamp(min=TINY).sqrt()
    cosine = (towards * aim).sum(dim=1, keepdim=True)  # (S, 1)
    return 1 - cosine[:, 0], (cosine * towards - aim) / length

"""MATCH-OPT: a surrogate whose gradients match the data (Hoang et al., ICML 2024).

Designs that climb a surrogate follow its gradient, so the gradient is fitted too. Along the line
between two rows u and v the gradient must integrate to the difference of their values:

    loss = mean (f(x) - y)^2 + weight mean (y_v - y_u - mean_t grad f(u + t (v - u)) . (v - u))^2

with t = 0, 1/5, ..., 4/5. The pairs are neighbours in a minibatch that is sorted by value, which is
a path from low to high values.

The settings are those of its code (azzafadhel/MatchOpt at aae3f57).

Deviations from its code, with reasons:
- minibatches of random rows; theirs have one row from each of 128 ranges of equal size by value;
- 100 epochs, which take two minutes of CPU on the 32,768 rows of TFBind8; theirs are 201;
- two hidden layers of 256 ReLU units, as all methods here; theirs are 512, 128 and 32 leaky ones;
- the gradient of each row's own output; theirs takes the same from a Jacobian of all rows;
- 200 steps of the search on real designs, as in `search=top_adam`; theirs are 150;
- on categories the best 128 rows climb at RaM's rate for these, 100 steps of 0.1. For TFBind8 its
  code starts from standard normal codes, 150 steps of 0.001: the codes change by 0.15 at most, so
  that the designs are nearly random sequences, whatever the surrogate is;
- its code also evaluates the oracle every 20 epochs; here it is used only for scoring.

Beside its published numbers: python -m ddobench -m experiment=parity
Command: python -m ddobench -m method=match_opt task=chain d=41 seed=0-9
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.models.networks import Slopes, StackedMLP
from ddobench.parts.surrogates import MLP, FitStep, TrainingData


@dataclass(kw_only=True)
class GradientMatching(MLP):
    """A network whose gradients integrate to the differences between rows."""

    name: ClassVar[str] = "gradient_matching"

    nodes: int = 5
    weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("surrogate.nodes", self.nodes, 1)
        if self.weight < 0:
            raise UsageError(f"surrogate.weight must be 0 or more, got {self.weight}")

    def make_step(self, network: StackedMLP, data: TrainingData) -> "MatchStep":  # noqa: ARG002
        """Return the step with both terms of the loss."""
        return MatchStep(network, self.nodes, self.weight)


class MatchStep(FitStep):
    """One training step: writes the gradient of both terms of the loss and returns their sum."""

    def __init__(self, network: StackedMLP, nodes: int, weight: float) -> None:
        super().__init__(network)
        self.nodes = nodes
        self.weight = weight
        self._slopes = Slopes(network)

    def __call__(self, z: Tensor, y: Tensor) -> Tensor:  # (S, B, e), (S, B) -> (S,)
        """Take the gradient on a minibatch."""
        y, order = y.sort(dim=1, stable=True)
        z = torch.take_along_dim(z, order[..., None], dim=1)
        loss = super().__call__(z, y)
        pairs = y.shape[1] - 1
        if pairs == 0:
            return loss
        along = z.diff(dim=1)  # (S, P, e)
        points = [z[:, :-1] + node / self.nodes * along for node in range(self.nodes)]
        slopes = self._slopes.forward(torch.cat(points, dim=1), along.repeat(1, self.nodes, 1))
        integral = slopes.view(len(y), self.nodes, pairs).mean(dim=1)  # (S, P)
        gap = integral - y.diff(dim=1)
        error = gap * (2 * self.weight / (pairs * self.nodes))
        self._slopes.backward(error.repeat(1, self.nodes))
        return loss + self.weight * gap.square().mean(dim=1)

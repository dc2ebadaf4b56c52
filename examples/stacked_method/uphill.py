"""Follow the slope of a linear fit, all seeds in one batch."""

from dataclasses import dataclass
from typing import ClassVar

from ddobench.contracts import Method, Proposal
from ddobench.errors import UsageError
from ddobench.models.tensors import Standardiser, multiply


@dataclass(kw_only=True)
class Uphill(Method):
    name: ClassVar[str] = "uphill"

    steps: int = 5
    rate: float = 0.1

    def __post_init__(self):
        if self.rate <= 0:
            raise UsageError(f"method.rate must be positive, got {self.rate}")

    def declines(self, data):  # a declined run is stored with this reason
        return "a linear step does not lead to a category" if data.space.categorical else None

    def fit(self, data, rng):  # data.x (S, N, d), data.y (S, N)
        self.x_scale, self.y_scale = Standardiser.of(data.x), Standardiser.of(data.y)
        z, y = self.x_scale.apply(data.x), self.y_scale.apply(data.y)
        # never reduce over S, and use this product: then a seed has the same bits in any stack
        self.slope = multiply(z.transpose(1, 2), y[..., None]) / data.n  # (S, d, 1)

    def propose(self, starts, rng):  # starts (S, K, d)
        z = self.x_scale.apply(starts)
        for _ in range(self.steps + 1):
            yield Proposal(self.x_scale.undo(z))
            z = z + self.rate * self.slope.transpose(1, 2)

    def predict(self, x):  # (S, K, d) -> (S, K), which ranks the proposals
        return self.y_scale.undo(multiply(self.x_scale.apply(x), self.slope)[..., 0])

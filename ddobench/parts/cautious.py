"""An ascent that decides how strongly to hold designs back: by how well the model predicts.

A standard normal prior holds designs near the data: each step follows g - lambda z. Too small a
weight and they leave for where the model knows nothing; too large and they stay in the middle. The
rule takes the smallest weight for which the designs end within a radius that the model has earned:
mean |z|^2 / e <= 1 - error, with the error on held-out rows as a share of the variance. Visible
designs have mean |z|^2 / e = 1, so a perfect model may lead as far out as they lie, a useless one
nowhere.

The rule is ours. It was noticed on few instances and reads nothing but visible rows.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_whole
from ddobench.parts.search import Ascent, AscentStep
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


@dataclass(kw_only=True)
class Cautious(Ascent):
    """Gradient ascent under the smallest of some prior weights that keeps designs in bounds."""

    name: ClassVar[str] = "cautious"

    weights: Sequence[float] = (0.0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5)
    scouts: int = 128

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("search.scouts", self.scouts, 1)
        if not self.weights or min(self.weights) < 0:
            raise UsageError(f"search.weights must be numbers >= 0, got {self.weights}")

    def run(
        self,
        start: Tensor,
        model: Model,
        rng: Streams,  # noqa: ARG002 - nothing is drawn
        failures: MutableMapping[int, str],
    ) -> Iterator[AscentStep]:
        """Try the weights on some starts, smallest first, then climb from all with the chosen."""
        error = model.error()
        if error is None:
            raise UsageError("search=cautious needs a surrogate that holds rows out; use holdout>0")
        allowed = (1 - error).clamp(min=0.0).to(start)  # (S,)
        chosen = torch.full_like(allowed, max(self.weights))
        found = torch.zeros_like(allowed, dtype=torch.bool)
        for weight in sorted(self.weights):
            if found.all():
                break
            *_, last = self.climb(start[:, : self.scouts], model.value_and_gradient, {}, weight)
            radius = torch.stack([rows.square().mean() for rows in last.x])  # (S,)
            inside = radius <= allowed  # false for NaN
            chosen = torch.where(inside & ~found, weight, chosen)
            found |= inside
        self.chosen = chosen.tolist()
        return self.climb(start, model.value_and_gradient, failures, chosen[:, None, None])

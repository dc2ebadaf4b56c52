"""A search: try random steps and keep those that the model predicts to be better."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from ddobench.errors import check_whole
from ddobench.parts.search import AscentStep, Search


@dataclass(kw_only=True)
class Trial(Search):
    name: ClassVar[str] = "trial"

    steps: int = 50
    size: float = 0.1

    def __post_init__(self):
        check_whole("search.steps", self.steps, 1)

    def run(self, start, model, rng, failures):  # start (S, K, e)
        rng = rng.child("trial")  # a stream for each seed, which tries the same steps again
        x, value = start, model.value(start)
        yield AscentStep(0, x, value)
        for iteration in range(1, self.steps + 1):
            tried = x + self.size * rng.normal(*x.shape[1:], dtype=x.dtype).to(x.device)
            predicted = model.value(tried)  # (S, K)
            better = predicted > value
            x = torch.where(better[..., None], tried, x)
            value = torch.where(better, predicted, value)
            yield AscentStep(iteration, x, value)

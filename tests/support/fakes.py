"""A task and methods small enough to see through, for the tests of the harness."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Method, Problem, Proposal, Space, Task
from ddobench.models.tensors import multiply
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams
from ddobench.runner.spec import Specification, digest


@dataclass(frozen=True)
class SumProblem(Problem):
    """The sum of the coordinates; a design with a first coordinate above 2 is invalid."""

    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.where(x[..., 0] > 2, torch.nan, x.sum(dim=-1))

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        """Measure the largest coordinate."""
        return {"largest": x.max(dim=-1).values}


@dataclass(frozen=True, kw_only=True)
class Sum(Task):
    """Normal designs, valued by their sum."""

    name: ClassVar[str] = "Sum"

    optimum: float | None = 10.0

    def describe(self) -> Description:
        """Say what the task is."""
        return Description("sum", "f(x) = Σ xᵢ", "a task for tests")

    def _draw(self, rng: Streams) -> SumProblem:
        x = rng.child("designs").normal(self.n, self.d, dtype=torch.float64).clamp(max=2)
        known = None if self.optimum is None else torch.full((len(rng.seeds),), self.optimum)
        return SumProblem(
            data=Dataset(x=x, y=x.sum(dim=-1), space=Space(self.d)), optimum=known, graphs=None
        )


@dataclass(kw_only=True)
class Climb(Method):
    """Walk up the slope of a least-squares fit, with a little noise at each step."""

    name: ClassVar[str] = "climb"

    steps: int = 2
    rate: float = 0.1

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit a linear function of random features of each seed."""
        self._features = rng.child("features").normal(data.space.d, 64)  # (S, d, 64)
        hidden = multiply(data.x.float(), self._features).relu()
        self._weights = multiply(hidden.mT, data.y.float()[..., None]) / data.n  # (S, 64, 1)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the starts and every step from there."""
        x = starts.float()
        yield Proposal(x)
        for _ in range(self.steps):
            active = (multiply(x, self._features) > 0).float()  # (S, K, 64)
            slope = multiply(active * self._weights.mT, self._features.mT)
            x = x + self.rate * slope + 0.01 * rng.normal(*x.shape[1:])
            yield Proposal(x)

    def predict(self, x: Tensor) -> Tensor:
        """Return the fitted function."""
        return multiply(multiply(x, self._features).relu(), self._weights).squeeze(-1)


def target(kind: type) -> str:
    """Return the name by which a configuration finds a class."""
    return f"{kind.__module__}.{kind.__qualname__}"


def specify_fake(
    method: type[Method], *, task: type[Task] = Sum, d: int = 3, n: int = 20, **parameters: Any
) -> Specification:
    """Specify a method on a task, by default the sum of three coordinates."""
    config = {
        "task": {"_target_": target(task), "d": d, "n": n},
        "method": {"_target_": target(method), **parameters},
        "budget": {"designs": 5, "top": 2},
    }
    return Specification(
        task="sum",
        method=method.__name__.lower(),
        budget="test",
        d=d,
        n=n,
        device="cpu",
        seeds_per_job=50,
        config=config,
        task_departures={},
        method_departures={},
        digest=digest(config),
        task_digest=digest({"task": config["task"]}),
    )


class FunctionModel(Model):
    """A model that is a given function (S, K, e) -> (S, K)."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def value(self, z: Tensor) -> Tensor:
        """Call it."""
        return self.function(z)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Call and differentiate it."""
        z = z.detach().requires_grad_()
        value = self.function(z)
        (gradient,) = torch.autograd.grad(value.sum(), z)
        return value.detach(), gradient

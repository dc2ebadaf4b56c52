"""Tasks and methods that each break one promise, which the name of the class hints at."""

import gc
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ddobench.contracts import Dataset, Description, Proposal, Space
from ddobench.graphs import Graph
from ddobench.rng import Streams
from tests.support.fakes import Climb, Sum, SumProblem


@dataclass(frozen=True, kw_only=True)
class Single(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        drawn = super()._draw(rng)
        return replace(drawn, data=replace(drawn.data, x=drawn.data.x.float()))


@dataclass(frozen=True, kw_only=True)
class FewRows(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        drawn = super()._draw(rng)
        data = replace(drawn.data, x=drawn.data.x[:, 1:], y=drawn.data.y[:, 1:])
        return replace(drawn, data=data)


class KeepsAnAxis(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return x.sum(dim=-1, keepdim=True)


class Shifted(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return x.sum(dim=-1) + 1


class Strict(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.where(x[..., 0] > 0, torch.nan, x.sum(dim=-1))


class Careless(SumProblem):
    def evaluate(self, x: Tensor) -> Tensor:
        return x.nan_to_num(0.0).sum(dim=-1)


class Contagious(SumProblem):
    def evaluate(self, x: Tensor) -> Tensor:
        return super().evaluate(x) + 0 * x.sum()


class Relative(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        y = x.sum(dim=-1)
        return y - y.mean(dim=-1, keepdim=True) + self.data.y.mean(dim=-1, keepdim=True)


class OddMeasure(SumProblem):
    def measure(self, x: Tensor) -> dict[str, Tensor]:
        return {"length": x}


class Product(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return x[..., 0] * x[..., 1]


class Elsewhere(SumProblem):
    def observe(self, hidden: Tensor) -> Tensor:
        return hidden + 1


def _with(kind: type[SumProblem], drawn: SumProblem, **changes: Any) -> SumProblem:
    parts = {"data": drawn.data, "optimum": drawn.optimum, "graphs": drawn.graphs,
             "hidden": drawn.hidden} | changes  # fmt: skip
    return kind(**parts)


def task_with(kind: type[SumProblem]) -> type[Sum]:
    """Return a task whose problems are of a kind."""

    @dataclass(frozen=True, kw_only=True)
    class Made(Sum):
        def _draw(self, rng: Streams) -> SumProblem:
            return _with(kind, super()._draw(rng))

    Made.__qualname__ = f"{kind.__name__}Task"
    return Made


KeepsAnAxisTask = task_with(KeepsAnAxis)
ShiftedTask = task_with(Shifted)
StrictTask = task_with(Strict)
CarelessTask = task_with(Careless)
ContagiousTask = task_with(Contagious)
RelativeTask = task_with(Relative)
OddMeasureTask = task_with(OddMeasure)


@dataclass(frozen=True, kw_only=True)
class LowOptimum(Sum):
    optimum: float | None = -1.0


@dataclass(frozen=True, kw_only=True)
class LargeGraph(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        return replace(super()._draw(rng), graphs=(Graph(self.d + 1, ()),) * len(rng.seeds))


@dataclass(frozen=True, kw_only=True)
class WrongGraph(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        drawn = super()._draw(rng)
        x = drawn.data.x
        empty = Graph.from_edges(self.d, [])
        data = replace(drawn.data, y=x[..., 0] * x[..., 1])
        return _with(Product, drawn, data=data, graphs=(empty,) * len(x), optimum=None)


@dataclass(frozen=True, kw_only=True)
class LostHidden(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        drawn = super()._draw(rng)
        return _with(Elsewhere, drawn, hidden=drawn.data.x)


@dataclass(frozen=True, kw_only=True)
class Crowded(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = super()._draw(rng).data.x + 0.1 * len(rng.seeds)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class Moody(Sum):
    count: ClassVar[list[int]] = []

    def _draw(self, rng: Streams) -> SumProblem:
        self.count.append(1)
        x = super()._draw(rng).data.x - len(self.count)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


class Remembering(SumProblem):
    asked: ClassVar[set[int]] = set()

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        self.asked.add(x.shape[1])
        return {}


@dataclass(frozen=True, kw_only=True)
class Impressed(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = super()._draw(rng).data.x - len(Remembering.asked)
        return Remembering(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class Constant(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = torch.arange(self.n * self.d, dtype=torch.float64).reshape(1, self.n, self.d) / 1e3
        x = x.repeat(len(rng.seeds), 1, 1)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class Global(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        torch.rand(1)
        return super()._draw(rng)


@dataclass(frozen=True, kw_only=True)
class Silent(Sum):
    def describe(self) -> Description:
        return Description("sum", "", "a task for tests")


class Soft(Sum):
    __setattr__ = object.__setattr__


@dataclass(frozen=True, kw_only=True)
class Anything(Sum):
    def __post_init__(self) -> None:
        """Check nothing."""


@dataclass(kw_only=True)
class Wide(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(torch.cat([starts, starts], dim=2))


@dataclass(kw_only=True)
class Mute(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield from ()


@dataclass(kw_only=True)
class Quits(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        sys.exit(0)


@dataclass(kw_only=True)
class Endless(Climb):
    def diagnostics(self) -> list[dict[str, Any]]:
        told: dict[str, Any] = {}
        told["me"] = told
        return [told for _ in self._weights]


@dataclass(kw_only=True)
class Drifting(Climb):
    count: ClassVar[list[int]] = []

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        self.count.append(1)
        yield from super().propose(starts + 0.01 * len(self.count), rng)


@dataclass(kw_only=True)
class Mixing(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        self._weights = self._weights.mean(dim=0, keepdim=True).expand_as(self._weights)


@dataclass(kw_only=True)
class Random(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        torch.manual_seed(0)
        super().fit(data, rng)


@dataclass(kw_only=True)
class Peeking(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        problems = [found for found in gc.get_objects() if type(found) is SumProblem]
        next(p for p in problems if p.data.x is data.x).evaluate(data.x)


@dataclass(kw_only=True)
class Scribbling(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        data.y.sub_(data.y.mean(dim=1, keepdim=True))


@dataclass(kw_only=True)
class Curt(Climb):
    def declines(self, data: Dataset) -> str | None:  # noqa: ARG002
        return "no"


@dataclass(kw_only=True)
class Leaping(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(torch.cat([starts[..., :1], starts[..., 1:] + 99], dim=2).float())

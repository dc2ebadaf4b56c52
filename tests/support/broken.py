"""Tasks and methods that each break one promise of `ddobench.check`."""

import asyncio
import os
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
class Float32(Sum):
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


class WrongValues(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return x.sum(dim=-1) + 1


class InvalidRows(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return torch.where(x[..., 0] > 0, torch.nan, x.sum(dim=-1))


class AcceptsNan(SumProblem):
    def evaluate(self, x: Tensor) -> Tensor:
        return x.nan_to_num(0.0).sum(dim=-1)


class SpreadsNan(SumProblem):
    def evaluate(self, x: Tensor) -> Tensor:
        return super().evaluate(x) + 0 * x.sum()


class DependsOnOthers(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        y = x.sum(dim=-1)
        return y - y.mean(dim=-1, keepdim=True) + self.data.y.mean(dim=-1, keepdim=True)


class WrongMeasureShape(SumProblem):
    def measure(self, x: Tensor) -> dict[str, Tensor]:
        return {"length": x}


class Product(SumProblem):
    def _evaluate(self, x: Tensor) -> Tensor:
        return x[..., 0] * x[..., 1]


class WrongObserve(SumProblem):
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
WrongValuesTask = task_with(WrongValues)
InvalidRowsTask = task_with(InvalidRows)
AcceptsNanTask = task_with(AcceptsNan)
SpreadsNanTask = task_with(SpreadsNan)
DependsOnOthersTask = task_with(DependsOnOthers)
WrongMeasureShapeTask = task_with(WrongMeasureShape)


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
class WrongHidden(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        drawn = super()._draw(rng)
        return _with(WrongObserve, drawn, hidden=drawn.data.x)


@dataclass(frozen=True, kw_only=True)
class DependsOnStack(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = super()._draw(rng).data.x + 0.1 * len(rng.seeds)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class ChangesEveryDraw(Sum):
    count: ClassVar[list[int]] = []

    def _draw(self, rng: Streams) -> SumProblem:
        self.count.append(1)
        x = super()._draw(rng).data.x - len(self.count)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


class CountsMeasures(SumProblem):
    asked: ClassVar[set[int]] = set()

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        self.asked.add(x.shape[1])
        return {}


@dataclass(frozen=True, kw_only=True)
class ChangesAfterRun(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = super()._draw(rng).data.x - len(CountsMeasures.asked)
        return CountsMeasures(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class SameForAllSeeds(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        x = torch.arange(self.n * self.d, dtype=torch.float64).reshape(1, self.n, self.d) / 1e3
        x = x.repeat(len(rng.seeds), 1, 1)
        return SumProblem(Dataset(x, x.sum(dim=-1), Space(self.d)), None, None)


@dataclass(frozen=True, kw_only=True)
class UsesGlobalGenerator(Sum):
    def _draw(self, rng: Streams) -> SumProblem:
        torch.rand(1)
        return super()._draw(rng)


@dataclass(frozen=True, kw_only=True)
class EmptyFormula(Sum):
    def describe(self) -> Description:
        return Description("sum", "", "a task for tests")


class NotFrozen(Sum):
    __setattr__ = object.__setattr__


@dataclass(frozen=True, kw_only=True)
class AcceptsAnySize(Sum):
    def __post_init__(self) -> None:
        """Check nothing."""


@dataclass(kw_only=True)
class WrongShape(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(torch.cat([starts, starts], dim=2))


@dataclass(kw_only=True)
class ProposesNothing(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield from ()


@dataclass(kw_only=True)
class Exits(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        sys.exit(0)


@dataclass(kw_only=True)
class EndsProcess(Climb):
    def declines(self, data: Dataset) -> str | None:  # noqa: ARG002
        os._exit(0)


@dataclass(kw_only=True)
class Cancelled(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        raise asyncio.CancelledError("stopped")


@dataclass(kw_only=True)
class CircularDiagnostics(Climb):
    def diagnostics(self) -> list[dict[str, Any]]:
        circular: dict[str, Any] = {}
        circular["itself"] = circular
        return [circular for _ in self._weights]


@dataclass(kw_only=True)
class ChangesEveryRun(Climb):
    count: ClassVar[list[int]] = []

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        self.count.append(1)
        yield from super().propose(starts + 0.01 * len(self.count), rng)


@dataclass(kw_only=True)
class MixesSeeds(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        self._weights = self._weights.mean(dim=0, keepdim=True).expand_as(self._weights)


@dataclass(kw_only=True)
class SeedsGlobalGenerator(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        torch.manual_seed(0)
        super().fit(data, rng)


@dataclass(kw_only=True)
class CallsOracle(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        SumProblem(data=data, optimum=None, graphs=None).evaluate(data.x)


@dataclass(kw_only=True)
class ChangesValues(Climb):
    def fit(self, data: Dataset, rng: Streams) -> None:
        super().fit(data, rng)
        data.y.sub_(data.y.mean(dim=1, keepdim=True))


@dataclass(kw_only=True)
class DeclinesWithoutReason(Climb):
    def declines(self, data: Dataset) -> str | None:  # noqa: ARG002
        return "no"


@dataclass(kw_only=True)
class ExceedsOptimum(Climb):
    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        yield Proposal(torch.cat([starts[..., :1], starts[..., 1:] + 99], dim=2).float())

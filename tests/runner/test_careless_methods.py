"""A careless method spoils neither its own scores nor the runs of others."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from ddobench.check.promises import compare_records
from ddobench.contracts import Dataset, HiddenRows, Method, Privilege, Space, Task
from ddobench.rng import Streams
from ddobench.runner.run import run_seeds
from ddobench.store.records import Record
from tests.support.fakes import Climb, Sum, SumProblem, specify_fake


@dataclass(frozen=True, kw_only=True)
class SameRows(Sum):
    """Hands out the same tensors every time, and holds some rows out."""

    drawn: ClassVar[dict[tuple[int, ...], SumProblem]] = {}

    def _draw(self, rng: Streams) -> SumProblem:
        if rng.seeds not in self.drawn:
            problem = super()._draw(rng)
            x = problem.data.x
            rows = HiddenRows(x[:, :9] + 1, (x[:, :9] + 1).sum(dim=-1))
            self.drawn[rng.seeds] = replace(problem, hidden=x.clone(), held_out=rows)
        return self.drawn[rng.seeds]


class Privileged(Climb):
    """Asks for the hidden coordinates."""

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002
        """Ask for them."""
        return frozenset({"hidden"})

    def predict(self, x: Tensor) -> Tensor:
        """Predict in single precision."""
        return super().predict(x.float())


class ChangesAll(Privileged):
    """Changes in place all that it is handed, once it has no more use for it."""

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit, then spoil the table."""
        super().fit(data, rng)
        assert data.privileged.hidden is not None
        data.privileged.hidden.visible.zero_()
        data.x.mul_(100)
        data.y.numpy()[:] = 0

    def predict(self, x: Tensor) -> Tensor:
        """Predict, then spoil the designs, except those that it proposes itself."""
        predicted = super().predict(x)
        if x.dtype == torch.float64:
            x.zero_()
        return predicted

    def insight(self, x: Tensor) -> list[Any]:
        """Spoil the designs."""
        x.zero_()
        return []


def run_fake(method: type[Method], task: type[Task] = Sum, **parameters: Any) -> list[Record]:
    """Run two seeds of a method."""
    spec = specify_fake(method, task=task, **parameters)
    return run_seeds(spec, *spec.build(), [0, 1], base={})


def test_a_method_that_changes_its_table_in_place_has_the_scores_of_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SameRows, "drawn", {})
    expected = run_fake(Privileged, SameRows)
    problem = SameRows.drawn[0, 1]
    before = [tensor.clone() for tensor in tensors_of(problem)]
    for one, other in zip(expected, run_fake(ChangesAll, SameRows), strict=True):
        assert compare_records(one, other) is None
    assert all(map(torch.equal, before, tensors_of(problem)))


def tensors_of(problem: SumProblem) -> list[Tensor]:
    """Return what the next draw hands out again."""
    assert problem.hidden is not None
    assert problem.held_out is not None
    data, rows = problem.data, problem.held_out
    return [data.x, data.y, problem.hidden, rows.x, rows.y]

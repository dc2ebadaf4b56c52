"""What a task hands over is checked where it comes in: a mistake is one sentence, not a number."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Problem, Space
from ddobench.errors import UsageError, check_finite
from ddobench.graphs import Graph
from ddobench.rng import Streams
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.run import find_non_finite
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, Sum, SumProblem, specify_fake

Change = Callable[["OddProblem"], Any]


@dataclass(frozen=True)
class OddProblem(SumProblem):
    """A sum whose oracle and measurements are as the test of the moment wants them."""

    values: ClassVar[Any] = staticmethod(lambda x: x.sum(dim=-1))
    measured: ClassVar[Any] = staticmethod(lambda _: {})

    def _evaluate(self, x: Tensor) -> Tensor:
        found: Tensor = self.values(x)
        return found

    def measure(self, x: Tensor) -> dict[str, Tensor]:
        """Measure what the test wants."""
        found: dict[str, Tensor] = self.measured(x)
        return found


@dataclass(frozen=True, kw_only=True)
class Odd(Sum):
    """A sum that draws what the test of the moment wants."""

    name: ClassVar[str] = "Odd"
    change: ClassVar[Any] = staticmethod(lambda problem: problem)

    def _draw(self, rng: Streams) -> Problem:  # type: ignore[override]
        drawn = super()._draw(rng)
        odd = OddProblem(data=drawn.data, optimum=drawn.optimum, graphs=None)
        changed: Problem = self.change(odd)
        return changed


def with_data(problem: OddProblem, **changes: Any) -> OddProblem:
    """Change the visible table."""
    return replace(problem, data=replace(problem.data, **changes))


def spoilt(table: Tensor, value: float) -> Tensor:
    """Put a value into a table."""
    table = table.clone()
    table.view(-1)[1] = value
    return table


def run(tmp_path: Path) -> str:
    """Run one seed, which must fail, and return the reason."""
    store = Store(tmp_path)
    assert execute(specify_fake(Climb, task=Odd, rate=0.0), [0], store) == Outcome(failed=1)
    (reason,) = load(tmp_path)["reason"]
    return str(reason)


DRAWN: dict[str, tuple[Change, str]] = {
    "no problem": (lambda _: 3, "a task must draw a Problem, got int"),
    "too few rows": (
        lambda p: with_data(p, x=p.data.x[:, :7], y=p.data.y[:, :7]),
        "a task must draw N=20 visible rows for each of S=1 seeds, got 7 for 1",
    ),
    "too many seeds": (
        lambda p: with_data(p, x=p.data.x.repeat(2, 1, 1), y=p.data.y.repeat(2, 1)),
        "a task must draw N=20 visible rows for each of S=1 seeds, got 20 for 2",
    ),
    "single precision": (
        lambda p: with_data(p, y=p.data.y.float()),
        "visible designs and values must be float64, got torch.float64, torch.float32",
    ),
    "designs that are none": (
        lambda p: with_data(p, x=spoilt(p.data.x, torch.nan)),
        "every visible design must be a point of the task's space, some are not",
    ),
    "categories that are none": (
        lambda p: with_data(p, space=Space(3, (2, 2, 2))),
        "every visible design must be a point of the task's space, some are not",
    ),
    "infinite values": (
        lambda p: with_data(p, y=spoilt(p.data.y, -torch.inf)),
        "visible values must be finite and at most 3.4e+38, got -inf; smaller parameters of the "
        "task may help",
    ),
    "values that are none": (
        lambda p: with_data(p, y=spoilt(p.data.y, torch.nan)),
        "visible values must be finite and at most 3.4e+38, got nan; smaller parameters of the "
        "task may help",
    ),
    "values too large to store": (
        lambda p: with_data(p, y=spoilt(p.data.y, 1e300)),
        "visible values must be finite and at most 3.4e+38, got 1e+300; smaller parameters of the "
        "task may help",
    ),
    "optimum of another shape": (
        lambda p: replace(p, optimum=torch.tensor(10.0)),
        "the optimum must be (S=1,) or None, got ()",
    ),
    "infinite lower bound": (
        lambda p: replace(p, lower_bound=torch.tensor([torch.inf])),
        "the lower bound must be finite and (S=1,) or None, got [inf]",
    ),
    "infinite optimum": (
        lambda p: replace(p, optimum=torch.tensor([torch.inf])),
        "the optimum must be finite, or None where it is not known, got inf",
    ),
    "a full range of another shape": (
        lambda p: replace(p, full_range=torch.zeros(2)),
        "the full range must be (S=1, 2) or None, got (2,)",
    ),
    "a full range that is none": (
        lambda p: replace(p, full_range=torch.tensor([[0.0, 0.1]])),
        "the full range must contain all visible values, and be more than a point",
    ),
    "graphs of other seeds": (
        lambda p: replace(p, graphs=(Graph.from_edges(3, []),) * 2),
        "there must be a graph for each of S=1 seeds or None, got 2",
    ),
    "hidden coordinates of other rows": (
        lambda p: replace(p, hidden=torch.zeros(1, 7, 2)),
        "hidden coordinates must be (S, N, ...) = (1, 20) or None, got (1, 7, 2)",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), DRAWN.values(), ids=DRAWN)
def test_what_a_task_draws_must_be_what_it_promises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Change, sentence: str
) -> None:
    monkeypatch.setattr(Odd, "change", staticmethod(change))
    assert run(tmp_path) == f"ValueError: {sentence}"


VALUES: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "one for each seed": (
        lambda x: x.sum(dim=(1, 2)),
        "_evaluate must return (S, K) = (1, 5), got (1,)",
    ),
    "one column": (
        lambda x: x.sum(dim=-1, keepdim=True),
        "_evaluate must return (S, K) = (1, 5), got (1, 5, 1)",
    ),
    "a list": (lambda _: [1.0], "_evaluate must return (S, K) = (1, 5), got list"),
    "infinite": (
        lambda x: x.sum(dim=-1) * torch.inf,
        "values must be finite and at most 3.4e+38, or NaN for an invalid design, got ",
    ),
    "too large to store": (
        lambda x: x.sum(dim=-1) * 0 + 1e300,
        "values must be finite and at most 3.4e+38, or NaN for an invalid design, got 1e+300",
    ),
}


@pytest.mark.parametrize(("values", "sentence"), VALUES.values(), ids=VALUES)
def test_an_oracle_must_return_one_finite_value_for_each_design(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    values: Callable[[Tensor], Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(OddProblem, "values", staticmethod(values))
    assert run(tmp_path).startswith(f"ValueError: {sentence}")


def ones(x: Tensor) -> Tensor:
    """Measure every design as 1."""
    return torch.ones(x.shape[:2])


MEASURED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    **{
        name: (
            partial(lambda name, x: {name: ones(x)}, name),
            f"measure() must use names of its own, got {name!r}, "
            "which the harness uses for something else",
        )
        for name in ("value_model", "iteration", "diagnostics", "seed", "digest", "final_model")
    },
    "a number as a name": (
        lambda x: {3: ones(x)},
        "measure() must use names of its own, got 3, which the harness uses for something else",
    ),
    "another shape": (
        lambda _: {"residual": torch.ones(5)},
        "measure() must return (S, K) = (1, 5) for 'residual', got (5,)",
    ),
    "no tensor": (
        lambda _: {"residual": 1.0},
        "measure() must return (S, K) = (1, 5) for 'residual', got float",
    ),
    "no dictionary": (lambda _: None, "measure() must return a dictionary, got NoneType"),
    "infinite": (
        lambda x: {"residual": ones(x) * torch.inf},
        "residual is inf, and a score must be finite",
    ),
}


@pytest.mark.parametrize(("measured", "sentence"), MEASURED.values(), ids=MEASURED)
def test_measurements_have_names_and_shapes_of_their_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    measured: Callable[[Tensor], Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(OddProblem, "measured", staticmethod(measured))
    assert run(tmp_path).removeprefix("ValueError: ") == sentence


def test_measurements_must_be_the_same_at_every_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = iter(["residual", "distance"])
    monkeypatch.setattr(OddProblem, "measured", staticmethod(lambda x: {next(names): ones(x)}))
    assert run(tmp_path) == (
        "ValueError: measure() must return the same names at every iteration, "
        "got distance after residual"
    )


def test_a_task_must_describe_itself_as_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Odd, "describe", lambda _: "a task")
    assert run(tmp_path) == "ValueError: describe() must return a Description, got str"


def test_an_optimum_below_a_visible_value_fails_its_seed_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lower(problem: OddProblem) -> OddProblem:
        optimum = torch.full((len(problem.data.y),), 10.0, dtype=torch.float64)
        optimum[0] = problem.data.y[0].max() - 0.01
        return replace(problem, optimum=optimum)

    monkeypatch.setattr(Odd, "change", staticmethod(lower))
    store = Store(tmp_path)
    spec = specify_fake(Climb, task=Odd, steps=0)
    assert execute(spec, [0, 1], store) == Outcome(ok=1, failed=1)
    runs = load(tmp_path).set_index("seed")
    assert runs["status"].to_dict() == {0: "failed", 1: "ok"}
    assert runs["reason"][0].startswith("the task's optimum is ")
    assert ", but a design has the value " in runs["reason"][0]


def test_noise_above_the_optimum_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_noise(problem: OddProblem) -> OddProblem:
        return with_data(problem, y=spoilt(problem.data.y, 50.0))

    monkeypatch.setattr(Odd, "change", staticmethod(add_noise))
    spec = specify_fake(Climb, task=Odd, rate=0.0)
    assert execute(spec, [0], Store(tmp_path)) == Outcome(ok=1)


class Boasting(Climb):
    """Predicts that every design is worth infinitely much."""

    name: ClassVar[str] = "boasting"

    def predict(self, x: Tensor) -> Tensor:
        """Boast."""
        return torch.full(x.shape[:2], torch.inf)


def test_an_infinite_score_is_a_failed_run_with_its_reason(tmp_path: Path) -> None:
    assert execute(specify_fake(Boasting), [0, 1], Store(tmp_path)) == Outcome(failed=2)
    runs = load(tmp_path)
    assert runs["reason"].tolist() == ["predicted is inf, and a score must be finite"] * 2
    assert runs["predicted_final"].isna().all(), "nobody averages an infinite number"
    assert not list(tmp_path.rglob("*.parquet"))


@pytest.mark.parametrize(
    ("scores", "curves", "sentence"),
    [
        ({"final_model": 1.0, "optimum": float("nan")}, [1.0, float("nan")], None),
        ({"final_model": float("nan")}, [1.0], "final_model is nan, and every run must have it"),
        ({"final_model": 1.0, "x": float("-inf")}, [1.0], "x is -inf, and a score must be finite"),
        ({"final_model": 1.0}, [1.0, float("inf")], "y is inf, and a score must be finite"),
    ],
)
def test_unknown_is_a_score_and_infinite_is_none(
    scores: dict[str, float], curves: list[float], sentence: str | None
) -> None:
    assert find_non_finite({"y": torch.tensor(curves).double().numpy()}, scores) == sentence


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan")])
def test_a_parameter_must_be_finite_wherever_it_is(value: float) -> None:
    check_finite("task", {"noise": 1e308, "names": ["a"], "none": None})
    with pytest.raises(UsageError, match=rf"^task must be a finite number, got {value}$"):
        check_finite("task", value)
    with pytest.raises(UsageError, match=rf"^task.map\[1\].rate must be a .* number, got {value}$"):
        check_finite("task", {"map": [1.0, {"rate": value}]})


def test_a_table_is_still_checked_where_it_is_made() -> None:
    with pytest.raises(ValueError, match="a dataset needs x"):
        Dataset(torch.zeros(2, 3), torch.zeros(2), Space(3))

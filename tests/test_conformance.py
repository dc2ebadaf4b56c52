"""What every registered task and method promises, found by discovery: nobody is left out."""

import random
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.contracts import Dataset, Problem, Space
from ddobench.runner.execute import run_seeds
from ddobench.store.records import Record
from tests.support import rounding
from tests.support.catalogue import METHODS, PAIRS, REFUSED, TASKS, build, problem, specification
from tests.support.rounding import MKL

each_task = pytest.mark.parametrize("task", TASKS)
each_method = pytest.mark.parametrize("method", METHODS)
each_pair = pytest.mark.parametrize(("task", "method"), PAIRS)

SEEDS = (0, 1, 2)


def run(task: str, method: str, seeds: tuple[int, ...]) -> list[Record]:
    """Run a batch as the harness does, without storing it."""
    return run_seeds(specification(task, method), *build(task, method), seeds, base={})


def assert_same(one: Record, other: Record) -> None:
    """Compare all that a result consists of, bit for bit."""
    assert one.curves.keys() == other.curves.keys()
    for name, curve in one.curves.items():
        np.testing.assert_array_equal(curve, other.curves[name], err_msg=name)
    for name in ("values", "designs", "predictions"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    timeless = [
        {name: value for name, value in record.row.items() if not name.startswith("seconds")}
        for record in (one, other)
    ]
    np.testing.assert_equal(timeless[0], timeless[1])
    np.testing.assert_equal(one.diagnostics, other.diagnostics)


def assert_close(one: Record, other: Record) -> None:
    """Compare what must agree up to rounding: the designs before any step, and their values."""
    np.testing.assert_allclose(one.values[0], other.values[0], rtol=1e-3, atol=1e-3)  # type: ignore[index]


@each_task
def test_data_have_the_shapes_the_contract_names(task: str) -> None:
    drawn = problem(task, SEEDS)
    seeds, rows, d = drawn.data.x.shape
    assert (seeds, rows) == (len(SEEDS), 60)
    assert drawn.data.y.shape == (seeds, rows)
    assert drawn.data.space.d == d
    assert drawn.data.x.dtype == drawn.data.y.dtype == torch.float64
    assert drawn.graphs is None or len(drawn.graphs) == seeds
    assert drawn.optimum is None or drawn.optimum.shape == (seeds,)


@each_task
def test_every_visible_design_is_valid_and_has_its_visible_value(task: str) -> None:
    drawn = problem(task, SEEDS)
    torch.testing.assert_close(drawn.evaluate(drawn.data.x), drawn.data.y, rtol=1e-6, atol=1e-9)


@each_task
def test_no_visible_value_exceeds_the_optimum(task: str) -> None:
    drawn = problem(task, SEEDS)
    assert drawn.optimum is not None
    assert (drawn.data.y.max(dim=1).values <= drawn.optimum + 1e-9).all()


@each_task
@pytest.mark.parametrize("poison", [float("nan"), float("inf"), -float("inf")])
def test_a_design_that_is_no_number_is_invalid_and_harms_no_neighbour(
    task: str, poison: float
) -> None:
    drawn = problem(task, SEEDS)
    designs = drawn.data.x[:, :4].clone()
    designs[1, 2, 0] = poison
    values = drawn.evaluate(designs)
    assert values[1, 2].isnan()
    assert values.isnan().sum() == 1


@each_task
def test_designs_of_the_wrong_shape_are_refused(task: str) -> None:
    drawn = problem(task, SEEDS)
    with pytest.raises(ValueError, match="designs must be"):
        drawn.evaluate(drawn.data.x[:, :, :-1])
    with pytest.raises(ValueError, match="designs must be"):
        drawn.evaluate(drawn.data.x[0])


@pytest.mark.bits
@each_task
def test_a_seeds_instance_does_not_depend_on_its_companions(task: str) -> None:
    together, alone = problem(task, (4, 9, 2)), problem(task, (9,))
    assert torch.equal(together.data.x[1], alone.data.x[0])
    assert torch.equal(together.data.y[1], alone.data.y[0])
    assert together.optimum is not None
    assert alone.optimum is not None
    assert torch.equal(together.optimum[1], alone.optimum[0])
    if together.graphs is not None and alone.graphs is not None:
        assert together.graphs[1] == alone.graphs[0]


@each_task
def test_seeds_differ(task: str) -> None:
    drawn = problem(task, SEEDS)
    assert not torch.equal(drawn.data.x[0], drawn.data.x[1])


@each_task
def test_a_task_describes_itself(task: str) -> None:
    description = build(task, "naive")[0].describe()
    assert all([description.title, description.formula, description.text])


@pytest.mark.bits
@each_pair
def test_a_seeds_result_does_not_depend_on_its_companions(task: str, method: str) -> None:
    if build(task, method)[1].seeds_at_once == 1:
        pytest.skip("runs one seed at a time, it has no companions")
    among = run(task, method, (7, 3, 5, 0, 1, 2, 4, 6, 8, 9))[1]
    for stack in [(3,), (8, 3), (5, 0, 1, 3, 2)]:
        other = run(task, method, stack)[stack.index(3)]
        # Without MKL nothing is promised to the bit, but the data and the starts are the same.
        (assert_same if MKL else assert_close)(among, other)


@pytest.mark.bits
@each_pair
def test_a_lone_seed_takes_no_product_that_libraries_treat_differently(
    task: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.lone_column)
    if build(task, method)[1].seeds_at_once == 1:
        pytest.skip("runs one seed at a time, it has no companions")
    among, alone = run(task, method, (7, 3))[1], run(task, method, (3,))[0]
    (assert_same if MKL else assert_close)(among, alone)


def test_products_that_look_at_addresses_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "bmm", rounding.by_address)
    among, paired = run("chain", "vae_ga", (7, 3, 5))[1], run("chain", "vae_ga", (3, 8))[0]
    with pytest.raises(AssertionError, match="not equal"):
        assert_same(among, paired)


@each_pair
def test_the_same_seed_gives_the_same_result(task: str, method: str) -> None:
    assert_same(run(task, method, (1, 6))[1], run(task, method, (1, 6))[1])


@each_pair
def test_a_record_is_complete_and_finite_where_it_must_be(task: str, method: str) -> None:
    for record in run(task, method, (0, 1)):
        assert record.row["status"] == "ok", record.row["reason"]
        steps = len(record.curves["iteration"])
        assert steps >= 1
        assert all(len(curve) == steps for curve in record.curves.values())
        assert (np.diff(record.curves["iteration"]) > 0).all()
        assert record.values is not None
        assert record.designs is not None
        assert record.values.shape == (steps, len(record.designs))
        assert np.isfinite(record.row["final_model"])
        assert record.row["regret_final"] >= -1e-9
        assert 0 <= record.row["invalid_final"] <= 1
        assert record.row["invalid_final"] == np.isnan(record.values[-1]).mean()


@each_pair
def test_no_method_touches_the_global_generators(task: str, method: str) -> None:
    before = random.getstate(), np.random.get_state()[1].copy(), torch.get_rng_state()  # type: ignore[index]  # noqa: NPY002
    run(task, method, (0, 1))
    assert random.getstate() == before[0]
    np.testing.assert_array_equal(np.random.get_state()[1], before[1])  # type: ignore[index]  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), before[2])


@pytest.fixture
def guarded_oracle(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every call of the oracle."""
    calls: list[str] = []
    original = Problem.evaluate

    def watched(self: Problem, x: torch.Tensor) -> torch.Tensor:
        calls.append("evaluate")
        return original(self, x)

    monkeypatch.setattr(Problem, "evaluate", watched)
    return calls


@each_pair
def test_the_oracle_is_asked_only_once_the_proposals_are_made(
    task: str, method: str, guarded_oracle: list[str]
) -> None:
    drawn_task, built = build(task, method)
    drawn = drawn_task.problem((0, 1))
    calls_to_draw = len(guarded_oracle)
    data = drawn.visible_to(built.privileges(drawn.data.space))
    from ddobench.rng import Streams
    from ddobench.runner.execute import collect

    built.fit(data, Streams((0, 1), "method"))
    collect(built, data.x[:, :8], Streams((0, 1), "method/propose"))
    assert len(guarded_oracle) == calls_to_draw


@each_pair
def test_a_method_leaves_the_visible_table_as_it_was(task: str, method: str) -> None:
    from ddobench.rng import Streams
    from ddobench.runner.execute import collect

    drawn_task, built = build(task, method)
    drawn = drawn_task.problem((0, 1))
    data = drawn.visible_to(built.privileges(drawn.data.space))
    x, y = data.x.clone(), data.y.clone()
    starts = data.x[:, :8].clone()
    kept = starts.clone()
    built.fit(data, Streams((0, 1), "method"))
    collect(built, starts, Streams((0, 1), "method/propose"))
    assert torch.equal(data.x, x)
    assert torch.equal(data.y, y)
    assert torch.equal(starts, kept)


@pytest.mark.parametrize("task", TASKS)
def test_all_methods_of_a_seed_start_from_the_same_data_and_designs(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    import ddobench.runner.execute as execution

    def spy(method: Any, starts: torch.Tensor, *rest: Any) -> Any:
        seen.append((method.seen.x, method.seen.y, starts))
        return collect(method, starts, *rest)

    collect = execution.collect
    monkeypatch.setattr(execution, "collect", spy)
    for name in [method for other, method in PAIRS if other == task]:
        drawn_task, built = build(task, name)
        if built.seeds_at_once == 1:
            continue
        fit = built.fit

        def remember(data: Dataset, rng: Any, fit: Any = fit, built: Any = built) -> None:
            built.seen = data
            fit(data, rng)

        built.fit = remember  # type: ignore[method-assign]
        run_seeds(specification(task, name), drawn_task, built, (0, 1), base={})
    assert len(seen) >= 2
    for x, y, starts in seen[1:]:
        assert torch.equal(x, seen[0][0])
        assert torch.equal(y, seen[0][1])
        assert torch.equal(starts, seen[0][2])


@each_method
def test_a_method_sees_nothing_privileged_that_it_did_not_ask_for(method: str) -> None:
    for task in TASKS:
        _, built = build(task, method)
        drawn = problem(task, (0, 1))
        asked = built.privileges(drawn.data.space)
        data = drawn.visible_to(asked)
        if "graph" not in asked:
            assert data.privileged.graphs is None
        if "hidden" not in asked:
            assert data.privileged.hidden is None


@each_method
def test_every_method_takes_on_some_task(method: str) -> None:
    assert any(method == name for _, name in PAIRS)


@pytest.mark.parametrize(("task", "method"), REFUSED)
def test_a_refusal_is_recorded_with_its_reason(task: str, method: str) -> None:
    records = run(task, method, (0, 1))
    assert [record.row["status"] for record in records] == ["declined", "declined"]
    assert all(len(record.row["reason"]) > 10 for record in records)


@each_task
def test_a_task_cannot_be_changed_after_it_is_built(task: str) -> None:
    built, _ = build(task, "naive")
    with pytest.raises(FrozenInstanceError, match="cannot assign"):
        built.n = 3  # type: ignore[misc]


def test_a_categorical_space_knows_its_own() -> None:
    space = Space(2, (2, 3))
    x = torch.tensor([[0.0, 2.0], [1.0, 3.0], [0.5, 1.0], [-1.0, 0.0]])
    assert space.contains(x).tolist() == [True, False, False, False]

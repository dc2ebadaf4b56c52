"""Tasks in the shape of Design-Bench: its names, types and round trips."""

import numpy as np
import pytest

import ddobench.design_bench as design_bench
from ddobench.errors import UsageError


def test_sequences_have_the_types_and_shapes_of_design_bench() -> None:
    task = design_bench.make("TFBind8-Exact-v0", dataset_kwargs={"max_samples": 500})
    assert (task.x.shape, str(task.x.dtype)) == ((500, 8), "int32")
    assert (task.y.shape, str(task.y.dtype)) == ((500, 1), "float32")
    assert (task.is_discrete, task.num_classes, task.input_shape, task.input_size) == (
        True, 4, (8,), 8,
    )  # fmt: skip
    logits = task.to_logits(task.x)
    assert (logits.shape, str(logits.dtype)) == ((500, 8, 3), "float32")
    assert np.array_equal(task.to_integers(logits), task.x)
    assert logits.max() == pytest.approx(np.log(7.0), rel=1e-6)  # (0.6 + 0.1) / 0.1


@pytest.mark.parametrize(("name", "d"), [("nk", 7), ("ehrlich", 16), ("rbf", 5)])
def test_the_oracle_takes_designs_in_the_form_that_x_has(name: str, d: int) -> None:
    task = design_bench.make(name, d=d, n=60, seed=2)
    truth = task.predict(task.x)
    assert np.allclose(truth, task.y, atol=1e-5)
    if task.is_discrete:
        task.map_to_logits()
    task.map_normalize_x()
    task.map_normalize_y()
    assert np.abs(task.y.mean()) < 1e-5
    assert np.allclose(task.predict(task.x), task.y, atol=1e-4)
    assert np.allclose(task.denormalize_y(task.predict(task.x)), truth, atol=1e-4)


def test_an_invalid_design_has_the_least_visible_value() -> None:
    task = design_bench.make("rbf", d=5, n=60)
    far = np.full((1, 5), np.nan, np.float32)
    assert task.predict(far) == task.dataset_min_output


def test_batches_are_all_rows_in_order() -> None:
    task = design_bench.make("rbf", d=5, n=60)
    batches = [y for _, y in task.iterate_batches(25)]
    assert [len(batch) for batch in batches] == [25, 25, 10]
    assert np.array_equal(np.concatenate(batches), task.y)
    assert len([*task.iterate_batches(25, return_y=False, drop_remainder=True)]) == 2
    assert len([*task.iterate_samples()]) == 60


def test_what_design_bench_refuses_is_refused() -> None:
    task = design_bench.make("nk", d=7, n=60)
    with pytest.raises(ValueError, match=r"^cannot normalize discrete design values"):
        task.map_normalize_x()
    with pytest.raises(ValueError, match=r"^cannot normalize discrete design values"):
        task.normalize_x(task.x)
    with pytest.raises(ValueError, match=r"^to_logits needs whole numbers, got float64"):
        task.to_logits(np.zeros((1, 7)))
    with pytest.raises(ValueError, match=r"^to_logits is for designs of categories"):
        design_bench.make("rbf", d=5, n=60).to_logits(np.zeros((1, 5), int))


def test_a_task_that_is_not_here_gets_a_sentence() -> None:
    with pytest.raises(UsageError, match=r"^there is no task 'AntMorphology-Exact-v0' here; there"):
        design_bench.make("AntMorphology-Exact-v0")
    with pytest.raises(
        UsageError, match=r"^dataset_kwargs may have max_percentile and max_samples"
    ):
        design_bench.make("nk", dataset_kwargs={"distribution": "uniform"})

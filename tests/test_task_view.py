"""Promises of `ddobench.task`: what is seen is what methods see, and a function is a task."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ddobench
from ddobench.errors import UsageError
from tests.support.catalogue import problem


def hill(x: Any) -> Any:  # (K, 2) -> (K,)
    """Return a function whose optimum, 0, is at 1."""
    return -np.square(x - 1.0).sum(axis=1)


def test_a_view_shows_what_methods_see_and_what_is_known() -> None:
    seen = ddobench.task("chain", d=7, n=60, seed=1)
    drawn = problem("chain", (0, 1))
    assert np.array_equal(seen.x, drawn.data.x[1].numpy())
    assert np.array_equal(seen.y, drawn.data.y[1].numpy())
    assert drawn.optimum is not None
    assert seen.optimum == pytest.approx(float(drawn.optimum[1]))
    assert seen.best_visible == seen.y.max()
    assert seen.space.d == 7
    assert np.allclose(seen.predict(seen.x[:5]), seen.y[:5])
    seen.x[:] = 0.0
    assert seen.x.any()


def test_categories_are_whole_numbers_and_other_designs_have_no_value() -> None:
    seen = ddobench.task("nk", d=7, n=60)
    assert seen.x.dtype == np.int64
    assert np.isnan(seen.oracle(seen.x[:1] + 0.5)).all()


def test_a_function_is_a_task_for_run_and_evaluate(tmp_path: Path) -> None:
    box = ddobench.task(hill, low=[-2, -2], high=2, n=50, optimum=0.0)
    assert box.x.shape == (50, 2)
    assert box.optimum == 0
    assert np.isnan(box.oracle([[3.0, 0.0]]))
    assert box.oracle([[1.0, 1.0]])[0] == 0

    def mine(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
        return x[np.argsort(-y)[:k]]

    own = ddobench.evaluate(mine, box, seed="0-1", budget="tiny", results_dir=tmp_path)
    ran = ddobench.run("naive", box, seed="0-1", budget="tiny", results_dir=tmp_path)
    assert set(own["task"]) == set(ran["task"]) == {"hill"}
    assert own["data_digest"].tolist() == ran["data_digest"].tolist()
    assert ran["status"].tolist() == ["ok", "ok"]


def test_a_changed_function_is_another_task() -> None:
    def shift(by: float) -> Any:
        return lambda x: x[:, 0] + by

    views = [ddobench.task(shift(by), 0, 1, d=1, n=9) for by in (0.0, 1.0, 1.0)]
    contents = [view.function.content for view in views if view.function]
    assert contents[0] != contents[1] == contents[2]


def test_an_optimum_that_is_none_fails_the_run(tmp_path: Path) -> None:
    box = ddobench.task(hill, 0, 1, d=2, n=20, optimum=-1.0)
    runs = ddobench.run("naive", box, budget="tiny", results_dir=tmp_path)
    assert runs["status"].tolist() == ["failed"]
    assert runs["reason"][0].startswith("the task's optimum is -1, but a design has the value")


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        (["cubic"], {}, "^there is no task 'cubic'"),
        (["chain", 0, 1], {}, "^low and high are for a function of your own, got task='chain'"),
        ([3, 0, 1], {}, "^task must be a name or a function, got 3"),
        ([hill], {}, "^a function needs the box of its designs"),
        ([hill, 0, 1], {}, "^give d, the number of variables, or low and high as lists"),
        ([hill, 1, 0], {"d": 2}, r"^low must be below high, got low=\[1.0\] and high=\[0.0\]"),
        ([hill, [0, 0, 0], 1], {"d": 2}, "^low must be a finite number, or one for each of 2"),
        ([hill, 0, 1], {"d": 2, "name": "chain"}, "^there is a task 'chain' already; give name="),
        ([lambda x: x, 0, 1], {"d": 2}, r"^the function must return \d+ values for designs"),
        ([lambda x: x[:, 0] * np.nan, 0, 1], {"d": 2}, "^the function must have finite values"),
    ],
)
def test_a_wrong_request_gets_one_sentence(
    arguments: list[Any], settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        ddobench.task(*arguments, **settings)


def test_designs_of_another_width_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^designs must be \(K, 7\), got \(2, 3\)$"):
        ddobench.task("chain", d=7, n=60).predict(np.zeros((2, 3)))

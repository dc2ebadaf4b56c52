"""A function in a box: drawn uniformly, invalid outside, refused where it cannot be used."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks.black_box import BlackBox, bowl


def box(**settings: Any) -> BlackBox:
    return BlackBox(**{"d": 2, "n": 50, "function": bowl, **settings})


def test_rows_fill_the_box_and_have_the_values_of_the_function() -> None:
    problem = box(low=[-1, 5], high=[1, 6]).problem((0, 1))
    x, y = problem.data.x, problem.data.y
    assert (x[..., 0].abs() <= 1).all()
    assert ((x[..., 1] >= 5) & (x[..., 1] <= 6)).all()
    assert torch.equal(problem.evaluate(x), y)
    assert not torch.equal(x[0], x[1])
    assert np.allclose(bowl(x[0].numpy()), y[0])


def test_a_smaller_table_is_the_beginning_of_a_larger_one() -> None:
    few, many = (box(n=n).problem((3,)).data.x[0] for n in (50, 1500))
    assert torch.equal(few, many[:50])


def test_outside_the_box_is_invalid_and_not_asked() -> None:
    def careful(x: Any) -> Any:
        assert (x <= 1).all()
        return x[:, 0]

    problem = box(function=careful).problem((0,))
    inside, outside = problem.evaluate(torch.tensor([[[0.5, 0.5], [0.5, 1.5]]]).double())[0]
    assert inside == 0.5
    assert outside.isnan()


def test_better_rows_can_be_hidden() -> None:
    whole, half = (
        box(truncate=percentile, n=500).problem((0,)).data.y for percentile in (None, 50)
    )
    assert half.max() < whole.quantile(0.6)


def test_invalid_designs_of_the_box_are_no_rows() -> None:
    problem = box(function=lambda x: np.where(x[:, 0] < 0.5, np.nan, x[:, 0])).problem((0,))
    assert (problem.data.x[..., 0] >= 0.5).all()


def test_a_function_is_found_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_black_box.py").write_text("def f(x): return x[:, 0]")
    monkeypatch.chdir(tmp_path)
    problem = box(function="my_black_box:f").problem((0,))
    assert torch.equal(problem.data.y, problem.data.x[..., 0])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"function": "nowhere:f"}, "the oracle nowhere:f cannot be imported"),
        ({"function": 3}, "function must be MODULE:FUNCTION, got 3"),
        ({"low": 2.0}, "low must be below high, got low=2.0 and high=1.0"),
        ({"high": [1.0, 2.0, 3.0]}, "high must be a finite number, or one for each of 2 variables"),
        ({"truncate": 0}, "task.truncate must be a percentile from 1 to below 100, got 0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}"):
        box(**settings)

"""The Gaussian process, against gpytorch on the same rows and against finite differences."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.baselines.gp import (
    LEAST_NOISE,
    GaussianProcess,
    Kernel,
    Process,
    ProcessModel,
    factorise,
)
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.rng import Stream, Streams
from tests.support.lineups import assemble

# made by tests/support/gp_reference.py
REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("gp_reference.json").read_text())
KERNELS = sorted(REFERENCE["kernels"])
SEEDS = [1, 2]


def tensor(name: str) -> Tensor:
    return torch.tensor(REFERENCE[name], dtype=torch.float64)


def make_logs() -> np.ndarray[Any, np.dtype[np.float64]]:
    noise = REFERENCE["noise"] - LEAST_NOISE
    return np.log([*REFERENCE["scales"], REFERENCE["variance"], noise])


def make_process(kernel: str, logs: Any = None) -> Process:
    cliques = REFERENCE["kernels"][kernel]["cliques"]
    return Process(
        tensor("z"), tensor("y"), Kernel(cliques, 3), make_logs() if logs is None else logs
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_likelihood_is_that_of_gpytorch(kernel: str) -> None:
    expected = REFERENCE["kernels"][kernel]["log_likelihood"]
    assert make_process(kernel).log_likelihood() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_posterior_is_that_of_gpytorch(kernel: str) -> None:
    expected = REFERENCE["kernels"][kernel]
    mean, variance = make_process(kernel).posterior(tensor("at"))
    assert mean.tolist() == pytest.approx(expected["mean"], rel=1e-5, abs=1e-6)
    assert variance.tolist() == pytest.approx(expected["variance"], rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_gradient_of_the_likelihood_equals_differences(kernel: str) -> None:
    logs, step = make_logs(), 1e-5
    slope = make_process(kernel).likelihood_gradient()
    for i in range(len(logs)):
        ahead, behind = logs.copy(), logs.copy()
        ahead[i] += step
        behind[i] -= step
        rise = make_process(kernel, ahead).log_likelihood()
        rise -= make_process(kernel, behind).log_likelihood()
        assert slope[i] == pytest.approx(rise / (2 * step), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("kappa", [0.0, -1.0, 0.7])
def test_the_gradient_of_a_bound_equals_differences(kernel: str, kappa: float) -> None:
    process, at, step = make_process(kernel), tensor("at"), 1e-5
    value, slope = process.bound(at, kappa)
    mean, variance = process.posterior(at)
    torch.testing.assert_close(value, mean + kappa * variance.sqrt())
    for i in range(3):
        shift = torch.zeros(3, dtype=torch.float64)
        shift[i] = step
        rise = process.bound(at + shift, kappa)[0] - process.bound(at - shift, kappa)[0]
        torch.testing.assert_close(slope[:, i], rise / (2 * step), rtol=1e-5, atol=1e-6)


def make_gp(steps: int = 20, **settings: Any) -> Pipeline:
    return assemble(GaussianProcess(steps=steps, **settings), Ascent(steps=3))


def make_data(n: int = 60) -> Dataset:
    x = Streams(SEEDS, "test/x").normal(n, 3, dtype=torch.float64)
    return Dataset(x=x, y=5 + 2 * torch.sin(x.sum(dim=2)), space=Space(3))


def fit(method: Pipeline) -> ProcessModel:
    method.fit(make_data(), Streams(SEEDS, "method"))
    assert isinstance(method._model, ProcessModel)
    return method._model


def test_a_smooth_function_is_learned_from_few_rows() -> None:
    for report in fit(make_gp()).describe():
        assert report["held_out_r2"] > 0.9
        assert report["rows_seen"] == 54
        assert report["jitter"] == 0.0


def test_more_steps_never_have_a_lower_likelihood() -> None:
    few, many = fit(make_gp(steps=1)).describe(), fit(make_gp(steps=30)).describe()
    for short, long in zip(few, many, strict=True):
        assert long["log_likelihood"] > short["log_likelihood"]


def test_a_process_is_fitted_to_the_best_and_random_rows_and_to_none_held_out() -> None:
    y = Stream(1, "test/y").normal(200, dtype=torch.float64)
    seen, held_out = GaussianProcess(rows=40, top=0.25).pick_rows(y, Stream(1, "test/rows"))
    assert len(seen) == len(set(seen.tolist())) == 40
    assert len(held_out) == 20
    assert not set(seen.tolist()) & set(held_out.tolist())
    rest = sorted(set(range(200)) - set(held_out.tolist()), key=lambda row: -float(y[row]))
    assert seen[:10].tolist() == rest[:10]
    assert float(y[seen[10:]].mean()) == pytest.approx(0.0, abs=0.5)  # no more than chance


def test_a_small_table_is_used_completely() -> None:
    y = Stream(1, "test/y").normal(30, dtype=torch.float64)
    seen, held_out = GaussianProcess().pick_rows(y, Stream(1, "test/rows"))
    assert sorted([*seen.tolist(), *held_out.tolist()]) == list(range(30))


def test_bounds_lie_on_either_side_of_the_mean() -> None:
    data = make_data()
    predicted = []
    for climbed in ("lcb", "mean", "ucb"):
        method = make_gp(climbed=climbed)
        fit(method)
        predicted.append(method.predict(data.x + 2))
    low, middle, high = predicted
    assert low is not None
    assert middle is not None
    assert high is not None
    assert (low < middle).all()
    assert (middle < high).all()


def test_equal_rows_without_noise_take_a_little_jitter() -> None:
    bare = torch.ones(5, 5, dtype=torch.float64)
    factor, jitter = factorise(bare, torch.tensor(0.0, dtype=torch.float64))
    assert 0 < jitter <= 1e-8
    torch.testing.assert_close(factor @ factor.T, bare, rtol=0, atol=1e-6)


def test_what_is_no_covariance_is_refused() -> None:
    with pytest.raises(ValueError, match="a covariance of 3 rows has no Cholesky factor"):
        factorise(-torch.eye(3, dtype=torch.float64), torch.tensor(0.0, dtype=torch.float64))


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"rows": 1}, r"surrogate\.rows must be a whole number of at least 2"),
        ({"top": 1.1}, r"surrogate\.top must be a share in \[0, 1\], got 1\.1"),
        ({"noise": 0.0}, r"surrogate\.noise must be positive"),
        ({"climbed": "ei"}, r"surrogate\.climbed must be one of mean, lcb, ucb"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        GaussianProcess(**settings)

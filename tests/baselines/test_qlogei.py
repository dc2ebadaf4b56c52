"""Promises of batches chosen by expected improvement; most of them need botorch, an extra."""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.baselines.gp import GaussianProcess, Kernel, Process, ProcessFit, ProcessModel
from ddobench.baselines.qlogei import Improvement, QLogEI, as_botorch
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.rng import Streams
from tests.support.catalogue import build

needs_botorch = pytest.mark.skipif(
    find_spec("botorch") is None, reason="an extra: ddobench[botorch]"
)
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what botorch imports
CLIQUES = ((0, 1), (1, 2))


def process(rows: int = 30) -> Process:
    """Return a process of a few rows whose value falls off around 0.5."""
    z = Streams([0], "z").rows[0].normal(rows, 3, dtype=torch.float64)
    y = -(z - 0.5).square().sum(dim=1)
    return Process(z, y, Kernel(CLIQUES, 3), np.log([0.9, 1.2, 0.7, 1.5, 0.05]))


def model(seeds: int = 1) -> ProcessModel:
    one = process()
    return ProcessModel([ProcessFit(one, 0.0, one.z[:2], one.y[:2]) for _ in range(seeds)])


def small(**changes: Any) -> QLogEI:
    return QLogEI(**{"q": 3, "restarts": 2, "raw": 8, "draws": 16, "steps": 5} | changes)


@needs_botorch
def test_botorch_gets_the_same_process() -> None:
    ours = process()
    at = Streams([1], "at").rows[0].normal(4, 3, dtype=torch.float64)
    mean, variance = ours.posterior(at)
    theirs = as_botorch(ours).posterior(at)
    torch.testing.assert_close(theirs.mean[:, 0], mean, rtol=1e-6, atol=1e-8)
    torch.testing.assert_close(theirs.variance[:, 0], variance, rtol=1e-5, atol=1e-7)


@needs_botorch
def test_batches_replace_rows_one_after_the_other_within_the_range_of_the_data() -> None:
    fitted = model()
    start = fitted.fits[0].process.z[None, :7]
    steps = list(small().run(start, fitted, Streams([5], "run"), {}))
    assert [step.iteration for step in steps] == [0, 1, 2, 3]  # 7 designs are 3 + 3 + 1
    for i, step in enumerate(steps):
        moved = (step.x != start).any(dim=2)[0].tolist()
        assert moved == [place < 3 * i for place in range(7)]
        torch.testing.assert_close(step.value, fitted.value(step.x))
    low, high = Improvement(process()).bounds
    assert bool(((steps[-1].x >= low) & (steps[-1].x <= high)).all())


@needs_botorch
def test_a_batch_has_a_larger_improvement_than_random_ones_and_repeats_with_its_stream() -> None:
    improvement, none = Improvement(process()), torch.empty(0, 3, dtype=torch.float64)
    stream = Streams([3], "batch").rows[0]
    found = improvement.best_batch(3, none, stream, small(steps=30))
    again = improvement.best_batch(3, none, Streams([3], "batch").rows[0], small(steps=30))
    torch.testing.assert_close(again, found, rtol=0, atol=0)
    low, high = improvement.bounds
    drawn = stream.child("other").uniform(20, 3, 3, dtype=torch.float64)
    value = improvement.log_value(none, 64, 0)
    assert float(value(found[None])) > float(value(low + (high - low) * drawn).max())


@needs_botorch
def test_what_botorch_draws_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    none = torch.empty(0, 3, dtype=torch.float64)
    Improvement(process()).best_batch(2, none, Streams([3], "batch").rows[0], small())
    assert torch.equal(torch.random.get_rng_state(), before)


def test_without_botorch_it_is_refused_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ddobench.registry.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"not installed; pip install 'ddobench\[botorch\]'"):
        small()


def test_a_model_without_a_posterior_is_declined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddobench.registry.find_spec", lambda _: True)
    data = Dataset(torch.zeros(1, 4, 3), torch.zeros(1, 4), Space(3))
    method: Any = build("chain", "ga")[1]
    method.search = small()
    assert "use surrogate=gp" in str(method.declines(data))
    method.surrogate = GaussianProcess()
    assert method.declines(data) is None


@pytest.mark.parametrize("name", ["q", "restarts", "raw", "draws", "steps", "designs"])
def test_counts_below_one_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"search\.{name} must be a whole number"):
        small(**{name: 0})

"""COMs against a literal transcription of its loss, and its multiplier by hand."""

from math import exp, log

import pytest
import torch
from torch import Tensor

from ddobench.baselines.coms import Conservative, ConservativeStep
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Training
from ddobench.rng import Streams
from tests.support.lineups import coms

SEEDS, ROWS, D, STEPS, RATE = [4, 9], 6, 3, 5, 0.2
CPU = torch.device("cpu")


def make_step(
    alpha: float = 0.3, limit: float = 0.5, rate: float = RATE
) -> tuple[StackedMLP, ConservativeStep]:
    network = StackedMLP((D, 8, 8, 1), Streams(SEEDS, "test/weights"), CPU)
    step = ConservativeStep(
        network,
        negative_steps=STEPS,
        negative_rate=rate,
        alpha=alpha,
        alpha_rate=0.01,
        limit=limit,
    )
    return network, step


def make_batch() -> tuple[Tensor, Tensor]:  # (S, B, d), (S, B)
    streams = Streams(SEEDS, "test/batch")
    return streams.normal(ROWS, D), streams.normal(ROWS)


def value_of(network: StackedMLP, seed: int, row: Tensor) -> Tensor:  # (d,) -> ()
    """Run one network of the stack on one row, by definition."""
    last = len(network.weights) - 1
    for layer, (weight, bias) in enumerate(zip(network.weights, network.biases, strict=True)):
        row = row @ weight[seed] + bias[seed, 0]
        row = row if layer == last else torch.relu(row)
    return row[0]


def climb_row(network: StackedMLP, seed: int, row: Tensor) -> Tensor:
    for _ in range(STEPS):
        row = row.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(value_of(network, seed, row), row)
        row = row + RATE * gradient
    return row.detach()


def test_the_gradient_is_that_of_the_literal_loss() -> None:
    network, step = make_step(alpha=0.3)
    x, y = make_batch()
    total = torch.zeros(())
    for seed in range(len(SEEDS)):
        error, high, low = torch.zeros(()), torch.zeros(()), torch.zeros(())
        for row in range(ROWS):
            at_data = value_of(network, seed, x[seed, row])
            error = error + (at_data - y[seed, row]) ** 2 / ROWS
            negative = climb_row(network, seed, x[seed, row])
            high = high + value_of(network, seed, negative) / ROWS
            low = low + at_data / ROWS
        total = total + error + 0.3 * (high - low)
    assert network.flat.grad is not None
    network.flat.grad.zero_()
    torch.autograd.backward(total)
    expected = network.flat.grad.clone()
    network.flat.grad.zero_()
    step(x, y)
    torch.testing.assert_close(network.flat.grad, expected)


def test_every_row_has_its_own_negative_and_the_batch_is_not_changed() -> None:
    network, step = make_step()
    x, y = make_batch()
    x_before, y_before = x.clone(), y.clone()
    negatives = step.negatives(x)
    for seed in range(len(SEEDS)):
        for row in range(ROWS):
            torch.testing.assert_close(negatives[seed, row], climb_row(network, seed, x[seed, row]))
    step(x, y)
    assert torch.equal(x, x_before)
    assert torch.equal(y, y_before)
    assert not torch.equal(step.negatives(x), x)


def test_the_negatives_ascend() -> None:
    network, step = make_step()
    x, _ = make_batch()
    assert (network(step.negatives(x)) >= network(x)).all()


def test_the_multiplier_takes_the_step_computed_by_hand() -> None:
    _, step = make_step(alpha=0.3, limit=0.5)
    x, y = make_batch()
    step(x, y)
    step(x, y)
    for seed in range(len(SEEDS)):
        theta, first, second = log(0.3), 0.0, 0.0
        for time in (1, 2):
            gap = float(step.gaps[time - 1][seed])
            slope = exp(theta) * (0.5 - gap)  # of alpha (limit - gap), which descends
            first = 0.9 * first + 0.1 * slope
            second = 0.999 * second + 0.001 * slope**2
            unbiased, spread = first / (1 - 0.9**time), second / (1 - 0.999**time)
            theta -= 0.01 * unbiased / (spread**0.5 + 1e-8)
        assert float(step.log_alpha[seed]) == pytest.approx(theta, abs=1e-5)


@pytest.mark.parametrize(("limit", "direction"), [(-100.0, 1), (100.0, -1)])
def test_conservatism_grows_when_the_gap_exceeds_the_limit(limit: float, direction: int) -> None:
    _, step = make_step(alpha=0.3, limit=limit)
    step(*make_batch())
    assert ((step.log_alpha.exp() - 0.3) * direction > 0).all()


@pytest.mark.bits
def test_a_seed_steps_the_same_beside_other_seeds() -> None:
    x, y = make_batch()
    network, step = make_step()
    step(x, y)
    twice = StackedMLP((D, 8, 8, 1), Streams([1, 9, 4, 7], "test/weights"), CPU)
    other = ConservativeStep(
        twice, negative_steps=STEPS, negative_rate=RATE, alpha=0.3, alpha_rate=0.01, limit=0.5
    )
    other(x[[0, 1, 0, 1]], y[[0, 1, 0, 1]])
    for own, theirs in zip(network.parameters(), twice.parameters(), strict=True):
        assert own.grad is not None
        assert theirs.grad is not None
        assert torch.equal(own.grad[0], theirs.grad[2])
        assert torch.equal(own.grad[1], theirs.grad[1])


def test_alpha_and_gap_are_reported_over_training() -> None:
    x = Streams(SEEDS, "test/x").normal(50, D, dtype=torch.float64)
    data = Dataset(x=x, y=x.sum(dim=2), space=Space(D))
    method = coms(training=Training(steps=8, batch=16))
    method.fit(data, Streams(SEEDS, "method"))
    for report in method.diagnostics():
        assert len(report["alpha"]) == len(report["gap"]) == 8
        assert report["alpha"][0] == pytest.approx(0.1)
        assert report["alpha"][-1] != report["alpha"][0]


def test_a_multiplier_that_has_no_logarithm_is_refused() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.alpha must be positive"):
        Conservative(training=Training(), alpha=0.0)

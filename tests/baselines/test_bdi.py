"""BDI: the kernel against a wide network, its gradients, and its two directions."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.bdi import Bidirectional, InfiniteWidth, KernelFit, tangent_kernel
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.rng import Streams
from tests.support.lineups import assemble, quick_mlp

SEEDS, D = [4, 9], 3


def draw(rows: int, name: str) -> Tensor:
    return Streams(SEEDS, f"test/{name}").normal(rows, D, dtype=torch.float64)[0]


def empirical_kernel(x: Tensor, depth: int, width: int) -> Tensor:  # (B, d) -> (B, B)
    """Return the products of the gradients of a wide network in all its parameters."""
    drawn = Streams([5], "test/wide")
    sizes = [x.shape[1], *[width] * depth, 1]
    weights = [drawn.normal(a, b, dtype=torch.float64)[0].requires_grad_() for a, b
               in pairwise(sizes)]  # fmt: skip
    gradients = []
    for row in x:
        h = row
        for layer, weight in enumerate(weights):
            h = (h @ weight) * ((1.0 if layer == 0 else 2.0) / weight.shape[0]) ** 0.5
            h = h if layer == depth else h.relu()
        gradients.append(
            torch.cat([one.flatten() for one in torch.autograd.grad(h.sum(), weights)])
        )
    stacked = torch.stack(gradients)
    return stacked @ stacked.T


def test_the_kernel_is_that_of_a_wide_network() -> None:
    x = draw(4, "x")
    length = x.norm(dim=1)
    shape, _ = tangent_kernel((x @ x.T) / torch.outer(length, length), 2)
    expected = shape * torch.outer(length, length) / D
    torch.testing.assert_close(empirical_kernel(x, 2, 1500), expected, rtol=0.1, atol=0.1)


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_gradients_equal_differences(way: str) -> None:
    rows = draw(12, "rows")
    fit = KernelFit(rows, rows.sin().sum(dim=1), depth=5, ridge=1e-6)
    x = draw(3, "designs")
    call = fit.forward if way == "forward" else lambda at: fit.backward(at, 10.0)
    _, gradient = call(x)
    for column in range(D):
        step = torch.zeros(D, dtype=torch.float64)
        step[column] = 1e-6
        difference = (call(x + step)[0] - call(x - step)[0]) / 2e-6
        torch.testing.assert_close(gradient[:, column], difference, rtol=1e-4, atol=1e-5)


def test_rows_predict_themselves_and_a_design_predicts_itself() -> None:
    rows = draw(12, "rows")
    y = rows.sin().sum(dim=1)
    torch.testing.assert_close(KernelFit(rows, y, 5, 1e-9).forward(rows)[0], y, rtol=0, atol=1e-4)
    alone = KernelFit(rows[:1], torch.tensor([7.0], dtype=torch.float64), 5, 1e-9)
    assert alone.backward(rows[:1], 7.0)[0] < 1e-12


def test_designs_reach_a_smaller_error_in_both_directions() -> None:
    x = Streams(SEEDS, "test/x").normal(80, D, dtype=torch.float64)
    data = Dataset(x=x, y=x.sin().sum(dim=2), space=Space(D))
    search = Bidirectional(steps=30, rate=0.01, root_d=False, optimiser="adam", designs=8)
    method = assemble(InfiniteWidth(), search)
    method.fit(data, Streams(SEEDS, "method"))
    steps = list(method.propose(x[:, :8], Streams(SEEDS, "search")))
    model: Any = method._model

    def loss(designs: Tensor) -> Tensor:
        z = method._encode(designs)
        return torch.stack([
            ((fit.forward(at)[0] - 10).square() / 2 + fit.backward(at, 10.0)[0]).mean()
            for fit, at in zip(model.fits, z, strict=True)
        ])  # fmt: skip

    assert (loss(steps[-1].designs) < loss(steps[0].designs)).all()


def test_it_needs_a_kernel() -> None:
    x = Streams(SEEDS, "test/x").normal(8, D, dtype=torch.float64)
    data = Dataset(x=x, y=x.sum(dim=2), space=Space(D))
    refusal = assemble(quick_mlp(), Bidirectional()).declines(data)
    assert refusal == "search=bidirectional needs a kernel; use surrogate=infinite_width"


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.ridge must be positive, got 0"):
        InfiniteWidth(ridge=0)
    with pytest.raises(UsageError, match=r"search\.backward must be 0 or more, got -1"):
        Bidirectional(backward=-1)

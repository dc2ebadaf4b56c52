"""Clique networks: values, zero mixed derivatives, independence of seeds."""

from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from ddobench.graphs import Graph
from ddobench.models import cliques
from ddobench.models.cliques import CliqueMLP
from ddobench.models.networks import StackedMLP
from ddobench.models.training import backprop_squared_error
from ddobench.rng import Streams

CPU = torch.device("cpu")
D = 6
GRAPHS = [
    Graph.from_cliques(D, [(0, 1, 2), (2, 3), (3, 4)]),  # and 5 alone
    Graph.from_edges(D, []),
    Graph.from_cliques(D, [range(D)]),
    Graph.from_edges(D, [*list(combinations(range(4), 2))[:-1], (4, 5)]),
]
SEEDS = [3, 4, 5, 6]


def make_network(
    graphs: list[Graph] = GRAPHS, seeds: list[int] = SEEDS, hidden: tuple[int, ...] = (16, 8)
) -> CliqueMLP:
    return CliqueMLP((D, *hidden, 1), graphs, Streams(seeds, "test/weights"), CPU)


def draw_rows(count: int, seeds: list[int] = SEEDS) -> Tensor:  # (S, B, d)
    return Streams(seeds, "test/x").normal(count, D)


def slow_value(network: CliqueMLP, x: Tensor) -> Tensor:  # (S, B, d) -> (S, B)
    """Average the network over masked copies, one row, clique and unit at a time, in float64."""
    values = torch.empty(x.shape[:2], dtype=torch.float64)
    for seed, graph in enumerate(network.graphs):
        layers = [
            (weight[seed].double(), bias[seed, 0].double())
            for weight, bias in zip(network.weights, network.biases, strict=True)
        ]
        for row in range(x.shape[1]):
            outputs = []
            for clique in graph.cliques:
                h = torch.zeros(D, dtype=torch.float64)
                h[list(clique)] = x[seed, row, list(clique)].double()
                for weight, bias in layers[:-1]:
                    h = (h @ weight + bias).clamp(min=0)
                outputs.append((h @ layers[-1][0] + layers[-1][1])[0])
            values[seed, row] = torch.stack(outputs).mean()
    return values.detach()


@pytest.mark.parametrize("hidden", [(16,), (16, 8), (8, 16, 4)])
@pytest.mark.parametrize("cached", [1, 250, 10_000])
def test_all_passes_agree_with_the_definition(
    hidden: tuple[int, ...], cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cliques, "CACHED", cached)
    network, x = make_network(hidden=hidden), draw_rows(7)
    slow = slow_value(network, x).float()
    passes = network.passes()
    torch.testing.assert_close(network(x)[..., 0].detach(), slow, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(passes.forward(x)[..., 0], slow, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(passes.value(x), slow, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(passes.value_and_gradient(x)[0], slow, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("hidden", [(16,), (16, 8), (8, 16, 4)])
@pytest.mark.parametrize("cached", [1, 250, 10_000])
def test_gradients_by_hand_are_those_of_autograd(
    hidden: tuple[int, ...], cached: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cliques, "CACHED", cached)
    network, x = make_network(hidden=hidden), draw_rows(7)
    y = Streams(SEEDS, "test/y").normal(7)
    by_hand = backprop_squared_error(network.passes(), x, y)
    written = [parameter.grad.clone() for parameter in network.parameters()]  # type: ignore[union-attr]
    loss = (network(x)[..., 0] - y).square().mean(dim=1)
    torch.testing.assert_close(by_hand, loss.detach(), rtol=1e-5, atol=1e-6)
    expected = torch.autograd.grad(loss.sum(), list(network.parameters()))
    for ours, theirs in zip(written, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


def test_the_gradient_in_the_design_is_that_of_autograd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cliques, "ROWS_AT_ONCE", 4)
    network, x = make_network(), draw_rows(9).requires_grad_()
    (expected,) = torch.autograd.grad(network(x).sum(), x)
    _, gradient = network.passes().value_and_gradient(x.detach())
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-7)


def test_the_mixed_derivative_of_variables_without_a_common_clique_is_exactly_zero() -> None:
    network, x = make_network(), draw_rows(20)
    passes = network.passes()
    _, gradient = passes.value_and_gradient(x)
    meeting = 0
    for j in range(D):
        moved = x.clone()
        moved[..., j] += 3.0
        change = (passes.value_and_gradient(moved)[1] - gradient).abs().amax(dim=1)  # (S, d)
        for seed, graph in enumerate(GRAPHS):
            for i in range(D):
                if i != j and not graph.adjacency()[i, j]:
                    assert change[seed, i] == 0.0, f"{i} and {j} meet in {graph}"
                elif i != j:
                    meeting += int(change[seed, i] > 0)
    assert meeting > 20, "variables of a clique should interact"


def test_a_complete_graph_is_an_ordinary_network() -> None:
    seeds = [1, 2]
    complete = [Graph.from_cliques(D, [range(D)])] * 2
    network = make_network(complete, seeds)
    plain = StackedMLP((D, 16, 8, 1), Streams(seeds, "test/weights"), CPU)
    x = draw_rows(5, seeds)
    torch.testing.assert_close(network.passes().value(x), plain(x)[..., 0].detach())


@pytest.mark.bits
@pytest.mark.parametrize("rows", [5, 13])
def test_neither_value_nor_gradient_depend_on_the_cliques_of_other_seeds(rows: int) -> None:
    y = Streams(SEEDS, "test/y").normal(rows)

    def compute(chosen: list[int]) -> list[Tensor]:
        seeds = [SEEDS[i] for i in chosen]
        network = make_network([GRAPHS[i] for i in chosen], seeds)
        passes, x = network.passes(), draw_rows(rows, seeds)
        loss = backprop_squared_error(passes, x, y[chosen])
        found = [loss, *passes.value_and_gradient(x)]
        found += [parameter.grad for parameter in network.parameters()]  # type: ignore[misc]
        return [one[-1].clone() for one in found]  # of the last seed

    for position in range(len(SEEDS)):
        alone = compute([position])
        others = [i for i in range(len(SEEDS)) if i != position]
        for beside in ([*others, position], [others[0], position]):
            for one, other in zip(alone, compute(beside), strict=True):
                assert torch.equal(one, other)


def test_new_graphs_are_taken_up_by_passes_that_exist_already() -> None:
    network, x = make_network(), draw_rows(4)
    passes = network.passes()
    passes.forward(x)
    network.graphs = list(reversed(GRAPHS))
    expected = slow_value(network, x).float()
    torch.testing.assert_close(passes.forward(x)[..., 0], expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(passes.value(x), expected, rtol=1e-5, atol=1e-6)


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Records the largest tensor that operations return."""

    numel = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        if isinstance(found, Tensor):
            self.numel = max(self.numel, found.numel())
        return found


def test_an_ascent_does_not_store_the_hidden_units_of_all_cliques_and_designs() -> None:
    d, width, designs = 30, 64, 1000
    graph = Graph.from_edges(d, [(i, i + 1) for i in range(d - 1)])
    network = CliqueMLP((d, width, width, 1), [graph], Streams([0], "test"), CPU)
    passes, x = network.passes(), Streams([0], "test/x").normal(designs, d)
    with Largest() as largest:  # type: ignore[no-untyped-call]
        passes.value_and_gradient(x)
        passes.value(x)
    assert len(graph.cliques) * designs * width > 10 * largest.numel
    with Largest() as largest:  # type: ignore[no-untyped-call]
        passes.forward(x[:, :100])
    assert largest.numel <= len(graph.cliques) * 100 * width, (
        "one layer of hidden units is the most"
    )


def test_nan_in_a_variable_affects_only_its_cliques() -> None:
    network, x = make_network(), draw_rows(3)
    clean = network.passes().value_and_gradient(x)[1]
    x[0, 1, 0] = torch.nan
    value, gradient = network.passes().value_and_gradient(x)
    assert value.isnan().nonzero().tolist() == [[0, 1]]
    assert torch.equal(gradient[1:], clean[1:])
    assert torch.equal(gradient[0, [0, 2]], clean[0, [0, 2]])

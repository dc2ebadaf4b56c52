"""Stacks of networks: the module, and its passes by hand."""

import pytest
import torch
from torch import Tensor, nn

from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.tensors import multiply
from ddobench.rng import Streams

CPU = torch.device("cpu")
SHAPES = [(5, 1), (5, 8, 1), (5, 8, 8, 1), (5, 8, 6, 3), (4, 7, 7, 7, 2)]


def make_stack(sizes: tuple[int, ...], seeds: list[int]) -> StackedMLP:
    return StackedMLP(sizes, Streams(seeds, "test/weights"), CPU)


def make_rows(width: int, seeds: list[int], rows: int = 16) -> Tensor:  # (S, rows, width)
    return Streams(seeds, "test/rows").normal(rows, width)


@pytest.mark.parametrize("sizes", SHAPES)
def test_a_stack_equals_a_loop_over_ordinary_networks(sizes: tuple[int, ...]) -> None:
    stack, x = make_stack(sizes, [1, 2, 3]), make_rows(sizes[0], [1, 2, 3])
    for seed in range(3):
        layers: list[nn.Module] = []
        for weight, bias in zip(stack.weights, stack.biases, strict=True):
            linear = nn.Linear(*weight.shape[1:])
            linear.weight.data, linear.bias.data = weight[seed].T, bias[seed, 0]
            layers += [linear, nn.ReLU()]
        torch.testing.assert_close(stack(x)[seed], nn.Sequential(*layers[:-1])(x[seed]))


@pytest.mark.parametrize("sizes", SHAPES)
def test_passes_by_hand_equal_autograd(sizes: tuple[int, ...]) -> None:
    stack, x = make_stack(sizes, [1, 2]), make_rows(sizes[0], [1, 2])
    error = make_rows(sizes[-1], [3, 4])
    assert stack.flat.grad is not None
    x.requires_grad_()
    output = stack(x)
    (output * error).sum().backward()
    expected = stack.flat.grad.clone()
    stack.flat.grad.zero_()

    passes = Passes(stack)
    torch.testing.assert_close(passes.forward(x.detach()), output.detach())
    passes.backward(error.clone())
    torch.testing.assert_close(stack.flat.grad, expected)

    stack.flat.grad.zero_()
    passes.forward(x.detach())
    torch.testing.assert_close(passes.backward_to_input(error.clone()), x.grad)
    assert not stack.flat.grad.any(), "weights were not asked for"
    passes.forward(x.detach())
    torch.testing.assert_close(passes.backward_to_input(error.clone(), weights=True), x.grad)
    torch.testing.assert_close(stack.flat.grad, expected)


def test_passes_accept_another_number_of_rows() -> None:
    stack = make_stack((5, 8, 1), [1, 2])
    passes = Passes(stack)
    for rows in (16, 3, 40):
        x = make_rows(5, [1, 2], rows)
        torch.testing.assert_close(passes.forward(x), stack(x).detach())


def test_passes_do_not_change_their_input() -> None:
    stack, x = make_stack((5, 8, 8, 1), [1, 2]), make_rows(5, [1, 2])
    before = x.clone()
    passes = Passes(stack)
    passes.forward(x)
    passes.backward_to_input(torch.ones(2, 16, 1), weights=True)
    assert torch.equal(x, before)


def test_an_optimiser_of_the_flat_vector_moves_the_whole_stack() -> None:
    stack, x = make_stack((5, 8, 1), [1, 2]), make_rows(5, [1, 2])
    optimiser = torch.optim.SGD([stack.flat], lr=0.1)
    before = stack.snapshot()
    stack(x).sum().backward()
    optimiser.step()
    assert all(
        (now != then).flatten(1).any(dim=1).all()
        for now, then in zip(stack.parameters(), before, strict=True)
    )


def test_gradients_do_not_leak_between_seeds() -> None:
    stack, x = make_stack((5, 8, 8, 1), [1, 2, 3]), make_rows(5, [1, 2, 3])
    error = torch.zeros(3, 16, 1)
    error[1] = 1.0
    passes = Passes(stack)
    passes.forward(x)
    toward_input = passes.backward_to_input(error, weights=True)
    for gradient in [toward_input, *[p.grad for p in stack.parameters()]]:
        assert gradient is not None
        assert gradient[1].any()
        assert not gradient[[0, 2]].any()


@pytest.mark.bits
@pytest.mark.parametrize("width", [8, 64, 256])
def test_a_seed_computes_the_same_bits_beside_other_seeds(width: int) -> None:
    def compute(seeds: list[int]) -> list[Tensor]:
        stack, x = make_stack((41, width, width, 1), seeds), make_rows(41, seeds, 128)
        passes = Passes(stack)
        output = passes.forward(x).clone()
        toward_input = passes.backward_to_input(output, weights=True)
        gradients = [p.grad for p in stack.parameters() if p.grad is not None]
        row = seeds.index(3)
        return [one[row].clone() for one in (output, toward_input, *gradients)]

    alone, beside = compute([3, 5]), compute([1, 2, 5, 7, 8, 9, 10, 3])
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))


@pytest.mark.bits
@pytest.mark.parametrize("seeds", [[3], [1, 2, 3]])
def test_an_error_goes_back_through_one_output_as_a_matrix_product_would(seeds: list[int]) -> None:
    stack, error = make_stack((41, 64, 1), seeds), make_rows(1, seeds, 128)
    x = make_rows(41, seeds, 128)
    passes = Passes(stack)
    passes.forward(x)
    there = [weight.detach() for weight in stack.weights]
    hidden = torch.baddbmm(stack.biases[0].detach(), x, there[0]).relu()
    before = multiply(error, there[1].mT).where(hidden > 0, 0.0)
    assert torch.equal(passes.backward_to_input(error), multiply(before, there[0].mT))


@pytest.mark.bits
@pytest.mark.parametrize("sizes", [(5, 1), (5, 8, 8, 1)])
def test_a_gradient_without_its_value_is_the_same_gradient(sizes: tuple[int, ...]) -> None:
    stack, x = make_stack(sizes, [1, 2]), make_rows(sizes[0], [1, 2])
    gradient = Passes(stack).gradient(x).clone()
    assert torch.equal(gradient, Passes(stack).value_and_gradient(x)[1])


def test_a_seed_that_is_not_finite_affects_no_other() -> None:
    stack, x = make_stack((5, 8, 8, 1), [1, 2, 3]), make_rows(5, [1, 2, 3])
    healthy = Passes(stack).forward(x).clone()
    with torch.no_grad():
        stack.weights[1][1] = torch.nan
    passes = Passes(stack)
    assert torch.equal(passes.forward(x)[[0, 2]], healthy[[0, 2]])
    passes.backward(torch.ones(3, 16, 1))
    for parameter in stack.parameters():
        assert parameter.grad is not None
        assert torch.isfinite(parameter.grad[[0, 2]]).all()
    assert stack.finite().tolist() == [True, False, True]


def test_a_snapshot_is_a_copy_and_takes_only_the_chosen_seeds() -> None:
    stack = make_stack((5, 8, 1), [1, 2])
    first = stack.snapshot()
    kept = stack.snapshot()
    with torch.no_grad():
        stack.flat.add_(1.0)
    stack.store(kept, torch.tensor([False, True]))
    for then, copy in zip(first, kept, strict=True):
        assert torch.equal(copy[0], then[0])
        assert torch.equal(copy[1], then[1] + 1.0)
    stack.restore(first)
    assert all(torch.equal(a, b) for a, b in zip(first, stack.parameters(), strict=True))


def test_weights_are_drawn_as_torch_draws_them() -> None:
    stack = make_stack((100, 400, 1), [1, 2])
    for weight, fan_in in zip(stack.weights, (100, 400), strict=True):
        bound = fan_in**-0.5
        assert weight.abs().max() <= bound
        assert float(weight.detach().std()) == pytest.approx(bound / 3**0.5, rel=0.1)
    assert not torch.equal(stack.weights[0][0], stack.weights[0][1])

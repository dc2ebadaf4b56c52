"""Stacks of networks: one MLP per seed behind an ordinary module call.

`StackedMLP` is the module: weights have the seed axis in front, autograd works on it as on any
other. `Passes` are its forward and backward passes by hand, for the loops that take nearly all the
time of a benchmark: they write into buffers that are used again, and gradients straight into the
one vector the optimiser reads. The tests hold the two equal.

No product or sum here mixes seeds, so what one seed computes is the same bits beside any others
(for S >= 2: the product of a single matrix takes another kernel).
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from ddobench.streams import Streams


class StackedMLP(nn.Module):
    """S independent ReLU networks of the same layer sizes.

    All parameters are views of the vector `flat`, all gradients views of `flat.grad`: an optimiser
    of `[flat]` updates the whole stack with one kernel.
    """

    def __init__(self, sizes: Sequence[int], rng: Streams, device: torch.device) -> None:
        """Draw every weight and bias uniformly within 1/sqrt(fan-in), as torch.nn.Linear does."""
        super().__init__()
        self.sizes = tuple(sizes)
        draws: list[Tensor] = []
        for fan_in, fan_out in pairwise(sizes):
            bound = fan_in**-0.5
            draws.append((2 * rng.uniform(fan_in, fan_out) - 1) * bound)  # (S, in, out)
            draws.append((2 * rng.uniform(1, fan_out) - 1) * bound)  # (S, 1, out)
        self.flat = torch.cat([draw.flatten() for draw in draws]).to(device)
        self.flat.grad = torch.zeros_like(self.flat)
        parameters = [nn.Parameter(view) for view in _views(self.flat, draws)]
        for parameter, gradient in zip(parameters, _views(self.flat.grad, draws), strict=True):
            parameter.grad = gradient
        self.weights = nn.ParameterList(parameters[0::2])
        self.biases = nn.ParameterList(parameters[1::2])

    def forward(self, x: Tensor) -> Tensor:  # (S, B, in) -> (S, B, out)
        """Return the outputs of each seed's network on its own rows."""
        last = len(self.weights) - 1
        for layer, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if layer < last:
                x = x.relu()
        return x

    def snapshot(self) -> list[Tensor]:
        """Return a copy of all parameters, each (S, ...)."""
        return [parameter.detach().clone() for parameter in self.parameters()]

    @torch.no_grad()
    def store(self, snapshot: list[Tensor], chosen: Tensor) -> None:  # chosen (S,) bool
        """Copy the parameters of the chosen seeds into a snapshot."""
        for kept, parameter in zip(snapshot, self.parameters(), strict=True):
            kept[chosen] = parameter[chosen]

    @torch.no_grad()
    def restore(self, snapshot: list[Tensor]) -> None:
        """Put the parameters of a snapshot back."""
        for kept, parameter in zip(snapshot, self.parameters(), strict=True):
            parameter.copy_(kept)

    def finite(self) -> Tensor:
        """Tell for each seed whether all its parameters are finite, (S,)."""
        checks = [torch.isfinite(p).flatten(1).all(dim=1) for p in self.parameters()]
        return torch.stack(checks).all(dim=0)


class Passes:
    """Forward and backward passes of a stack without autograd.

    Results live in buffers that the next call overwrites; the backward pass also consumes the
    activations of the forward pass before it.
    """

    def __init__(self, network: StackedMLP) -> None:
        self.network = network
        self._weights = [weight.detach() for weight in network.weights]  # (S, in, out) each
        self._biases = [bias.detach() for bias in network.biases]  # (S, 1, out) each
        self._weight_gradients = [_gradient(weight) for weight in network.weights]
        self._bias_gradients = [_gradient(bias) for bias in network.biases]
        self._inputs: list[Tensor] = []  # what each layer was fed, (S, B, in) each
        self._outputs: list[Tensor] = []  # (S, B, out) each
        self._scratch: dict[int, Tensor] = {}  # width -> (S, B, width)

    def forward(self, x: Tensor) -> Tensor:  # (S, B, in) -> (S, B, out)
        """Return the outputs, and keep what the backward pass needs."""
        self._reserve(x)
        self._inputs = [x, *self._outputs[:-1]]
        for weight, bias, fed, output in zip(
            self._weights, self._biases, self._inputs, self._outputs, strict=True
        ):
            torch.baddbmm(bias, fed, weight, out=output)
            if output is not self._outputs[-1]:
                output.relu_()
        return self._outputs[-1]

    def backward(self, error: Tensor) -> None:  # (S, B, out)
        """Write d loss / d parameters into the stack's gradient, from `error` = d loss / d output.

        The loss is a sum over seeds, so that every seed gets the gradient of its own.
        """
        self._descend(error, weights=True, inputs=False)

    def backward_to_input(self, error: Tensor, *, weights: bool = False) -> Tensor:
        """Return d loss / d input, (S, B, in); with `weights` also do what `backward` does."""
        return self._descend(error, weights=weights, inputs=True)

    def _descend(self, error: Tensor, *, weights: bool, inputs: bool) -> Tensor:
        for layer in reversed(range(len(self._weights))):
            weight, fed = self._weights[layer], self._inputs[layer]
            if weights:
                gradient = self._weight_gradients[layer]
                if weight.shape[2] == 1:  # the same product lying down is three times as fast
                    torch.bmm(error.mT, fed, out=gradient.mT)
                else:
                    torch.bmm(fed.mT, error, out=gradient)
                torch.sum(error, dim=1, keepdim=True, out=self._bias_gradients[layer])
            if layer == 0 and not inputs:
                break
            upstream = torch.bmm(error, weight.mT, out=self._scratch[weight.shape[1]])
            if layer == 0:
                return upstream
            # ReLU: the gradient passes where the activation, no longer needed itself, is positive
            torch.ops.aten.threshold_backward.grad_input(upstream, fed, 0, grad_input=fed)
            error = fed
        return error

    def _reserve(self, x: Tensor) -> None:
        """Make buffers for a new number of rows."""
        if self._outputs and self._outputs[0].shape[1] == x.shape[1]:
            return
        widths = self.network.sizes
        self._outputs = [x.new_empty(*x.shape[:2], width) for width in widths[1:]]
        self._scratch = {width: x.new_empty(*x.shape[:2], width) for width in set(widths[:-1])}


def _gradient(parameter: Tensor) -> Tensor:
    assert parameter.grad is not None, "the gradients of a stack are views that must stay in place"
    return parameter.grad


def _views(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Cut a vector into consecutive views of the given shapes."""
    pieces = torch.split(flat, [one.numel() for one in like])
    return [piece.view(one.shape) for piece, one in zip(pieces, like, strict=True)]

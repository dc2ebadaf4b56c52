"""Stacks of networks: one MLP per seed.

`StackedMLP` is an ordinary module for autograd; its weights have a leading seed axis. `Passes` are
its forward and backward passes by hand, for the loops that take nearly all the time of a benchmark:
they reuse buffers and write gradients directly into the vector that the optimiser reads. Tests
compare the two.

No product or sum mixes seeds, so that on one machine the result of a seed is the same to the bit
beside any others: see `multiply` in `tensors`.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from ddobench.models.tensors import affine, multiply
from ddobench.rng import Streams

# PyTorch's fused Adam rounds the last elements of a vector, which do not fill a register,
# differently (seen with AVX2 and AVX-512). Which seed they belong to depends on the stack, so
# stacks are padded to whole registers.
LANES = 64

threshold_backward = torch.ops.aten.threshold_backward.grad_input


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
        total = sum(draw.numel() for draw in draws)
        padding = torch.zeros(-total % LANES)  # unused
        self.flat = torch.cat([*[draw.flatten() for draw in draws], padding]).to(device)
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
            x = affine(bias, x, weight)
            if layer < last:
                x = x.relu()
        return x

    def passes(self) -> "Differentiated":
        """Return passes by hand with buffers of their own."""
        return Passes(self)

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
        """Restore the parameters of a snapshot."""
        for kept, parameter in zip(snapshot, self.parameters(), strict=True):
            parameter.copy_(kept)

    def finite(self) -> Tensor:
        """Return for each seed whether all its parameters are finite, (S,)."""
        checks = [torch.isfinite(p).flatten(1).all(dim=1) for p in self.parameters()]
        return torch.stack(checks).all(dim=0)


class Differentiated(Protocol):
    """What a training loop and an ascent need of a network with one output."""

    def forward(self, x: Tensor) -> Tensor:  # (S, B, in) -> (S, B, 1)
        """Return the values, and keep what the backward pass needs."""

    def backward(self, error: Tensor) -> None:  # (S, B, 1)
        """Write d loss / d parameters into the stack's gradient, from d loss / d value."""

    def value(self, x: Tensor) -> Tensor:  # (S, K, in) -> (S, K)
        """Return the values."""

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the values of x (S, K, in), (S, K), and their gradients, (S, K, in)."""


class Passes:
    """Forward and backward passes of a stack without autograd.

    Results are in buffers that the next call overwrites. The backward pass overwrites the
    activations of the forward pass before it.
    """

    def __init__(self, network: StackedMLP) -> None:
        self.sizes = network.sizes
        self._weights = [weight.detach() for weight in network.weights]  # (S, in, out) each
        self._transposed = [weight.mT for weight in self._weights]  # (S, out, in) each
        self._biases = [bias.detach() for bias in network.biases]  # (S, 1, out) each
        self._weight_gradients = [gradient_of(weight) for weight in network.weights]
        self._bias_gradients = [gradient_of(bias) for bias in network.biases]
        self._rows = -1
        self._fed: list[Tensor] = []  # the input of each layer, (S, B, in) each
        self._outputs: list[Tensor] = []  # (S, B, out) each
        self._upstream: list[Tensor] = []  # (S, B, in) each, the same buffer for equal widths

    def forward(self, x: Tensor) -> Tensor:  # (S, B, in) -> (S, B, out)
        """Return the outputs, and keep what the backward pass needs."""
        self._fill_hidden(x)
        return self._feed(-1)

    def backward(self, error: Tensor) -> None:  # (S, B, out)
        """Write d loss / d parameters into the stack's gradient, from `error` = d loss / d output.

        The loss is a sum over seeds, so that every seed gets the gradient of its own.
        """
        self._descend(error, weights=True, inputs=False)

    def backward_to_input(self, error: Tensor, *, weights: bool = False) -> Tensor:
        """Return d loss / d input, (S, B, in); with `weights` also do what `backward` does."""
        return self._descend(error, weights=weights, inputs=True)

    def value(self, x: Tensor) -> Tensor:  # (S, K, in) -> (S, K)
        """Return the single output of each row."""
        return self.forward(x).squeeze(2)

    def value_and_gradient(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the single output of each row of x (S, K, in), (S, K), and its gradient."""
        return self.value(x), self.backward_to_input(torch.ones_like(x[..., :1]))

    def gradient(self, x: Tensor) -> Tensor:
        """Return the gradient of the single output of each row of x (S, K, in)."""
        self._fill_hidden(x)
        return self.backward_to_input(torch.ones_like(x[..., :1]))

    def _fill_hidden(self, x: Tensor) -> None:
        """Compute all layers but the last."""
        if x.shape[1] != self._rows:
            self._reserve(x)
        self._fed[0] = x
        for layer in range(len(self._outputs) - 1):
            self._activate(self._feed(layer))

    def _feed(self, layer: int) -> Tensor:  # (S, B, out)
        """Return the output of a layer before its activation."""
        product = multiply(self._fed[layer], self._weights[layer], self._outputs[layer])
        return product.add_(self._biases[layer])

    def _activate(self, output: Tensor) -> None:
        """Apply the activation to the output of a layer, in place."""
        output.relu_()

    def _pass_back(self, upstream: Tensor, activation: Tensor) -> Tensor:
        """Return the gradient before an activation, in the buffer of the activation."""
        # ReLU: the gradient passes where the activation is positive
        threshold_backward(upstream, activation, 0, grad_input=activation)
        return activation

    def _descend(self, error: Tensor, *, weights: bool, inputs: bool) -> Tensor:
        for layer in reversed(range(len(self._weights))):
            fed = self._fed[layer]
            if weights:
                gradient = self._weight_gradients[layer]
                if gradient.shape[2] == 1:  # the transposed product is three times as fast
                    multiply(error.mT, fed, gradient.mT)
                else:
                    multiply(fed.mT, error, gradient)
                torch.sum(error, dim=1, keepdim=True, out=self._bias_gradients[layer])
            if layer == 0 and not inputs:
                break
            upstream = self._upstream[layer]
            if error.shape[2] == 1:  # a sum of one term needs no matrix product
                torch.mul(error, self._transposed[layer], out=upstream)
            else:
                multiply(error, self._transposed[layer], upstream)
            if layer == 0:
                return upstream
            error = self._pass_back(upstream, fed)
        return error

    def _reserve(self, x: Tensor) -> None:
        """Make buffers for a new number of rows."""
        self._rows = x.shape[1]
        self._outputs = [x.new_empty(*x.shape[:2], width) for width in self.sizes[1:]]
        self._fed = [x, *self._outputs[:-1]]
        scratch = {width: x.new_empty(*x.shape[:2], width) for width in set(self.sizes[:-1])}
        self._upstream = [scratch[width] for width in self.sizes[:-1]]


class SmoothMLP(StackedMLP):
    """The same networks with softplus in place of ReLU."""

    def forward(self, x: Tensor) -> Tensor:  # (S, B, in) -> (S, B, out)
        """Return the outputs of each seed's network on its own rows."""
        for weight, bias in zip(self.weights[:-1], self.biases, strict=False):
            x = softplus(affine(bias, x, weight))
        return affine(self.biases[-1], x, self.weights[-1])

    def passes(self) -> "SmoothPasses":
        """Return passes by hand with buffers of their own."""
        return SmoothPasses(self)


class SmoothPasses(Passes):
    """Forward and backward passes of a smooth stack; the slope of h = softplus is 1 - exp(-h)."""

    def _activate(self, output: Tensor) -> None:
        output.copy_(softplus(output))

    def _pass_back(self, upstream: Tensor, activation: Tensor) -> Tensor:
        return activation.neg_().expm1_().neg_().mul_(upstream)


class Slopes:
    """Derivatives of a stack along directions, and their gradient in the parameters, by hand.

    Between the points where a unit changes its sign, a derivative depends on the weights alone: the
    biases have no gradient.
    """

    def __init__(self, network: StackedMLP) -> None:
        self._weights = [weight.detach() for weight in network.weights]  # (S, in, out) each
        self._biases = [bias.detach() for bias in network.biases]  # (S, 1, out) each
        self._gradients = [gradient_of(weight) for weight in network.weights]
        self._fed: list[Tensor] = []  # the direction at the input of each layer, (S, B, in) each
        self._active: list[Tensor] = []  # which units of each hidden layer are, (S, B, out) each

    def forward(self, x: Tensor, along: Tensor) -> Tensor:  # (S, B, in), (S, B, in) -> (S, B)
        """Return the derivative of the single output at each row of x along its direction."""
        self._fed, self._active = [along], []
        for weight, bias in zip(self._weights[:-1], self._biases, strict=False):
            x = multiply(x, weight).add_(bias)
            self._active.append(x > 0)
            x.relu_()
            self._fed.append(multiply(self._fed[-1], weight).mul_(self._active[-1]))
        return multiply(self._fed[-1], self._weights[-1]).squeeze(2)

    def backward(self, error: Tensor) -> None:  # (S, B)
        """Add d loss / d parameters to the stack's gradient, from d loss / d derivative."""
        upstream = error.unsqueeze(2)
        for layer in reversed(range(len(self._weights))):
            self._gradients[layer].mT.add_(multiply(upstream.mT, self._fed[layer]))
            if layer:
                upstream = multiply(upstream, self._weights[layer].mT)
                upstream.mul_(self._active[layer - 1])


def gradient_of(parameter: Tensor) -> Tensor:
    """Return the view of the stack's gradient that belongs to a parameter."""
    assert parameter.grad is not None, "the gradients of a stack are views that must stay in place"
    return parameter.grad


def _views(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Cut the beginning of a vector into consecutive views of the given shapes."""
    sizes = [one.numel() for one in like]
    pieces = torch.split(flat[: sum(sizes)], sizes)
    return [piece.view(one.shape) for piece, one in zip(pieces, like, strict=True)]

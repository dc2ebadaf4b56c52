"""Networks that are adapted after their training, with gradients by autograd.

`Parameters` are M networks of the same sizes: weights (M, in, out) and biases (M, 1, out) in turn.
Methods that adapt networks to single designs do so for one seed after the other, so that nothing
depends on the seeds beside it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from ddobench.models.networks import StackedMLP
from ddobench.models.tensors import affine

Parameters = list[Tensor]


def parameters_of(networks: Sequence[StackedMLP], seed: int) -> Parameters:
    """Return a copy of the networks of a seed, one after the other along M."""
    layers = zip(*[in_turn(network) for network in networks], strict=True)
    return [torch.stack([one[seed].detach() for one in layer]) for layer in layers]


@torch.no_grad()
def put_back(networks: Sequence[StackedMLP], seed: int, parameters: Parameters) -> None:
    """Replace the networks of a seed."""
    for member, network in enumerate(networks):
        for target, source in zip(in_turn(network), parameters, strict=True):
            target[seed] = source[member]


def feed(
    parameters: Parameters, x: Tensor, activate: Callable[[Tensor], Tensor] = torch.relu
) -> Tensor:  # (M, B, in) -> (M, B)
    """Return the single output of each network on its own rows."""
    for place in range(0, len(parameters), 2):
        x = affine(parameters[place + 1], x, parameters[place])
        if place + 2 < len(parameters):
            x = activate(x)
    return x.squeeze(2)


def step(parameters: Parameters, slopes: Sequence[Tensor], rate: float) -> Parameters:
    """Return the parameters after a plain step down the slopes."""
    pairs = zip(parameters, slopes, strict=True)
    return [torch.sub(one, slope, alpha=rate) for one, slope in pairs]


def lengths(tensors: Sequence[Tensor]) -> list[Tensor]:  # (M, in, out) each -> (M, 1, 1) each
    """Return the length of each tensor, network by network."""
    return [one.square().sum(dim=(1, 2), keepdim=True).sqrt() for one in tensors]


def step_gradient(
    parameters: Parameters,
    loss: Tensor,  # (M,) on the parameters
    rate: float,
    afterwards: Callable[[Parameters], Tensor],
    setting: Tensor,
) -> Tensor:
    """Return the gradient in `setting` of the loss (M,) `afterwards`, one step along `loss`.

    The step is a plain one of the given rate; the loss before it depends on the setting.
    """
    slopes = torch.autograd.grad(loss.sum(), parameters, create_graph=True)
    stepped = step(parameters, slopes, rate)
    (gradient,) = torch.autograd.grad(afterwards(stepped).sum(), [setting], retain_graph=True)
    return gradient


def in_turn(network: StackedMLP) -> list[Tensor]:
    """Return the weights (S, in, out) and biases (S, 1, out) of a stack, not copied."""
    pairs = zip(network.weights, network.biases, strict=True)
    return [one for pair in pairs for one in pair]

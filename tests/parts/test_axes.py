"""Rotations of a latent space."""

import torch

from ddobench.parts.axes import Identity, Random
from ddobench.rng import Streams

Z, Y = torch.zeros(2, 10, 4, dtype=torch.float64), torch.zeros(2, 10, dtype=torch.float64)


def test_identity_axes_turn_nothing() -> None:
    axes = Identity()
    assert axes.find(Z, Y, Streams([0, 1], "test")) is None  # type: ignore[func-returns-value]


def test_random_axes_are_rotations_of_each_seeds_own() -> None:
    turned = Random().find(Z, Y, Streams([0, 1], "test"))
    eye = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    torch.testing.assert_close(turned @ turned.mT, eye)
    assert not torch.allclose(turned[0], turned[1])
    again = Random().find(Z[:1], Y[:1], Streams([1], "test"))
    assert torch.equal(again[0], turned[1])


def test_random_axes_prefer_no_direction() -> None:
    z = torch.zeros(400, 1, 3, dtype=torch.float64)
    turned = Random().find(z, z[..., 0], Streams(range(400), "test"))
    assert turned.mean(dim=0).abs().max() < 0.1  # a fixed sign of Q's columns would show here
    assert (turned.square().mean(dim=0) - 1 / 3).abs().max() < 0.05

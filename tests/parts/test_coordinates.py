"""Coordinates of designs, and the rotations of a latent space."""

from typing import ClassVar

import torch

from ddobench.contracts import Dataset, Space
from ddobench.parts.coordinates import Coordinates, OwnAxes, RandomAxes
from ddobench.parts.latents import PCA, Codes, Identity
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache

SEEDS = (0, 1)
RNG = Streams(SEEDS, "test")
Z, Y = torch.zeros(2, 10, 4, dtype=torch.float64), torch.zeros(2, 10, dtype=torch.float64)


def make_data() -> Dataset:
    x = Streams(SEEDS, "test/x").normal(300, 4, dtype=torch.float64) * 3 + 1
    return Dataset(x, x[..., 0], Space(4))


class Blurred(Identity):
    """Codes with a known uncertainty."""

    standardised: ClassVar[bool] = False

    def encode(self, x: torch.Tensor) -> Codes:
        mean = super().encode(x).mean
        return Codes(mean, torch.full_like(mean, 0.5))


def test_coordinates_lead_back_to_the_designs() -> None:
    data = make_data()
    for axes in (OwnAxes(), RandomAxes()):
        latent = PCA()
        latent.fit(data, RNG, ArrayCache())
        coordinates = Coordinates.draw(latent, axes, data.x, data.y, RNG)
        torch.testing.assert_close(coordinates.decode(coordinates.encode(data.x)), data.x)
        torch.testing.assert_close(coordinates.encode(data.x), coordinates.z)


def test_random_axes_turn_the_coordinates_and_keep_their_lengths() -> None:
    data = make_data()
    latent = Identity()
    latent.fit(data, RNG, ArrayCache())
    plain = Coordinates.draw(latent, OwnAxes(), data.x, data.y, RNG)
    turned = Coordinates.draw(latent, RandomAxes(), data.x, data.y, RNG)
    assert not torch.allclose(plain.z, turned.z)
    torch.testing.assert_close(plain.z.norm(dim=2), turned.z.norm(dim=2))


def test_uncertain_codes_are_drawn_then_standardised() -> None:
    data = make_data()
    latent = Blurred()
    latent.fit(data, RNG, ArrayCache())
    coordinates = Coordinates.draw(latent, OwnAxes(), data.x, data.y, RNG)
    torch.testing.assert_close(
        coordinates.z.std(dim=1, correction=0), torch.ones_like(coordinates.z[:, 0])
    )
    assert coordinates.visible.sd is not None
    torch.testing.assert_close(
        coordinates.visible.sd * coordinates.scale.scale, torch.full_like(data.x, 0.5)
    )
    away = (
        coordinates.z - coordinates.visible.mean
    ) / coordinates.visible.sd  # standard normal noise
    assert abs(float(away.std()) - 1) < 0.05


def test_own_axes_are_not_rotated() -> None:
    axes = OwnAxes()
    assert axes.find(Z, Y, Streams([0, 1], "test")) is None  # type: ignore[func-returns-value]


def test_random_axes_are_rotations_of_each_seeds_own() -> None:
    turned = RandomAxes().find(Z, Y, Streams([0, 1], "test"))
    eye = torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    torch.testing.assert_close(turned @ turned.mT, eye)
    assert not torch.allclose(turned[0], turned[1])
    again = RandomAxes().find(Z[:1], Y[:1], Streams([1], "test"))
    assert torch.equal(again[0], turned[1])


def test_random_axes_prefer_no_direction() -> None:
    z = torch.zeros(400, 1, 3, dtype=torch.float64)
    turned = RandomAxes().find(z, z[..., 0], Streams(range(400), "test"))
    assert turned.mean(dim=0).abs().max() < 0.1  # a fixed sign of Q's columns would show here
    assert (turned.square().mean(dim=0) - 1 / 3).abs().max() < 0.05

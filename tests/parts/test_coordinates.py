"""Charts: standardised, rotated coordinates and the way back."""

from typing import ClassVar

import torch

from ddobench.contracts import Dataset, Space
from ddobench.parts.axes import Identity as PlainAxes
from ddobench.parts.axes import Random as RandomAxes
from ddobench.parts.coordinates import Coordinates
from ddobench.parts.latents import PCA, Codes, Identity
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache

SEEDS = (0, 1)
RNG = Streams(SEEDS, "test")


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
    for axes in (PlainAxes(), RandomAxes()):
        latent = PCA()
        latent.fit(data, RNG, ArrayCache())
        coordinates = Coordinates.draw(latent, axes, data.x, data.y, RNG)
        torch.testing.assert_close(coordinates.decode(coordinates.encode(data.x)), data.x)
        torch.testing.assert_close(coordinates.encode(data.x), coordinates.z)


def test_random_axes_turn_the_coordinates_and_keep_their_lengths() -> None:
    data = make_data()
    latent = Identity()
    latent.fit(data, RNG, ArrayCache())
    plain = Coordinates.draw(latent, PlainAxes(), data.x, data.y, RNG)
    turned = Coordinates.draw(latent, RandomAxes(), data.x, data.y, RNG)
    assert not torch.allclose(plain.z, turned.z)
    torch.testing.assert_close(plain.z.norm(dim=2), turned.z.norm(dim=2))


def test_uncertain_codes_are_drawn_then_standardised() -> None:
    data = make_data()
    latent = Blurred()
    latent.fit(data, RNG, ArrayCache())
    coordinates = Coordinates.draw(latent, PlainAxes(), data.x, data.y, RNG)
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

"""Charts: standardised, rotated coordinates and the way back."""

from typing import ClassVar

import torch

from ddobench.axes import Identity as PlainAxes
from ddobench.axes import Random as RandomAxes
from ddobench.chart import Chart
from ddobench.contracts import Dataset, Space
from ddobench.latents import PCA, Codes, Identity
from ddobench.memory import Memory
from ddobench.streams import Streams

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
        latent.fit(data, RNG, Memory())
        chart = Chart.draw(latent, axes, data.x, data.y, RNG)
        torch.testing.assert_close(chart.decode(chart.encode(data.x)), data.x)
        torch.testing.assert_close(chart.encode(data.x), chart.z)


def test_random_axes_turn_the_coordinates_and_keep_their_lengths() -> None:
    data = make_data()
    latent = Identity()
    latent.fit(data, RNG, Memory())
    plain = Chart.draw(latent, PlainAxes(), data.x, data.y, RNG)
    turned = Chart.draw(latent, RandomAxes(), data.x, data.y, RNG)
    assert not torch.allclose(plain.z, turned.z)
    torch.testing.assert_close(plain.z.norm(dim=2), turned.z.norm(dim=2))


def test_uncertain_codes_are_drawn_then_standardised() -> None:
    data = make_data()
    latent = Blurred()
    latent.fit(data, RNG, Memory())
    chart = Chart.draw(latent, PlainAxes(), data.x, data.y, RNG)
    torch.testing.assert_close(chart.z.std(dim=1, correction=0), torch.ones_like(chart.z[:, 0]))
    assert chart.visible.sd is not None
    torch.testing.assert_close(chart.visible.sd * chart.scale.scale, torch.full_like(data.x, 0.5))
    away = (chart.z - chart.visible.mean) / chart.visible.sd  # standard normal noise
    assert abs(float(away.std()) - 1) < 0.05

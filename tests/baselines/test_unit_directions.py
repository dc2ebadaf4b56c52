"""What methods made of units tell of the directions along which these look."""

from dataclasses import replace

import pytest
import torch

from ddobench.baselines.auto import Auto
from ddobench.baselines.naive import Naive
from ddobench.baselines.units import LowRankUnits
from ddobench.contracts import Dataset, Method
from ddobench.models.units import Gaussian, Network, Units, UnitStack
from ddobench.parts.axes import Identity as PlainAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.hop import Hop
from ddobench.parts.latents import Identity, Latent, Scores
from ddobench.parts.pipeline import Pipeline
from ddobench.rng import Streams
from ddobench.tasks.rbf import RBF
from tests.support.lineups import ga

SEEDS = (0, 1)


def small_units(latent: Latent, form: str = "gaussian") -> Pipeline:
    """Return a method of few units that are hardly trained."""
    surrogate = LowRankUnits(
        form=form, restarts=1, rounds=1, first_units=8, first_steps=20, refit_steps=20,
        polish_steps=20, use=-100.0, gain=100.0,
    )  # fmt: skip
    return Pipeline(
        latent=latent, axes=PlainAxes(), graph=Complete(), surrogate=surrogate,
        search=Hop(steps=2, hops=1), device="cpu",
    )  # fmt: skip


def table() -> Dataset:
    """Return the visible table of two seeds."""
    return RBF(d=5, n=200).problem(SEEDS).data


@pytest.mark.parametrize("form", ["gaussian", "network"])
@pytest.mark.parametrize("latent", [Identity(), Scores()])
def test_directions_are_told_in_the_coordinates_of_the_codes(latent: Latent, form: str) -> None:
    data, method = table(), small_units(latent, form)
    method.fit(data, Streams(SEEDS, "fit"))
    seen = method.insight(data.x[:, :50])
    assert len(seen) == len(SEEDS)
    for one, told in zip(seen, method.diagnostics(), strict=True):
        assert one is not None
        assert one.directions is not None
        assert len(one.directions) == told["units"] > 0
        assert one.directions.shape[2] == one.codes.shape[1]


def test_a_model_without_units_tells_of_no_directions() -> None:
    data, method = table(), ga()
    method.fit(data, Streams(SEEDS, "fit"))
    assert method.insight(data.x) == []


def test_auto_tells_of_each_seed_what_its_own_choice_sees() -> None:
    data = table()
    candidates: dict[str, Method] = {"units": small_units(Scores())}
    auto = Auto(candidates=candidates)
    auto.fit(data, Streams(SEEDS, "fit"))
    units = small_units(Scores())
    units.fit(replace(data, x=data.x[:1], y=data.y[:1]), Streams(SEEDS[:1], "fit"))
    naive = Naive()
    naive.fit(data, Streams(SEEDS, "fit"))
    auto._teams = [([1], naive), ([0], units)]
    first, second = auto.insight(data.x)
    assert second is None
    assert first is not None
    (alone,) = units.insight(data.x[:1])
    assert alone is not None
    assert torch.equal(first.codes, alone.codes)


def test_directions_of_a_network_are_those_its_values_depend_on_however_it_is_written() -> None:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(4, 3, 6, generator=generator)  # (U, R, e + 1)
    inner, outer = (torch.randn(*size, generator=generator) for size in ((4, 2, 4), (4, 2)))
    change = torch.randn(4, 3, 3, generator=generator)
    other = torch.cat([inner[..., :-1] @ torch.linalg.inv(change), inner[..., -1:]], dim=2)
    form, base = Network(2), torch.zeros(())
    one, same = Units(weight, (inner, outer), base), Units(change @ weight, (other, outer), base)
    z = torch.cat([torch.randn(7, 5, generator=generator), torch.ones(7, 1)], dim=1)[None]
    first, second = (UnitStack([units], form).value(z) for units in (one, same))
    assert torch.allclose(first, second, atol=1e-4)
    assert torch.allclose(form.directions(one), form.directions(same), atol=1e-3)
    assert torch.equal(Gaussian().directions(one), weight[..., :-1])

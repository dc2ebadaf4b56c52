"""Tangent: a search that climbs along the surface of the rows and never leaves it."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.parts.search import Ascent, AscentStep, Search
from ddobench.parts.surrogates import Model
from ddobench.parts.tangent import Tangent
from ddobench.planes import LocalPlanes
from ddobench.rng import Streams

SEEDS = [1, 2]
FEW = 8  # designs


class Slope(Model):
    """The first coordinate, and three times that off the surface."""

    def value(self, z: Tensor) -> Tensor:
        return z[..., 0] + 3 * z[..., 2]

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.value(z), torch.tensor([1.0, 0.0, 3.0]).to(z).expand_as(z)


class Steps(Slope):
    """The same without gradients."""

    value_and_gradient = Model.value_and_gradient


def make_rows(seeds: Sequence[int] = SEEDS) -> Tensor:  # (S, 400, 3)
    """Return rows on a bent sheet in three dimensions."""
    flat = Streams(seeds, "test/rows").uniform(400, 2, dtype=torch.float64) * 4 - 2
    bent = (flat[..., :1] ** 2 - 1) / 4
    return torch.cat([flat, bent], dim=2)


def search(
    how: Search, model: Model, rows: Tensor, seeds: Sequence[int] = SEEDS
) -> list[AscentStep]:
    how.prepare(rows, lambda x: x, lambda z: z)
    failures: dict[int, str] = {}
    steps = list(how.run(rows[:, :FEW], model, Streams(seeds, "test/search"), failures))
    assert not failures
    return steps


def off_sheet(z: Tensor) -> Tensor:
    return (z[..., 2] - (z[..., 0] ** 2 - 1) / 4).abs()


@pytest.mark.parametrize("model", [Slope(), Steps()])
def test_designs_climb_along_the_surface_with_or_without_gradients(model: Model) -> None:
    rows = make_rows()
    first, *_, last = search(Tangent(steps=60), model, rows)
    assert (last.value >= first.value).all()
    assert (last.value - first.value).mean() > 0.5
    assert off_sheet(last.x).max() < 0.1
    for seed in range(len(SEEDS)):
        nearest = LocalPlanes.of(rows[seed].numpy()).nearest(last.x[seed].numpy())
        assert nearest.max() <= 0.5 + 1e-9


def test_plain_ascent_leaves_that_surface() -> None:
    rows = make_rows()
    *_, last = search(Ascent(steps=60), Slope(), rows)
    assert off_sheet(last.x).min() > 1.0


def test_a_seed_does_not_depend_on_its_companions() -> None:
    rows = make_rows()
    together = search(Tangent(steps=10), Slope(), rows)[-1]
    alone = search(Tangent(steps=10), Slope(), rows[1:], SEEDS[1:])[-1]
    assert torch.equal(together.x[1], alone.x[0])


def test_iterations_are_recorded_as_asked() -> None:
    steps = search(Tangent(steps=7, record_every=3), Slope(), make_rows())
    assert [step.iteration for step in steps] == [0, 3, 6, 7]
    assert all(np.isfinite(step.x.numpy()).all() for step in steps)


def test_a_model_without_gradients_fails_in_searches_that_need_them() -> None:
    failures: dict[int, str] = {}
    list(Ascent(steps=1).run(make_rows()[:, :FEW], Steps(), Streams(SEEDS, "test"), failures))
    assert "was not finite" in failures[0]


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.limit must be positive"):
        Tangent(limit=0.0)
    with pytest.raises(UsageError, match=r"search\.variance must be a share"):
        Tangent(variance=1.5)
    with pytest.raises(UsageError, match=r"search\.begin_at"):
        Tangent(begin_at="middle")

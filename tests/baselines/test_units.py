"""Units: what is a sum of few low-rank bumps is found, what is not used goes."""

from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.unit_training import Table
from ddobench.baselines.units import LowRankUnits, UnitModel
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.units import Gaussian, Units
from ddobench.parts.hop import Hop
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.rng import Streams
from tests.support.lineups import assemble, ga

SEEDS = [0, 1]
QUICK: dict[str, Any] = {
    "restarts": 2, "rounds": 3, "rank": 2, "first_units": 8, "more_units": 4, "first_steps": 600,
    "more_steps": 300, "refit_steps": 300, "polish_steps": 300,
}  # fmt: skip


def bumps(x: Tensor) -> Tensor:  # (..., 4) -> (...)
    """Two bumps of two turned directions each."""
    turn = torch.tensor([[0.6, 0.8, 0.0, 0.0], [-0.8, 0.6, 0.0, 0.0], [0.0, 0.0, 0.6, 0.8]])
    u = x @ turn.to(x.dtype).T
    one = torch.exp(-(u[..., 0] - 1).square() - (u[..., 1] - 1).square())
    return one + 2 * torch.exp(-(u[..., 1] + 1).square() - (u[..., 2] + 1).square())


def make_data(seeds: list[int] = SEEDS, n: int = 600) -> Dataset:
    x = Streams(seeds, "test/x").normal(n, 4, dtype=torch.float64)
    return Dataset(x=x, y=bumps(x), space=Space(4))


def fit(seeds: list[int] = SEEDS, **settings: Any) -> Pipeline:
    method = assemble(LowRankUnits(**{**QUICK, **settings}), Hop(hops=4))
    method.fit(make_data(seeds), Streams(seeds, "method/fit"))
    return method


@pytest.mark.parametrize(("form", "rounds"), [("gaussian", 3), ("network", 1)])
def test_a_sum_of_bumps_is_learned_and_climbed(form: str, rounds: int) -> None:
    method = fit(form=form, rounds=rounds, restarts=1)
    told = method.diagnostics()
    assert all(one["held_out_r2"] > 0.8 for one in told)
    *_, last = method.propose(make_data().x[:, :64], Streams(SEEDS, "method/propose"))
    best = bumps(last.designs).mean(dim=1)  # (S,)
    assert (best > make_data().y.mean(dim=1) + make_data().y.std(dim=1)).all()


def test_the_restart_with_the_lowest_held_out_error_is_kept() -> None:
    model = fit(restarts=3)._model
    assert isinstance(model, UnitModel)
    for one, errors in zip(model.chosen, model.errors, strict=True):
        assert len(errors) == 3
        assert one.error == min(errors)


def test_more_restarts_leave_the_first_as_it_was() -> None:
    one, more = fit(restarts=1)._model, fit(restarts=2)._model
    assert isinstance(one, UnitModel)
    assert isinstance(more, UnitModel)
    for alone, among in zip(one.errors, more.errors, strict=True):
        assert alone[0] == pytest.approx(among[0], rel=0.2)


def test_a_unit_without_use_on_held_out_rows_goes() -> None:
    z = torch.cat([make_data().x.float(), torch.ones(2, 600, 1)], dim=2)
    useful = Units(torch.tensor([[[1.0, 0, 0, 0, 0]]]), (torch.ones(1),), torch.zeros(()))
    useless = Units(torch.tensor([[[0.0, 1, 0, 0, 0]]]), (torch.full((1,), 0.2),), torch.zeros(()))
    y = torch.exp(-z[..., 0].square())
    rows = torch.arange(600).expand(2, -1)
    table = Table(z, y, trained=rows[:, 300:], held_out=rows[:, :300])
    kept = table.prune(useful.join(useless), 0, 2.0, Gaussian())
    assert len(kept) == 1
    torch.testing.assert_close(kept.weight, useful.weight)


def test_a_leap_brings_a_unit_to_its_peak() -> None:
    model = fit()._model
    assert isinstance(model, UnitModel)
    z = torch.zeros(2, 50, 4, dtype=torch.float64)
    leapt = model.leap(z, 0, 1e-6, Streams(SEEDS, "test"))
    for seed, one in enumerate(model.chosen):
        weight = one.units.weight.double()  # (U, R, e + 1)
        rows = torch.cat([leapt[seed], torch.ones(50, 1, dtype=torch.float64)], dim=1)
        distance = torch.einsum("kre,ne->nkr", weight, rows).square().sum(dim=2)  # (n, U)
        assert (distance.amin(dim=1) < 1e-3).all()


def test_a_search_that_leaps_declines_a_model_that_cannot() -> None:
    mixed = assemble(ga().surrogate, Hop())
    reason = mixed.declines(make_data())
    assert reason is not None
    assert "use surrogate=units" in reason
    assert assemble(LowRankUnits(**QUICK), Ascent()).declines(make_data()) is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "square"}, r"surrogate\.form must be one of gaussian, network"),
        ({"restarts": 0}, r"surrogate\.restarts must be a whole number of at least 1"),
        ({"holdout": 0.0}, r"surrogate\.holdout must be a share"),
        ({"refit_decays": []}, r"surrogate\.refit_decays must name at least one"),
    ],
)
def test_what_cannot_be_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LowRankUnits(**settings)

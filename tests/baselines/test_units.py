"""Units, and the axes, graphs and directions that are read off them."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.baselines.auto import Auto
from ddobench.baselines.naive import Naive
from ddobench.baselines.units import (
    LowRankUnits,
    UnitAxes,
    UnitGraph,
    UnitModel,
    align,
    diagonalise,
    energies,
)
from ddobench.contracts import Dataset, Method, Privileged, Space
from ddobench.errors import UsageError
from ddobench.models.unit_models import Gaussian, Network, Units, UnitStack, UnitTable
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete, GraphInputs
from ddobench.parts.latents import Identity, Latent, Scores
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent, Hop
from ddobench.rng import Streams
from ddobench.tasks.rbf import RBF
from tests.support.lineups import assemble, ga

SEEDS = [0, 1]
QUICK: dict[str, Any] = {
    "restarts": 2, "rounds": 3, "rank": 2, "first_units": 8, "more_units": 4, "first_steps": 600,
    "more_steps": 300, "refit_steps": 300, "polish_steps": 300,
}  # fmt: skip
E = 5
CLIQUES = [(0, 1, 2), (2, 3, 4)]


def bumps(x: Tensor) -> Tensor:  # (..., 4) -> (...)
    """Two bumps of two rotated directions each."""
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
    report = method.diagnostics()
    assert all(one["held_out_r2"] > 0.8 for one in report)
    *_, last = method.propose(make_data().x[:, :64], Streams(SEEDS, "method/propose"))
    best = bumps(last.designs).mean(dim=1)  # (S,)
    assert (best > make_data().y.mean(dim=1) + make_data().y.std(dim=1)).all()


def test_the_restart_with_the_lowest_held_out_error_is_kept() -> None:
    model = fit(restarts=3)._model
    assert isinstance(model, UnitModel)
    for one, errors in zip(model.chosen, model.errors, strict=True):
        assert len(errors) == 3
        assert one.error == min(errors)


def test_more_restarts_do_not_change_the_first() -> None:
    one, more = fit(restarts=1)._model, fit(restarts=2)._model
    assert isinstance(one, UnitModel)
    assert isinstance(more, UnitModel)
    for alone, among in zip(one.errors, more.errors, strict=True):
        assert alone[0] == pytest.approx(among[0], rel=0.2)


def test_a_unit_that_does_not_reduce_the_held_out_error_is_removed() -> None:
    z = torch.cat([make_data().x.float(), torch.ones(2, 600, 1)], dim=2)
    useful = Units(torch.tensor([[[1.0, 0, 0, 0, 0]]]), (torch.ones(1),), torch.zeros(()))
    useless = Units(torch.tensor([[[0.0, 1, 0, 0, 0]]]), (torch.full((1,), 0.2),), torch.zeros(()))
    y = torch.exp(-z[..., 0].square())
    rows = torch.arange(600).expand(2, -1)
    table = UnitTable(z, y, trained=rows[:, 300:], held_out=rows[:, :300])
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
def test_invalid_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        LowRankUnits(**settings)


def make_rotation() -> torch.Tensor:  # (e, e)
    turn: torch.Tensor = torch.linalg.qr(Streams([0], "test/turn").normal(E, E)[0]).Q
    return turn


def make_units(rotation: torch.Tensor) -> Units:
    """Return units with the directions of two cliques, rotated within cliques and as a whole."""
    inner = torch.linalg.qr(Streams([0], "test/inner").normal(2, 3, 3)[0]).Q  # (U, R, R)
    axes = torch.stack([torch.eye(E)[list(clique)] for clique in CLIQUES])  # (U, R, e)
    weight = torch.cat([inner @ axes @ rotation, torch.zeros(2, 3, 1)], dim=2)
    return Units(weight, (torch.ones(2),), torch.zeros(()))


def test_axes_that_units_share_are_found() -> None:
    rotation = make_rotation()
    units = make_units(rotation)
    found = align(units).float()  # z @ found: coordinates along the axes
    turned = Units(torch.cat([units.directions @ found, units.weight[..., -1:]], dim=2),
                   units.shape, units.base)  # fmt: skip
    shares = energies(turned)
    looked = shares > 0.05
    assert looked.sum(axis=1).tolist() == [3, 3]
    assert looked.all(axis=0).sum() == 1  # the variable that both cliques have


def test_matrices_that_commute_become_diagonal() -> None:
    rotation = make_rotation().double().numpy()
    diagonals = np.stack([np.diag(row) for row in np.random.default_rng(0).uniform(size=(3, E))])
    matrices = rotation @ diagonals @ rotation.T
    found = diagonalise(matrices)
    turned = found.T @ matrices @ found
    assert np.abs(turned - turned * np.eye(E)).max() < 1e-5
    np.testing.assert_allclose(found @ found.T, np.eye(E), atol=1e-6)


def test_axes_without_units_are_a_rotation() -> None:
    none = make_units(make_rotation()).take(torch.tensor([False, False]))
    np.testing.assert_allclose(np.abs(align(none).numpy()), np.eye(E), atol=1e-12)


def test_codes_of_the_same_unit_are_joined() -> None:
    graph = UnitGraph(units=LowRankUnits(**QUICK))._read(make_units(torch.eye(E)), E).graph
    assert graph.cliques == tuple(CLIQUES)


def test_axes_and_graph_of_units_are_learned_from_a_table() -> None:
    data = make_data()
    y = (data.y - data.y.mean(dim=1, keepdim=True)) / data.y.std(dim=1, keepdim=True)
    units = LowRankUnits(**QUICK)
    rotation = UnitAxes(units=units).find(data.x, y, Streams([0, 1], "test/axes"))
    z = torch.bmm(data.x, rotation)
    inputs = GraphInputs(z, y, Privileged(), Streams([0, 1], "test/graph"))
    for found in UnitGraph(units=units).discover(inputs):
        assert 1 <= len(found.graph.edges) <= 4  # of 6 pairs; the function has 2


def test_an_invalid_share_is_refused() -> None:
    with pytest.raises(UsageError, match=r"graph\.share must be above 0 and at most 0\.5"):
        UnitGraph(units=LowRankUnits(**QUICK), share=0.6)


def small_units(latent: Latent, form: str = "gaussian") -> Pipeline:
    """Return a method of few units that are hardly trained."""
    surrogate = LowRankUnits(
        form=form, restarts=1, rounds=1, first_units=8, first_steps=20, refit_steps=20,
        polish_steps=20, use=-100.0, gain=100.0,
    )  # fmt: skip
    return Pipeline(
        latent=latent, axes=OwnAxes(), graph=Complete(), surrogate=surrogate,
        search=Hop(steps=2, hops=1), device="cpu",
    )  # fmt: skip


def table() -> Dataset:
    """Return the visible table of two seeds."""
    return RBF(d=5, n=200).problem(SEEDS).data


@pytest.mark.parametrize("form", ["gaussian", "network"])
@pytest.mark.parametrize("latent", [Identity(), Scores()])
def test_directions_are_in_the_coordinates_of_the_codes(latent: Latent, form: str) -> None:
    data, method = table(), small_units(latent, form)
    method.fit(data, Streams(SEEDS, "fit"))
    seen = method.insight(data.x[:, :50])
    assert len(seen) == len(SEEDS)
    for one, report in zip(seen, method.diagnostics(), strict=True):
        assert one is not None
        assert one.directions is not None
        assert len(one.directions) == report["units"] > 0
        assert one.directions.shape[2] == one.codes.shape[1]


def test_a_model_without_units_has_no_directions() -> None:
    data, method = table(), ga()
    method.fit(data, Streams(SEEDS, "fit"))
    assert method.insight(data.x) == []


def test_auto_has_the_insight_of_each_seeds_choice() -> None:
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


def test_directions_of_a_network_do_not_depend_on_its_parametrisation() -> None:
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

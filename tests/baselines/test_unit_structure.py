"""Axes and graphs read off units: the directions that units share become axes, pairs edges."""

import numpy as np
import pytest
import torch

from ddobench.baselines.unit_structure import UnitAxes, UnitGraph, align, diagonalise, energies
from ddobench.baselines.units import LowRankUnits
from ddobench.contracts import Privileged
from ddobench.errors import UsageError
from ddobench.models.units import Units
from ddobench.parts.discovery import GraphInputs
from ddobench.rng import Streams
from tests.baselines.test_units import QUICK, make_data

E = 5
CLIQUES = [(0, 1, 2), (2, 3, 4)]


def make_rotation() -> torch.Tensor:  # (e, e)
    turn: torch.Tensor = torch.linalg.qr(Streams([0], "test/turn").normal(E, E)[0]).Q
    return turn


def make_units(rotation: torch.Tensor) -> Units:
    """Return units that look along the axes of two cliques, turned among themselves and all."""
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


def test_no_unit_no_turn() -> None:
    none = make_units(make_rotation()).take(torch.tensor([False, False]))
    np.testing.assert_allclose(np.abs(align(none).numpy()), np.eye(E), atol=1e-12)


def test_codes_that_a_unit_looks_along_are_joined() -> None:
    graph = UnitGraph(units=LowRankUnits(**QUICK))._read(make_units(torch.eye(E)), E).graph
    assert graph.cliques == tuple(CLIQUES)


def test_both_are_learned_from_a_table() -> None:
    data = make_data()
    y = (data.y - data.y.mean(dim=1, keepdim=True)) / data.y.std(dim=1, keepdim=True)
    units = LowRankUnits(**QUICK)
    rotation = UnitAxes(units=units).find(data.x, y, Streams([0, 1], "test/axes"))
    z = torch.bmm(data.x, rotation)
    inputs = GraphInputs(z, y, Privileged(), Streams([0, 1], "test/graph"))
    for found in UnitGraph(units=units).discover(inputs):
        assert 1 <= len(found.graph.edges) <= 4  # of 6 pairs; the function has 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match=r"graph\.share must be above 0 and at most 0\.5"):
        UnitGraph(units=LowRankUnits(**QUICK), share=0.6)

"""The optimum of every form: valid bounds, and no ascent is higher."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch import Tensor

from ddobench.exact.bounding import TOLERANCE, Cells, Landscape, Peak
from ddobench.exact.boxes import Box
from ddobench.exact.families import choose_family
from ddobench.exact.optimum import find_peak
from ddobench.exact.ridges import Ridge
from ddobench.exact.terms import (
    TERMS,
    Cauchy,
    CliqueSum,
    Gaussian,
    Laplace,
    Network,
    NetworkSum,
    Radial,
    RBFSum,
    draw_networks,
    draw_rbf,
)
from ddobench.rng import Stream

GRAPHS = [
    ("chain", None, None, 15),
    ("chain", 3, 2, 9),
    ("ring", None, None, 8),
    ("star", None, None, 8),
    ("grid", None, None, 8),
    ("random", None, None, 9),
]
OTHERS = [bump for bump in TERMS if bump != "gaussian"]  # which has tests of its own
PLAIN: dict[str, Callable[[Tensor], Tensor]] = {  # of differences to the centre, (K, size) -> (K,)
    "laplace": lambda away: torch.exp(-away.abs().sum(dim=1)),
    "cauchy": lambda away: 1.0 / (1.0 + 2.0 * (away**2).sum(dim=1)),
}


def draw(
    bump: str, name: str, d: int, seed: int, size: int | None = None, over: int | None = None
) -> CliqueSum:
    stream = Stream(seed, "test")
    cliques = choose_family(name, size, over).draw(d, stream.child("graph"))
    return TERMS[bump].draw(d, cliques, stream)


def plain_terms(bump: str, f: CliqueSum, x: Tensor) -> Tensor:  # (K, d) -> (K, C)
    """Return the terms of f directly from the formula."""
    terms = []
    for c, clique in enumerate(f.cliques):
        own = x[:, list(clique)]  # (K, size)
        if isinstance(f, RBFSum):
            terms.append(f.weights[c] * PLAIN[bump](own - f.centres[c]))
            continue
        network = f.networks[c]
        output = torch.tanh(own @ network.inner.T + network.shift) @ network.outer
        factor = 1.0 / (1.0 + torch.exp(-output))
        terms.append(f.weights[c] * factor * torch.exp(-(own**2).sum(dim=1) / 4.0))
    return torch.stack(terms, dim=1)


def starts(f: CliqueSum, count: int, seed: int) -> Tensor:  # (2 count, d)
    """Return points drawn as designs are, and as many with every variable at one of its centres."""
    rng = np.random.default_rng(seed)
    drawn = rng.normal(size=(2 * count, f.d))
    if isinstance(f, RBFSum):
        for clique, centre in zip(f.cliques, f.centres, strict=True):
            for variable, middle in zip(clique, centre.tolist(), strict=True):
                taken = rng.random(count) < 0.6
                drawn[count:, variable][taken] = middle
    return torch.from_numpy(drawn)


def climb(bump: str, f: CliqueSum, begin: Tensor) -> Tensor:  # (K, d) -> (K,)
    """Return the heights that L-BFGS reaches from all points at once."""

    def fall(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.from_numpy(flat.copy()).reshape(begin.shape).requires_grad_()
        total = -plain_terms(bump, f, x).sum()
        (slope,) = torch.autograd.grad(total, x)
        return float(total.detach()), slope.numpy().ravel()

    found = minimize(
        fall, begin.numpy().ravel(), jac=True, method="L-BFGS-B", options={"maxiter": 300}
    )
    return f(torch.from_numpy(found.x).reshape(begin.shape))


def assert_certified(peak: Peak, f: CliqueSum) -> None:
    assert 0.0 <= peak.gap <= TOLERANCE * peak.value
    assert float(f(torch.from_numpy(peak.x)[None])) == pytest.approx(peak.value, rel=1e-12)


@pytest.mark.parametrize("bump", OTHERS)
def test_the_values_are_those_of_the_formula(bump: str) -> None:
    f = draw(bump, "chain", 9, 0)
    x = starts(f, 20, 0)
    torch.testing.assert_close(f(x), plain_terms(bump, f, x).sum(dim=1), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("bump", TERMS)
def test_a_value_is_zero_infinitely_far_away_and_nan_for_nan(bump: str) -> None:
    f = draw(bump, "chain", 5, 0)
    x = torch.zeros(4, 5, dtype=torch.float64)
    x[0], x[1], x[2, 1] = torch.inf, 1e200, torch.nan
    x[0, ::2] = -torch.inf
    y = f(x)
    assert y[:2].tolist() == pytest.approx([0.0, 0.0], abs=1e-300)
    assert y.isnan().tolist() == [False, False, True, False]


@pytest.mark.bits
@pytest.mark.parametrize("bump", TERMS)
def test_a_value_does_not_depend_on_the_number_of_designs(bump: str) -> None:
    f = draw(bump, "chain", 9, 0)
    x = starts(f, 50, 0)
    assert torch.equal(f(x)[:7], f(x[:7]))


def test_forms_share_their_centres_and_all_share_their_weights() -> None:
    sums = [draw(bump, "chain", 9, 0) for bump in TERMS]
    assert all(torch.equal(f.weights, sums[0].weights) for f in sums)
    bumps = [torch.cat(f.centres) for f in sums if isinstance(f, RBFSum)]
    assert len(bumps) == 3
    assert all(torch.equal(centres, bumps[0]) for centres in bumps)


@pytest.mark.parametrize(("name", "size", "over", "d"), GRAPHS)
@pytest.mark.parametrize("bump", OTHERS)
def test_no_ascent_passes_the_peak(
    bump: str, name: str, size: int | None, over: int | None, d: int
) -> None:
    f = draw(bump, name, d, 0, size, over)
    peak = find_peak(f)
    assert_certified(peak, f)
    reached = climb(bump, f, starts(f, 40, 0))
    assert float(reached.max()) <= peak.value + peak.gap + 1e-13


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bump", ["cauchy", "network"])
def test_many_ascents_reach_the_peak_of_a_small_function(bump: str, seed: int) -> None:
    f = draw(bump, "chain", 5, seed)
    reached = climb(bump, f, starts(f, 150, seed))
    assert float(reached.max()) == pytest.approx(find_peak(f).value, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("bump", OTHERS)
def test_the_peak_of_a_long_chain_is_certified(bump: str) -> None:
    f = draw(bump, "chain", 41, 3)
    peak = find_peak(f)
    assert_certified(peak, f)
    assert float(climb(bump, f, starts(f, 20, 3)).max()) <= peak.value + peak.gap + 1e-13


def sample(land: Landscape, cells: list[Cells], which: list[np.ndarray]) -> tuple[Tensor, Tensor]:
    """Return the middles of the chosen cells of every axis, and a point in each, (K, axes)."""
    rng = np.random.default_rng(0)
    middles = np.stack([c.middles[w] for c, w in zip(cells, which, strict=True)], axis=1)
    halves = np.array([c.half for c in cells])
    away = rng.uniform(-1.0, 1.0, size=middles.shape)
    away[::3] = np.sign(away[::3])  # some at the corners, where the bounds are tight
    assert len(land.intervals) == middles.shape[1]
    return torch.from_numpy(middles), torch.from_numpy(middles + halves * away)


def lone_unit(bend: float) -> NetworkSum:
    """Return a function of one variable through one steep unit, for either term of its bound."""
    network = Network(*(torch.tensor(n).double() for n in ([[3.0]], [-bend], [4.0 * bend])))
    return NetworkSum(1, ((0,),), (network,), torch.ones(1, dtype=torch.float64))


@pytest.mark.parametrize("width", [0.15, 0.5, 1.5, 4.0])
@pytest.mark.parametrize(
    "f",
    [*(draw(bump, "chain", 5, 1) for bump in ("gaussian", "cauchy", "network")),
     lone_unit(0.1), lone_unit(1.0), lone_unit(-2.0)],
    ids=["gaussian", "cauchy", "network", "slight", "bent", "negative"],
)  # fmt: skip
def test_a_bound_on_a_cell_holds_wherever_the_maximiser_is_in_it(
    f: CliqueSum, width: float
) -> None:
    """h(y) + h'(y).(g - y) is at most the bound, for the middle g and any y in the cell."""
    land: Landscape
    if isinstance(f, NetworkSum):
        land = Box(f)
    else:
        assert isinstance(f.form, Radial)
        land = Ridge(f, f.form)
    cells = [Cells.over(low - 1.0, high + 1.0, width) for low, high in land.intervals]
    rng = np.random.default_rng(1)
    which = [rng.integers(len(c.middles), size=600) for c in cells]
    middles, points = sample(land, cells, which)
    y = points.requires_grad_()
    origin = torch.from_numpy(land.lift(np.zeros(len(cells))))
    basis = torch.from_numpy(np.stack([land.lift(e) for e in np.eye(len(cells))])) - origin
    for c, table in enumerate(land.bounds(cells)):
        alone = torch.zeros(len(f.cliques), dtype=torch.float64)
        alone[c] = f.weights[c]
        term = (NetworkSum(f.d, f.cliques, f.networks, alone) if isinstance(f, NetworkSum)
                else RBFSum(f.d, f.cliques, f.centres, alone, f.form))  # fmt: skip
        values = term(origin + y @ basis)  # (K,)
        (slopes,) = torch.autograd.grad(values.sum(), y)
        least = values.detach() + (slopes * (middles - y.detach())).sum(dim=1)
        bound = torch.from_numpy(table.values[0][tuple(which[axis] for axis in table.scope)])
        assert (least <= bound + 1e-14).all()


def test_a_variable_outside_its_box_is_better_at_zero() -> None:
    f = draw("network", "chain", 9, 0)
    assert isinstance(f, NetworkSum)
    far = np.array([high for _, high in Box(f).intervals])
    x = starts(f, 100, 0)
    for variable in range(f.d):
        out, home = x.clone(), x.clone()
        out[:, variable] = torch.sign(x[:, variable]) * far[variable] * 1.001
        home[:, variable] = 0.0
        assert (f(home) > f(out)).all()


@pytest.mark.parametrize("seed", range(3))
def test_nothing_on_a_fine_grid_is_higher_than_the_peak_of_a_network(seed: int) -> None:
    f = draw("network", "chain", 3, seed)
    assert isinstance(f, NetworkSum)
    peak = find_peak(f)
    axes = [torch.linspace(low, high, 81, dtype=torch.float64) for low, high in Box(f).intervals]
    highest = float(f(torch.cartesian_prod(*axes)).max())
    assert highest <= peak.value + 1e-12
    assert peak.value <= highest + 0.02


@pytest.mark.parametrize("name", ["chain", "ring", "star", "random"])
def test_laplace_bumps_peak_at_the_best_of_all_choices_of_centres(name: str) -> None:
    f = draw("laplace", name, 7, 0)
    assert isinstance(f, RBFSum)
    choices: list[list[float]] = [[] for _ in range(7)]
    for clique, centre in zip(f.cliques, f.centres, strict=True):
        for variable, middle in zip(clique, centre.tolist(), strict=True):
            choices[variable].append(middle)
    corners = torch.tensor(list(product(*(own or [0.0] for own in choices))), dtype=torch.float64)
    assert find_peak(f).value == pytest.approx(float(f(corners).max()), rel=1e-14)


@pytest.mark.parametrize("form", [Gaussian(), Laplace(), Cauchy()])
def test_bumps_of_private_variables_peak_at_their_centres(form: Laplace | Radial) -> None:
    f = draw_rbf(6, ((0, 1, 2), (3, 4, 5)), Stream(0, "test"), form)
    peak = find_peak(f)
    assert peak.value == pytest.approx(1.0, rel=1e-14)
    assert peak.x.tolist() == torch.cat(f.centres).tolist()


def test_cliques_of_different_sizes_may_have_networks() -> None:
    f = draw_networks(4, ((0, 1, 2), (2, 3), (3,)), Stream(0, "test"))
    peak = find_peak(f)
    assert_certified(peak, f)
    reached = climb("network", f, starts(f, 60, 0))
    assert float(reached.max()) == pytest.approx(peak.value, rel=1e-6)

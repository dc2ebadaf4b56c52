"""The exact optimum: against brute force on small cases, against many local ascents on large."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from ddobench.exact.bounding import TOLERANCE
from ddobench.exact.families import choose_family
from ddobench.exact.max_sum import Table, Values, max_marginals, maximise
from ddobench.exact.optimum import find_peak
from ddobench.exact.ridges import Ridge
from ddobench.exact.terms import Gaussian, RBFSum, draw_rbf
from ddobench.rng import Stream

LARGE = [
    ("chain", None, None, 61),
    ("chain", 3, 2, 41),
    ("chain", 4, 2, 42),
    ("chain", 7, 3, 43),
    ("path", None, None, 41),
    ("ring", None, None, 41),
    ("star", None, None, 41),
    ("tree", None, None, 41),
    ("grid", None, None, 42),
    ("disconnected", None, None, 42),
    ("random", None, None, 41),
]


def draw(name: str, d: int, seed: int, size: int | None = None, over: int | None = None) -> RBFSum:
    stream = Stream(seed, "test")
    cliques = choose_family(name, size, over).draw(d, stream.child("graph"))
    return draw_rbf(d, cliques, stream, Gaussian())


def plain_value(f: RBFSum, x: Values) -> float:
    """Return f(x) directly from the formula."""
    return sum(
        float(w) * float(np.exp(-np.sum((x[list(c)] - m.numpy()) ** 2)))
        for c, m, w in zip(f.cliques, f.centres, f.weights, strict=True)
    )


def plain_slope(f: RBFSum, x: Values) -> Values:
    slope = np.zeros(f.d)
    for c, m, w in zip(f.cliques, f.centres, f.weights, strict=True):
        away = x[list(c)] - m.numpy()
        slope[list(c)] -= 2.0 * away * float(w) * np.exp(-np.sum(away**2))
    return slope


def climbs(f: RBFSum, starts: int, seed: int) -> list[float]:
    """Return the heights reached from points whose variables are each at one of their centres."""
    choices: list[list[float]] = [[] for _ in range(f.d)]
    for clique, centre in zip(f.cliques, f.centres, strict=True):
        for variable, middle in zip(clique, centre.tolist(), strict=True):
            choices[variable].append(middle)
    rng = np.random.default_rng(seed)

    def fall(x: Values) -> tuple[float, Values]:
        return -plain_value(f, x), -plain_slope(f, x)

    heights = []
    for _ in range(starts):
        start = np.array([own[rng.integers(len(own))] for own in choices], dtype=np.float64)
        heights.append(-float(minimize(fall, start, jac=True, method="L-BFGS-B").fun))
    return heights


def random_tables(seed: int) -> tuple[list[Table], list[int]]:
    rng = np.random.default_rng(seed)
    sizes = [2, 3, 4, 2, 3, 2]
    scopes = [(0, 1), (2, 1), (0, 2), (3,), (4, 3), (), (2, 0, 1)]  # 5 is free of tables
    return [Table(s, rng.standard_normal((2, *(sizes[v] for v in s)))) for s in scopes], sizes


def total(tables: list[Table], seed: int, point: tuple[int, ...]) -> float:
    return float(sum(t.values[(seed, *(point[v] for v in t.scope))] for t in tables))


@pytest.mark.parametrize("seed", range(5))
def test_max_marginals_are_those_of_brute_force(seed: int) -> None:
    tables, sizes = random_tables(seed)
    marginals = max_marginals(tables, sizes)
    points = list(product(*map(range, sizes)))
    for row, variable in product(range(2), range(len(sizes))):
        for value in range(sizes[variable]):
            best = max(total(tables, row, p) for p in points if p[variable] == value)
            assert marginals[variable][row, value] == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_max_sum_is_that_of_brute_force(seed: int) -> None:
    tables, sizes = random_tables(seed)
    values, best = maximise(tables, sizes)
    for row in range(2):
        exact = max(total(tables, row, p) for p in product(*map(range, sizes)))
        assert values[row] == pytest.approx(exact, abs=1e-12)
        assert total(tables, row, tuple(best[row])) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("name", "d", "size", "overlap"),
    [
        ("chain", 7, None, None),
        ("chain", 4, 3, 2),
        ("path", 4, None, None),
        ("ring", 4, None, None),
        ("star", 4, None, None),
        ("grid", 4, None, None),
        ("random", 4, None, None),
    ],
)
def test_nothing_on_a_fine_grid_is_higher_and_something_is_almost_as_high(
    name: str, d: int, size: int | None, overlap: int | None, seed: int
) -> None:
    f = draw(name, d, seed, size, overlap)
    peak = find_peak(f)
    middles: list[list[float]] = [[] for _ in range(d)]
    for clique, centre in zip(f.cliques, f.centres, strict=True):
        for variable, middle in zip(clique, centre.tolist(), strict=True):
            middles[variable].append(middle)
    axes = [
        torch.linspace(min(own), max(own), 31 if len(own) > 1 else 1, dtype=torch.float64)
        for own in middles
    ]
    highest = float(f(torch.cartesian_prod(*axes)).max())
    half = max((max(own) - min(own)) / 60.0 for own in middles)
    assert highest <= peak.value + 1e-12
    assert peak.value <= highest + d * half**2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chain", "path", "ring", "tree", "random"])
def test_many_ascents_reach_the_peak_of_a_middling_function(name: str) -> None:
    f = draw(name, 9, 0)
    assert max(climbs(f, 60, 0)) == pytest.approx(find_peak(f).value, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size", "overlap", "d"), LARGE)
def test_no_ascent_of_a_large_function_passes_the_peak(
    name: str, size: int | None, overlap: int | None, d: int
) -> None:
    f = draw(name, d, 1, size, overlap)
    peak = find_peak(f)
    assert max(climbs(f, 8, 1)) <= peak.value * (1.0 + 1e-12)
    assert peak.gap <= TOLERANCE * peak.value


@pytest.mark.parametrize(("name", "size", "overlap", "d"), LARGE)
def test_the_peak_is_a_stationary_point_with_the_value_it_claims(
    name: str, size: int | None, overlap: int | None, d: int
) -> None:
    f = draw(name, d, 0, size, overlap)
    peak = find_peak(f)
    assert plain_value(f, peak.x) == pytest.approx(peak.value, rel=1e-12)
    assert np.abs(plain_slope(f, peak.x)).max() < 1e-6


def test_two_equal_bumps_far_apart_are_resolved() -> None:
    """The shared variable must choose one of two separate maxima, the one with more weight."""
    f = RBFSum(
        d=3,
        cliques=((0, 1), (1, 2)),
        centres=(torch.tensor([0.0, -3.0]).double(), torch.tensor([3.0, 0.0]).double()),
        weights=torch.tensor([0.499999, 0.500001], dtype=torch.float64),
    )
    peak = find_peak(f)
    assert peak.x[1] == pytest.approx(3.0, abs=1e-6)
    assert peak.value == pytest.approx(0.500001 + 0.499999 * np.exp(-36.0), rel=1e-12)


def test_a_bump_between_the_middles_of_the_first_cells_is_not_missed() -> None:
    """The lower bump of the hub is at the middle of a cell and looks higher there than others."""
    hub = (-3.0, 0.5 * Ridge.coarsest, 3.0)
    f = RBFSum(
        d=4,
        cliques=((0, 1), (0, 2), (0, 3)),
        centres=tuple(torch.tensor([middle, 0.0], dtype=torch.float64) for middle in hub),
        weights=torch.tensor([0.334, 0.333, 0.333], dtype=torch.float64),
    )
    assert find_peak(f).x[0] == pytest.approx(-3.0, abs=1e-2)
    assert find_peak(f).value >= 0.334


def test_a_function_of_private_variables_peaks_at_its_centres() -> None:
    f = draw("disconnected", 12, 0)
    peak = find_peak(f)
    assert peak.value == pytest.approx(1.0, rel=1e-14)
    assert peak.gap == 0.0

"""Promises of the learned quadratic, against enumeration."""

import itertools

import numpy as np
import pytest
import torch

from ddobench.baselines.full_quadratic import FullQuadratic, Quadric, Values, fit_quadric
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.rng import Streams
from ddobench.tasks.quadratic import Quadratic

D = 6
EVERYTHING: Values = np.array(list(itertools.product((0.0, 1.0), repeat=D)))


def random_quadric(seed: int) -> Quadric:
    """Draw a quadratic of bits."""
    rng = np.random.default_rng(seed)
    pairs = np.triu(rng.normal(size=(D, D)), k=1)
    return Quadric(float(rng.normal()), rng.normal(size=D), pairs + pairs.T)


def test_a_quadric_counts_every_pair_once() -> None:
    pairs = np.array([[0.0, 3.0], [3.0, 0.0]])
    model = Quadric(1.0, np.array([10.0, 100.0]), pairs)
    x = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], dtype=float)
    assert model(x).tolist() == [1.0, 11.0, 101.0, 114.0]


@pytest.mark.parametrize("seed", range(3))
def test_enough_rows_give_the_function_back(seed: int) -> None:
    truth = random_quadric(seed)
    rows = np.random.default_rng(seed).integers(0, 2, (100, D)).astype(float)
    found = fit_quadric(rows, truth(rows), ridge=0.0)
    assert found.constant == pytest.approx(truth.constant)
    assert found.linear == pytest.approx(truth.linear)
    assert found.pairs == pytest.approx(truth.pairs)


def test_too_few_rows_are_still_reproduced() -> None:
    truth = random_quadric(0)
    rows = EVERYTHING[::6]
    found = fit_quadric(rows, truth(rows), ridge=0.0)
    assert found(rows) == pytest.approx(truth(rows))
    assert found(EVERYTHING) != pytest.approx(truth(EVERYTHING), rel=1e-3)


def test_a_ridge_shrinks_the_coefficients() -> None:
    truth = random_quadric(0)
    free, tight = (fit_quadric(EVERYTHING, truth(EVERYTHING), ridge) for ridge in (0.0, 100.0))
    assert np.abs(tight.pairs).sum() < np.abs(free.pairs).sum()


@pytest.mark.parametrize("seed", range(5))
def test_a_climb_ends_where_no_flip_helps_and_never_lower_than_it_began(seed: int) -> None:
    model = random_quadric(seed)
    ends = model.climb(EVERYTHING)
    assert (model(ends) >= model(EVERYTHING) - 1e-9).all()
    for bit in range(D):
        flipped = ends.copy()
        flipped[:, bit] = 1 - flipped[:, bit]
        assert (model(flipped) <= model(ends) + 1e-8).all()


@pytest.mark.parametrize("seed", range(5))
def test_climbs_from_everywhere_find_the_best_of_all_designs(seed: int) -> None:
    model = random_quadric(seed)
    assert model(model.climb(EVERYTHING)).max() == pytest.approx(model(EVERYTHING).max())


def test_a_climb_takes_the_steepest_flip_and_leaves_the_starts_alone() -> None:
    model = Quadric(0.0, np.array([1.0, 2.0]), np.array([[0.0, -3.0], [-3.0, 0.0]]))
    starts = np.zeros((1, 2))
    assert model.climb(starts).tolist() == [[0.0, 1.0]]
    assert starts.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("signs", ["ones", "random"])
def test_with_enough_rows_the_toy_is_solved(signs: str) -> None:
    seeds = (0, 1, 2)
    problem = Quadratic(d=8, n=200, signs=signs).problem(seeds)
    method = FullQuadratic()
    method.fit(problem.data, Streams(seeds, "method"))
    (proposal,) = method.propose(problem.data.x, Streams(seeds, "method/propose"))
    assert proposal.designs.shape == (3, 1, 8)
    assert torch.equal(problem.evaluate(proposal.designs)[:, 0], problem.optimum)  # type: ignore[arg-type]
    assert torch.allclose(method.predict(problem.data.x), problem.data.y)


def test_pairs_of_more_than_two_categories_are_fitted_by_tables() -> None:
    sizes = (3, 4, 2)
    everything = torch.tensor(list(itertools.product(*map(range, sizes))), dtype=torch.float64)
    rng = np.random.default_rng(0)
    tables = {pair: rng.normal(size=[sizes[v] for v in pair]) for pair in [(0, 1), (1, 2)]}
    y = sum(torch.from_numpy(table[tuple(everything[:, pair].long().T.numpy())])
            for pair, table in tables.items())  # fmt: skip
    assert isinstance(y, torch.Tensor)
    data = Dataset(everything[None], y[None], Space(3, sizes))
    method = FullQuadratic()
    assert method.declines(data) is None
    method.fit(data, Streams((0,), "method"))
    assert torch.allclose(method.predict(data.x), data.y)
    (proposal,) = method.propose(data.x, Streams((0,), "method/propose"))
    assert torch.equal(proposal.designs[0, 0], everything[y.argmax()])


def test_it_accepts_only_categories() -> None:
    x, y = torch.zeros(1, 4, 2), torch.zeros(1, 4)
    method = FullQuadratic()
    for space in (Space(2, (2, 2)), Space(2, (2, 3))):
        assert method.declines(Dataset(x, y, space)) is None
    reason = "full_quadratic works on pairs of categories only"
    assert method.declines(Dataset(x, y, Space(2))) == reason
    many = Dataset(torch.zeros(1, 4, 20), y, Space(20, (20,) * 20))
    assert method.declines(many) == (
        "full_quadratic has 76,000 cells in the tables of all pairs here, and more than 5,000 "
        "cannot be solved for; use method=quadratic_ridge"
    )
    assert method.privileges(Space(2)) == frozenset()


def test_a_negative_ridge_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^method.ridge must be 0 or more, got -0.5$"):
        FullQuadratic(ridge=-0.5)

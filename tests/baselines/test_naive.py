"""Promises of the naive method."""

import torch

from ddobench.baselines.naive import Naive
from ddobench.contracts import Dataset, Space
from ddobench.rng import Streams
from ddobench.tasks.quadratic import Quadratic


def test_the_best_visible_row_of_each_seed_is_proposed_with_its_value() -> None:
    x = torch.tensor([[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]])
    y = torch.tensor([[9.0, 1.0], [2.0, 3.0]])
    method = Naive()
    method.fit(Dataset(x, y, Space(2)), Streams([0, 1], "method"))
    (proposal,) = method.propose(x, Streams([0, 1], "method/propose"))
    assert proposal.designs.tolist() == [[[1.0, 2.0]], [[7.0, 8.0]]]
    assert proposal.predicted is not None
    assert proposal.predicted.tolist() == [[9.0], [3.0]]


def test_its_regret_on_the_toy_grows_with_the_dimension_as_published() -> None:
    seeds = tuple(range(50))
    for d, expected in ((10, 2.3), (20, 7.8), (40, 20.0)):
        problem = Quadratic(d=d, n=100).problem(seeds)
        method = Naive()
        method.fit(problem.data, Streams(seeds, "method"))
        (proposal,) = method.propose(problem.data.x, Streams(seeds, "method/propose"))
        assert problem.optimum is not None
        regret = problem.optimum - problem.evaluate(proposal.designs)[:, 0]
        assert abs(regret.mean() - expected) < 0.6


def test_it_accepts_any_space() -> None:
    x, y = torch.zeros(1, 2, 3), torch.zeros(1, 2)
    for space in (Space(3), Space(3, (2, 4, 2))):
        assert Naive().declines(Dataset(x, y, space)) is None

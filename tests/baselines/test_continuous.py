"""What the methods on raw continuous designs promise beyond the contract."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.baselines.naive import Naive
from ddobench.baselines.random import Random
from ddobench.contracts import Dataset, Method, Proposal, Space
from ddobench.errors import UsageError
from ddobench.parts.surrogates import MLP, NetworkModel
from ddobench.rng import Streams
from tests.support.lineups import QUICK, coms, ga, linear, rwr

ROWS, DESIGNS, D = 120, 20, 4

METHODS: dict[str, Callable[[], Method]] = {
    "ga": ga,
    "ga_ensemble": lambda: ga(ensemble=3, aggregate="lcb"),
    "coms": coms,
    "rwr": rwr,
    "linear": linear,
    "naive": Naive,
    "random": Random,
}
LEARNERS = ["ga", "ga_ensemble", "coms", "rwr"]


def make_data(seeds: list[int]) -> Dataset:
    """Draw designs and a value that is linear up to a bowl, largest at 2, 2, 2, 2."""
    x = Streams(seeds, "test/x").normal(ROWS, D, dtype=torch.float64) * 0.7 + 1.0
    return Dataset(x=x, y=50 - (x - 2).square().sum(dim=2), space=Space(D))


def run(method: Method, seeds: list[int], data: Dataset | None = None) -> list[Proposal]:
    data = make_data(seeds) if data is None else data
    method.fit(data, Streams(seeds, "method"))
    starts = data.x[:, :DESIGNS]
    proposals = list(method.propose(starts, Streams(seeds, "method/propose")))
    assert torch.equal(starts, data.x[:, :DESIGNS]), "the starts are not the method's to change"
    return proposals


def value(x: Tensor) -> Tensor:
    return 50 - (x - 2).square().sum(dim=2)


@pytest.mark.bits
@pytest.mark.parametrize("name", METHODS)
def test_a_seed_does_not_depend_on_other_seeds(name: str) -> None:
    few, many = run(METHODS[name](), [3, 5]), run(METHODS[name](), [1, 3, 5, 7, 8])
    assert len(few) == len(many)
    for one, other in zip(few, many, strict=True):
        assert torch.equal(one.designs[0], other.designs[1])
        assert torch.equal(one.designs[1], other.designs[2])
        if one.predicted is not None and other.predicted is not None:
            assert torch.equal(one.predicted[0], other.predicted[1])


@pytest.mark.parametrize("name", ["ga", "ga_ensemble", "coms", "linear"])
def test_climbing_improves_the_true_value_of_an_easy_function(name: str) -> None:
    proposals = run(METHODS[name](), [1, 2])
    before, after = (
        value(proposals[0].designs).mean(dim=1),
        value(proposals[-1].designs).mean(dim=1),
    )
    assert (after > before + 0.3).all()


@pytest.mark.parametrize("name", [*LEARNERS, "linear"])
def test_the_first_proposal_is_the_starts_and_the_last_comes_after_all_steps(name: str) -> None:
    proposals = run(METHODS[name](), [1, 2])
    torch.testing.assert_close(proposals[0].designs, make_data([1, 2]).x[:, :DESIGNS])
    assert [proposal.iteration for proposal in proposals] == list(range(7))


@pytest.mark.parametrize("name", [*LEARNERS, "linear"])
def test_predictions_go_with_their_designs(name: str) -> None:
    method = METHODS[name]()
    for proposal in run(method, [1, 2]):
        assert proposal.predicted is not None
        again = method.predict(proposal.designs)
        torch.testing.assert_close(again, proposal.predicted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_fit_is_described_for_every_seed(name: str) -> None:
    method = METHODS[name]()
    run(method, [1, 2])
    reports = method.diagnostics()
    assert len(reports) == 2
    for report in reports:
        assert report["held_out_r2"] > 0.2
        assert report["held_out_rank_correlation"] > 0.5
        assert report["training_loss"][-1] < report["training_loss"][0]
        assert len(report["held_out_loss"]) == len(report["held_out_steps"])
        assert len(report["predicted"]) == 7
    assert reports[0]["training_loss"] != reports[1]["training_loss"]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_seed_with_a_broken_table_fails_alone_and_with_a_reason(name: str) -> None:
    healthy = run(METHODS[name](), [1, 2, 3])
    data = make_data([1, 2, 3])
    data.y[1, 7] = torch.nan
    method = METHODS[name]()
    proposals = run(method, [1, 2, 3], data)
    assert list(method.failures()) == [1]
    assert "the loss diverged, nan at step 1 of 80" in method.failures()[1]
    assert torch.equal(proposals[-1].designs[[0, 2]], healthy[-1].designs[[0, 2]])
    assert len(method.diagnostics()) == 3


@pytest.mark.parametrize("name", [*LEARNERS, "linear"])
def test_categorical_designs_are_accepted(name: str) -> None:
    bits = Dataset(x=torch.zeros(1, 5, 3), y=torch.zeros(1, 5), space=Space(3, (2, 2, 2)))
    assert METHODS[name]().declines(bits) is None
    assert METHODS[name]().declines(make_data([1])) is None


@pytest.mark.parametrize("name", ["naive", "random"])
def test_controls_without_a_model_accept_any_designs(name: str) -> None:
    bits = Dataset(x=torch.zeros(1, 5, 3), y=torch.zeros(1, 5), space=Space(3, (2, 2, 2)))
    assert METHODS[name]().declines(bits) is None


def test_random_proposes_the_starts_without_predictions() -> None:
    (proposal,) = run(Random(), [1, 2])
    assert torch.equal(proposal.designs, make_data([1, 2]).x[:, :DESIGNS])
    assert proposal.predicted is None


def test_naive_proposes_the_best_visible_design_of_a_continuous_task() -> None:
    data = make_data([1, 2])
    (proposal,) = run(Naive(), [1, 2])
    assert torch.equal(proposal.designs[:, 0], data.best())


def test_linear_finds_the_slopes_of_a_hyperplane() -> None:
    seeds = [1, 2]
    x = Streams(seeds, "test/x").normal(ROWS, D, dtype=torch.float64)
    slopes = torch.tensor([1.0, -2.0, 0.0, 5.0], dtype=torch.float64)
    data = Dataset(x=x, y=3 + x @ slopes, space=Space(D))
    method = linear(steps=2, ridge=0.0)
    proposals = run(method, seeds, data)
    for proposal in proposals:
        torch.testing.assert_close(proposal.predicted, 3 + proposal.designs @ slopes)
    moved = proposals[1].designs - proposals[0].designs
    sd = x.std(dim=1, correction=0, keepdim=True)
    direction = (slopes * sd**2).expand_as(moved)  # the gradient in standardised units, undone
    cosine = torch.nn.functional.cosine_similarity(moved, direction, dim=-1)
    torch.testing.assert_close(cosine, torch.ones_like(cosine))


def test_the_first_member_of_an_ensemble_is_the_single_network() -> None:
    alone, many = ga(), ga(ensemble=3)
    run(alone, [1, 2])
    run(many, [1, 2])
    assert isinstance(alone._model, NetworkModel)
    assert isinstance(many._model, NetworkModel)
    (lone,), members = alone._model.members, many._model.members
    assert torch.equal(lone.network.flat, members[0].network.flat)
    assert not torch.equal(members[0].network.flat, members[1].network.flat)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"ensemble": 0}, "surrogate.ensemble must be a whole number of at least 1"),
        ({"width": 0}, "surrogate.width must be a whole number of at least 1"),
        ({"aggregate": "median"}, "surrogate.aggregate must be one of mean, min, lcb"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        MLP(training=QUICK, **settings)

"""Tri-mentoring: votes, who learns from them, and labels softened by a literal meta step."""

import pytest
import torch
from torch import Tensor

from ddobench.baselines.tri_mentoring import Mentors, TriMentoring
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.adapting import Parameters, feed
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.surrogates import NetworkModel
from ddobench.rng import Streams
from tests.support.lineups import assemble, quick_mlp

SEEDS, D, MEMBERS = [4, 9], 3, 3


def make_data() -> Dataset:
    x = Streams(SEEDS, "test/x").normal(60, D, dtype=torch.float64)
    return Dataset(x=x, y=x.sin().sum(dim=2), space=Space(D))


def fitted(search: TriMentoring) -> Pipeline:
    method = assemble(quick_mlp(ensemble=MEMBERS), search)
    method.fit(make_data(), Streams(SEEDS, "method"))
    return method


def make_mentors(search: TriMentoring, designs: int = 2) -> Mentors:
    model = fitted(search)._model
    assert isinstance(model, NetworkModel)
    return Mentors(search, model, designs, Streams(SEEDS, "test/mentors"))


def lead(mentors: Mentors, parameters: Parameters, near: Tensor) -> Tensor:  # (D * E, P)
    outputs = feed(parameters, near.repeat_interleave(MEMBERS, dim=0)).detach()
    return outputs[:, mentors.better] - outputs[:, mentors.worse]


def test_only_networks_that_lost_a_vote_learn_and_they_come_closer_to_the_majority() -> None:
    mentors = make_mentors(TriMentoring(neighbours=4, noise=1.0, mentor_rate=1e-5, label_rate=0.0))
    drawn = Streams([1], "test/random networks")
    parameters = [drawn.normal(*one.shape)[0] for one in mentors.copies[0][0]]
    near = Streams([1], "test/near").normal(2, 4, D)[0]
    before = lead(mentors, parameters, near)
    votes = (before > 0).view(2, MEMBERS, -1)
    wrong = (votes != (votes.sum(dim=1, keepdim=True) >= 2)).flatten(0, 1)
    learned = mentors.mentor(parameters, near, mentors.rows[0], mentors.values[0])
    after = lead(mentors, learned, near)
    moved = torch.stack([(new - old).flatten(1).abs().sum(dim=1) for new, old
                         in zip(learned, parameters, strict=True)]).sum(dim=0)  # fmt: skip
    assert wrong.any(dim=1).tolist() == (moved > 0).tolist()
    assert wrong.any()
    share = wrong / wrong.sum(dim=1, keepdim=True).clamp(min=1)
    gained = (share * (after - before) * -before.sign()).sum(dim=1)
    assert (gained[wrong.any(dim=1)] > 0).all()


def test_softening_a_label_follows_the_error_on_visible_rows() -> None:
    plain, soft = TriMentoring(label_rate=0.0), TriMentoring(label_rate=1e4, mentor_rate=1e-2)
    plain.mentor_rate = soft.mentor_rate
    near = Streams([1], "test/near").normal(2, 10, D)[0]
    errors = []
    for search in (plain, soft):
        mentors = make_mentors(search)
        rows, truth = mentors.rows[0], mentors.values[0]
        learned = mentors.mentor(mentors.copies[0][0], near, rows, truth)
        table = rows.expand(len(learned[0]), *rows.shape)
        errors.append((feed(learned, table) - truth).square().mean(dim=1))
    assert (errors[1] <= errors[0] + 1e-7).all()
    assert (errors[1] < errors[0]).any()


def test_without_a_rate_of_mentoring_it_is_the_ascent_of_the_mean() -> None:
    settings = {"steps": 3, "rate": 0.05, "root_d": False, "optimiser": "adam"}
    search = TriMentoring(mentor_rate=0.0, label_rate=0.0, **settings)  # type: ignore[arg-type]
    method = fitted(search)
    x = make_data().x[:, :5].float()
    value, slope = Mentors(search, method._model, 5, Streams(SEEDS, "m"))(x)  # type: ignore[arg-type]
    expected = method._model.value_and_gradient(x)
    torch.testing.assert_close(value, expected[0])
    torch.testing.assert_close(slope, expected[1])


def test_two_networks_cannot_vote() -> None:
    method = assemble(quick_mlp(ensemble=2), TriMentoring())
    assert "three networks that vote" in str(method.declines(make_data()))


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match=r"search\.noise must be 0 or more, got -1"):
        TriMentoring(noise=-1)

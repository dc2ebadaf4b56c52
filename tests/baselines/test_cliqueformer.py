"""Cliqueformer: its cliques, its loss, its ascent."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch.distributions import Normal, kl_divergence

from ddobench.baselines.cliqueformer import Cliqueformer, follow
from ddobench.contracts import Dataset, Privileged, Space
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.models.training import Training
from ddobench.rng import Stream, Streams
from tests.support.catalogue import refusal

RNG = Streams([0], "test")


def make(**settings: Any) -> Cliqueformer:
    training = Training(steps=settings.pop("training_steps", 2), batch=50, rate=3e-3)
    small = {"width": 8, "feed": 16, "blocks": 1, "hidden": 16, "steps": 4, "record_every": 2}
    return Cliqueformer(training=training, device="cpu", **{**small, **settings})


def table() -> Dataset:
    x = Streams([0], "test/x").normal(200, 5, dtype=torch.float64)
    return Dataset(x, x[..., 0] - x[..., 1].square(), Space(5))


def fitted(**settings: Any) -> Cliqueformer:
    method = make(**settings)
    method.fit(table(), RNG)
    return method


def test_the_loss_is_the_published_one() -> None:
    method = fitted(dropout=0.0)
    networks = method._networks.eval()
    x = method._scale.apply(table().x)[0, :9].float()
    y = table().y[0, :9].float()
    ours = method.loss(x, y, 0.5, Stream(0, "test/loss"))

    noise = Stream(0, "test/loss")
    mean, sd = networks["encoder"](x)
    cliques = (mean + sd * noise.normal(*mean.shape))[:, method._members]
    likelihood = Normal(*networks["decoder"](cliques)).log_prob(x).sum(dim=1)  # type: ignore[no-untyped-call]
    error = (networks["regressor"](cliques) - y).square().mean()
    divergence = kl_divergence(Normal(mean, sd), Normal(0.0, 1.0))[:, method._members]  # (B, C, c)
    picked = noise.integers(method._chain.count, 9)
    narrowed = divergence[torch.arange(9), picked].sum(dim=1).mean()
    torch.testing.assert_close(ours, 0.5 * (10 * error + narrowed) - likelihood.mean())


def test_the_shape_of_the_true_cliques_is_used_only_if_told() -> None:
    graph = Graph.from_cliques(5, [(0, 1, 2), (2, 3, 4)])
    known = replace(table(), privileged=Privileged(graphs=(graph,)))
    told = make(told=True)
    assert told.privileges(Space(5)) == {"graph"}
    assert told.declines(known) is None
    told.fit(known, RNG)
    assert told.diagnostics()[0]["clique_chain"] == {"count": 2, "size": 3, "overlap": 1}
    assert make().privileges(Space(5)) == frozenset()
    assert fitted().diagnostics()[0]["clique_chain"] == {"count": 2, "size": 4, "overlap": 1}
    reason = told.declines(table())
    assert reason is not None
    assert reason.startswith("told=true needs a known graph, and this task has none")


def test_designs_climb_the_model_from_where_they_start() -> None:
    method = fitted(training_steps=30, rate=0.05, weight_decay=0.0)
    proposals = list(method.propose(table().x[:, :20], RNG))
    assert [proposal.iteration for proposal in proposals] == [0, 2, 4]
    assert proposals[0].designs.shape == (1, 20, 5)
    first, last = proposals[0].predicted, proposals[-1].predicted
    assert first is not None
    assert last is not None
    assert last.mean() > first.mean()


def test_weight_decay_draws_codes_to_the_prior() -> None:
    starts = table().x[:, :20]
    ends = []
    for decay in (0.0, 50.0):
        method = fitted(weight_decay=decay)
        *_, last = method.propose(starts, RNG)
        ends.append(method._encode_rows(method._standardise(last.designs)))
    assert not torch.allclose(ends[0], ends[1])


def test_the_climbed_copy_follows_with_its_statistics() -> None:
    method = fitted()
    copy, original = method._climbed, method._networks["regressor"]
    follow(copy, original, 1.0)
    for ours, theirs in zip(
        copy.state_dict().values(), original.state_dict().values(), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"overlap": 4}, "overlap must be below method.clique_size, got 4 and 4"),
        ({"width": 6}, "width must be an even number of features for each of method.heads, got 6"),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, int], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        make(**settings)


def test_patience_is_refused() -> None:
    with pytest.raises(UsageError, match=r"patience must be null here, got 3"):
        Cliqueformer(training=Training(patience=3))


def test_attention_between_many_codes_is_declined() -> None:
    reason = refusal("ehrlich", "cliqueformer")  # 16 letters of 32 states
    assert reason == "attention between 496 codes takes too long; it has at most 128"

"""Ensembles by bootstrap: who sees which rows."""

import pytest
import torch

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.training import Split
from ddobench.parts.ensembles import Bootstrap
from ddobench.parts.search import Ascent
from ddobench.parts.surrogates import NetworkModel
from ddobench.rng import Streams
from tests.support.lineups import QUICK, assemble

SEEDS = [1, 2]


def make_bootstrap(**settings: str) -> Bootstrap:
    return Bootstrap(training=QUICK, width=8, ensemble=3, **settings)  # type: ignore[arg-type]


def make_split(n: int = 300) -> Split:
    order = Streams(SEEDS, "test/split").permutation(n)
    return Split(trained=order[:, 30:], held_out=order[:, :30])


def test_a_bootstrap_repeats_rows_and_leaves_a_third_out() -> None:
    split = make_split()
    picked = make_bootstrap().pick_rows(split, Streams(SEEDS, "test/rows"))
    assert picked.trained.shape == split.trained.shape
    for rows, known in zip(picked.trained, split.trained, strict=True):
        assert set(rows.tolist()) <= set(known.tolist())
        assert 0.55 < len(set(rows.tolist())) / len(known) < 0.72  # 1 - 1/e = 0.63


def test_rows_that_are_held_out_are_held_out_from_every_member() -> None:
    split = make_split()
    picked = make_bootstrap().pick_rows(split, Streams(SEEDS, "test/rows"))
    assert torch.equal(picked.held_out, split.held_out)
    assert not set(picked.trained[0].tolist()) & set(split.held_out[0].tolist())


def test_common_rows_are_those_of_all_members() -> None:
    split = make_split()
    assert make_bootstrap(rows="common").pick_rows(split, Streams(SEEDS, "test/rows")) is split


def fitted_losses(rows: str) -> list[torch.Tensor]:
    x = Streams(SEEDS, "test/x").normal(64, 3, dtype=torch.float64)
    data = Dataset(x=x, y=x.sum(dim=2), space=Space(3))
    method = assemble(make_bootstrap(rows=rows), Ascent(steps=2))
    method.fit(data, Streams(SEEDS, "method"))
    assert isinstance(method._model, NetworkModel)
    return [member.history.losses for member in method._model.members]


def test_every_member_has_rows_of_its_own() -> None:
    common, own = fitted_losses("common"), fitted_losses("bootstrap")
    for ours, theirs in zip(own, common, strict=True):
        assert not torch.equal(ours, theirs)
    assert not torch.equal(own[0], own[1])


def test_other_rows_are_refused() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.rows must be one of bootstrap, common"):
        make_bootstrap(rows="half")

"""Parts trained once more: another number is another training, and nothing else is another."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.training import Training
from ddobench.parts.reseeded import ReseededMLP, ReseededVAE
from ddobench.parts.search import Ascent
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache
from tests.support.lineups import QUICK, assemble

SEEDS = (3, 5)
QUICK_VAE = Training(steps=20, batch=7, rate=1e-2)
X = Streams(SEEDS, "test/x").normal(31, 4, dtype=torch.float64)
DATA = Dataset(X, X.sum(dim=2), Space(4))


def decoded(reseed: int, cache: ArrayCache | None = None) -> Tensor:
    """Return what a freshly fitted VAE makes of a few codes."""
    vae = ReseededVAE(dim=2, width=8, training=QUICK_VAE, device="cpu", reseed=reseed)
    vae.fit(DATA, Streams(SEEDS, "method/latent"), cache or ArrayCache())
    return vae.decode(torch.ones(len(SEEDS), 3, 2, dtype=torch.float64))


def test_another_number_is_another_vae_and_the_same_the_same() -> None:
    assert decoded(0).equal(decoded(0))
    assert not decoded(0).equal(decoded(1))


def test_a_remembered_vae_is_that_of_its_own_number(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    first, second = decoded(0, cache), decoded(1, cache)
    assert len([*tmp_path.glob("vae-*")]) == 2
    assert decoded(0, cache).equal(first)
    assert decoded(1, cache).equal(second)
    assert second.equal(decoded(1))


def predicted(reseed: int) -> Tensor:
    """Return what a freshly fitted network makes of a few rows."""
    method = assemble(ReseededMLP(training=QUICK, width=8, reseed=reseed), Ascent(steps=2))
    method.fit(DATA, Streams(SEEDS, "method"))
    values = method.predict(X[:, :5])
    assert values is not None
    return values


def test_another_number_is_another_network_and_the_same_the_same() -> None:
    assert predicted(0).equal(predicted(0))
    assert not predicted(0).equal(predicted(1))


@pytest.mark.parametrize("part", [ReseededVAE, ReseededMLP])
def test_a_number_is_whole_and_not_negative(part: type) -> None:
    settings = {"dim": 2} if part is ReseededVAE else {}
    with pytest.raises(UsageError, match="reseed must be a whole number"):
        part(training=QUICK, reseed=-1, **settings)

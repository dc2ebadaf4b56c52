"""Stitched scores: linear in what lies behind two clusters, and plain scores behind one."""

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.parts.latents import Latent, Scores
from ddobench.parts.stitched import Stitched, cut_in_two
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache

SEEDS = [0, 1]
ROWS, D = 600, 4


def make_hidden(distance: float) -> Tensor:  # (S, N, d)
    hidden = Streams(SEEDS, "test/hidden").normal(ROWS, D, dtype=torch.float64)
    hidden[:, ::2] += distance
    return hidden


def fit(latent: Latent, hidden: Tensor) -> tuple[Dataset, Latent]:
    """Observe hidden coordinates turned and behind a monotone map, and fit a latent to that."""
    turn = torch.linalg.qr(Streams([0], "test/turn").normal(D, D, dtype=torch.float64)[0]).Q
    x = torch.nn.functional.softplus(hidden @ turn)
    data = Dataset(x=x, y=x.sum(dim=2), space=Space(D))
    latent.fit(data, Streams(SEEDS, "test/latent"), ArrayCache())
    return data, latent


def bend(latent: Latent, data: Dataset, hidden: Tensor) -> float:
    """Return how much of the codes is no linear function of the hidden coordinates."""
    codes = latent.encode(data.x).mean[0]
    known = torch.cat([hidden[0], torch.ones(ROWS, 1, dtype=torch.float64)], dim=1)
    left = codes - known @ torch.linalg.lstsq(known, codes).solution
    return float(left.var() / codes.var())


def test_codes_of_two_clusters_are_linear_in_what_lies_behind() -> None:
    hidden = make_hidden(3.0)
    stitched, plain = (bend(fit(kind, hidden)[1], fit(kind, hidden)[0], hidden)
                       for kind in (Stitched(), Scores()))  # fmt: skip
    assert stitched < 0.02
    assert stitched < plain / 3


def test_one_cluster_gets_plain_scores() -> None:
    hidden = make_hidden(0.0)
    (data, stitched), (_, plain) = fit(Stitched(), hidden), fit(Scores(), hidden)
    torch.testing.assert_close(stitched.encode(data.x).mean, plain.encode(data.x).mean)
    assert [one["clusters"] for one in stitched.health()] == [1, 1]


def test_two_clusters_are_told_apart() -> None:
    _, latent = fit(Stitched(), make_hidden(5.0))
    for one in latent.health():
        assert one["clusters"] == 2
        assert one["cluster_separation"] > 4


@pytest.mark.parametrize("distance", [0.0, 3.0, 20.0])
def test_designs_come_back(distance: float) -> None:
    data, latent = fit(Stitched(), make_hidden(distance))
    back = latent.decode(latent.encode(data.x).mean)
    torch.testing.assert_close(back, data.x, rtol=1e-6, atol=1e-6)


def test_no_variable_leaves_the_range_of_the_data() -> None:
    data, latent = fit(Stitched(), make_hidden(5.0))
    far = latent.decode(torch.full((2, 3, D), 50.0, dtype=torch.float64))
    low, high = data.x.amin(dim=1, keepdim=True), data.x.amax(dim=1, keepdim=True)
    assert ((far >= low) & (far <= high)).all()


def test_rows_that_are_all_the_same_are_no_two_clusters() -> None:
    assert cut_in_two(np.zeros((30, 3)))[1] == 0.0


def test_a_separation_must_be_positive() -> None:
    with pytest.raises(UsageError, match=r"latent\.separation must be positive"):
        Stitched(separation=0.0)

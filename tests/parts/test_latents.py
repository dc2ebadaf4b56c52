"""Latents: inverse maps, whitening, ranges, and scores of two clusters."""

import numpy as np
import pytest
import torch
from scipy.stats import norm, rankdata
from torch import Tensor

from ddobench.contracts import Dataset, Privileged, Space
from ddobench.errors import UsageError
from ddobench.parts.latents import (
    PCA,
    Codes,
    Identity,
    Latent,
    Oracle,
    Scores,
    Stitched,
    find_two_clusters,
)
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache
from ddobench.tasks.rbf import RBF

SEEDS = (0, 1, 2)
CHAIN = RBF(d=7, n=400, map="orthogonal")
ROWS, D = 600, 4


def fitted(latent: Latent, data: Dataset) -> Latent:
    latent.fit(data, Streams(SEEDS, "test/latent"), ArrayCache())
    return latent


def chain_data(task: RBF = CHAIN) -> Dataset:
    return task.problem(SEEDS).visible_to(frozenset({"hidden"}))


def assert_white(z: Tensor) -> None:  # (S, N, e)
    eye = torch.eye(z.shape[2], dtype=z.dtype).expand(len(z), -1, -1)
    torch.testing.assert_close(z.mT @ z / z.shape[1], eye, rtol=0, atol=1e-8)
    torch.testing.assert_close(z.mean(dim=1), torch.zeros_like(z[:, 0]), rtol=0, atol=1e-8)


@pytest.mark.parametrize("latent", [Identity(), PCA(), Scores(), Oracle()], ids=repr)
def test_visible_designs_come_back(latent: Latent) -> None:
    data = chain_data()
    fitted(latent, data)
    codes = latent.encode(data.x)
    assert codes.mean.dtype == torch.float64
    torch.testing.assert_close(latent.decode(codes.mean), data.x, rtol=1e-8, atol=1e-8)


@pytest.mark.bits
@pytest.mark.parametrize("latent", [Identity(), PCA(), Scores(), Oracle()], ids=repr)
def test_a_seeds_codes_do_not_depend_on_other_seeds(latent: Latent) -> None:
    data = chain_data()
    together = fitted(latent, data).encode(data.x).mean
    two = CHAIN.problem(SEEDS[1:]).visible_to(frozenset({"hidden"}))
    latent.fit(two, Streams(SEEDS[1:], "test/latent"), ArrayCache())
    assert torch.equal(latent.encode(two.x).mean, together[1:])


def test_identity_standardises_every_variable() -> None:
    data = chain_data()
    z = fitted(Identity(), data).encode(data.x).mean
    torch.testing.assert_close(z.std(dim=1, correction=0), torch.ones_like(z[:, 0]))


@pytest.mark.parametrize("latent", [PCA(), Scores()], ids=repr)
def test_whitened_codes_are_uncorrelated_with_variance_one(latent: Latent) -> None:
    data = chain_data()
    assert_white(fitted(latent, data).encode(data.x).mean)


def test_scores_are_whitened_normal_scores_of_the_ranks() -> None:
    data = chain_data()
    latent = fitted(Scores(), data)
    z = latent.encode(data.x).mean[1].numpy()
    scores = norm.ppf((rankdata(data.x[1].numpy(), axis=0) - 0.5) / data.n)
    # whitening is linear, so the codes span the same space as the scores
    left = np.column_stack([z, np.ones(len(z))])
    fit = left @ np.linalg.lstsq(left, scores, rcond=None)[0]
    np.testing.assert_allclose(fit, scores, atol=1e-8)


def test_scores_undo_any_monotone_map_of_single_variables() -> None:
    data = chain_data()
    warped = Dataset(data.x.exp() ** 3, data.y, data.space)
    plain = fitted(Scores(), data).encode(data.x).mean
    torch.testing.assert_close(fitted(Scores(), warped).encode(warped.x).mean, plain)


def test_scores_never_leave_the_range_of_the_data() -> None:
    data = chain_data()
    latent = fitted(Scores(), data)
    designs = latent.decode(50 * Streams(SEEDS, "test/z").normal(200, 7, dtype=torch.float64))
    low, high = data.x.amin(dim=1, keepdim=True), data.x.amax(dim=1, keepdim=True)
    assert (designs >= low).all()
    assert (designs <= high).all()
    assert torch.isfinite(latent.encode(data.x * 9 - 5).mean).all()


def test_scores_of_ties_are_equal() -> None:
    x = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0, 2.0], dtype=torch.float64)[None, :, None]
    data = Dataset(torch.cat([x, x, x]), torch.zeros(3, 6), Space(1))
    latent = fitted(Scores(), data)
    back = latent.decode(latent.encode(data.x).mean)
    torch.testing.assert_close(back, data.x)


@pytest.mark.parametrize("latent", [PCA(dim=3), Scores(dim=3)], ids=repr)
def test_the_directions_of_largest_variance_are_kept(latent: Latent) -> None:
    data = chain_data()
    codes = fitted(latent, data).encode(data.x).mean
    assert codes.shape == (3, 400, 3)
    assert latent.decode(codes).shape == data.x.shape


@pytest.mark.parametrize("latent", [PCA(), Scores()], ids=repr)
def test_a_direction_without_variance_has_the_code_zero(latent: Latent) -> None:
    data = chain_data()
    doubled = torch.cat([data.x, data.x[..., :2]], dim=2)
    wide = Dataset(doubled, data.y, Space(9))
    codes = fitted(latent, wide).encode(wide.x).mean
    assert_white(codes[..., :7])
    assert (codes[..., 7:] == 0).all()
    torch.testing.assert_close(latent.decode(codes), doubled, rtol=1e-7, atol=1e-7)


def test_the_oracle_codes_are_the_hidden_coordinates() -> None:
    problem = CHAIN.problem(SEEDS)
    data = problem.visible_to(frozenset({"hidden"}))
    latent = fitted(Oracle(), data)
    assert problem.hidden is not None
    torch.testing.assert_close(latent.encode(data.x).mean, problem.hidden)
    assert not problem.evaluate(latent.decode(30 * problem.hidden)).isnan().any()
    assert Oracle.privileges == {"hidden"}


def test_the_oracle_needs_hidden_coordinates() -> None:
    data = chain_data()
    with pytest.raises(UsageError, match="latent=oracle needs a task with hidden coordinates"):
        fitted(Oracle(), Dataset(data.x, data.y, data.space, Privileged()))


def test_a_sample_has_the_mean_and_deviation_of_its_code() -> None:
    mean = torch.full((2, 20_000, 1), 3.0, dtype=torch.float64)
    sample = Codes(mean, torch.full_like(mean, 0.5)).sample(Streams([0, 1], "test"))
    assert sample.mean().item() == pytest.approx(3.0, abs=0.01)
    assert sample.std().item() == pytest.approx(0.5, abs=0.01)
    assert Codes(mean).sample(Streams([0, 1], "test")) is mean


@pytest.mark.parametrize("kind", [PCA, Scores])
def test_a_latent_without_dimensions_is_refused(kind: type[PCA] | type[Scores]) -> None:
    with pytest.raises(UsageError, match=r"^latent.dim must be a whole number of at least 1"):
        kind(dim=0)


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
    """Return the share of the codes that is not linear in the hidden coordinates."""
    codes = latent.encode(data.x).mean[0]
    known = torch.cat([hidden[0], torch.ones(ROWS, 1, dtype=torch.float64)], dim=1)
    left = codes - known @ torch.linalg.lstsq(known, codes).solution
    return float(left.var() / codes.var())


def test_codes_of_two_clusters_are_linear_in_the_hidden_coordinates() -> None:
    hidden = make_hidden(3.0)
    stitched, plain = (bend(fit(kind, hidden)[1], fit(kind, hidden)[0], hidden)
                       for kind in (Stitched(), Scores()))  # fmt: skip
    assert stitched < 0.02
    assert stitched < plain / 3


def test_one_cluster_gets_plain_scores() -> None:
    hidden = make_hidden(0.0)
    (data, stitched), (_, plain) = fit(Stitched(), hidden), fit(Scores(), hidden)
    torch.testing.assert_close(stitched.encode(data.x).mean, plain.encode(data.x).mean)
    assert [one["clusters"] for one in stitched.health()] == [1] * len(SEEDS)


def test_two_clusters_are_found() -> None:
    _, latent = fit(Stitched(), make_hidden(5.0))
    for one in latent.health():
        assert one["clusters"] == 2
        assert one["cluster_separation"] > 4


@pytest.mark.parametrize("distance", [0.0, 3.0, 20.0])
def test_decoding_inverts_encoding_of_two_clusters(distance: float) -> None:
    data, latent = fit(Stitched(), make_hidden(distance))
    back = latent.decode(latent.encode(data.x).mean)
    torch.testing.assert_close(back, data.x, rtol=1e-6, atol=1e-6)


def test_no_variable_leaves_the_range_of_the_data() -> None:
    data, latent = fit(Stitched(), make_hidden(5.0))
    far = latent.decode(torch.full((len(SEEDS), 3, D), 50.0, dtype=torch.float64))
    low, high = data.x.amin(dim=1, keepdim=True), data.x.amax(dim=1, keepdim=True)
    assert ((far >= low) & (far <= high)).all()


def test_equal_rows_are_one_cluster() -> None:
    assert find_two_clusters(np.zeros((30, 3)))[1] == 0.0


def test_a_separation_must_be_positive() -> None:
    with pytest.raises(UsageError, match=r"latent\.separation must be positive"):
        Stitched(separation=0.0)

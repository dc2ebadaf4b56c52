"""The stacked VAE: its bound, its diagnostics, and its cache."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.distributions import Normal, kl_divergence

from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Training
from ddobench.parts.vae import VAE, BoundStep, ReseededVAE
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache, Arrays
from ddobench.tasks.rbf import RBF

CPU = torch.device("cpu")
QUICK = VAE(dim=3, width=13, training=Training(steps=30, batch=7, rate=1e-2), device="cpu")


def make_data(seeds: tuple[int, ...]) -> Dataset:
    x = Streams(seeds, "test/x").normal(41, 5, dtype=torch.float64)
    return Dataset(x, x.sum(dim=2), Space(5))


def fit(vae: VAE, seeds: tuple[int, ...], cache: ArrayCache | None = None) -> VAE:
    fresh = replace(vae)
    fresh.fit(make_data(seeds), Streams(seeds, "method/latent"), cache or ArrayCache())
    return fresh


def results(vae: VAE, seeds: tuple[int, ...], seed: int) -> list[Tensor]:
    """Return all results of a seed's latent."""
    codes = vae.encode(make_data(seeds).x)
    assert codes.sd is not None
    row = seeds.index(seed)
    return [codes.mean[row], codes.sd[row], vae.decode(codes.mean)[row]]


class Counting(ArrayCache):
    """Counts the seeds that were not in the cache."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "task")
        self.kept: list[int] = []

    def put(self, kind: str, key: object, seed: int, arrays: Arrays) -> None:
        self.kept.append(seed)
        super().put(kind, key, seed, arrays)  # type: ignore[arg-type]


def networks() -> tuple[StackedMLP, StackedMLP]:
    rng = Streams([0, 1], "test")
    return (
        StackedMLP((5, 16, 6), rng.child("encoder"), CPU),
        StackedMLP((3, 16, 5), rng.child("decoder"), CPU),
    )


@pytest.mark.parametrize(("beta", "warmup", "factor"), [(1.0, 0, 1.0), (0.7, 0, 0.7), (2, 4, 0.5)])
def test_the_step_is_the_gradient_of_the_bound_computed_directly(
    beta: float, warmup: int, factor: float
) -> None:
    encoder, decoder = networks()
    x = Streams([0, 1], "test/x").normal(9, 5)
    step = BoundStep(encoder, decoder, 0.3, beta, warmup, Streams([0, 1], "test/noise"))
    loss = step(x)
    written = [p.grad.clone() for p in (*encoder.parameters(), *decoder.parameters())]  # type: ignore[union-attr]

    mean, log_variance = encoder(x).chunk(2, dim=2)
    posterior = Normal(mean, (log_variance / 2).exp())
    z = mean + posterior.stddev * Streams([0, 1], "test/noise").normal(9, 3)
    likelihood = Normal(decoder(z), 0.3**0.5).log_prob(x).sum(dim=2)  # type: ignore[no-untyped-call]
    divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum(dim=2)
    bound = (likelihood - factor * divergence).mean(dim=1)  # (S,)

    torch.testing.assert_close(loss, -bound.detach())
    expected = torch.autograd.grad(-bound.sum(), [*encoder.parameters(), *decoder.parameters()])
    for ours, theirs in zip(written, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_a_step_with_weights_and_something_given_is_the_gradient_of_the_weighted_bound() -> None:
    rng = Streams([0, 1], "test")
    encoder = StackedMLP((6, 16, 6), rng.child("encoder"), CPU)
    decoder = StackedMLP((4, 16, 5), rng.child("decoder"), CPU)
    x, given = rng.child("x").normal(9, 5), rng.child("given").normal(9, 1)
    weights = rng.child("weights").uniform(9)
    step = BoundStep(encoder, decoder, 0.3, 0.7, 0, Streams([0, 1], "test/noise"))
    loss = step(x, weights, given)
    written = [p.grad.clone() for p in (*encoder.parameters(), *decoder.parameters())]  # type: ignore[union-attr]

    mean, log_variance = encoder(torch.cat([x, given], dim=2)).chunk(2, dim=2)
    posterior = Normal(mean, (log_variance / 2).exp())
    z = mean + posterior.stddev * Streams([0, 1], "test/noise").normal(9, 3)
    decoded = Normal(decoder(torch.cat([z, given], dim=2)), 0.3**0.5)
    likelihood = decoded.log_prob(x).sum(dim=2)  # type: ignore[no-untyped-call]
    divergence = kl_divergence(posterior, Normal(0.0, 1.0)).sum(dim=2)
    bound = (weights * (likelihood - 0.7 * divergence)).mean(dim=1)  # (S,)

    torch.testing.assert_close(loss, -bound.detach())
    expected = torch.autograd.grad(-bound.sum(), [*encoder.parameters(), *decoder.parameters()])
    for ours, theirs in zip(written, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


def test_the_divergence_counts_in_full_after_the_warm_up() -> None:
    encoder, decoder = networks()
    x = Streams([0, 1], "test/x").normal(9, 5)
    warm = BoundStep(encoder, decoder, 0.3, 1.0, 3, Streams([0, 1], "test/noise"))
    losses = [warm(x) for _ in range(3)]
    cold = BoundStep(encoder, decoder, 0.3, 1.0, 0, Streams([0, 1], "test/noise"))
    expected = [cold.loss(x) for _ in range(3)]
    assert (losses[0] < expected[0]).all()
    torch.testing.assert_close(losses[2], expected[2])


def test_training_makes_designs_come_back() -> None:
    vae = VAE(dim=5, width=64, training=Training(steps=600, rate=3e-3), device="cpu")
    health = fit(vae, (0, 1)).health()
    for one in health:
        assert one["active_dimensions"] == one["latent_dimensions"] == 5
        assert one["reconstruction_error"] < 0.1  # of the variance of the designs
        assert one["latent_loss"][-1] < one["latent_loss"][0]
        assert len(one["divergence"]) == 5


def test_a_collapsed_posterior_is_counted_and_warned_about(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = RBF(d=7, n=300, map="orthogonal").problem((0, 1)).data
    training = Training(steps=300, rate=3e-3)
    wide = VAE(dim=7, width=32, training=training, variance=5.0, warmup=0.0, device="cpu")
    wide.fit(data, Streams((0, 1), "method/latent"), ArrayCache())
    assert [one["active_dimensions"] for one in wide.health()] == [0, 0]
    assert "the posterior collapsed, as few as 0 of 7 latent dimensions are in use" in caplog.text
    assert "(seed 0-1)" in caplog.text
    caplog.clear()
    narrow = replace(wide, variance=0.01)
    narrow.fit(data, Streams((0, 1), "method/latent"), ArrayCache())
    assert [one["active_dimensions"] for one in narrow.health()] == [7, 7]
    assert caplog.text == ""


@pytest.mark.bits
@pytest.mark.parametrize("others", [(4,), (4, 9), (4, 9, 2)])
def test_a_seed_does_not_depend_on_other_seeds(others: tuple[int, ...]) -> None:
    seeds = (*others, 3)
    expected = results(fit(QUICK, (3, 3)), (3, 3), 3)
    for one, other in zip(results(fit(QUICK, seeds), seeds, 3), expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.bits
def test_what_was_trained_is_shared_bit_by_bit(tmp_path: Path) -> None:
    expected = fit(QUICK, (3, 5, 8))
    cache = Counting(tmp_path)
    fit(QUICK, (5, 5), cache)
    fit(QUICK, (3, 5, 8), cache)
    assert cache.kept == [5, 5, 3, 8]
    again = fit(QUICK, (3, 5, 8), cache)
    lone = fit(QUICK, (3, 8, 9), cache)  # one is missing and trained beside itself
    assert cache.kept == [5, 5, 3, 8, 9]
    for seed in (3, 8):
        truth = results(expected, (3, 5, 8), seed)
        for one, other, third in zip(
            truth, results(again, (3, 5, 8), seed), results(lone, (3, 8, 9), seed), strict=True
        ):
            assert torch.equal(one, other)
            assert torch.equal(one, third)
    fresh = results(fit(QUICK, (9, 9)), (9, 9), 9)
    assert all(map(torch.equal, fresh, results(lone, (3, 8, 9), 9)))


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        ({"codes": "means"}, True),
        ({"variance": 0.02}, False),
        ({"training": replace(QUICK.training, steps=31)}, False),
        ({"dim": 2}, False),
    ],
)
def test_only_equal_settings_share_a_cached_vae(
    tmp_path: Path, change: dict[str, object], shared: bool
) -> None:
    fit(QUICK, (1, 2), ArrayCache(tmp_path, "task"))
    cache = Counting(tmp_path)
    fit(replace(QUICK, **change), (1, 2), cache)  # type: ignore[arg-type]
    assert cache.kept == ([] if shared else [1, 2])


def test_what_was_kept_of_another_seed_or_another_network_is_trained_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = results(fit(QUICK, (1, 2)), (1, 2), 2)
    fit(QUICK, (1, 2), ArrayCache(tmp_path, "task"))
    first, second = sorted(tmp_path.rglob("*.npz"))
    shutil.copy(first, second)
    cache = Counting(tmp_path)
    found = results(fit(QUICK, (1, 2), cache), (1, 2), 2)
    assert cache.kept == [2]
    assert f"{second} cannot be used and is made anew: it is of " in caplog.text
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)

    key = {**QUICK._key(), "stream": "method/latent"}
    cache.put("vae", key, 1, {"encoder0": np.zeros((2, 2), dtype=np.float32)})
    again = Counting(tmp_path)
    fit(QUICK, (1, 2), again)
    assert again.kept == [1]
    assert "its encoder0 must have the shape" in caplog.text


def test_a_training_that_diverged_is_reported_and_not_shared(tmp_path: Path) -> None:
    wild = replace(QUICK, training=replace(QUICK.training, rate=1e6))
    cache = Counting(tmp_path)
    vae = fit(wild, (0, 1), cache)
    assert set(vae.failures()) == {0, 1}
    assert all(reason.startswith("vae: ") for reason in vae.failures().values())
    assert cache.kept == []


def test_means_have_no_deviation() -> None:
    seeds = (0, 1)
    samples, means = fit(QUICK, seeds), fit(replace(QUICK, codes="means"), seeds)
    x = make_data(seeds).x
    assert means.encode(x).sd is None
    assert torch.equal(means.encode(x).mean, samples.encode(x).mean)
    sd = samples.encode(x).sd
    assert sd is not None
    assert np.all(sd.numpy() > 0)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"variance": 0.0}, r"^latent.variance must be positive, got 0.0$"),
        ({"warmup": 1.5}, r"^latent.warmup must be a share of the steps, got 1.5$"),
        ({"codes": "modes"}, r"^latent.codes must be one of samples, means, got 'modes'$"),
        ({"dim": 0}, r"^latent.dim must be a whole number of at least 1, got 0$"),
    ],
)
def test_invalid_settings_are_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        replace(QUICK, **change)  # type: ignore[arg-type]


def reseeded(reseed: int, cache: ArrayCache | None = None) -> Tensor:
    """Return what a freshly fitted VAE decodes from some codes."""
    vae = ReseededVAE(dim=3, width=13, training=QUICK.training, device="cpu", reseed=reseed)
    vae.fit(make_data((3, 5)), Streams((3, 5), "method/latent"), cache or ArrayCache())
    return vae.decode(torch.ones(2, 3, 3, dtype=torch.float64))


def test_reseeding_changes_the_training_and_repeats_it_for_the_same_number() -> None:
    assert reseeded(0).equal(reseeded(0))
    assert not reseeded(0).equal(reseeded(1))


def test_the_cache_distinguishes_reseeded_vaes(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    first, second = reseeded(0, cache), reseeded(1, cache)
    assert len([*tmp_path.glob("vae-*")]) == 2
    assert reseeded(0, cache).equal(first)
    assert reseeded(1, cache).equal(second)
    assert second.equal(reseeded(1))


def test_a_negative_reseed_is_refused() -> None:
    with pytest.raises(UsageError, match=r"latent\.reseed must be a whole number"):
        ReseededVAE(dim=3, training=QUICK.training, reseed=-1)

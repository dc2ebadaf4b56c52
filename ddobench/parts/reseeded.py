"""Parts trained once more on the same rows, with random numbers of another number.

The seed of a run gives its instance and all random numbers of its method at once. To tell how much
of a spread is due to the instance, how much to the luck of the VAE and how much to that of the
surrogate, each of these two has a number of its own here, and the seed keeps the rest. All other
settings, and what is done with them, are those of `VAE` and `MLP`.

The variance of each: python -m ddobench -m experiment=vae_spread
"""

from dataclasses import dataclass
from typing import ClassVar

from ddobench.contracts import Dataset
from ddobench.errors import check_whole
from ddobench.parts.surrogates import MLP, NetworkModel, TrainingData
from ddobench.parts.vae import VAE
from ddobench.rng import Streams
from ddobench.store.cache import ArrayCache


@dataclass(kw_only=True)
class ReseededVAE(VAE):
    """A VAE whose weights, minibatches and noise also depend on `reseed`."""

    name: ClassVar[str] = "vae_reseeded"

    reseed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("latent.reseed", self.reseed, 0)

    def fit(self, data: Dataset, rng: Streams, cache: ArrayCache) -> None:
        """Train the seeds that are not remembered under this number."""
        super().fit(data, _reseed(rng, self.reseed), cache)


@dataclass(kw_only=True)
class ReseededMLP(MLP):
    """A network whose weights, minibatches and held-out rows also depend on `reseed`."""

    name: ClassVar[str] = "mlp_reseeded"

    reseed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("surrogate.reseed", self.reseed, 0)

    def fit(self, data: TrainingData, rng: Streams) -> NetworkModel:
        """Fit with the random numbers of this number."""
        return super().fit(data, _reseed(rng, self.reseed))


def _reseed(rng: Streams, number: int) -> Streams:
    return rng.child(f"reseed{number}")

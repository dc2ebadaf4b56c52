"""Surrogates that are fitted to one table at a time and have no gradient: trees, and any regressor.

They work with every search that needs no gradient. `OneSeedSurrogate` is the adapter for authors.
"""

import copy
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.parts.surrogates import Model, Surrogate, TrainingData
from ddobench.rng import Stream, Streams

Matrix = NDArray[np.float64]
Predict = Callable[[Matrix], Any]  # coordinates (K, e) -> values (K,)


@dataclass(kw_only=True)
class OneSeedSurrogate(Surrogate):
    """A surrogate of NumPy arrays, one seed at a time."""

    has_gradient: ClassVar[bool] = False

    @abstractmethod
    def fit_one(self, z: Matrix, y: Matrix, rng: Stream) -> Predict:
        """Fit standardised coordinates (N, e) and values (N,), and return what predicts values."""

    def fit(self, data: TrainingData, rng: Streams) -> "OneSeedModel":
        """Fit one seed after the other."""
        rows = rng.child("surrogate").rows
        tables = zip(data.coordinates.z.cpu().numpy(), data.y.cpu().numpy(), rows, strict=True)
        return OneSeedModel([self.fit_one(z, y, stream) for z, y, stream in tables])


class OneSeedModel(Model):
    """One fitted predictor for each seed."""

    def __init__(self, predictors: Sequence[Predict]) -> None:
        self.predictors = predictors

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        """Return the values, predicted seed by seed."""
        tables = z.detach().cpu().to(torch.float64).numpy()
        pairs = zip(self.predictors, tables, strict=True)
        return torch.from_numpy(np.stack([_predict(*pair) for pair in pairs])).to(z)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:  # (S, K), (S, K, e)
        """Return the values and NaN, as there is no gradient."""
        return self.value(z), torch.full_like(z, torch.nan)


def _predict(predict: Predict, z: Matrix) -> Matrix:  # (K, e) -> (K,)
    values = np.asarray(predict(z), dtype=np.float64)
    if values.shape not in ((len(z),), (len(z), 1)):
        raise ValueError(f"predict must return {len(z)} values, got an array {values.shape}")
    return values.reshape(len(z))


@dataclass(kw_only=True)
class Regressor(OneSeedSurrogate):
    """Any object with `fit(x, y)` and `predict(x)`, such as a model of scikit-learn.

    Each seed fits a copy of it. A `random_state` of None becomes one that the seed determines.
    """

    name: ClassVar[str] = "regressor"

    regressor: Any

    def fit_one(self, z: Matrix, y: Matrix, rng: Stream) -> Predict:
        """Fit a copy."""
        fresh = copy.deepcopy(self.regressor)
        settings = fresh.get_params() if hasattr(fresh, "get_params") else {}
        if settings.get("random_state", 0) is None:
            fresh.set_params(random_state=int(rng.integers(2**31, 1)))
        fresh.fit(z, y)
        predict: Predict = fresh.predict
        return predict

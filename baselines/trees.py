"""Forest and Boosting: trees of scikit-learn, searched by an evolution that needs no gradient.

The models that people try first on a table. Trees have no gradient, so they are searched by
`search=evolution`, which begins at the best rows and keeps designs near rows. A forest predicts no
more than the largest visible value: what it can find are combinations of good rows.

Settings of the forest are those that Breiman (2001) suggests for regression: unpruned trees, a
third of the variables at each split; and 100 trees. Boosting is `HistGradientBoostingRegressor` of
scikit-learn (after LightGBM, Ke et al. 2017) with its default settings, but 300 trees. No paper
proposes either of them as a method of offline optimisation; both are ours.

Values of the proposed designs, in standard deviations, and the share of invalid ones (chains, seeds
0 to 9, TFBind8, seeds 0 to 7). Near a row is not yet on the curved surface of a chain.

                            forest          boosting        best visible
    chain d=11, n=2000      2.42   18 %     3.43    9 %     4.97
    chain d=21, n=2000      1.45   24 %     2.29   19 %     4.87
    chain d=41, n=10,000    2.86    3 %     0.82   43 %     4.85
    TFBind8                 1.47    0 %     3.52    0 %     1.48

Needs the extra `sklearn`: pip install 'ddobench[sklearn]'.

Command: python -m ddobench -m method=forest,boosting task=chain d=41 seed=0-9
"""

from dataclasses import dataclass
from typing import ClassVar

from ddobench.errors import UsageError, check_whole
from ddobench.parts.regressors import Matrix, OneSeedSurrogate, Predict
from ddobench.registry import missing_dependency
from ddobench.rng import Stream

NEEDS = {"needs": "sklearn", "install": "ddobench[sklearn]"}


@dataclass(kw_only=True)
class Forest(OneSeedSurrogate):
    """A random forest."""

    name: ClassVar[str] = "forest"

    trees: int = 100
    features: float = 1 / 3
    leaf: int = 1

    def __post_init__(self) -> None:
        check_whole("surrogate.trees", self.trees, 1)
        check_whole("surrogate.leaf", self.leaf, 1)
        if not 0 < self.features <= 1:
            raise UsageError(
                f"surrogate.features must be a share above 0 and at most 1, got {self.features}"
            )
        check_installed("forest")

    def fit_one(self, z: Matrix, y: Matrix, rng: Stream) -> Predict:
        """Grow the trees."""
        from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

        forest = RandomForestRegressor(
            n_estimators=self.trees,
            max_features=self.features,
            min_samples_leaf=self.leaf,
            random_state=int(rng.integers(2**31, 1)),
        )
        predict: Predict = forest.fit(z, y).predict
        return predict


@dataclass(kw_only=True)
class Boosting(OneSeedSurrogate):
    """Gradient-boosted trees on binned variables."""

    name: ClassVar[str] = "boosting"

    trees: int = 300
    rate: float = 0.1
    leaves: int = 31

    def __post_init__(self) -> None:
        check_whole("surrogate.trees", self.trees, 1)
        check_whole("surrogate.leaves", self.leaves, 2)
        if self.rate <= 0:
            raise UsageError(f"surrogate.rate must be positive, got {self.rate}")
        check_installed("boosting")

    def fit_one(self, z: Matrix, y: Matrix, rng: Stream) -> Predict:
        """Add one tree after the other."""
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(
            max_iter=self.trees,
            learning_rate=self.rate,
            max_leaf_nodes=self.leaves,
            early_stopping=False,
            random_state=int(rng.integers(2**31, 1)),
        )
        predict: Predict = model.fit(z, y).predict
        return predict


def check_installed(surrogate: str) -> None:
    """Raise unless scikit-learn is there; it is no reason to decline, which would be stored."""
    if missing := missing_dependency(NEEDS):
        raise UsageError(f"surrogate={surrogate} cannot be built here: {missing}")

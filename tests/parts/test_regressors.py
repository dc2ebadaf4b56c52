"""Surrogates without a gradient: fitted seed by seed, and searched without gradients."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from ddobench.baselines.cma import CMA
from ddobench.baselines.reinforce import Reinforce
from ddobench.baselines.rwr import RWR
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.parts.evolution import Evolution
from ddobench.parts.regressors import Matrix, OneSeedSurrogate, Predict, Regressor
from ddobench.parts.search import Ascent, Cautious, Search
from ddobench.rng import Stream, Streams
from tests.support.lineups import assemble


@dataclass(kw_only=True)
class Nearest(OneSeedSurrogate):
    """The value of the nearest row."""

    name: ClassVar[str] = "nearest"

    def fit_one(self, z: Matrix, y: Matrix, rng: Stream) -> Predict:  # noqa: ARG002
        def predict(points: Matrix) -> Matrix:
            apart = np.square(points[:, None] - z).sum(axis=2)
            found: Matrix = y[apart.argmin(axis=1)]
            return found

        return predict


def table(seeds: list[int], sizes: tuple[int, ...] | None = None) -> Dataset:
    streams = Streams(seeds, "test/rows")
    draw = streams.uniform(60, 3, dtype=torch.float64)
    x = draw if sizes is None else (draw * torch.tensor(sizes)).floor()
    return Dataset(x=x, y=x.sum(dim=2), space=Space(3, sizes))


@pytest.mark.parametrize("sizes", [None, (4, 4, 3)])
@pytest.mark.parametrize(
    "search", [Evolution(steps=4), CMA(steps=4), Reinforce(steps=4), RWR(steps=4)]
)
def test_every_search_that_is_named_as_a_remedy_works(
    search: Search, sizes: tuple[int, ...] | None
) -> None:
    method, data = assemble(Nearest(), search), table([1, 2], sizes)
    assert method.declines(data) is None
    method.fit(data, Streams([1, 2], "method/fit"))
    *_, last = method.propose(data.x[:, :5], Streams([1, 2], "method/propose"))
    assert data.space.contains(last.designs).all()
    assert method.failures() == {}


@pytest.mark.parametrize("search", [Ascent(steps=2), Cautious(steps=2)])
def test_a_search_by_gradients_is_declined_with_searches_that_work(search: Search) -> None:
    reason = assemble(Nearest(), search).declines(table([1]))
    assert reason == (
        f"the search {search.name} needs a gradient, which the surrogate nearest does not have; "
        "use search=evolution, tangent, cma, reinforce or rwr"
    )


def test_each_seed_is_fitted_to_its_own_rows() -> None:
    method, data = assemble(Nearest(), Evolution(steps=1)), table([1, 2])
    method.fit(data, Streams([1, 2], "method/fit"))
    predicted = method.predict(data.x)
    assert predicted is not None
    torch.testing.assert_close(predicted, data.y)


class Drawing:
    """A regressor that draws by its random state."""

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def get_params(self) -> dict[str, Any]:
        return {"random_state": self.random_state}

    def set_params(self, random_state: int) -> None:
        self.random_state = random_state

    def fit(self, x: Any, y: Any) -> None:  # noqa: ARG002
        self.value = np.random.default_rng(self.random_state).normal()

    def predict(self, x: Any) -> Any:
        return np.full((len(x), 1), self.value)


def test_a_regressor_draws_by_its_seed_and_is_not_changed_itself() -> None:
    given = Drawing()
    values = []
    for seeds in ([1, 2], [2]):
        method, data = assemble(Regressor(regressor=given), Evolution(steps=1)), table(seeds)
        method.fit(data, Streams(seeds, "method/fit"))
        predicted = method.predict(data.x[:, :1])
        assert predicted is not None
        values.append(predicted[:, 0])
    assert values[0][0] != values[0][1]
    torch.testing.assert_close(values[0][1:], values[1])
    assert vars(given) == {"random_state": None}


def test_predictions_of_another_shape_are_refused() -> None:
    given = Drawing(1)
    given.predict = lambda x: np.zeros((len(x), 2))  # type: ignore[method-assign]
    method, data = assemble(Regressor(regressor=given), Evolution(steps=1)), table([1])
    method.fit(data, Streams([1], "method/fit"))
    with pytest.raises(ValueError, match=r"^predict must return 4 values, got an array \(4, 2\)$"):
        method.predict(data.x[:, :4])


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("Forest", {"trees": 0}, "surrogate.trees must be a whole number of at least 1, got 0"),
        ("Forest", {"features": 2.0}, "surrogate.features must be a share above 0 and at most 1"),
        ("Boosting", {"rate": 0.0}, "surrogate.rate must be positive, got 0.0"),
        ("Boosting", {"leaves": 1}, "surrogate.leaves must be a whole number of at least 2, got 1"),
    ],
)
def test_wrong_settings_of_trees_are_refused(
    kind: str, settings: dict[str, Any], sentence: str
) -> None:
    from ddobench.baselines import trees

    with pytest.raises(UsageError, match=f"^{sentence}"):
        getattr(trees, kind)(**settings)


def test_trees_that_are_not_installed_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from ddobench.baselines import trees

    monkeypatch.setattr(trees, "NEEDS", {"needs": "no_such_module", "install": "it"})
    with pytest.raises(UsageError, match=r"^surrogate=forest cannot be built here: it needs the"):
        trees.Forest()


@pytest.mark.parametrize("kind", ["Forest", "Boosting"])
def test_trees_learn_and_repeat_themselves(kind: str) -> None:
    pytest.importorskip("sklearn")
    from ddobench.baselines import trees

    data = table([3])
    values = []
    for _ in range(2):
        method = assemble(getattr(trees, kind)(trees=20), Evolution(steps=1))
        method.fit(data, Streams([3], "method/fit"))
        predicted = method.predict(data.x)
        assert predicted is not None
        values.append(predicted)
    assert torch.equal(*values)
    assert np.corrcoef(values[0][0], data.y[0])[0, 1] > 0.9

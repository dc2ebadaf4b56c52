"""Ridge regression on fixed features: accuracy and held-out error."""

import pytest
import torch
from torch import Tensor

from ddobench.baselines import ridge as ridge_module
from ddobench.baselines.ridge import AdditiveRidge, QuadraticRidge, Ridge
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.least_squares import NormalEquations
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Cautious
from ddobench.rng import Streams
from tests.support.lineups import assemble

SEEDS = [0, 1]
BOTH = pytest.mark.parametrize(
    "ridge", [AdditiveRidge(), QuadraticRidge()], ids=["sum", "products"]
)


def make_data(of: str) -> Dataset:
    x = Streams(SEEDS, "test/x").normal(400, 4, dtype=torch.float64)
    y = x[..., 0] * x[..., 1] - x[..., 2].square() if of == "products" else x.sin().sum(dim=2)
    return Dataset(x=x, y=5 + 2 * y, space=Space(4))


def fit(ridge: Ridge, data: Dataset) -> Pipeline:
    method = assemble(ridge, Cautious(steps=30))
    method.fit(data, Streams(SEEDS, "method/fit"))
    return method


def predict(method: Pipeline, x: Tensor) -> Tensor:
    value = method.predict(x)
    assert value is not None
    return value


def test_a_quadratic_function_is_learned_by_products() -> None:
    data = make_data("products")
    method = fit(QuadraticRidge(ridges=[0.01, 1000.0]), data)
    torch.testing.assert_close(predict(method, data.x), data.y, rtol=0, atol=0.02)
    assert [report["ridge"] for report in method.diagnostics()] == [0.01, 0.01]


def test_a_sum_of_functions_of_one_variable_is_learned_by_bumps() -> None:
    data = make_data("sum")
    report = fit(AdditiveRidge(), data).diagnostics()
    assert all(one["held_out_r2"] > 0.9 for one in report)


def test_what_is_said_of_held_out_rows_falls_with_what_cannot_be_said() -> None:
    report = [
        fit(AdditiveRidge(rotations=1), make_data(of)).diagnostics()[0]
        for of in ("sum", "products")
    ]
    assert report[0]["held_out_r2"] > report[1]["held_out_r2"]


@BOTH
def test_gradients_are_those_of_finite_differences(ridge: Ridge) -> None:
    model = fit(ridge, make_data("products"))._model
    z = Streams(SEEDS, "test/z").normal(3, 4, dtype=torch.float64)
    _, gradient = model.value_and_gradient(z)
    step = 1e-2
    for column in range(4):
        away = torch.zeros(4, dtype=torch.float64)
        away[column] = step
        slope = (model.value(z + away) - model.value(z - away)) / (2 * step)
        torch.testing.assert_close(gradient[..., column], slope, rtol=0.02, atol=0.02)


@BOTH
def test_few_rows_give_the_weights_of_the_products_of_features(
    ridge: Ridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = make_data("products")
    few = Dataset(x=data.x[:, :12], y=data.y[:, :12], space=data.space)  # 14 features or more
    designs = data.x[:, 12:30]
    dual = fit(ridge, few)
    monkeypatch.setattr(ridge_module, "ridge_equations", lambda table: lambda rows, y: (
        NormalEquations.of(table[rows], y)))  # fmt: skip
    primal = fit(ridge, few)
    torch.testing.assert_close(predict(dual, designs), predict(primal, designs), rtol=1e-5, atol=0)
    assert [one["ridge"] for one in dual.diagnostics()] == [
        one["ridge"] for one in primal.diagnostics()
    ]


def test_many_features_are_declined_unless_their_rows_are_few() -> None:
    ridge = QuadraticRidge()
    assert ridge.count_features(192) == 18_720
    assert ridge.declines(5000, 192) is None
    reason = ridge.declines(6000, 192)
    assert reason == (
        "a ridge regression on 192 codes has 18,720 features, and more than 16,666 cannot be "
        "solved for with 6,000 rows; use surrogate=linear or mlp"
    )
    assert ridge.declines(10**6, 139) is None  # 9,869 features, solved for with any rows


@BOTH
def test_a_ridge_must_be_positive_and_hold_rows_out(ridge: Ridge) -> None:
    with pytest.raises(UsageError, match=r"surrogate\.ridges must be positive"):
        type(ridge)(ridges=[0.0])
    with pytest.raises(UsageError, match=r"surrogate\.holdout must be a share"):
        type(ridge)(holdout=1.0)

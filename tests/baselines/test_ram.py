"""RaM: the losses against autograd, held-out rows, and the units of predictions."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from ddobench.baselines.ram import ListLoss, ListStep, Ranking, list_net, rank_cosine
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.networks import StackedMLP
from ddobench.models.training import Training
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import TopAscent
from ddobench.parts.surrogates import NetworkModel
from ddobench.rng import Streams
from tests.support.catalogue import build
from tests.support.lineups import assemble

SEEDS = [1, 2]
LOSSES = [list_net(1.0), list_net(0.3), rank_cosine]


def make_lists() -> tuple[Tensor, Tensor]:  # (S, B) each
    streams = Streams(SEEDS, "test/lists")
    return streams.normal(9, dtype=torch.float64), streams.normal(9, dtype=torch.float64)


def make_ram(steps: int = 60, **settings: Any) -> Pipeline:
    training = Training(steps=steps, batch=1000, rate=3e-3, holdout=0.2, patience=20)
    surrogate = Ranking(training=training, width=16, **settings)
    return assemble(surrogate, TopAscent(steps=5, rate=0.01, root_d=False, optimiser="adam"))


def make_data() -> Dataset:
    x = Streams(SEEDS, "test/x").normal(80, 3, dtype=torch.float64)
    return Dataset(x=x, y=7 + 100 * x.sum(dim=2), space=Space(3))


def fit(method: Pipeline) -> NetworkModel:
    method.fit(make_data(), Streams(SEEDS, "method"))
    assert isinstance(method._model, NetworkModel)
    return method._model


def test_listnet_is_the_cross_entropy_of_two_softmaxes() -> None:
    f, y = make_lists()
    expected = cross_entropy(f, (y / 0.3).softmax(dim=1), reduction="none")
    torch.testing.assert_close(list_net(0.3)(f, y)[0], expected)


def test_rank_cosine_is_one_minus_the_correlation() -> None:
    f, y = make_lists()
    centred_f, centred_y = (one - one.mean(dim=1, keepdim=True) for one in (f, y))
    expected = 1 - cosine_similarity(centred_f, centred_y, dim=1)
    torch.testing.assert_close(rank_cosine(f + 5, y)[0], expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_slopes_of_a_loss_equal_autograd(loss: ListLoss) -> None:
    f, y = make_lists()
    f.requires_grad_()
    value, slope = loss(f, y)
    (expected,) = torch.autograd.grad(value.sum(), f)
    torch.testing.assert_close(slope.detach(), expected)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_right_order_costs_less_than_the_reverse(loss: ListLoss) -> None:
    _, y = make_lists()
    assert (loss(y, y)[0] < loss(-y, y)[0]).all()


def test_a_step_writes_the_gradient_of_the_loss_of_its_list() -> None:
    network = StackedMLP((3, 8, 1), Streams(SEEDS, "test/weights"), torch.device("cpu"))
    z, y = Streams(SEEDS, "test/z").normal(9, 3), make_lists()[1].float()
    ListStep(network, rank_cosine)(z, y)
    written = network.weights[0].grad
    assert written is not None
    written = written.clone()
    (expected,) = torch.autograd.grad(
        rank_cosine(network(z)[..., 0], y)[0].sum(), [network.weights[0]]
    )
    torch.testing.assert_close(written, expected)


@pytest.mark.parametrize("loss", ["listnet", "rank_cosine"])
def test_predictions_of_the_visible_rows_have_the_mean_and_deviation_of_their_values(
    loss: str,
) -> None:
    method, data = make_ram(loss=loss), make_data()
    fit(method)
    predicted = method.predict(data.x)
    assert predicted is not None
    torch.testing.assert_close(predicted.mean(dim=1), data.y.mean(dim=1), rtol=1e-3, atol=1e-2)
    torch.testing.assert_close(
        predicted.std(dim=1, correction=0), data.y.std(dim=1, correction=0), rtol=1e-3, atol=0
    )


def test_the_order_of_rows_is_learned() -> None:
    for report in fit(make_ram(steps=150)).describe():
        assert report["held_out_rank_correlation"] > 0.9


def test_a_list_has_no_more_rows_than_are_trained_on_and_none_that_is_held_out() -> None:
    lists: list[Tensor] = []
    call = ListStep.__call__

    class Watched(ListStep):
        def __call__(self, z: Tensor, y: Tensor) -> Tensor:
            lists.append(z.clone())
            return call(self, z, y)

    surrogate = make_ram(steps=3).surrogate
    assert isinstance(surrogate, Ranking)
    surrogate.make_step = lambda network, data: Watched(network, rank_cosine)  # type: ignore[method-assign]  # noqa: ARG005
    model = fit(assemble(surrogate, TopAscent(steps=1)))
    assert [rows.shape for rows in lists] == [(2, 64, 3)] * 3
    held = model.data.means()[0][model.split.held_out[0]]
    assert not (lists[0][0][:, None] == held[None]).all(dim=2).any()


def test_the_step_with_the_lowest_held_out_loss_is_kept() -> None:
    for report in fit(make_ram(steps=100)).describe():
        best = min(range(20), key=lambda check: report["held_out_loss"][check])
        assert report["kept_steps"] == [report["held_out_steps"][best]]


def test_by_default_the_last_network_is_kept_and_every_row_is_in_lists() -> None:
    method: Any = build("chain", "ram")[1]
    training = method.surrogate.training
    assert (training.patience, training.holdout, training.batch) == (None, 0.0, 1000)
    model = fit(assemble(method.surrogate, TopAscent(steps=1)))
    assert model.split.held_out.shape[1] == 0
    assert all(report["kept_steps"] == [training.steps] for report in model.describe())


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"loss": "hinge"}, r"surrogate\.loss must be one of listnet, rank_cosine"),
        ({"temperature": 0.0}, r"surrogate\.temperature must be positive, got 0\.0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        make_ram(**settings)

"""ICT: what is picked, what weights follow, and where networks change."""

from typing import Any

import pytest
import torch

from ddobench.baselines.ict import CoTaught
from ddobench.contracts import Dataset, Space
from ddobench.errors import UsageError
from ddobench.models.adapting import Parameters, feed, parameters_of
from ddobench.parts.search import TopAscent
from ddobench.parts.surrogates import MLP
from ddobench.rng import Streams
from tests.support.lineups import QUICK, assemble

SEEDS, D = [4, 9], 3


def make(**settings: Any) -> CoTaught:
    return CoTaught(training=QUICK, width=16, ensemble=3, path_steps=3, **settings)


def fit(surrogate: MLP) -> Any:
    x = Streams(SEEDS, "test/x").normal(60, D, dtype=torch.float64)
    method = assemble(surrogate, TopAscent(steps=1))
    method.fit(Dataset(x=x, y=x.sin().sum(dim=2), space=Space(D)), Streams(SEEDS, "method"))
    return method._model


def network_of(model: Any) -> Parameters:
    networks = [member.network for member in model.members]
    return [one[:1].requires_grad_() for one in parameters_of(networks, 0)]


def test_the_designs_with_the_smallest_loss_are_picked() -> None:
    network, near = network_of(fit(make())), Streams([1], "test/near").normal(128, D)[0]
    label = torch.zeros(128)
    picked = make(keep=5)._pick(network, near, label)
    error = feed(network, near[None])[0].square()
    assert set(picked.tolist()) == set(error.argsort()[:5].tolist())


def test_weights_lower_the_error_on_visible_rows() -> None:
    model = fit(make())
    network, near = network_of(model), Streams([1], "test/near").normal(40, D)[0]
    rows, values = model.data.means()[0], model.data.values()[0]
    label = Streams([1], "test/label").normal(40)[0]
    errors = []
    for rate in (0.0, 10.0):
        surrogate = make(weight_rate=rate, adapt_rate=1e-2)
        slopes = surrogate._weighted_gradient(network, near, label, rows, values)
        stepped = [one - 1e-2 * slope for one, slope in zip(network, slopes, strict=True)]
        errors.append((feed(stepped, rows[None]) - values).square().mean().item())
    assert errors[1] < errors[0]


def test_it_is_three_networks_that_were_changed_together() -> None:
    plain = fit(MLP(training=QUICK, width=16, ensemble=3))
    taught = fit(make(adapt_rate=1e-2))
    still = fit(make(adapt_rate=0.0))
    for left, right, same in zip(plain.members, taught.members, still.members, strict=True):
        assert not torch.equal(left.network.flat, right.network.flat)
        assert torch.equal(left.network.flat, same.network.flat)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [({"keep": 200}, "keep must be at most"), ({"noise": 0.1, "around": 0}, "around must be")],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], complaint: str) -> None:
    with pytest.raises(UsageError, match=rf"surrogate\.{complaint}"):
        make(**settings)


def test_co_teaching_needs_three_networks() -> None:
    with pytest.raises(UsageError, match=r"surrogate\.ensemble must be 3"):
        CoTaught(training=QUICK, ensemble=2)

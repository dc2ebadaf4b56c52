"""The cautious ascent: designs end as far out as the model has earned, and no farther."""

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.parts.cautious import Cautious
from ddobench.parts.surrogates import Model
from ddobench.rng import Streams


class Slope(Model):
    """Rises for ever along every coordinate; how well it predicts is what it says."""

    def __init__(self, errors: list[float] | None) -> None:
        self.errors = errors

    def value(self, z: Tensor) -> Tensor:  # (S, K, e) -> (S, K)
        return 0.1 * z.sum(dim=-1)

    def value_and_gradient(self, z: Tensor) -> tuple[Tensor, Tensor]:
        return self.value(z), torch.full_like(z, 0.1)

    def error(self) -> Tensor | None:
        return None if self.errors is None else torch.tensor(self.errors, dtype=torch.float64)


def climb(errors: list[float] | None, **settings: int) -> tuple[Cautious, Tensor]:
    search = Cautious(steps=400, **settings)  # type: ignore[arg-type]
    start = torch.zeros(len(errors or [0]), 6, 4, dtype=torch.float64)
    *_, last = search.run(start, Slope(errors), Streams(range(len(start)), "test"), {})
    return search, last.x.square().mean(dim=(1, 2))


def test_designs_stay_within_what_the_model_has_earned() -> None:
    errors = [0.05, 0.5, 0.9]
    search, radius = climb(errors)
    assert (radius <= 1 - torch.tensor(errors, dtype=torch.float64)).all()
    assert search.chosen == sorted(search.chosen)
    assert len(set(search.chosen)) > 1


def test_a_seed_is_held_back_by_its_own_error_alone() -> None:
    assert climb([0.5])[0].chosen == climb([0.05, 0.5])[0].chosen[1:]


def test_a_few_scouts_decide_for_all() -> None:
    assert climb([0.5], scouts=1)[0].chosen == climb([0.5])[0].chosen


def test_a_useless_model_is_held_back_most() -> None:
    assert climb([1.5])[0].chosen == [0.5]


def test_a_model_that_holds_nothing_out_is_refused() -> None:
    with pytest.raises(UsageError, match="needs a surrogate that holds rows out"):
        climb(None)


def test_weights_must_not_be_negative() -> None:
    with pytest.raises(UsageError, match=r"search\.weights must be numbers >= 0"):
        Cautious(weights=[-1.0])

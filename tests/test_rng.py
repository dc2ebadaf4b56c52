"""Promises of the random streams."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.rng import Stream, Streams

DRAWS: dict[str, Callable[[Stream | Streams], Tensor]] = {
    "normal": lambda rng: rng.normal(3, 2),
    "uniform": lambda rng: rng.uniform(3, 2),
    "integers": lambda rng: rng.integers(1000, 3, 2),
    "permutation": lambda rng: rng.permutation(50),
    "sample": lambda rng: rng.sample(50, 9),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_seed_draws_the_same_whoever_stands_beside_it(
    draw: Callable[[Stream | Streams], Tensor],
) -> None:
    together = draw(Streams([5, 3, 8], "noise"))
    assert torch.equal(together[1], draw(Streams([3], "noise"))[0])
    assert torch.equal(together[1], draw(Stream(3, "noise")))
    assert not torch.equal(together[0], together[1])


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_stream_advances_and_starts_over_only_when_built_anew(
    draw: Callable[[Stream | Streams], Tensor],
) -> None:
    rng = Stream(0, "noise")
    first, second = draw(rng), draw(rng)
    assert not torch.equal(first, second)
    assert torch.equal(first, draw(Stream(0, "noise")))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_drawing_leaves_the_global_generators_alone(
    draw: Callable[[Stream | Streams], Tensor],
) -> None:
    legacy, modern = _numpy_state(), torch.get_rng_state()
    draw(Streams([0, 1], "noise"))
    assert _numpy_state() == legacy
    assert torch.equal(torch.get_rng_state(), modern)


def _numpy_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002 - the one to stay away from


def test_a_child_does_not_depend_on_what_its_parent_drew() -> None:
    rng = Streams([0, 1], "method")
    before = rng.child("layers").normal(4)
    rng.normal(100)
    assert torch.equal(rng.child("layers").normal(4), before)


def test_streams_of_different_names_and_seeds_differ() -> None:
    rng = Stream(0, "a")
    draws = [
        rng.normal(8),
        rng.child("b").normal(8),
        rng.child("c").normal(8),
        Stream(1, "a").normal(8),
        Stream(0, "b").normal(8),
    ]
    assert len({tuple(draw.tolist()) for draw in draws}) == len(draws)


def test_the_numbers_never_change_between_versions() -> None:
    rng = Stream(7, "task/Quadratic")
    assert rng.integers(10, 6).tolist() == [2, 4, 6, 7, 2, 3]
    assert rng.normal(2, dtype=torch.float64).tolist() == pytest.approx(
        [-1.5064530618291685, 1.4434783319064084], rel=1e-12
    )


def test_draws_have_the_asked_shape_kind_and_range() -> None:
    rng = Streams([0, 1, 2], "shapes")
    assert rng.normal(4, 5).shape == (3, 4, 5)
    assert rng.normal(4).dtype == torch.float32
    assert rng.normal(4, dtype=torch.float64).dtype == torch.float64
    assert rng.uniform(4, dtype=torch.float64).dtype == torch.float64
    assert rng.normal().shape == (3,)
    uniform, whole = rng.uniform(1000), rng.integers(3, 1000)
    assert 0 <= uniform.min() < 0.01
    assert 0.99 < uniform.max() < 1
    assert set(whole.flatten().tolist()) == {0, 1, 2}


def test_a_permutation_has_every_position_once() -> None:
    order = Streams([0, 1], "order").permutation(20)
    assert order.sort(dim=1).values.tolist() == [list(range(20))] * 2


def test_a_sample_repeats_only_when_more_is_asked_than_there_is() -> None:
    rng = Stream(0, "starts")
    assert rng.sample(10, 10).sort().values.tolist() == list(range(10))
    assert len(set(rng.sample(100, 30).tolist())) == 30
    many = rng.sample(5, 200)
    assert many.shape == (200,)
    assert set(many.tolist()) == {0, 1, 2, 3, 4}

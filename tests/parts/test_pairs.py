"""Which categories interact: found where they do, and seldom where they do not."""

from itertools import combinations

import numpy as np
import pytest
import torch

from ddobench.contracts import Privileged, Space
from ddobench.errors import UsageError
from ddobench.models.one_hot import Values, configuration, count_cells, one_hot
from ddobench.parts.discovery import GraphInputs
from ddobench.parts.pairs import Pairs, compare_pairs, explain
from ddobench.rng import Streams

SIZES = (4, 3, 4, 2, 4, 4)


def draw(seed: int, n: int = 1500) -> tuple[np.random.Generator, Values]:
    rng = np.random.default_rng(seed)
    return rng, np.stack([rng.integers(0, size, n) for size in SIZES], axis=1).astype(float)


def add_up(rng: np.random.Generator, x: Values, scopes: list[tuple[int, ...]]) -> Values:
    """Return a sum of random tables over scopes."""
    value = np.zeros(len(x))
    for scope in scopes:
        cells = rng.normal(size=count_cells(scope, SIZES))
        value += cells[configuration(x, scope, SIZES)]
    return value


def test_every_design_has_a_one_in_each_table_at_its_joint_setting() -> None:
    x = np.array([[0, 2, 1], [1, 0, 0]], dtype=float)
    features = one_hot(x, [(2,), (0, 1)], (2, 3, 2)).dense()
    assert features.tolist() == [[0, 1, 0, 0, 1, 0, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0]]


@pytest.mark.parametrize("seed", range(3))
def test_the_pairs_that_interact_are_found_and_no_other(seed: int) -> None:
    rng, x = draw(seed)
    scopes: list[tuple[int, ...]] = [(0, 1), (1, 4), (2, 5)]
    y = add_up(rng, x, [*scopes, (3,)]) + 0.5 * rng.normal(size=len(x))
    assert list(Pairs(alpha=0.001).decide(x, y).graph.edges) == scopes


def test_an_interaction_of_three_joins_all_three_of_them() -> None:
    rng, x = draw(0)
    found = Pairs(alpha=0.001).decide(x, add_up(rng, x, [(0, 2, 4)]))
    assert found.graph.cliques == ((0, 2, 4), (1,), (3,), (5,))
    assert (found.rows, found.dropped) == (1500, 0)


def test_a_sum_of_single_variables_has_no_edges_even_without_noise() -> None:
    rng, x = draw(1)
    assert Pairs().decide(x, add_up(rng, x, [(i,) for i in range(6)])).graph.edges == ()


def test_without_any_effect_p_values_are_uniform() -> None:
    rng, x = draw(2, n=400)
    pairs = list(combinations(range(6), 2))
    p = np.concatenate([
        compare_pairs(x, *explain(x, rng.normal(size=400), [(i,) for i in range(6)], SIZES), pairs,
                      SIZES)
        for _ in range(40)
    ])  # fmt: skip
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


def test_a_weak_pair_is_found_once_the_strong_ones_are_explained() -> None:
    rng, x = draw(3, n=400)
    strong: list[tuple[int, ...]] = [(0, 1), (2, 4)]
    y = 10 * add_up(rng, x, strong) + add_up(rng, x, [(3, 5)])
    assert (3, 5) not in Pairs(alpha=0.001, rounds=1).decide(x, y).graph.edges
    assert (3, 5) in Pairs(alpha=0.001).decide(x, y).graph.edges


def test_corrections_are_stricter() -> None:
    rng, x = draw(4, n=300)
    y = rng.normal(size=300)
    counts = [
        len(Pairs(alpha=0.3, correction=correction, rounds=1).decide(x, y).graph.edges)
        for correction in ("none", "fdr", "bonferroni")
    ]
    assert counts[0] > counts[1] >= counts[2]


def test_no_more_pairs_are_kept_than_rows_can_fill() -> None:
    rng, x = draw(7, n=100)
    y = add_up(rng, x, [(0, 2), (4, 5), (0, 4), (2, 5), (1, 3)])
    found = Pairs(alpha=0.9, correction="none").decide(x, y)
    assert found.dropped > 0
    assert sum(SIZES[i] * SIZES[j] for i, j in found.graph.edges) <= 100


def test_too_few_rows_to_test_by_join_nothing() -> None:
    rng, x = draw(5, n=12)
    assert Pairs().decide(x, rng.normal(size=12)).graph.edges == ()


def test_each_seed_has_a_graph_of_its_own() -> None:
    rng, x = draw(6)
    y = torch.from_numpy(np.stack([add_up(rng, x, [(0, 1)]), add_up(rng, x, [(4, 5)])]))
    inputs = GraphInputs(
        torch.from_numpy(x).expand(2, -1, -1), y, Privileged(), Streams((0, 1), "graph")
    )
    assert [one.graph.edges for one in Pairs().discover(inputs)] == [((0, 1),), ((4, 5),)]


def test_codes_are_declined() -> None:
    reason = Pairs().declines(Space(3))
    assert reason is not None
    assert reason.startswith("graph=pairs tests categories")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, r"^graph.alpha must be a level between 0 and 1, got 0.0$"),
        ({"correction": "holm"}, r"^graph.correction must be "),
        ({"rounds": 0}, r"^graph.rounds must be "),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Pairs(**settings)  # type: ignore[arg-type]

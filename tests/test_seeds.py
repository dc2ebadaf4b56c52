"""Promises of the spelling of seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddobench.errors import UsageError
from ddobench.seeds import format_seeds, parse_seeds

REMEDY = "write seed=7, seed=0-49 or seed=0-9,20-24"


@pytest.mark.parametrize(
    ("spelling", "seeds"),
    [
        ("7", (7,)),
        (7, (7,)),
        ("0-3", (0, 1, 2, 3)),
        ("5-5", (5,)),
        ("0-2,20-21", (0, 1, 2, 20, 21)),
        ("3, 1 ,2", (3, 1, 2)),
        ([4, 2], (4, 2)),
        (range(3), (0, 1, 2)),
    ],
)
def test_every_documented_spelling_is_read_in_the_order_written(
    spelling: object, seeds: tuple[int, ...]
) -> None:
    assert parse_seeds(spelling) == seeds


def test_a_seed_named_twice_counts_once() -> None:
    assert parse_seeds("3,0-4,3") == (3, 0, 1, 2, 4)
    assert parse_seeds([1, 1, 0]) == (1, 0)


def test_numpy_seeds_become_plain_whole_numbers() -> None:
    seeds = parse_seeds(np.arange(3))
    assert seeds == (0, 1, 2)
    assert {type(seed) for seed in seeds} == {int}


@pytest.mark.parametrize("spelling", ["abc", "", "1,", "-1", "1.5", "0-", "1 2", "0--3", "null"])
def test_a_word_that_is_no_seed_is_repeated_with_the_remedy(spelling: str) -> None:
    with pytest.raises(UsageError, match=f"got {spelling!r}; {REMEDY}"):
        parse_seeds(spelling)


@pytest.mark.parametrize("spelling", [-1, 1.0, True, None, [0, "1"], [0, -3]])
def test_a_value_that_is_no_seed_is_refused_with_the_remedy(spelling: object) -> None:
    with pytest.raises(UsageError, match=rf"whole number of at least 0, got .*; {REMEDY}"):
        parse_seeds(spelling)


def test_a_backward_range_is_turned_round_in_the_remedy() -> None:
    with pytest.raises(UsageError, match="the seed range 9-3 runs backwards; write seed=3-9"):
        parse_seeds("0,9-3")


def test_no_seed_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=f"seed names no seed at all; {REMEDY}"):
        parse_seeds([])


@pytest.mark.parametrize(
    ("seeds", "spelling"),
    [((7,), "7"), ((0, 1, 2), "0-2"), ((0, 1, 5, 7, 8), "0-1,5,7-8"), ((3, 2, 1), "3,2,1")],
)
def test_runs_of_seeds_are_spelled_as_ranges(seeds: tuple[int, ...], spelling: str) -> None:
    assert format_seeds(seeds) == spelling


@given(st.lists(st.integers(0, 30), min_size=1, unique=True))
def test_a_compact_spelling_is_read_back_in_the_same_order(seeds: list[int]) -> None:
    assert parse_seeds(format_seeds(seeds)) == tuple(seeds)

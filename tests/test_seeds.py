"""Seeds as text: parsing and formatting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddobench.errors import UsageError
from ddobench.seeds import format_seeds, parse_seeds

REMEDY = "write seed=7, seed=0-49 or seed=0-9,20-24"


@pytest.mark.parametrize(
    ("text", "seeds"),
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
    text: object, seeds: tuple[int, ...]
) -> None:
    assert tuple(parse_seeds(text)) == seeds


def test_a_seed_named_twice_counts_once() -> None:
    assert [*parse_seeds("3,0-4,3")] == [3, 0, 1, 2, 4]
    assert [*parse_seeds([1, 1, 0])] == [1, 0]


def test_numpy_seeds_become_plain_whole_numbers() -> None:
    seeds = parse_seeds(np.arange(3))
    assert [*seeds] == [0, 1, 2]
    assert {type(seed) for seed in seeds} == {int}


@pytest.mark.parametrize("text", ["abc", "", "1,", "-1", "1.5", "0-", "1 2", "0--3", "null"])
def test_a_word_that_is_no_seed_is_repeated_with_the_remedy(text: str) -> None:
    with pytest.raises(UsageError, match=f"got {text!r}; {REMEDY}"):
        parse_seeds(text)


@pytest.mark.parametrize("text", [-1, 1.0, True, None, [0, "1"], [0, -3]])
def test_a_value_that_is_no_seed_is_refused_with_the_remedy(text: object) -> None:
    with pytest.raises(UsageError, match=rf"whole number of at least 0, got .*; {REMEDY}"):
        parse_seeds(text)


def test_a_backward_range_is_turned_round_in_the_remedy() -> None:
    with pytest.raises(UsageError, match="the seed range 9-3 runs backwards; write seed=3-9"):
        parse_seeds("0,9-3")


def test_no_seed_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match=f"seed names no seed at all; {REMEDY}"):
        parse_seeds([])


@pytest.mark.parametrize(
    ("seeds", "text"),
    [((7,), "7"), ((0, 1, 2), "0-2"), ((0, 1, 5, 7, 8), "0-1,5,7-8"), ((3, 2, 1), "3,2,1")],
)
def test_consecutive_seeds_are_written_as_ranges(seeds: tuple[int, ...], text: str) -> None:
    assert format_seeds(seeds) == text


SPELLINGS = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 8)).map(
        lambda pair: f"{pair[0]}" if not pair[1] else f"{pair[0]}-{sum(pair)}"
    ),
    min_size=1,
    max_size=6,
).map(",".join)


def listed(text: str) -> list[int]:
    """Return the seeds of a text, one by one."""
    ends = [list(map(int, part.split("-"))) for part in text.split(",")]
    return list(dict.fromkeys(seed for end in ends for seed in range(end[0], end[-1] + 1)))


@given(SPELLINGS)
def test_ranges_hold_what_a_list_would_hold(text: str) -> None:
    seeds = parse_seeds(text)
    assert [*seeds] == listed(text)
    assert len(seeds) == len(listed(text))
    assert [seed for seed in range(60) if seed in seeds] == sorted(seeds)


@given(SPELLINGS)
def test_a_text_is_read_back_in_the_same_order(text: str) -> None:
    seeds = parse_seeds(text)
    assert parse_seeds(format_seeds(seeds)) == seeds
    assert parse_seeds([*seeds]) == seeds
    assert format_seeds([*seeds]) == format_seeds(seeds)


@given(SPELLINGS, st.sets(st.integers(0, 50)))
def test_seeds_without_others_keep_their_order(text: str, others: set[int]) -> None:
    left = parse_seeds(text).without(others)
    assert [*left] == [seed for seed in listed(text) if seed not in others]


@given(SPELLINGS, st.integers(1, 9))
def test_seeds_split_into_batches_of_one_size(text: str, size: int) -> None:
    batches = [[*batch] for batch in parse_seeds(text).split(size)]
    assert [seed for batch in batches for seed in batch] == listed(text)
    assert all(len(batch) == size for batch in batches[:-1])
    assert 1 <= len(batches[-1]) <= size


@given(st.text(max_size=12) | st.from_regex(r"[0-9,\- ]{1,12}", fullmatch=True))
def test_any_text_is_read_as_it_is_written_back_or_refused(text: str) -> None:
    try:
        seeds = parse_seeds(text)
    except UsageError:
        return
    assert parse_seeds(format_seeds(seeds)) == seeds


def test_a_long_range_stays_a_range() -> None:
    seeds = parse_seeds("0-9999999,5-20000000")
    assert seeds.ranges == (range(20_000_001),)
    assert len(seeds.without([3])) == 20_000_000
    assert format_seeds(seeds) == "0-20000000"


@pytest.mark.parametrize("text", [str(10**18), f"0-{10**18}", "9" * 5000, [10**18]])
def test_a_seed_that_no_table_can_hold_is_refused(text: object) -> None:
    with pytest.raises(UsageError, match=f"a seed must be a whole number of at most {10**18 - 1}"):
        parse_seeds(text)

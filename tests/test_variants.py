"""Variants: settings as one text, and back to the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddobench.variants import format_variant, split_variant

NAMES = st.from_regex(r"[a-z_]{1,8}(\.[a-z_]{1,8}){0,2}", fullmatch=True)
VALUES = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["0.1", "[1, 2]", "a b=c", "", " ", '"', "true", "x=1 y=2", "\n", "a\\"]),
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_settings_come_back_as_they_were(settings: dict[str, str]) -> None:
    assert split_variant(format_variant(settings)) == settings


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, ""),
        ({"latent": "scores", "search.prior": "0.1"}, "latent=scores search.prior=0.1"),
        ({"sizes": "[1, 2]", "n": "3"}, "sizes=[1, 2] n=3"),
        ({"word": "a b=c"}, 'word="a b=c"'),
    ],
)
def test_plain_settings_read_as_they_are_typed(settings: dict[str, str], text: str) -> None:
    assert format_variant(settings) == text


@pytest.mark.parametrize(
    ("variant", "settings"),
    [
        ("", {}),
        ("signs=random", {"signs": "random"}),
        ("b=[1, 2] a.deep=None", {"b": "[1, 2]", "a.deep": "None"}),
        ("rule=x=1", {"rule": "x=1"}),
    ],
)
def test_a_variant_is_its_settings_by_name(variant: str, settings: dict[str, str]) -> None:
    assert split_variant(variant) == settings

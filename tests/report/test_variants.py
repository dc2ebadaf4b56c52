"""Promises of variants taken apart."""

import pytest

from ddobench.report.tables.variants import split_variant


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

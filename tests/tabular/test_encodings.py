"""Designs of every kind of column are encoded as numbers and decoded to what they were."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.errors import UsageError
from ddobench.tabular import encodings
from ddobench.tabular.encodings import (
    Encoding,
    count_decimals,
    describe_columns,
    find_levels,
)
from ddobench.tabular.rows import gather_rows

TABLE = pd.DataFrame(
    {
        "speed": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5],
        "count": [1, 2, 5, 9, 1, 2],
        "metal": ["tin", "zinc", "tin", "iron", "iron", "tin"],
        "dry": [True, False, True, True, False, True],
        "site": ["here"] * 6,
        "y": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    }
)


def encoding(table: pd.DataFrame = TABLE, native: bool = False, **kinds: Any) -> Encoding:
    """Return the encoding of a table."""
    rows = gather_rows(table, "y", categorical=kinds.get("categorical", []))
    return Encoding(describe_columns(rows, **kinds), native)


def test_every_kind_of_column_is_recognised() -> None:
    kinds = [column.kind for column in encoding().columns]
    assert kinds == ["number", "whole", "category", "category", "constant"]
    assert [c.kind for c in encoding(whole=["speed"]).columns][:2] == ["whole", "number"]
    assert encoding(categorical=["count"]).columns[1].levels == (1, 2, 5, 9)


def test_levels_are_numbers_that_decode_to_the_nearest() -> None:
    found = encoding(levels={"speed": (0.0, 2.5), "count": (1, 5)})
    assert [column.kind for column in found.columns][:2] == ["level", "level"]
    assert found.encode(TABLE)[:, :2].tolist() == TABLE[["speed", "count"]].to_numpy().tolist()
    decoded = found.decode(np.array([[1.0, 2.9], [9.0, 3.1]]) @ np.eye(2, 7))
    assert decoded["speed"].tolist() == [0.0, 2.5]
    assert decoded["count"].tolist() == [1, 5]
    assert decoded["count"].dtype == np.int64


def test_columns_with_few_numbers_have_levels() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"few": rng.choice([1, 2], 60), "many": np.arange(60), "y": rng.normal(size=60)}
    )
    rows = gather_rows(table, "y")
    assert find_levels(rows, {}) == {"few": (1.0, 2.0)}
    assert find_levels(rows, {}, ["few"]) == {}
    assert find_levels(rows, {"many": [3, 1]})["many"] == (1.0, 3.0)
    assert len(find_levels(rows, {"many": None})["many"]) == 60
    assert find_levels(gather_rows(table.iloc[:8], "y"), {}) == {}  # too few rows to tell


@pytest.mark.parametrize(
    ("numbers", "decimals"),
    [
        ([0.1, 0.2, 0.7], 1),
        ([1.25, 3.0], 2),
        ([3.0, 5.0], 0),
        ([850.0, 900.0, 1010.0], -1),
        ([850.0, 900.0], 0),  # too few steps of ten to tell
        ([1e-9, 2.5e-9], 10),
        (np.random.default_rng(0).normal(size=9) * 1e3, None),
    ],
)
def test_decimals_are_those_of_the_column(numbers: Any, decimals: int | None) -> None:
    assert count_decimals(np.asarray(numbers)) == decimals


def test_a_category_cannot_be_whole() -> None:
    for name, categorical in (("metal", []), ("count", ["count"])):
        with pytest.raises(UsageError, match=r"is a category and cannot be whole; leave it out of"):
            encoding(whole=[name], categorical=categorical)


def test_a_table_too_large_to_encode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "MOST_NUMBERS", 41)
    with pytest.raises(UsageError, match=r"^the table has 6 rows of 7 numbers when categories"):
        encoding()


def test_categories_are_encoded_one_hot() -> None:
    found = encoding()
    assert found.names() == [
        "speed", "count", "metal=iron", "metal=tin", "metal=zinc", "dry=False", "dry=True",
    ]  # fmt: skip
    codes = found.encode(TABLE)
    assert found.space.d == codes.shape[1] == 7
    assert not found.space.categorical
    assert codes[1].tolist() == [1.5, 2, 0, 0, 1, 1, 0]


@pytest.mark.parametrize("native", [False, True])
def test_decoding_inverts_encoding(native: bool) -> None:
    table = TABLE[["metal", "dry", "site", "y"]] if native else TABLE
    found = encoding(table, native)
    pd.testing.assert_frame_equal(found.decode(found.encode(table)), table.drop(columns="y"))


def test_codes_between_levels_decode_to_the_nearest_design() -> None:
    found = encoding()
    (row,) = found.decode(np.array([[0.7, 2.6, 0.2, 0.1, 0.4, -1.0, -2.0]])).to_dict("records")
    assert row == {"speed": 0.7, "count": 3, "metal": "zinc", "dry": False, "site": "here"}


def test_categories_alone_can_be_encoded_as_a_categorical_space() -> None:
    table = TABLE[["metal", "dry", "y"]]
    found = encoding(table, native=True)
    assert found.space.sizes == (3, 2)
    assert found.encode(table)[0].tolist() == [1.0, 1.0]
    assert found.categorical
    assert not encoding().categorical


def test_numbers_are_encoded_and_decoded_to_the_bit() -> None:
    x = np.random.default_rng(1).normal(size=(50, 3))
    rows = gather_rows(x, x[:, 0])
    found = Encoding(describe_columns(rows))
    np.testing.assert_array_equal(found.encode(rows.designs), x)
    np.testing.assert_array_equal(found.encode(found.decode(x)), x)


def test_a_huge_whole_number_can_be_decoded() -> None:
    assert encoding().decode(np.full((1, 7), 1e300))["count"].tolist() == [1e300]

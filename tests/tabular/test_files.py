"""Promises of reading files: every digit, and one sentence where there is no table."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.errors import UsageError
from ddobench.tabular.files import EXAMPLE, content_hash, read_table

TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "y"])


@pytest.mark.parametrize("ending", ["csv", "parquet", "CSV"])
def test_numbers_pass_through_a_file_to_the_last_bit(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"my table.{ending}"
    if ending == "parquet":
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), TABLE, check_exact=True)


def test_a_hash_is_of_the_content_wherever_it_lies(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        TABLE.to_csv(tmp_path / name, index=False)
    assert content_hash(tmp_path / "one.csv") == content_hash(tmp_path / "two.csv")
    TABLE.iloc[::-1].to_csv(tmp_path / "two.csv", index=False)
    assert content_hash(tmp_path / "one.csv") != content_hash(tmp_path / "two.csv")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, r"^there is no file .*none\.csv; give the path of a CSV or Parquet ta"),
        ("table.xlsx", b"PK", r"^a table must be a \.csv or \.parquet file, got 'table\.xlsx'$"),
        ("empty.csv", b"", r"empty\.csv cannot be read as a table: Empty CSV file"),
        ("false.parquet", b"no", r"false\.parquet cannot be read as a table: "),
        ("torn.csv", b'a,b\n"1', r"torn\.csv cannot be read as a table: "),
        ("semi.csv", b"a;y\n1;2\n", r"semi\.csv has a single column, 'a;y'; separate by commas$"),
        ("bytes.csv", b"\xff\xfe\x00,", r"bytes\.csv cannot be read as a table: "),
    ],
)  # fmt: skip
def test_what_is_no_table_is_said_in_a_sentence(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_table(tmp_path / name)


def test_a_small_table_ships_with_the_package() -> None:
    table = read_table(EXAMPLE)
    assert table.columns[-1] == "y"
    assert len(table) >= 100
    assert table.notna().all(axis=None)

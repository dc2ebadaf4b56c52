"""Files are read without losing a digit, in the form that they have; others are one sentence."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.errors import UsageError
from ddobench.tabular import files
from ddobench.tabular.files import EXAMPLE, GivenForm, content_hash, read_file, read_table

TABLE = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 3)), columns=["a", "b", "y"])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "CSV"])
def test_a_file_is_read_to_the_last_bit(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"my table.{suffix}"
    if suffix == "parquet":
        TABLE.to_parquet(path)
    else:
        TABLE.to_csv(path, index=False)
    pd.testing.assert_frame_equal(read_table(path), TABLE, check_exact=True)


def test_the_hash_depends_on_the_content_and_not_on_the_path(tmp_path: Path) -> None:
    for name in ("one.csv", "two.csv"):
        TABLE.to_csv(tmp_path / name, index=False)
    assert content_hash(tmp_path / "one.csv") == content_hash(tmp_path / "two.csv")
    TABLE.iloc[::-1].to_csv(tmp_path / "two.csv", index=False)
    assert content_hash(tmp_path / "one.csv") != content_hash(tmp_path / "two.csv")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("none.csv", None, r"^there is no file .*none\.csv; give the path of a table$"),
        ("table.ods", b"PK", r"^a table must be a file of \.csv, .*\.parquet, got 'table\.ods'$"),
        ("table.xlsx", b"PK", r"table\.xlsx (cannot be read as a table: |needs openpyxl)"),
        ("empty.csv", b"", r"empty\.csv cannot be read as a table: Empty CSV file"),
        ("false.parquet", b"no", r"false\.parquet cannot be read as a table: "),
        ("torn.csv", b'a,b\n"1', r"torn\.csv cannot be read as a table: "),
        ("bytes.csv", b"\xff\xfe\x00", r"bytes\.csv cannot be read as a table: 'utf-16"),
        ("both.csv", b"a;y\n1,5;2.5\n", r"both\.csv .* numbers such as 2\.5 and such as 1,5; give"),
        ("ragged.csv", b"a,y\n1,2\n3\n", r"ragged\.csv cannot be read .* Expected 2 columns, got"),
        ("escape.csv", b"a,y\n1,2,\x1b\n", r"Expected 2 columns, got 3: 1,2,\\x1b$"),
        ("twice.csv", b"a,a\n1,2\n", r"twice\.csv cannot be read .* different names, got 'a' "),
        ("n" * 300 + ".csv", None, r"nn\.csv cannot be read: File name too long; give the path "),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_table_is_one_sentence(
    tmp_path: Path, name: str, content: bytes | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=sentence):
        read_table(tmp_path / name)


def test_a_folder_or_a_pipe_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    for name in ("folder.csv", "pipe.csv"):
        with pytest.raises(UsageError, match=rf"{name} is a folder or a pipe; give the path of a "):
            read_table(tmp_path / name)


def test_a_byte_order_mark_and_quoted_line_breaks_are_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b'\xef\xbb\xbfa,y\n"two\nlines",2\nb,3\n')
    assert read_table(path).to_dict("list") == {"a": ["two\nlines", "b"], "y": [2, 3]}


def test_the_index_of_a_parquet_file_becomes_columns(tmp_path: Path) -> None:
    TABLE.set_index(["a", "y"]).to_parquet(tmp_path / "table.parquet")
    assert read_table(tmp_path / "table.parquet").columns.tolist() == ["a", "y", "b"]
    TABLE[TABLE["a"] > 0].to_parquet(tmp_path / "some.parquet")  # with an index without a name
    assert read_table(tmp_path / "some.parquet").columns.tolist() == ["a", "b", "y"]


def test_an_example_table_ships_with_the_package() -> None:
    table = read_table(EXAMPLE)
    assert table.columns[-1] == "y"
    assert len(table) >= 100
    assert table.notna().all(axis=None)


UMLAUT = pd.DataFrame(
    {"temp\u00e9r": ["\u00e9", "b"] * 3, "x": np.arange(6) / 4, "y": np.arange(6) + 0.5}
)


@pytest.mark.parametrize(
    ("name", "form", "note"),
    [
        ("t.csv", {}, ()),
        ("t.csv", {"encoding": "utf-8-sig"}, ()),
        ("t.csv", {"sep": ";", "decimal": ",", "encoding": "cp1252"},
         ("Read with columns separated by semicolons, decimal commas, encoding cp1252.",)),
        ("t.txt", {"sep": "\t", "encoding": "utf-16"},
         ("Read with columns separated by tabs, encoding utf-16.",)),
        ("t.tsv", {"sep": "\t"}, ("Read with columns separated by tabs.",)),
        ("t.csv", {"decimal": ","}, ("Read with decimal commas.",)),
        ("t.csv", {"sep": "|"}, ("Read with columns separated by bars.",)),
    ],
)  # fmt: skip
def test_separator_decimal_sign_and_encoding_are_detected_and_noted(
    tmp_path: Path, name: str, form: dict[str, str], note: tuple[str, ...]
) -> None:
    UMLAUT.to_csv(tmp_path / name, index=False, **form)  # type: ignore[call-overload]
    found = read_file(tmp_path / name)
    pd.testing.assert_frame_equal(found.table, UMLAUT, check_dtype=False)
    assert found.notes == note
    assert (found.form.sep, found.form.decimal) == (form.get("sep", ","), form.get("decimal", "."))


def test_a_given_form_is_not_detected(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a:y\n1,5:2.5\n\u00e9:3\n".encode("cp1250"))
    found = read_file(tmp_path / "t.csv", GivenForm(sep=":", decimal=",", encoding="cp1250"))
    assert found.table.to_dict("list") == {"a": ["1,5", "\u00e9"], "y": ["2.5", "3"]}
    assert found.notes == ("Read with columns separated by ':', decimal commas, encoding cp1250.",)


def test_only_the_beginning_of_a_large_file_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "SAMPLE", 20)
    (tmp_path / "t.csv").write_text("a;y\n" + "1,5;2\n" * 100)
    assert read_table(tmp_path / "t.csv")["a"].tolist() == [1.5] * 100


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"sep": ";;"}, r"^--sep must be one character or tab, got ';;'$"),
        ({"decimal": ";"}, r"^--decimal must be \. or , got ';'$"),
        (
            {"encoding": "latin-99"},
            r"^--encoding must be one that Python knows, .* got 'latin-99'$",
        ),
    ],
)
def test_a_form_that_no_file_has_is_one_sentence(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        GivenForm(**given)


def test_the_form_of_a_file_that_is_not_text_cannot_be_given(tmp_path: Path) -> None:
    TABLE.to_parquet(tmp_path / "t.parquet")
    with pytest.raises(UsageError, match=r"^--sep is for text files .* got .*t\.parquet; leave it"):
        read_file(tmp_path / "t.parquet", GivenForm(sep=";"))


def test_the_first_sheet_of_a_workbook_is_read(tmp_path: Path) -> None:
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        TABLE.to_excel(book, sheet_name="runs", index=False)
        UMLAUT.to_excel(book, sheet_name="other", index=False)
    found = read_file(tmp_path / "t.xlsx")
    pd.testing.assert_frame_equal(found.table, TABLE)
    assert found.notes == ("Read the first of 2 sheets, 'runs'.",)


def test_a_workbook_without_openpyxl_names_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda _: None)
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(
        UsageError, match=r"needs openpyxl: pip install 'ddobench\[excel\]', or save"
    ):
        read_file(tmp_path / "t.xlsx")

"""Unusable tables raise one sentence, unusual ones are noted."""

from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tabular.rows import gather_rows

X = np.arange(12.0).reshape(6, 2) ** 1.5
Y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 6.0])


def frame(**columns: Any) -> pd.DataFrame:
    """Return six rows with columns a and b, or others of these names."""
    return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], **columns})


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (X, Y),
        (X.tolist(), Y.tolist()),
        (torch.from_numpy(X), torch.from_numpy(Y)),
        (torch.from_numpy(X).requires_grad_(), Y[:, None]),
        (X.astype(object), pd.Series(Y)),
    ],
)
def test_arrays_tensors_and_lists_give_the_same_rows(x: Any, y: Any) -> None:
    rows = gather_rows(x, y)
    assert rows.designs.columns.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(rows.designs.to_numpy(), X)
    np.testing.assert_array_equal(rows.y, Y)
    assert rows.notes == ()


def test_a_frame_keeps_its_names_and_may_contain_the_values() -> None:
    rows = gather_rows(frame(strength=Y), "strength")
    assert (rows.designs.columns.tolist(), rows.target) == (["a", "b"], "strength")
    assert gather_rows(frame(), pd.Series(Y, name="speed")).target == "speed"
    assert gather_rows(frame(extra=Y), Y, drop=["extra"]).designs.columns.tolist() == ["a", "b"]


def test_rows_with_missing_entries_are_left_out_with_a_note() -> None:
    y = Y.copy()
    y[0] = np.nan
    rows = gather_rows(frame(b=[0, 1, None, 3, np.nan, 5]), y)
    assert rows.y.tolist() == [3.0, 5.0, 6.0]
    assert rows.notes == (
        "1 row without a value of y left out.",
        "2 rows with missing entries left out, in column 'b'.",
    )


def test_unusual_rows_are_noted() -> None:
    repeated = frame(a=[1.0, 1.0, 2.0, 3.0, 4.0, 5.0], b=7.0)
    assert gather_rows(repeated, Y).notes == (
        "Constant columns keep their value in every proposal: b.",
        "1 row with the design of another row kept as repeated measurements; "
        "values of the same design differ by up to 2.",
    )
    (note,) = gather_rows(np.random.default_rng(0).normal(size=(3, 5)), Y[:3]).notes
    assert note.startswith("There are fewer rows (3) than columns that vary (5), ")


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (X, Y[:4], r"^y must have one value for each of the 6 rows of x, got 4$"),
        (X[:, 0], Y, r"^x must be a table of rows and columns, got the shape \(6,\)$"),
        (X, X, r"^y must be one value for each row, got the shape \(6, 2\)$"),
        (X[:1], Y[:1], r"^at least 2 complete rows are needed to learn from, got 1$"),
        (X[:0], Y[:0], r"^at least 2 complete rows are needed to learn from, got 0$"),
        (X[:, :0], Y, r"^a design needs at least one column besides its value, got none$"),
        (X, np.ones(6), r"^all 6 values of y are 1, so there is nothing to learn; give a col"),
        (np.ones((6, 2)), Y, r"^every column of x is constant, so nothing can vary; give oth"),
        (frame(b=[1, 2, np.inf, 4, 5, 6]), Y, r"^column 'b' has 1 infinite value, the first in "),
        (X, np.where(Y == 5, -np.inf, Y), r"^column 'y' has 1 infinite value, the first in row 3 "),
        (X, ["good", *Y[1:]], r"^the values of y must be numbers: "),
        (frame(), "z", r"^there is no column 'z'; the columns are a, b$"),
        (frame(b=list("pqrstu")), Y, r"^column 'b' has 6 different strings such as 'p' in 6 r"),
        (frame(b=pd.date_range("2020", periods=6)), Y, r"^column 'b' holds datetime64.*neither a "),
        (X + 1j, Y, r"^column 'x0' holds complex128, which is neither a number nor a category; "),
        ((X + 1j).astype(object), Y, r"^column 'x0' holds complex, which is neither a number nor "),
        (X, Y + 1j, r"^the values of y must be numbers: got complex128$"),
        (X, (Y + 1j).astype(object), r"^the values of y must be numbers: got complex128$"),
        (X, pd.Series(pd.date_range("2020", periods=6)), r"^the values of y must be numbers: got "),
        (X, [10**400, *Y[1:]], r"^the values of y must be numbers: int too large"),
        (frame(b=[[1, 2]] * 6), Y, r"^column 'b' holds lists, which is neither a number nor a cat"),
        (frame(b=[{"p": 1}] * 6), Y, r"^column 'b' holds dict, which is neither a number nor a "),
        (frame(b=[b"p", b"q"] * 3), Y, r"^column 'b' holds bytes, which is neither a number nor "),
        (frame(b=[date(2020, 1, 1), date(2021, 1, 1)] * 3), Y, r"^column 'b' holds date, which is"),
        (frame(b=["p", 1, 2] * 2), Y, r"^column 'b' mixes numbers such as 1 with other entries; "),
        (frame(b=np.nan), Y, r"^column 'b' has no entry in any row with a value of y; leave it ou"),
        (frame(b=[None] * 6), Y, r"^column 'b' has no entry in any row with a value of y; leave i"),
        (X, np.full(6, np.nan), r"^the values of y are all missing; give a column that has values"),
        (frame(a=[1, None] * 3, b=[None, 1] * 3), Y, r"got 0; 6 rows with missing .* 'a', 'b'$"),
        (frame(b=[2**60 + i for i in range(6)]), Y, r"^column 'b' has whole numbers beyond 90071"),
        (X * 1e200, Y, r"^column 'x0' has numbers beyond 1e\+100; rescale it$"),
        (torch.from_numpy(X).bfloat16(), Y, r"^a tensor must convert to a NumPy array: Got unsup"),
        (pd.DataFrame(X, columns=["a", "a"]), Y, r"^columns must have different names, got 'a' t"),
        ([[1.0], [1.0, 2.0]], [1, 2], r"^a table must have rows of the same length: "),
        (frame(), pd.Series(Y, index=range(1, 7)), r"^x and y must have the same index, got two; "),
    ],
)  # fmt: skip
def test_unusable_rows_are_one_sentence(x: Any, y: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gather_rows(x, y)


def test_a_named_index_is_a_column_with_a_note() -> None:
    used = "The index is used as a column of the designs: 'a'; drop leaves it out."
    indexed = frame().set_index("a")
    for y in (Y, pd.Series(Y, index=indexed.index)):
        rows = gather_rows(indexed, y)
        pd.testing.assert_frame_equal(rows.designs, frame())
        assert rows.notes == (used,)
    rows = gather_rows(frame(y=Y).set_index(["y", "a"]), "y", drop=["a"])
    assert (rows.designs.columns.tolist(), rows.y.tolist(), rows.notes) == (["b"], Y.tolist(), ())
    numbered = gather_rows(frame().rename_axis("id"), Y)
    assert numbered.designs.columns.tolist() == ["a", "b"]
    assert numbered.notes == ("The index 'id' numbers the rows and is left out.",)
    with pytest.raises(UsageError, match=r"^columns must have different names, got 'a' twice; "):
        gather_rows(frame().set_index(pd.Index(Y, name="a")), Y)


def test_objects_that_are_numbers_are_numbers() -> None:
    for entries in ([1, None, 2.5, 3, 4, 5], [Decimal(i) / 4 for i in range(6)], [10**30, *Y[1:]]):
        rows = gather_rows(frame(b=pd.Series(entries, dtype=object)), Y)
        assert rows.designs["b"].dtype == np.float64
    mixed = gather_rows([[1.5, "p"], [2.5, "q"], [0.5, "q"]], [1, 2, 3])
    assert mixed.designs["x0"].tolist() == [1.5, 2.5, 0.5]


def test_masked_entries_are_missing() -> None:
    hidden = np.zeros_like(X, dtype=bool)
    hidden[5, 0] = True
    rows = gather_rows(np.ma.masked_array(X, hidden), np.ma.masked_array(Y, Y == 1))
    assert rows.y.tolist() == [3.0, 2.0, 5.0, 4.0]
    assert [note.partition(" left")[0] for note in rows.notes] == [
        "1 row without a value of y", "1 row with missing entries",
    ]  # fmt: skip


def test_strings_most_of_which_are_numbers_are_noted() -> None:
    (note,) = gather_rows(frame(b=["1", "2", "?"] * 2), Y).notes
    assert note.startswith("Column 'b' is read as a category, but 2 of its 3 different entries ar")
    assert gather_rows(frame(b=["1", "2", "?"] * 2), Y, categorical=["b"]).notes == ()


def test_messages_and_notes_have_no_control_characters() -> None:
    odd = frame(**{"\x1b[31m": 1.0, "\x1b[1my": [*Y[:5], np.nan]})
    notes = gather_rows(odd, "\x1b[1my").notes
    assert notes == (
        "1 row without a value of \\x1b[1my left out.",
        "Constant columns keep their value in every proposal: \\x1b[31m.",
    )
    for table, y in ((odd, "z"), (odd.assign(**{"\x1b[1my": 1}), "\x1b[1my")):
        with pytest.raises(UsageError, match=r".") as caught:
            gather_rows(table, y)
        assert str(caught.value).isprintable()


def test_the_given_table_is_not_changed() -> None:
    table = frame(y=[np.nan, *Y[1:]])
    before = table.copy()
    gather_rows(table, "y")
    pd.testing.assert_frame_equal(table, before)

"""Promises of checked rows: what cannot be used is refused or left out, with a word."""

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
    """Return six rows, with some columns in place of the usual ones."""
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
def test_arrays_tensors_and_lists_are_the_same_rows(x: Any, y: Any) -> None:
    rows = gather_rows(x, y)
    assert rows.designs.columns.tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(rows.designs.to_numpy(), X)
    np.testing.assert_array_equal(rows.y, Y)
    assert rows.notes == ()


def test_a_frame_keeps_its_names_and_may_hold_the_values() -> None:
    rows = gather_rows(frame(strength=Y), "strength")
    assert (rows.designs.columns.tolist(), rows.target) == (["a", "b"], "strength")
    assert gather_rows(frame(), pd.Series(Y, name="speed")).target == "speed"
    assert gather_rows(frame(extra=Y), Y, drop=["extra"]).designs.columns.tolist() == ["a", "b"]


def test_rows_with_holes_are_left_out_with_a_word() -> None:
    y = Y.copy()
    y[0] = np.nan
    rows = gather_rows(frame(b=[0, 1, None, 3, np.nan, 5]), y)
    assert rows.y.tolist() == [3.0, 5.0, 6.0]
    assert rows.notes == (
        "1 row without a value of y left out.",
        "2 rows with missing entries left out, in column 'b'.",
    )


def test_what_does_no_harm_is_told() -> None:
    repeated = frame(a=[1.0, 1.0, 2.0, 3.0, 4.0, 5.0], b=7.0)
    assert gather_rows(repeated, Y).notes == (
        "Columns that never change are kept as they are: b.",
        "1 row with the design of another kept as measured again; "
        "values of the same design differ by up to 2.",
    )
    (note,) = gather_rows(np.random.default_rng(0).normal(size=(3, 5)), Y[:3]).notes
    assert note.startswith("Fewer rows (3) than columns that vary (5): ")


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        (X, Y[:4], r"^y must have one value for each of the 6 rows of x, got 4$"),
        (X[:, 0], Y, r"^x must be a table of rows and columns, got the shape \(6,\)$"),
        (X, X, r"^y must be one value for each row, got the shape \(6, 2\)$"),
        (X[:1], Y[:1], r"^at least 2 complete rows are needed to learn from, got 1$"),
        (X[:0], Y[:0], r"^at least 2 complete rows are needed to learn from, got 0$"),
        (X[:, :0], Y, r"^a design needs at least one column besides its value, got none$"),
        (X, np.ones(6), r"^all 6 values of y are 1: there is nothing to learn$"),
        (np.ones((6, 2)), Y, r"^every column of x is constant: there is nothing to choose$"),
        (frame(b=[1, 2, np.inf, 4, 5, 6]), Y, r"^column 'b' has 1 infinite value, the first in "),
        (X, np.where(Y == 5, -np.inf, Y), r"^column 'y' has 1 infinite value, the first in row 3 "),
        (X, ["good", *Y[1:]], r"^the values of y must be numbers: "),
        (frame(), "z", r"^there is no column 'z'; the columns are a, b$"),
        (frame(b=list("pqrstu")), Y, r"^column 'b' has 6 different texts such as 'p' in 6 rows, "),
        (frame(b=pd.date_range("2020", periods=6)), Y, r"^column 'b' holds datetime64.*neither a "),
        (X + 1j, Y, r"^column 'x0' holds complex128, which is neither a number nor a category; "),
        (pd.DataFrame(X, columns=["a", "a"]), Y, r"^columns must have different names, got 'a' t"),
        ([[1.0], [1.0, 2.0]], [1, 2], r"^a table must have rows of the same length: "),
        (frame(), pd.Series(Y, index=range(1, 7)), r"^x and y must have the same index, got two; "),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_sentence(x: Any, y: Any, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        gather_rows(x, y)


def test_nothing_is_changed_in_the_table_of_the_user() -> None:
    table = frame(y=[np.nan, *Y[1:]])
    before = table.copy()
    gather_rows(table, "y")
    pd.testing.assert_frame_equal(table, before)

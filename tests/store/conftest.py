"""An empty store, and the place in it of the runs that `tests.support.records` makes."""

from pathlib import Path

import pytest

from ddobench.store.runs import Place, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store whose folder does not exist yet."""
    return Store(tmp_path / "runs")


@pytest.fixture
def place(store: Store) -> Place:
    """Return the place of one specification."""
    return store.place("toy", "mine", 3, 10, "abc")

"""Settings shared by all tests."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

# Tests run side by side: more threads than cores make small matrix products crawl.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from hypothesis import settings  # noqa: E402 - the numeric libraries read the above on import

import ddobench  # noqa: E402, F401 - sets the mode of MKL's products before the first of them

if TYPE_CHECKING:
    from tests.support.synthetic_stores import Fill

pytest.register_assert_rewrite("tests.support.drawn")  # so that a failure shows what was drawn

# No deadline: a busy machine is not a bug. The same examples every time: neither is a lucky day.
settings.register_profile("ddobench", deadline=None, derandomize=True, database=None)
settings.load_profile("ddobench")


QUICK_TASKS = ("quadratic",)  # the smallest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let promises to the bit, and the conformance of most tasks, count as slow: they take long."""
    for item in items:
        if item.get_closest_marker("bits"):
            item.add_marker(pytest.mark.slow)
        if item.path.name == "test_conformance.py" and isinstance(item, pytest.Function):
            task = item.callspec.params.get("task") if hasattr(item, "callspec") else None
            if task is not None and task not in QUICK_TASKS:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def restore_log() -> Iterator[None]:
    """Undo what the command line does to our log, so that no test depends on another."""
    log = logging.getLogger("ddobench")
    before = [*log.handlers], log.level, log.propagate
    yield
    log.handlers, log.propagate = before[0], before[2]
    log.setLevel(before[1])


@pytest.fixture
def fill(tmp_path: Path) -> "Fill":
    """Return a function that stores rows and returns the folder."""
    from tests.support.synthetic_stores import store_rows  # not above: most tests need no report

    return lambda rows: store_rows(tmp_path / "runs", rows)

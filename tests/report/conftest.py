"""The report that tests share."""

import pytest

from tests.support.varied_store import VariedReport, write_varied_report


@pytest.fixture(scope="session")
def varied(tmp_path_factory: pytest.TempPathFactory) -> VariedReport:
    """Return a report with every kind of figure, written once for all tests that only read it."""
    return write_varied_report(tmp_path_factory.mktemp("varied"))

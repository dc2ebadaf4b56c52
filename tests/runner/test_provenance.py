"""Promises of what a record says about its origin."""

import json
import subprocess
from collections.abc import Iterator

import numpy as np
import pytest

from ddobench.runner import provenance


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    """Ask anew in every test, and afterwards."""
    provenance.describe_machine.cache_clear()
    yield
    provenance.describe_machine.cache_clear()


def test_a_machine_is_described_in_plain_words() -> None:
    found = provenance.describe_machine()
    assert json.loads(json.dumps(found)) == found
    assert found["packages"].keys() == set(provenance.PACKAGES)
    assert found["packages"]["torch"][0].isdigit()
    assert found["python"].startswith("3.")
    assert found["threads"] >= 1
    assert isinstance(found["dirty"], bool)


def test_a_package_that_is_not_there_is_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package",))
    found = provenance.describe_machine()
    assert found["packages"] == {"no-such-package": "not installed"}


@pytest.mark.parametrize("error", [FileNotFoundError(), subprocess.CalledProcessError(128, "git")])
def test_a_tree_without_git_has_no_revision(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ddobench.runner.provenance.subprocess.run", fail)
    found = provenance.describe_machine()
    assert (found["revision"], found["dirty"]) == ("", False)


def test_the_digest_of_rows_ignores_rounding_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    known = provenance.digest_rows(x, y)
    assert provenance.digest_rows(x * (1 + 1e-14), y + 1e-14) == known
    others = [
        (x, y + 0.01), (x, y[::-1]), (x[::-1], y), (2 * x, y), (x, 2 * y), (x[:, :2], y),
        (x[:49], y[:49]), (0 * x, y), (x, 0 * y),
    ]  # fmt: skip
    assert len({known, *(provenance.digest_rows(*other) for other in others)}) == 1 + len(others)

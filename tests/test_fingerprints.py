"""A fingerprint changes with what a function does, and with nothing else."""

import functools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from ddobench.errors import UsageError
from ddobench.fingerprints import fingerprint


def define(source: str, name: str = "mine") -> Any:
    """Return a function from its source, as a notebook defines it."""
    namespace: dict[str, Any] = {"__name__": "__main__", "np": np}
    exec(source, namespace)
    return namespace[name]


@dataclass
class Settings:
    """An object of a user."""

    rate: float = 0.1
    weights: list[float] = field(default_factory=list)
    least: float | None = None

    def move(self, x: Any) -> Any:
        """Use the settings."""
        return x * self.rate


SAME = {
    "comments": ("def mine(x):\n  return x + 1", "def mine(x):\n\n  # more\n  return x + 1"),
    "docstrings": ('def mine(x):\n  "one"\n  return x', 'def mine(x):\n  "two"\n  return x'),
    "unused names": ("a = 1\ndef mine(x): return x", "a = 2\ndef mine(x): return x"),
}
OTHER = {
    "constants": ("def mine(x): return x + 1", "def mine(x): return x + 2"),
    "defaults": ("def mine(x, a=1): return x", "def mine(x, a=2): return x"),
    "keyword defaults": ("def mine(x, *, a=1): return x", "def mine(x, *, a=2): return x"),
    "globals": ("a = 1\ndef mine(x): return x + a", "a = 2\ndef mine(x): return x + a"),
    "arrays": (
        "a = np.ones(3)\ndef mine(x): return x + a",
        "a = np.zeros(3)\ndef mine(x): return x + a",
    ),
    "helpers": (
        "def h(x): return x\ndef mine(x): return h(x)",
        "def h(x): return -x\ndef mine(x): return h(x)",
    ),
    "names": ("def mine(x): return np.sin(x)", "def mine(x): return np.cos(x)"),
    "inner functions": (
        "def mine(x): return [a + 1 for a in x]",
        "def mine(x): return [a + 2 for a in x]",
    ),
    "first constants": (
        "def mine(x): return ['a' for _ in x]",
        "def mine(x): return ['b' for _ in x]",
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_matter_changes_nothing(name: str) -> None:
    one, two = (fingerprint(define(source), "mine") for source in SAME[name])
    assert one == two


@pytest.mark.parametrize("name", OTHER)
def test_what_matters_changes_it(name: str) -> None:
    one, two = (fingerprint(define(source), "mine") for source in OTHER[name])
    assert one != two


def test_objects_are_known_by_their_content() -> None:
    things: list[Any] = [
        Settings(), Settings(rate=0.2), Settings(weights=[1.0]), Settings(0.2).move,
        Settings(0.3).move, functools.partial(define(SAME["comments"][0]), x=1),
        functools.partial(define(SAME["comments"][0]), x=2),
    ]  # fmt: skip
    prints = [fingerprint(thing, "mine") for thing in things]
    assert len({*prints}) == len(things)
    assert prints == [fingerprint(thing, "mine") for thing in things]


def test_a_network_is_known_by_its_weights() -> None:
    network = torch.nn.Linear(2, 1)

    def mine(x: Any) -> Any:
        return network(x)

    before = fingerprint(mine, "mine")
    with torch.no_grad():
        network.weight += 1
    assert fingerprint(mine, "mine") != before


def test_a_fitted_estimator_is_known_by_its_settings() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    model = linear.Ridge(2.0)
    before = fingerprint(model, "mine")
    model.fit(np.eye(3), np.arange(3.0))
    assert fingerprint(model, "mine") == before != fingerprint(linear.Ridge(3.0), "mine")


def test_a_function_that_calls_itself_is_identified() -> None:
    assert fingerprint(define("def mine(x): return mine(x - 1)"), "mine")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("g = np.random.default_rng(0)\ndef mine(x): return g", "mine uses g, a Generator,"),
        ("import random\ng = random.Random(0)\ndef mine(x): return g", "mine uses g, a Random,"),
        ("g = [iter([1])]\ndef mine(x): return g", r"mine uses g\[0\], a list_iterator,"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_remedy(source: str, found: str) -> None:
    sentence = f"^mine cannot be identified: {found} whose content cannot be read; give version=1"
    with pytest.raises(UsageError, match=sentence):
        fingerprint(define(source), "mine")

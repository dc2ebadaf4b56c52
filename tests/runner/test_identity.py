"""Names and versions: a result's identity is declared, so code may move."""

import re
import types
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from hydra.utils import get_class

from ddobench.identity import Identity, identify, read_identity
from ddobench.runner.build import build_task
from ddobench.runner.spec import digest
from tests.support.fakes import Sum, target

CONF = Path(__file__).parents[2] / "conf"


@dataclass(frozen=True, kw_only=True)
class Named(Sum):
    """A task that says what it is called."""

    name: ClassVar[str] = "sum of everything"


class Heir(Named):
    """Another thing, with no name of its own."""


def config_of(kind: type) -> dict[str, dict[str, object]]:
    return {"task": {"_target_": target(kind), "d": 3, "n": 10}}


def test_moving_and_renaming_a_class_changes_neither_its_digest_nor_its_data(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = digest(config_of(Named))
    drawn = Named(d=3, n=10).problem([4]).data.x
    elsewhere = types.ModuleType("tests.another_place")
    moved = type("Renamed", (Sum,), {"__module__": elsewhere.__name__, "name": Named.name})
    monkeypatch.setitem(__import__("sys").modules, elsewhere.__name__, elsewhere)
    setattr(elsewhere, "Renamed", moved)  # noqa: B010 - the module has no such attribute yet
    config = config_of(moved)
    assert config["task"]["_target_"] == "tests.another_place.Renamed"
    assert digest(config) == before
    assert torch.equal(build_task(config["task"]).problem([4]).data.x, drawn)


def test_a_name_is_not_inherited() -> None:
    assert identify(Named) == Identity("sum of everything", 1)
    assert identify(Heir) == Identity(target(Heir), 1)
    assert digest(config_of(Heir)) != digest(config_of(Named))


def all_addresses() -> list[str]:
    """Return every class that any of our configuration files names."""
    found: set[str] = set()
    for file in CONF.rglob("*.yaml"):
        found |= set(re.findall(r"_target_: (ddobench\.\S+)", file.read_text()))
    return sorted(found)


@pytest.mark.parametrize("address", all_addresses())
def test_the_source_tells_the_same_identity_as_the_class(address: str) -> None:
    known = read_identity(address)
    assert known == identify(get_class(address))
    assert known is not None
    assert known.name != address, "a class of ours declares its name"


@pytest.mark.parametrize("address", ["no.such.Thing", "builtins.dict", "json.NoSuchClass", "Thing"])
def test_a_source_that_does_not_tell_leaves_it_to_the_class(address: str) -> None:
    assert read_identity(address) is None


def test_a_class_without_a_name_goes_by_its_address_in_both_ways() -> None:
    assert read_identity(target(Heir)) == identify(Heir) == Identity(target(Heir), 1)

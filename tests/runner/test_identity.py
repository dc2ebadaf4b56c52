"""Names and versions: a result's identity is declared, so code may move."""

import types
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from ddobench.identity import name_of, version_of
from ddobench.runner.build import build_task
from ddobench.runner.spec import digest
from tests.support.fakes import Sum, target


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
    assert name_of(Named) == "sum of everything"
    assert name_of(Heir) == target(Heir)
    assert digest(config_of(Heir)) != digest(config_of(Named))


def test_a_class_without_a_name_goes_by_its_address() -> None:
    assert name_of(Heir) == "tests.runner.test_identity.Heir"
    assert version_of(Heir) == 1

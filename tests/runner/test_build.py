"""Promises of building tasks and methods from configuration."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch import Tensor

from ddobench.contracts import Dataset, Method, Proposal
from ddobench.errors import UsageError
from ddobench.rng import Streams
from ddobench.runner.build import build_method, build_task, name_classes
from tests.support.fakes import Climb, Sum, target


@dataclass
class Part:
    """A building block inside a method."""

    name: ClassVar[str] = "part"
    version: ClassVar[int] = 3

    size: int = 1
    names: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class Assembled(Method):
    """A method with one parameter of every kind."""

    name: ClassVar[str] = "assembled"
    version: ClassVar[int] = 7

    count: int
    rate: float = 0.1
    on: bool = True
    word: str = "a"
    limit: float | None = None
    part: Part = field(default_factory=Part)
    sizes: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.count < 0:
            raise UsageError(f"method.count must be 0 or more, got {self.count}; use 0")
        if self.word == "bug":
            raise RuntimeError("a bug in the method")

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Learn nothing."""

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Yield the starts."""
        yield Proposal(starts)


def config_of(**parameters: Any) -> dict[str, Any]:
    """Return a configuration of the method above."""
    return {"_target_": target(Assembled), "count": 1, **parameters}


TASK = {"_target_": target(Sum), "d": 3, "n": 10}


def test_parameters_reach_the_class_and_the_card_does_not() -> None:
    task = build_task({**TASK, "card": {"label": "x"}})
    assert task == Sum(d=3, n=10)
    method = build_method(config_of(rate=2, limit=None, card={"color": "red"}))
    assert method == Assembled(count=1, rate=2, limit=None)


def test_parts_are_built_and_lists_arrive_as_plain_lists() -> None:
    part = {"_target_": target(Part), "size": 4, "names": ["a", "b"]}
    method = build_method(config_of(part=part, sizes=[1, 2]))
    assert isinstance(method, Assembled)
    assert method.part == Part(4, ["a", "b"])
    assert type(method.part.names) is list
    assert type(method.sizes) is list


def test_building_leaves_the_configuration_alone() -> None:
    config = config_of(part={"_target_": target(Part), "names": ["a"]})
    before = repr(config)
    build_method(config)
    assert repr(config) == before


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (
            {"steps": 3},
            "method has no parameter 'steps'; it has count, rate, on, word, limit, part, sizes",
        ),
        ({"count": 1.5}, "method.count must be a whole number, got 1.5"),
        ({"count": True}, "method.count must be a whole number, got True"),
        ({"rate": "fast"}, "method.rate must be a number, got 'fast'"),
        ({"rate": None}, "method.rate must be a number, got None"),
        ({"rate": False}, "method.rate must be a number, got False"),
        ({"on": 1}, "method.on must be true or false, got 1"),
        ({"word": 3}, "method.word must be a word, got 3"),
        ({"limit": "x"}, "method.limit must be a number or null, got 'x'"),
        ({"count": -1}, "method.count must be 0 or more, got -1; use 0"),
        (
            {"part": {"_target_": target(Part), "siez": 1}},
            "method.part has no parameter 'siez'; it has size, names",
        ),
        (
            {"part": {"_target_": target(Part), "size": "L"}},
            "method.part.size must be a whole number, got 'L'",
        ),
    ],
)
def test_a_wrong_parameter_is_named_in_one_sentence(
    parameters: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        build_method(config_of(**parameters))


def test_a_parameter_left_out_is_named() -> None:
    with pytest.raises(UsageError, match=r"^task needs the parameter 'n'; give task.n$"):
        build_task({"_target_": target(Sum), "d": 3})


def test_a_task_is_no_method_and_a_method_no_task() -> None:
    with pytest.raises(
        UsageError, match=r"^method._target_ must name a Method, got tests.support.fakes.Sum$"
    ):
        build_method(TASK)
    with pytest.raises(
        UsageError, match=r"^task._target_ must name a Task, got tests.support.fakes.Climb$"
    ):
        build_task({"_target_": target(Climb)})


@pytest.mark.parametrize("name", ["tests.support.fakes.Nothing", "no_such_package.Thing"])
def test_a_class_that_cannot_be_imported_is_named(name: str) -> None:
    with pytest.raises(UsageError, match=f"^method names {name}, which cannot be imported: "):
        build_method({"_target_": name})


def test_a_function_is_no_class() -> None:
    with pytest.raises(UsageError, match=r"^method names os.system, which is not a class$"):
        build_method({"_target_": "os.system"})


def test_a_configuration_without_a_class_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^task must have a _target_, got the keys d, n$"):
        build_task({"d": 3, "n": 10})


def test_a_bug_in_a_class_is_not_taken_for_a_wrong_request() -> None:
    with pytest.raises(Exception, match="a bug in the method") as raised:
        build_method(config_of(word="bug"))
    assert not isinstance(raised.value, UsageError)


def test_every_class_however_deep_is_named_and_nothing_says_where_it_lives() -> None:
    part = {"_target_": target(Part)}
    config = {"task": TASK, "method": config_of(part=part, sizes=[part]), "budget": {"top": 1}}
    named_part = {"_name_": "part", "_version_": 3}
    assert name_classes(config) == {
        "task": {"d": 3, "n": 10, "_name_": "Sum", "_version_": 1},
        "method": {
            "count": 1, "part": named_part, "sizes": [named_part],
            "_name_": "assembled", "_version_": 7,
        },
        "budget": {"top": 1},
    }  # fmt: skip


@pytest.mark.parametrize("key", ["method", "task"])
def test_a_class_that_is_none_of_ours_is_refused_before_it_is_called(
    tmp_path: Path, key: str
) -> None:
    file = tmp_path / "written"
    config = {"_target_": "logging.FileHandler", "filename": str(file)}
    build = {"method": build_method, "task": build_task}[key]
    with pytest.raises(
        UsageError, match=rf"^{key}._target_ must name a {key.title()}, got logging"
    ):
        build(config)
    assert not file.exists()


def test_a_part_that_is_none_of_ours_is_refused_before_it_is_called(tmp_path: Path) -> None:
    file = tmp_path / "written"
    part = {"_target_": "logging.FileHandler", "filename": str(file)}
    with pytest.raises(UsageError, match=r"^method.part._target_ must name a dataclass"):
        build_method(config_of(part=part))
    assert not file.exists()

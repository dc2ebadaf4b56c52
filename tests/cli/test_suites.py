"""A suite has the cells that it promises, for ever; a method of one's own can be run on it."""

import json
from hashlib import blake2b

import pytest

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.report.tables.matrix import read_suite
from ddobench.report.tables.select import BY_SIZE
from ddobench.scores import find_score

PINS = {
    "ddobench-1": "738d032153b222e0",
    "ddobench-1-lite": "6b1c40a5183af757",
}  # another list of cells is another name


@pytest.mark.parametrize("name", PINS)
def test_a_suite_never_changes(name: str) -> None:
    own = registry.read_choice("suite", name)
    frozen = {key: own[key] for key in ("seeds", "scores", "cells")}
    text = json.dumps(frozen)
    assert blake2b(text.encode(), digest_size=8).hexdigest() == PINS[name]


def test_every_suite_is_pinned_and_the_lite_one_is_a_part_of_the_other() -> None:
    assert {entry.name for entry in registry.entries("suite")} == set(PINS)
    lite, whole = (registry.read_choice("suite", name) for name in sorted(PINS, reverse=True))
    assert lite["cells"].items() <= whole["cells"].items()
    assert (lite["seeds"], lite["scores"]) == (whole["seeds"], whole["scores"])


@pytest.mark.parametrize("name", PINS)
def test_scores_and_readers_of_a_suite_exist(name: str) -> None:
    own = registry.read_choice("suite", name)
    assert [find_score(score).name for score in own["scores"]] == own["scores"]
    assert {cell for cells in own["readers"].values() for cell in cells} <= set(own["cells"])


def test_the_report_finds_the_runs_of_every_cell() -> None:
    name = "ddobench-1"
    suite, settings = read_suite(name), registry.read_choice("suite", name)["cells"].values()
    points = [[f"suite={name}", "method=naive", *(f"{key}={value}" for key, value in one.items())]
              for one in settings]  # fmt: skip
    specs = specify_points(points)
    found = [tuple(getattr(spec, key) for key in BY_SIZE) for spec in specs]
    assert found == list(suite.cells.values())
    for spec in specs:
        spec.build_task()

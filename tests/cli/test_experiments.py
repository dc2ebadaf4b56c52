"""The published sweeps of FGM and other methods have the points that they promise; none is run."""

import itertools
import re
from collections.abc import Container
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.cli.sweeper import reduce_cases
from ddobench.report.claims import read_claims
from ddobench.runner.spec import Specification

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow  # many configurations

IDLE = ("naive", "random", "linear")  # what every published cell has, to measure others by


def plan(experiment: str, methods: Container[str]) -> list[str]:
    """Return the titles of the points of an experiment with these methods, in order.

    Options and settings are composed once, not again for every d and n.
    """
    sweeper = read_sweeper(experiment)
    lines: dict[str, None] = {}  # equal points count once
    composed: dict[tuple[str, ...], Specification] = {}
    for case in sweeper.get("cases", [{}]):
        settings = {key: str(value) for key, value in (sweeper["params"] | case).items()}
        settings.pop("seed")
        values = [[f"{key}={value}" for value in text.split(",")] for key, text in settings.items()]
        for words in product(*values):
            if next(word for word in words if word.startswith("method="))[7:] not in methods:
                continue
            sizes = {word[0]: int(word[2:]) for word in words if word.startswith(("d=", "n="))}
            others = tuple(word for word in words if not word.startswith("d="))
            if "surrogate.training.steps" not in settings:  # the default depends on n
                others = tuple(word for word in others if not word.startswith("n="))
            key = (*others, *sizes)
            if key not in composed:
                composed[key] = specification_of(f"experiment={experiment}", *words)
            title = replace(composed[key], **sizes).title  # type: ignore[arg-type]
            lines[title] = None
    return list(lines)


def read_sweeper(experiment: str) -> dict[str, Any]:
    """Return what an experiment sweeps."""
    text = (ROOT / "conf" / "experiment" / f"{experiment}.yaml").read_text(encoding="utf-8")
    sweeper: dict[str, Any] = yaml.safe_load(text)["hydra"]["sweeper"]
    return sweeper


def specification_of(*overrides: str) -> Specification:
    """Return what one run of an experiment is, whatever it sweeps."""
    return specify_points([overrides])[0]


EXPERIMENTS = [entry.name for entry in registry.entries("experiment")]
PUBLISHED = re.findall(r"\w+", re.findall(r"PUBLISHED :=((?:.*\\\n)*.*)", MAKEFILE)[0])


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_budget_that_is_stored_is_the_one_that_is_used(experiment: str) -> None:
    spec = specification_of(f"experiment={experiment}")
    assert spec.config["budget"] == registry.read_choice("budget", spec.budget)


def test_known_graph_takes_few_designs_and_another_budget_takes_its_own() -> None:
    spec = specification_of("experiment=known_graph")
    assert spec.budget == "few_designs"
    assert spec.config["budget"] == {"training": 1.0, "ascent": 1.0, "designs": 128, "top": 128}
    quick = specification_of("experiment=known_graph", "budget=tiny")
    assert quick.config["budget"] == registry.read_choice("budget", "tiny")


def test_claims_on_the_known_graph_are_tested_on_the_runs_of_that_experiment() -> None:
    budget = specification_of("experiment=known_graph").budget
    about = [claim for claim in read_claims().claims if "experiment=known_graph" in claim.command]
    assert len(about) == 3
    assert {claim.question.budget for claim in about} == {budget}


def test_the_later_codes_map_has_ten_more_observed_dimensions() -> None:
    assert plan("later_code_map", ["naive"]) == [
        f"naive on chain d={d} n=10000 map=gaussian" for d in (11, 41)
    ]
    assert specification_of("experiment=later_code_map").config["task"]["d_obs"] is None


PAPERS = ("regret", "known_graph", "chains_small", "chains", "mixture", "supplement", "confidence",
          "controls")  # fmt: skip


@pytest.mark.parametrize("experiment", PAPERS)
def test_an_experiment_of_the_paper_has_the_runs_of_its_claims(experiment: str) -> None:
    claims = [c for c in read_claims().claims if f"experiment={experiment}" in c.command.split()]
    assert claims
    methods = {side.method for claim in claims for side in claim.question.sides}
    planned = {frozenset(title.split()) for title in plan(experiment, methods)}
    for claim in claims:
        asked = claim.question
        for side, d in product(asked.sides, asked.d):
            wanted = f"{side.method} on {asked.task} d={d} n={asked.n} {side.method_variant}"
            assert frozenset(wanted.split()) in planned, claim.id


@pytest.mark.parametrize("experiment", PUBLISHED)
def test_every_published_cell_has_doing_nothing_in_it(experiment: str) -> None:
    sweeper = read_sweeper(experiment)
    cases = [sweeper["params"] | case for case in sweeper.get("cases", [{}])]
    measured = {
        cell for case in cases if {*IDLE} <= {*_words(case["method"])} for cell in _cells(case)
    }
    for case in cases:
        assert _cells(case) <= measured, case


def _cells(case: dict[str, Any]) -> set[tuple[tuple[str, str], ...]]:
    places = [key for key in sorted(case) if key in ("task", "d", "n") or key.startswith("task.")]
    values = [[(key, value) for value in _words(str(case[key]))] for key in places]
    return {*itertools.product(*values)}


def _words(names: str) -> list[str]:
    return names.split(",")


def test_the_cross_has_every_combination_of_its_levels_on_each_task() -> None:
    cases = read_sweeper("cross")["cases"]
    met: dict[str, list[tuple[str, ...]]] = {}
    for case in cases:
        values = {name: str(value).split(",") for name, value in case.items()}
        parts = [values.get(part, [""]) for part in ("latent", "surrogate", "search")]
        for task in values["task"]:
            met.setdefault(task, []).extend(product(*parts) if "surrogate" in case else [])
    assert set(met) == {"chain", "mixture", "nk", "tfbind8"}
    for task, combinations in met.items():
        levels = [sorted(set(column)) for column in zip(*combinations, strict=True)]
        assert sorted(combinations) == sorted(product(*levels)), task  # each of them, and once
        assert [len(names) for names in levels][1:] == [4, 3]


CASES = [
    {"method": "ga,fgm", "task": "chain"},
    {"method": "fgm", "graph": "pairs"},
    {"method": "rwr", "task": "nk"},
    {"task": "rbf"},
]


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("ga", [(0, "ga"), (3, "ga")]),
        ("fgm,rwr", [(0, "fgm"), (1, "fgm"), (2, "rwr"), (3, "fgm,rwr")]),
        ("mine", [(0, "mine"), (1, "mine"), (2, "mine"), (3, "mine")]),  # named by no case
    ],
)
def test_typed_methods_leave_out_the_cases_of_others(
    typed: str, kept: list[tuple[int, str]]
) -> None:
    expected = [(["seed=0", f"method={names}"], CASES[case]) for case, names in kept]
    assert reduce_cases(["seed=0", f"method={typed}"], CASES) == expected
    assert reduce_cases(["seed=0"], CASES) == [(["seed=0"], case) for case in CASES]

"""The published sweeps of FGM and other methods have the points that they promise; none is run."""

import itertools
import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.report.claims import read_claims
from ddobench.runner.spec import Specification
from ddobench.seeds import parse_seeds

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")

pytestmark = pytest.mark.slow  # many configurations

FAST = "search=ascent"  # ten times the paper's rate for methods with a VAE
CONTROLS = {  # of fgm, beside other graphs, at each number of rows
    2000: ("axes=random", f"axes=random {FAST}", "graph=complete", f"graph=complete {FAST}",
           "search.prior=0.1", f"{FAST} search.prior=0.1"),
    10000: tuple(f"latent={latent} {FAST}" for latent in (
        "scores", "scores graph=empty", "oracle", "oracle graph=true", "oracle graph=permuted",
        "oracle graph=empty")),
}  # fmt: skip

IDLE = ("naive", "random", "linear")  # what every published cell has, to measure others by


@cache
def plan(experiment: str) -> list[str]:
    """Return one line for each point of an experiment, in the order of its sweep.

    Options and settings are composed once, not again for every d and n.
    """
    sweeper = read_sweeper(experiment)
    lines: dict[str, None] = {}  # equal points count once
    composed: dict[tuple[str, ...], Specification] = {}
    for case in sweeper.get("cases", [{}]):
        settings = {key: str(value) for key, value in (sweeper["params"] | case).items()}
        seeds = len(parse_seeds(settings.pop("seed")))
        values = [[f"{key}={value}" for value in text.split(",")] for key, text in settings.items()]
        for words in product(*values):
            sizes = {word[0]: int(word[2:]) for word in words if word.startswith(("d=", "n="))}
            others = tuple(word for word in words if not word.startswith("d="))
            if "surrogate.training.steps" not in settings:  # the default depends on n
                others = tuple(word for word in others if not word.startswith("n="))
            if others not in composed:
                typed = [f"experiment={experiment}", *words]
                composed[others] = specification_of(*typed)
            title = replace(composed[others], **sizes).title  # type: ignore[arg-type]
            lines[f"{title}: {seeds} of {seeds} seeds to run"] = None
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


def test_known_graph_sets_true_cliques_against_an_ordinary_network() -> None:
    assert plan("known_graph") == [
        f"{method} on rbf d={d} n=5000{variant}: 10 of 10 seeds to run"
        for methods in (
            {"naive": "", "random": "", "linear": " search.steps=200", "ga": " search.steps=200"},
            {"fgm": f" latent=identity graph=true {FAST} search.steps=200"},
        )
        for d in (21, 41)
        for method, variant in methods.items()
    ]


@pytest.mark.parametrize("n", CONTROLS)
def test_controls_change_one_thing_at_a_time_at_both_rates(n: int) -> None:
    graphs = [f"{graph} {rate}" for graph in ("", "graph=permuted", "graph=empty")
              for rate in ("", FAST)]  # fmt: skip
    pulled = ["search.prior=0.1", f"{FAST} search.prior=0.1"] if n == 2000 else []
    variants = {**{name: [""] for name in IDLE}, "vae_ga": ["", FAST, *pulled],
                "fgm": [*graphs, *CONTROLS[n]]}  # fmt: skip
    expected = [" ".join(f"{method} on chain d=21 n={n} {variant}".split())
                for method, own in variants.items() for variant in own]  # fmt: skip
    lines = [line for line in plan("controls") if f" n={n}" in line]
    assert sorted(lines) == sorted(f"{name}: 10 of 10 seeds to run" for name in expected)


def test_confidence_changes_nothing_but_the_level_of_the_test_at_both_rates() -> None:
    levels = ("0.5", "0.2", "", "0.01", "0.001")  # 0.05 is the default
    variants = [f"{f' graph.alpha={level}' if level else ''}{rate}" for level in levels
                for rate in ("", f" {FAST}")]  # fmt: skip
    series = [*(f"fgm on chain d=21 n=2000{variant}" for variant in variants),
              *(f"{method} on chain d=21 n=2000" for method in IDLE)]  # fmt: skip
    assert plan("confidence") == [f"{name}: 10 of 10 seeds to run" for name in series]


def test_mixture_sets_the_main_methods_against_each_other_on_two_clusters() -> None:
    methods = [*IDLE, "ga", "rwr", "coms", "vae_ga", "fgm", "ensemble", "units"]
    assert plan("mixture") == [
        f"{method} on mixture d={d} n=2000{rate}: 10 of 10 seeds to run"
        for own, rate in ((methods, ""), (["vae_ga", "fgm"], f" {FAST}"))
        for d in (41, 61)
        for method in own
    ]


def test_the_supplement_sets_fgm_against_coms_on_small_tasks() -> None:
    lines = [line.removesuffix(": 10 of 10 seeds to run") for line in plan("supplement")]
    pulled = [f"fgm on toy3d d=3 n=5000 {words}search.prior=0.1" for words in ("", f"{FAST} ")]
    expected = [f"{method} on {task} n=5000" for task in ("toy3d d=3", "chain d=7")
                for method in (*IDLE, "coms", "fgm", "fgm")]  # fmt: skip
    for place in (5, 11):
        expected[place] += f" {FAST}"
    assert lines[:14] == [*expected[:6], *pulled, *expected[6:]]
    epochs, *online = lines[14:]
    assert epochs == "coms on chain d=7 n=5000 surrogate.training.steps=1850"
    assert [line.endswith(FAST) for line in online] == [False, True]
    assert all(line.startswith("fgm on chain d=7 n=5000 graph=online ") for line in online)


@pytest.mark.parametrize(("experiment", "n", "epochs"), [("chains_small", 2000, 600),
                                                         ("chains", 10000, 3700)])  # fmt: skip
def test_the_main_figure_has_the_papers_methods_and_coms_at_its_references_epochs(
    experiment: str, n: int, epochs: int
) -> None:
    lines = plan(experiment)
    for method in (*IDLE, "ga", "rwr", "coms", "vae_ga", "fgm"):
        for d in (11, 21, 31, 41):
            assert f"{method} on chain d={d} n={n}: 10 of 10 seeds to run" in lines
    longer = f"coms on chain d=41 n={n} surrogate.training.steps={epochs}: 10 of 10 seeds to run"
    assert longer in lines


def test_the_later_codes_map_has_ten_more_observed_dimensions() -> None:
    lines = plan("later_code_map")
    assert len(lines) == 20
    assert all(" n=10000 map=gaussian" in line and "10 of 10 seeds" in line for line in lines)
    assert specification_of("experiment=later_code_map").config["task"]["d_obs"] is None


def test_more_rows_and_another_training_are_asked_for_at_the_sizes_they_are_judged() -> None:
    lines = plan("chains_large")
    for method in (*IDLE, "ga", "coms", "vae_ga", "fgm"):
        assert f"{method} on chain d=41 n=100000: 5 of 5 seeds to run" in lines
    lines = plan("training")
    for method in ("ga", "coms", "vae_ga", "fgm"):
        for d, n in ((11, 2000), (21, 2000), (31, 2000), (41, 2000), (21, 10000)):
            for variant in ("", " training=paper"):
                assert f"{method} on chain d={d} n={n}{variant}: 10 of 10 seeds to run" in lines


def test_the_controls_run_fresh_seeds_of_whatever_their_claims_compare() -> None:
    lines = plan("controls")
    controls = [claim for claim in read_claims().claims if "experiment=controls" in claim.command]
    assert len(controls) > 10
    for claim in controls:
        asked = claim.question
        assert str(asked.seeds) == "10-19"
        for side in asked.sides:
            for d in asked.d:
                place = f"{side.method} on chain d={d} n={asked.n} {side.method_variant}".strip()
                assert f"{place}: 10 of 10 seeds to run" in lines, claim.id


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


def test_forms_turns_nothing_but_the_form_of_the_terms_and_of_the_units() -> None:
    methods = (*IDLE, "ga", "ensemble", "additive", "quadratic_ridge", "units", "auto")
    bumps = ("", " bump=laplace", " bump=cauchy", " bump=network")  # gaussian is the default
    expected = {
        f"{name} on chain d=21 n=5000{bump}{form}: {seeds} of {seeds} seeds to run"
        for bump in bumps
        for name, form, seeds in [
            *((method, "", 10) for method in methods),
            ("units", " surrogate.form=network", 5),
        ]
    }
    lines = plan("forms")
    assert len(lines) == len(expected) == 40
    assert set(lines) == expected


def test_surface_sets_the_usual_methods_against_each_other_at_one_size() -> None:
    methods = [
        *IDLE,
        "ga",
        "coms",
        "vae_ga",
        "fgm",
        "ensemble",
        "additive",
        "units",
        "auto",
        "ddom",
    ]
    expected = [f"{method} on surface d=30 n=3000: 10 of 10 seeds to run" for method in methods]
    assert plan("surface") == expected


def test_noise_turns_nothing_but_the_noise() -> None:
    lines = plan("noise")
    assert len(lines) == 28
    assert set(lines) == {
        f"{method} on chain d=21 n=5000{noise}: 10 of 10 seeds to run"
        for method in (*IDLE, "ensemble", "additive", "units", "auto")
        for noise in ("", " noise=0.1", " noise=0.3", " noise=1.0")
    }


def test_rows_cross_three_dimensions_with_five_numbers_of_rows() -> None:
    lines = plan("rows")
    assert len(lines) == 105
    assert set(lines) == {
        f"{method} on chain d={d} n={n}: 5 of 5 seeds to run"
        for method in (*IDLE, "additive", "ensemble", "units", "auto")
        for d in (11, 21, 41)
        for n in (500, 1000, 2000, 5000, 10000)
    }


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

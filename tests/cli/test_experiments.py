"""The published sweeps of FGM and its rivals, planned but not run: they hold what they promise."""

import sys
from itertools import product
from pathlib import Path

import pytest
import yaml
from hydra import compose, initialize_config_module

from ddobench import registry
from ddobench.cli import hydra_hooks
from ddobench.cli import main as cli
from ddobench.report.claims.claims import read_claims
from ddobench.runner.spec import Specification, specify

pytestmark = pytest.mark.slow  # many configurations

CONTROLS = (
    "", "graph=permuted", "graph=empty", "graph=complete", "axes=random", "latent=scores",
    "search.prior=0.03", "search.prior=0.1",
    "latent=oracle graph=true", "latent=oracle", "latent=oracle graph=permuted",
    "latent=oracle graph=empty",
)  # fmt: skip


@pytest.fixture
def plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Plan":
    """Return a function that plans an experiment."""
    return Plan(tmp_path, monkeypatch, capsys)


class Plan:
    """Plans experiments and returns what they would run."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys

    def __call__(self, experiment: str, *overrides: str) -> list[str]:
        """Return one line for each point of the sweep."""
        words = ["-m", f"experiment={experiment}", "plan=true", f"results_dir={self.folder}"]
        words += overrides
        self.monkeypatch.setattr(sys, "argv", ["ddobench", *words])
        for name in ("HYDRA_FULL_ERROR", "DDOBENCH_COMMAND"):
            self.monkeypatch.setenv(name, "")
        cli.main()
        told = self.capsys.readouterr().out.splitlines()
        return [line for line in told if line.endswith("seeds to run")]


def specification_of(*overrides: str) -> Specification:
    """Return what one run of an experiment is, whatever it sweeps."""
    hydra_hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose("run", overrides=list(overrides), return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


EXPERIMENTS = [entry.name for entry in registry.entries("experiment")]


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
    about = [claim for claim in read_claims() if "experiment=known_graph" in claim.command]
    assert len(about) == 3
    assert {claim.question.budget for claim in about} == {budget}


def test_known_graph_sets_true_cliques_against_an_ordinary_network(plan: Plan) -> None:
    assert plan("known_graph") == [
        f"{method} on rbf d={d} n=5000 {variant}search.steps=200: 10 of 10 seeds to run"
        for method, variant in (("ga", ""), ("fgm", "latent=identity graph=true "))
        for d in (21, 41)
    ]


def test_controls_change_one_thing_at_a_time(plan: Plan) -> None:
    lines = plan("controls", "n=2000")
    assert len(lines) == len(set(lines)) == 17
    for variant in CONTROLS:
        name = f"fgm on chain d=41 n=2000 {variant}".strip()
        assert f"{name}: 5 of 5 seeds to run" in lines
    for variant in ("", "search.prior=0.03", "search.prior=0.1"):
        name = f"vae_ga on chain d=41 n=2000 {variant}".strip()
        assert f"{name}: 5 of 5 seeds to run" in lines


def test_confidence_changes_nothing_but_the_level_of_the_test(plan: Plan) -> None:
    levels = ("0.5", "0.2", "0.1", "", "0.01", "0.001")  # 0.05 is the default
    variants = [f" graph.alpha={level}" if level else "" for level in levels]
    assert plan("confidence") == [
        f"fgm on chain d=21 n=2000{variant}: 5 of 5 seeds to run" for variant in variants
    ]


def test_mixture_sets_the_main_methods_against_each_other_on_two_clusters(plan: Plan) -> None:
    assert plan("mixture") == [
        f"{method} on mixture d={d} n=2000: 3 of 3 seeds to run"
        for method in ("ga", "rwr", "coms", "vae_ga", "fgm")
        for d in (41, 61)
    ]


def test_the_supplement_sets_fgm_against_coms_on_small_tasks(plan: Plan) -> None:
    assert plan("supplement") == [
        f"{method} on {task} n=5000: 5 of 5 seeds to run"
        for task in ("toy3d d=3", "chain d=7")
        for method in ("coms", "fgm")
    ]


def test_forms_turns_nothing_but_the_form_of_the_terms_and_of_the_units(plan: Plan) -> None:
    methods = ("naive", "ga", "coms", "fgm", "vae_ga", "ensemble", "additive", "quadratic_ridge",
               "units", "auto")  # fmt: skip
    bumps = ("", " bump=laplace", " bump=cauchy", " bump=network")  # gaussian is the default
    expected = {
        f"{name} on chain d=21 n=5000{bump}{form}: 10 of 10 seeds to run"
        for bump in bumps
        for name, form in [
            *((method, "") for method in methods),
            ("units", " surrogate.form=network"),
        ]
    }
    lines = plan("forms")
    assert len(lines) == len(expected) == 44
    assert set(lines) == expected


def test_noise_turns_nothing_but_the_noise(plan: Plan) -> None:
    lines = plan("noise")
    assert len(lines) == 24
    assert set(lines) == {
        f"{method} on chain d=21 n=5000{noise}: 10 of 10 seeds to run"
        for method in ("naive", "ensemble", "additive", "units", "auto", "fgm")
        for noise in ("", " noise=0.1", " noise=0.3", " noise=1.0")
    }


def test_rows_cross_four_dimensions_with_five_numbers_of_rows(plan: Plan) -> None:
    lines = plan("rows")
    assert len(lines) == 100
    assert set(lines) == {
        f"{method} on chain d={d} n={n}: 5 of 5 seeds to run"
        for method in ("naive", "additive", "ensemble", "units", "auto")
        for d in (11, 21, 31, 41)
        for n in (500, 1000, 2000, 5000, 10000)
    }


def test_the_cross_has_every_combination_of_its_levels_on_each_task() -> None:
    file = Path(__file__).parents[2] / "conf" / "experiment" / "cross.yaml"
    cases = yaml.safe_load(file.read_text())["hydra"]["sweeper"]["cases"]
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
